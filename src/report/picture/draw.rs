//! A layout into SVG. What a test compares with the blueprint is in `data-` attributes.

use super::arrows::Arrow;
use super::content::{Card, Region, Row};
use super::geometry::{Area, PlacedBand, svg_coordinate};
use super::layout::Layout;
use super::marks::{Mark, Marks};
use crate::blueprint::{Blueprint, StackPart};
use crate::report::connections::Origin;
use crate::report::markup::{HtmlElement, element};

/// How many machines of a box are drawn one by one.
const DRAWN_MACHINES: u32 = 8;

/// Everything but the frame, from the back to the front.
pub(super) fn draw_picture(blueprint: &Blueprint, layout: &Layout, marks: &Marks) -> Vec<HtmlElement> {
    let mut drawn = vec![draw_vpc(blueprint, layout, marks)];
    let zones = blueprint.cluster.availability_zones.iter().zip(&layout.zones);
    drawn.extend(zones.map(|(zone, area)| {
        let name = draw_text("title", area.x + 12, area.y + 19, zone.as_str(), area.width - 20, 13);
        element("g").with("data-zone", zone).child(draw_rectangle("zone", *area, 8)).child(name)
    }));
    for (area, subnet) in &layout.subnets {
        let class = with_mark("subnet", subnet.mark);
        let title = match subnet.mark {
            Some(mark) => format!("{} {}", mark.sign(), subnet.title),
            None => subnet.title.to_owned(),
        };
        drawn.push(
            element("g")
                .with("data-subnet", &subnet.resource)
                .child(draw_rectangle(&class, *area, 6))
                .child(draw_text("detail", area.x + 9, area.y + 16, &title, area.width - 14, 12))
                .child(draw_text("address", area.x + 9, area.y + 31, &subnet.address, area.width - 14, 11)),
        );
    }
    drawn.extend(layout.bands.iter().map(draw_band));
    drawn.extend(layout.arrows.iter().map(|way| draw_arrow(way, marks)));
    drawn
}

/// The name above a picture that stands alone.
pub(super) fn draw_cluster_name(blueprint: &Blueprint) -> HtmlElement {
    let cluster = &blueprint.cluster;
    let detail = format!("{}, Kubernetes {}", cluster.region, cluster.kubernetes.version);
    element("g")
        .child(draw_text("name", 36, 38, cluster.name.as_str(), 640, 22))
        .child(draw_text("detail", 36, 58, &detail, 640, 12))
}

fn draw_vpc(blueprint: &Blueprint, layout: &Layout, marks: &Marks) -> HtmlElement {
    let range = blueprint.cluster.network.vpc_range;
    let title = match &blueprint.network.adopted_vpc {
        Some(id) => format!("VPC {id}, {range}, adopted"),
        None => format!("VPC {range}"),
    };
    let title = match marks.resource(&StackPart::Network, "Vpc") {
        Some(mark) => format!("{title} {} {}", mark.sign(), mark.class()),
        None => title,
    };
    let Area { x, y, width, .. } = layout.vpc;
    element("g").child(draw_rectangle("vpc", layout.vpc, 12)).child(draw_text(
        "title",
        x + 16,
        y + 24,
        &title,
        width - 40,
        13,
    ))
}

fn draw_band(placed: &PlacedBand) -> HtmlElement {
    let (class, place) = match placed.band.origin {
        Some(Origin::Outside(why)) => ("outside", why),
        Some(Origin::Group(group)) => ("group", group.resource()),
        None => ("group", ""),
    };
    let mut drawn = element("g").class(class).with("data-band", place);
    if placed.band.region != Region::Outside || placed.band.origin.is_some() {
        drawn = drawn.child(draw_rectangle("band", placed.area, 8));
    }
    for (row, (area, cards)) in placed.band.rows.iter().zip(&placed.rows) {
        drawn = drawn
            .child(draw_row_label(row, *area))
            .children(row.cards.iter().zip(cards).map(|(card, area)| draw_card(card, *area)));
    }
    drawn
}

fn draw_row_label(row: &Row, area: Area) -> HtmlElement {
    let lines = svg_coordinate(row.details.len() + row.changes.len());
    let mut y = area.y + (area.height - lines * 16 - 20) / 2 + 15;
    let mut drawn = element("g").child(draw_text("title", area.x + 14, y, &row.title, 154, 13));
    for detail in &row.details {
        y += 16;
        drawn = drawn.child(draw_text("detail", area.x + 14, y, detail, 154, 12));
    }
    for (mark, words) in &row.changes {
        y += 16;
        drawn =
            drawn.child(draw_text(&format!("change is-{}", mark.class()), area.x + 14, y, words, 154, 12));
    }
    drawn
}

fn draw_card(card: &Card, area: Area) -> HtmlElement {
    let mut drawn = element("g");
    if let Some(role) = &card.role {
        drawn = drawn.with("data-role", role).with("data-machines", card.machines);
    }
    if let Some(zone) = card.zone {
        drawn = drawn.with("data-zone-index", zone);
    }
    if let Some(mark) = card.mark {
        drawn = drawn.with("data-mark", mark.class());
    }
    drawn = drawn.child(draw_rectangle(&with_mark("card", card.mark), area, 6));
    drawn = drawn.child(draw_text("card-title", area.x + 10, area.y + 20, &card.title, area.width - 20, 12));
    if card.role.is_some() {
        drawn = drawn.children(draw_machines(card, area));
    }
    if card.mark == Some(Mark::Delete) {
        let line = format!("M{} {}L{} {}", area.x + 3, area.bottom() - 3, area.right() - 3, area.y + 3);
        drawn = drawn.child(element("path").class("strike").with("d", line));
    }
    drawn
}

