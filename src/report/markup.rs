//! Elements of HTML and SVG. Every text and every value of an attribute is escaped when it is written, and there is no other way to
//! write one: what others named or said cannot become markup.

/// An element with its attributes and what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HtmlElement {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    children: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Element(HtmlElement),
    Text(String),
    /// A style sheet of ours, in which `<` and `&` do not occur.
    Style(&'static str),
}

/// An element without anything in it.
pub(crate) fn element(name: &'static str) -> HtmlElement {
    HtmlElement { name, attributes: Vec::new(), children: Vec::new() }
}

/// A `style` element with a style sheet of ours.
pub(crate) fn style_element(sheet: &'static str) -> HtmlElement {
    let mut element = element("style");
    element.children.push(Node::Style(sheet));
    element
}

impl HtmlElement {
    /// The element with one more attribute.
    #[expect(clippy::needless_pass_by_value, reason = "callers give texts, numbers and names alike")]
    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.attributes.push((name, value.to_string()));
        self
    }

    /// The element with this class.
    pub(crate) fn class(self, name: impl ToString) -> Self {
        self.with("class", name)
    }

    /// The element with more text in it.
    #[expect(clippy::needless_pass_by_value, reason = "callers give texts, numbers and names alike")]
    pub(crate) fn text(mut self, text: impl ToString) -> Self {
        self.children.push(Node::Text(text.to_string()));
        self
    }

    /// The element with another element in it.
    pub(crate) fn child(mut self, child: Self) -> Self {
        self.children.push(Node::Element(child));
        self
    }

    /// The element with other elements in it.
    pub(crate) fn children(mut self, children: impl IntoIterator<Item = Self>) -> Self {
        self.children.extend(children.into_iter().map(Node::Element));
        self
    }

    /// The element as a document that begins with this line.
    pub(crate) fn document(&self, first_line: &str) -> String {
        let mut text = format!("{first_line}\n");
        self.write(&mut text);
        text.push('\n');
        text
    }

    /// Writes the element so that it is well-formed as HTML and as XML.
    fn write(&self, target: &mut String) {
        target.push('<');
        target.push_str(self.name);
        for (name, value) in &self.attributes {
            target.push(' ');
            target.push_str(name);
            target.push_str("=\"");
            escape_markup(value, target);
            target.push('"');
        }
        if is_void(self.name) {
            target.push_str("/>");
            return;
        }
        target.push('>');
        for child in &self.children {
            match child {
                Node::Element(element) => {
                    if begins_a_line(element.name) {
                        target.push('\n');
                    }
                    element.write(target);
                }
                Node::Text(text) => escape_markup(text, target),
                Node::Style(sheet) => target.push_str(sheet),
            }
        }
        target.push_str("</");
        target.push_str(self.name);
        target.push('>');
    }
}

fn is_void(name: &str) -> bool {
    matches!(name, "meta" | "br" | "hr" | "img" | "link")
}

/// Elements around which white space means nothing: a difference of two pages can be read line by line.
fn begins_a_line(name: &str) -> bool {
    matches!(
        name,
        "head"
            | "body"
            | "meta"
            | "title"
            | "style"
            | "header"
            | "nav"
            | "main"
            | "footer"
            | "section"
            | "div"
            | "h1"
            | "h2"
            | "h3"
            | "p"
            | "ul"
            | "ol"
            | "li"
            | "table"
            | "thead"
            | "tbody"
            | "tr"
            | "details"
            | "figure"
            | "figcaption"
            | "svg"
            | "g"
            | "rect"
            | "path"
            | "circle"
            | "desc"
            | "defs"
            | "dl"
            | "dt"
            | "dd"
    )
}

fn escape_markup(text: &str, target: &mut String) {
    for character in text.chars() {
        match character {
            '&' => target.push_str("&amp;"),
            '<' => target.push_str("&lt;"),
            '>' => target.push_str("&gt;"),
            '"' => target.push_str("&quot;"),
            '\'' => target.push_str("&#39;"),
            '\n' | '\t' => target.push(character),
            hidden if is_hidden(hidden) => target.push('\u{fffd}'),
            other => target.push(other),
        }
    }
}

/// Whether a character would hide or turn around what a reader sees, or is none in XML.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::element;

    #[test]
    fn texts_and_attributes_are_escaped() {
        let hostile = "</style><script>alert('x')</script>&amp;\"\u{202e}\u{0}\u{1b}[31m";
        let text = element("p").with("title", hostile).text(hostile).document("<!DOCTYPE html>");
        let escaped = "&lt;/style&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;amp;&quot;\u{fffd}\u{fffd}\u{fffd}[31m";
        assert_eq!(text, format!("<!DOCTYPE html>\n<p title=\"{escaped}\">{escaped}</p>\n"));
    }

    #[test]
    fn elements_without_an_end_are_closed() {
        let text = element("div").child(element("br")).child(element("span")).document("");
        assert_eq!(text, "\n<div><br/><span></span></div>\n");
    }
}
