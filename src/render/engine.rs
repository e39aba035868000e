//! The only file that names the template engine: every embedded template, the team's overrides, and the filters they use.

use std::collections::BTreeMap;

use serde::Serialize;
use tera::{Context, Kwargs, State, Tera};

use crate::document::nearest_word;
use crate::outcome::{Explain, Outcome};

/// Every file below templates/, by its path there.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/templates.rs"));

/// Templates end with this; any other file is used as it is.
const TEMPLATE_SUFFIX: &str = ".tera";

/// Why a template could not be rendered.
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
    /// A file among the overrides has the name of no template.
    #[error("templates/{name} overrides nothing: there is no template of that name")]
    UnknownOverride {
        /// The file.
        name: String,
        /// The template that was probably meant.
        near: Option<String>,
    },
    /// A credential that a template needs does not exist.
    #[error("{file} is not among the credentials")]
    NoCredential {
        /// The file.
        file: String,
    },
    /// A document does not have the shape that it must have.
    #[error("{document} has an unexpected shape: {reason}")]
    Shape {
        /// The document.
        document: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Explain for RenderError {
    fn help(&self) -> Option<String> {
        match self {
            Self::UnknownOverride { near: Some(near), .. } => Some(format!("did you mean templates/{near}?")),
            Self::NoCredential { .. } => {
                Some("run `infra render credentials` to create what is missing".to_owned())
            }
            _ => None,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::NoCredential { .. } => Outcome::Failed,
            _ => Outcome::Invalid,
        }
    }
}

/// All templates, some of them possibly the team's own.
#[derive(Debug)]
pub struct Templates {
    engine: Tera,
    plain: BTreeMap<String, String>,
}

impl Templates {
    /// The embedded templates, with those of the same name in `overrides` in their place.
    pub fn new(overrides: &BTreeMap<String, String>) -> Result<Self, RenderError> {
        for name in overrides.keys() {
            if EMBEDDED.iter().all(|(embedded, _)| embedded != name) {
                let near =
                    nearest_word(name, EMBEDDED.iter().map(|(embedded, _)| *embedded)).map(str::to_owned);
                return Err(RenderError::UnknownOverride { name: name.clone(), near });
            }
        }
        let mut engine = Tera::new();
        engine.autoescape_on(Vec::<&str>::new());
        engine.register_filter("yaml", |text: &str, _: Kwargs, _: &State| yaml_scalar(text));
        engine.register_filter("json", |text: &str, _: Kwargs, _: &State| {
            serde_json::Value::from(text).to_string()
        });
        let mut plain = BTreeMap::new();
        for (name, embedded) in EMBEDDED {
            let text = overrides.get(*name).map_or(*embedded, String::as_str);
            match name.strip_suffix(TEMPLATE_SUFFIX) {
                Some(template) => engine.add_raw_template(template, text).map_err(|error| {
                    RenderError::Template { template: (*name).to_owned(), reason: error.to_string() }
                })?,
                None => {
                    plain.insert((*name).to_owned(), text.to_owned());
                }
            }
        }
        Ok(Self { engine, plain })
    }

    /// Renders one template; a file that is not a template is returned unchanged.
    pub(super) fn render(&self, name: &str, values: &impl Serialize) -> Result<String, RenderError> {
        if let Some(text) = self.plain.get(name) {
            return Ok(text.clone());
        }
        let failed = |error: tera::Error| RenderError::Template {
            template: name.to_owned(),
            reason: error.to_string(),
        };
        let context = Context::from_serialize(values).map_err(failed)?;
        self.engine.render(name, &context).map_err(failed)
    }

    /// A file that is not a template.
    #[must_use]
    pub fn plain(&self, name: &str) -> Option<&str> {
        self.plain.get(name).map(String::as_str)
    }

    /// The names of all templates and files below a directory, in order.
    pub(super) fn names_in(&self, directory: &str) -> Vec<String> {
        let templates = self.engine.get_template_names().map(str::to_owned);
        let mut names: Vec<String> =
            templates.chain(self.plain.keys().cloned()).filter(|name| name.starts_with(directory)).collect();
        names.sort();
        names
    }
}

/// A YAML scalar: plain where nothing can be misread, in quotes otherwise.
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
    use std::collections::BTreeMap;

    use super::{RenderError, Templates, yaml_scalar};
    use crate::outcome::Explain;

    #[test]
    fn every_template_loads() -> Result<(), RenderError> {
        Templates::new(&BTreeMap::new()).map(|_| ())
    }

    #[test]
    fn an_override_must_have_a_name_that_is_there() {
        let overrides = BTreeMap::from([("units/kubelt.service.tera".to_owned(), String::new())]);
        let error = Templates::new(&overrides).err();
        let near = error.and_then(|error| error.help()).unwrap_or_default();
        assert_eq!(near, "did you mean templates/units/kubelet.service.tera?");
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
