//! The frame of every page: head, heading, contents, sections, foot.

use super::markup::{HtmlElement, element, style_element};
use super::picture::GENERATOR;

const STYLE: &str = include_str!("page.css");

/// A page before it is written.
#[derive(Debug)]
pub(super) struct Page {
    /// What kind of page it is, above its heading.
    pub(super) kind: &'static str,
    pub(super) heading: String,
    pub(super) subtitle: String,
    /// Figures that matter most, with what they count.
    pub(super) figures: Vec<(String, String)>,
    pub(super) sections: Vec<Section>,
    pub(super) foot: String,
}

/// A part of a page that the contents name.
#[derive(Debug)]
pub(super) struct Section {
    id: &'static str,
    title: String,
    parts: Vec<HtmlElement>,
}

impl Section {
    pub(super) fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), parts: Vec::new() }
    }

    /// The section with one more part.
    pub(super) fn part(mut self, part: HtmlElement) -> Self {
        self.parts.push(part);
        self
    }

    /// The section with more parts.
    pub(super) fn parts(mut self, parts: impl IntoIterator<Item = HtmlElement>) -> Self {
        self.parts.extend(parts);
        self
    }

    fn element(self) -> HtmlElement {
        let heading = format!("{}-heading", self.id);
        element("section")
            .with("id", self.id)
            .with("aria-labelledby", &heading)
            .child(element("h2").with("id", &heading).text(self.title))
            .children(self.parts)
    }
}

impl Page {
    /// The page as text.
    pub(super) fn write(self) -> String {
        let title = format!("{} · {}", self.heading, self.kind);
        let head = element("head")
            .child(element("meta").with("charset", "utf-8"))
            .child(
                element("meta")
                    .with("name", "viewport")
                    .with("content", "width=device-width, initial-scale=1"),
            )
            .child(element("meta").with("name", "color-scheme").with("content", "light dark"))
            .child(element("meta").with("name", "generator").with("content", GENERATOR))
            .child(element("title").text(title))
            .child(style_element(STYLE));
        let figure = |(value, what): (String, String)| {
            element("div").child(element("dt").text(what)).child(element("dd").text(value))
        };
        let header = element("header")
            .child(element("p").class("kind").text(self.kind))
            .child(element("h1").text(&self.heading))
            .child(element("p").class("subtitle").text(&self.subtitle));
        let header = if self.figures.is_empty() {
            header
        } else {
            header.child(element("dl").class("figures").children(self.figures.into_iter().map(figure)))
        };
        let entry = |section: &Section| {
            let link = element("a").with("href", format!("#{}", section.id)).text(&section.title);
            element("li").child(link)
        };
        let contents = element("nav")
            .with("aria-label", "Contents")
            .child(element("ul").children(self.sections.iter().map(entry)));
        let body = element("body")
            .child(header)
            .child(contents)
            .child(element("main").children(self.sections.into_iter().map(Section::element)))
            .child(element("footer").child(element("p").text(self.foot)));
        element("html")
            .with("xmlns", "http://www.w3.org/1999/xhtml")
            .with("lang", "en")
            .child(head)
            .child(body)
            .document("<!DOCTYPE html>")
    }
}