/// A square for each machine, up to a number that can be seen at once.
fn draw_machines(card: &Card, area: Area) -> Vec<HtmlElement> {
    let y = area.y + 29;
    let shown = card.machines.min(DRAWN_MACHINES);
    let square = |position: i32| {
        let area = Area { x: area.x + 10 + position * 15, y, width: 11, height: 11 };
        draw_rectangle("machine", area, 3)
    };
    let shown = i32::try_from(shown).unwrap_or_default();
    let mut drawn: Vec<HtmlElement> = (0..shown).map(square).collect();
    let rest = match card.machines {
        0 => Some("none now".to_owned()),
        more if more > DRAWN_MACHINES => Some(format!("+ {}", more - DRAWN_MACHINES)),
        _ => None,
    };
    let x = area.x + 10 + shown * 15;
    drawn.extend(rest.map(|rest| draw_text("detail", x, y + 10, &rest, area.right() - x, 12)));
    drawn
}

fn draw_arrow(arrow: &Arrow, marks: &Marks) -> HtmlElement {
    let Arrow { edge, begin, end, .. } = *arrow;
    let mark = arrow.rules.iter().filter_map(|rule| marks.resource(&StackPart::Network, rule)).max();
    let from = match arrow.from {
        Origin::Outside(why) => why,
        Origin::Group(group) => group.resource(),
    };
    let title = format!(
        "{}: {} → {}, port {}",
        arrow.number,
        arrow.from.name(),
        crate::report::connections::short_name(arrow.to),
        arrow.ports
    );
    let (path, tip, badge) = match arrow.lane {
        Some(lane) => {
            let turn = if end > begin { 6 } else { -6 };
            let path = format!(
                "M{edge} {begin}H{}Q{lane} {begin} {lane} {}V{}Q{lane} {end} {} {end}H{}",
                lane - 6,
                begin + turn,
                end - turn,
                lane - 6,
                edge + 8
            );
            (path, end, (edge + 22, end))
        }
        None => {
            let (top, bottom) = (begin - 6, begin + 6);
            let turn = edge + 24;
            let path = format!(
                "M{edge} {top}H{turn}Q{} {top} {} {begin}Q{} {bottom} {turn} {bottom}H{}",
                turn + 6,
                turn + 6,
                turn + 6,
                edge + 8
            );
            (path, bottom, (edge + 31, begin))
        }
    };
    let head = format!("M{} {tip}L{} {}V{}Z", edge + 1, edge + 9, tip - 4, tip + 4);
    let tail = if arrow.lane.is_some() { begin } else { begin - 6 };
    let mut drawn = element("g")
        .class(with_mark("arrow", mark))
        .with("data-arrow", arrow.number)
        .with("data-from", from)
        .with("data-to", arrow.to.resource())
        .with("data-rules", arrow.rules.join(" "))
        .child(element("title").text(title))
        .child(element("path").with("d", path))
        .child(element("path").class("head").with("d", head))
        .child(element("circle").class("tail").with("cx", edge).with("cy", tail).with("r", 2));
    if let Some(mark) = mark {
        drawn = drawn.with("data-mark", mark.class());
    }
    let ports = match mark {
        Some(mark) => format!("{} {}", mark.sign(), arrow.ports),
        None => arrow.ports.clone(),
    };
    let number = |class: &'static str, x: i32, y: i32| {
        element("text").class(class).with("x", x).with("y", y).text(arrow.number)
    };
    if arrow.lane.is_some() {
        drawn = drawn.child(number("begin", edge + 9, begin - 3));
    }
    drawn
        .child(element("circle").class("badge").with("cx", badge.0).with("cy", badge.1).with("r", 8))
        .child(number("number", badge.0, badge.1 + 4))
        .child(draw_text("port end-text", edge - 8, end + 4, &ports, 160, 11))
}

fn with_mark(class: &str, mark: Option<Mark>) -> String {
    mark.map_or_else(|| class.to_owned(), |mark| format!("{class} {}", mark.class()))
}

fn draw_rectangle(class: &str, area: Area, radius: i32) -> HtmlElement {
    element("rect")
        .class(class)
        .with("x", area.x)
        .with("y", area.y)
        .with("width", area.width)
        .with("height", area.height)
        .with("rx", radius)
}

/// A line of text that fits; what is cut off is in its tooltip.
pub(super) fn draw_text(class: &str, x: i32, y: i32, content: &str, width: i32, size: i32) -> HtmlElement {
    // Six tenths of its size is the mean width of a character in wide fonts, and a little more in most others.
    let room = usize::try_from(width * 10 / (size * 6)).unwrap_or_default().max(2);
    let element = element("text").class(class).with("x", x).with("y", y);
    if content.chars().count() <= room {
        return element.text(content);
    }
    let cut: String = content.chars().take(room - 1).chain(['…']).collect();
    element.child(super::element("title").text(content)).text(cut)
}
