//! The only file that names the template engine: every embedded template, and the filters they use.

use std::sync::LazyLock;

use serde::Serialize;
use tera::{Context, Kwargs, State, Tera};

/// Every template, by the path it has in the repository.
const TEMPLATES: [(&str, &str); 1] = [("cluster.yaml", include_str!("../../templates/cluster.yaml.tera"))];

static ENGINE: LazyLock<Result<Tera, String>> = LazyLock::new(load);

/// Why a text could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// A template is wrong, or asks for a value that it was not given.
    #[error("cannot render {template}: {reason}")]
    Template {
        /// The template.
        template: String,
        /// What the engine said.
        reason: String,
    },
    /// A document that is to be changed has a shape that cannot be.
    #[error("{document} has an unexpected shape: {reason}")]
    Shape {
        /// The document.
        document: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Renders one embedded template.
pub(super) fn render(template: &str, values: &impl Serialize) -> Result<String, RenderError> {
    let failed = |reason: String| RenderError::Template { template: template.to_owned(), reason };
    let engine = ENGINE.as_ref().map_err(|reason| failed(reason.clone()))?;
    let context = Context::from_serialize(values).map_err(|error| failed(error.to_string()))?;
    engine.render(template, &context).map_err(|error| failed(error.to_string()))
}

fn load() -> Result<Tera, String> {
    let mut engine = Tera::new();
    engine.autoescape_on(Vec::<&str>::new());
    engine.register_filter("yaml", |text: &str, _: Kwargs, _: &State| yaml_scalar(text));
    engine.add_raw_templates(TEMPLATES).map_err(|error| error.to_string())?;
    Ok(engine)
}

/// A text as YAML reads it back: plain where nothing can be misread, in quotes otherwise.
fn yaml_scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@+=".contains(c))
        && !text.ends_with(':')
        && !matches!(
            text.to_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::{load, yaml_scalar};

    #[test]
    fn every_template_loads() {
        assert_eq!(load().err(), None);
    }

    #[test]
    fn quotes_what_yaml_would_misread() {
        assert_eq!(yaml_scalar("us-west-2"), "us-west-2");
        assert_eq!(yaml_scalar("s3://bucket/prefix"), "s3://bucket/prefix");
        assert_eq!(yaml_scalar("no"), "\"no\"");
        assert_eq!(yaml_scalar("1e3"), "\"1e3\"");
        assert_eq!(yaml_scalar("my key: #1"), "\"my key: #1\"");
        assert_eq!(yaml_scalar(""), "\"\"");
    }
}
