//! Tables that scroll by themselves where the screen is narrow.

use super::markup::{HtmlElement, element};

/// A table; the first cell of each row is its heading.
pub(super) fn html_table(
    name: &str,
    head: &[&str],
    rows: impl IntoIterator<Item = Vec<HtmlElement>>,
) -> HtmlElement {
    let heads = head.iter().map(|title| element("th").with("scope", "col").text(title));
    let body = rows.into_iter().map(|cells| element("tr").children(cells));
    let table = element("table")
        .child(element("thead").child(element("tr").children(heads)))
        .child(element("tbody").children(body));
    scrolling_box(name, table)
}

/// What may be wider than the screen, in a box that scrolls and that the keyboard reaches.
pub(super) fn scrolling_box(name: &str, inside: HtmlElement) -> HtmlElement {
    element("div")
        .class("scroll")
        .with("role", "group")
        .with("tabindex", 0)
        .with("aria-label", name)
        .child(inside)
}

/// The first cell of a row.
pub(super) fn row_head(text: impl ToString) -> HtmlElement {
    element("th").with("scope", "row").text(text)
}

/// A cell with text.
pub(super) fn text_cell(text: impl ToString) -> HtmlElement {
    element("td").text(text)
}

/// A cell with a number.
pub(super) fn number_cell(text: impl ToString) -> HtmlElement {
    element("td").class("number-cell").text(text)
}

/// A cell with a name that a program gave.
pub(super) fn code_cell(text: impl ToString) -> HtmlElement {
    element("td").child(code_element(text))
}

/// A name that a program gave.
pub(super) fn code_element(text: impl ToString) -> HtmlElement {
    element("code").text(text)
}

/// A paragraph; what is between backticks is code.
pub(super) fn paragraph(text: impl Into<String>) -> HtmlElement {
    with_code(element("p"), &text.into())
}

/// A paragraph that explains; what is between backticks is code.
pub(super) fn note_paragraph(text: impl Into<String>) -> HtmlElement {
    with_code(element("p").class("note"), &text.into())
}

fn with_code(paragraph: HtmlElement, text: &str) -> HtmlElement {
    let parts = text.split('`').enumerate();
    parts.fold(paragraph, |paragraph, (position, part)| match position % 2 {
        0 => paragraph.text(part),
        _ => paragraph.child(code_element(part)),
    })
}
