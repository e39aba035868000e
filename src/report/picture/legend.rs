//! The explanation of the arrows below a picture that stands alone: a line for each rule of the table.

use super::draw::draw_text;
use crate::report::connections::{AllowedConnection, Origin, port_in_words, short_name};
use crate::report::markup::{HtmlElement, element};

const LINE_HEIGHT: i32 = 19;
const LEFT: i32 = 36;

/// The lines, from `top` on, and how high they are.
pub(super) fn picture_legend(
    connections: &[AllowedConnection<'_>],
    top: i32,
    width: i32,
) -> (Vec<HtmlElement>, i32) {
    let mut drawn = Vec::new();
    let mut y = top + LINE_HEIGHT;
    for connection in connections {
        let number = element("text").class("number").with("x", LEFT + 8).with("y", y).text(connection.number);
        let badge = element("circle").class("badge").with("cx", LEFT + 8).with("cy", y - 4).with("r", 8);
        let way = format!("{} → {}", connection_name(connection), short_name(connection.to));
        let mut line = element("g").child(badge).child(number).child(draw_text(
            "card-title",
            LEFT + 26,
            y,
            &way,
            290,
            12,
        ));
        let mut said: Vec<(String, &str)> = Vec::new();
        for rule in &connection.rules {
            if !said.contains(&(port_in_words(rule), rule.why)) {
                said.push((port_in_words(rule), rule.why));
            }
        }
        for (port, why) in said {
            line = line.child(draw_text("port", LEFT + 326, y, &port, 72, 11));
            line = line.child(draw_text("why", LEFT + 404, y, why, width - LEFT - 424, 11));
            y += LINE_HEIGHT;
        }
        drawn.push(line);
    }
    (drawn, y - top)
}

fn connection_name(connection: &AllowedConnection<'_>) -> &'static str {
    match connection.from {
        Origin::Outside(_) => "outside",
        Origin::Group(group) => short_name(group),
    }
}
