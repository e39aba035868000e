//! A CloudFormation template, parsed once for checking and deploying.

use std::path::Path;

use serde_json::Value;

use super::engine::RenderError;
use crate::document::parse_untyped;

/// A template whose text was a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Value);

impl Template {
    /// Parses a rendered template; `name` is what errors call it.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, RenderError> {
        let shape = |reason: String| RenderError::Shape { document: name.to_owned(), reason };
        let document =
            parse_untyped(Path::new(name), text).map_err(|problems| shape(problems.to_string()))?;
        if document.is_object() { Ok(Self(document)) } else { Err(shape("it is not a mapping".to_owned())) }
    }

    /// The whole template.
    #[must_use]
    pub fn document(&self) -> &Value {
        &self.0
    }

    /// The names of its parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &String> {
        self.0["Parameters"].as_object().into_iter().flat_map(|parameters| parameters.keys())
    }

    /// The template as CloudFormation takes it: without the white space that is for readers.
    #[must_use]
    pub fn compact(&self) -> String {
        self.0.to_string()
    }

    /// The template as it is written to disk.
    pub(super) fn readable(&self) -> String {
        format!("{:#}\n", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Template;

    #[test]
    fn a_text_that_is_no_template_is_an_error() {
        for text in ["", "null", "- a", "text", "a: [", "a: 1\n---\nb: 2"] {
            let error = Template::parse("stacks/pool.yaml", text).err().map(|error| error.to_string());
            assert!(
                error.as_ref().is_some_and(|error| error.contains("stacks/pool.yaml")),
                "{text}: {error:?}"
            );
        }
    }

    #[test]
    fn a_compact_and_a_readable_template_are_the_same_template() -> Result<(), Box<dyn std::error::Error>> {
        let template =
            Template::parse("x", "Parameters: {B: {}, A: {}}\nResources: {Z: {Type: T}, Y: [1, true]}")?;
        for text in [template.compact(), template.readable()] {
            assert_eq!(Template::parse("x", &text)?, template);
        }
        assert_eq!(template.parameters().collect::<Vec<_>>(), ["B", "A"]);
        Ok(())
    }
}
