//! Rendered assets into findings: what Ignition, Kubernetes or AWS would refuse, before anything leaves the machine.
//!
//! In: rendered assets, and the team's own configs among them. Out: what is wrong with it and where. No AWS, no disk.

mod ignition;
mod references;
mod schema;
mod stack;

pub use ignition::check_ignition;
pub use schema::{create_only_properties, handler_permissions, is_function};
pub use stack::check_stack;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::blueprint::Rule;
use crate::render::Assets;

/// One thing that would be refused later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The asset.
    pub asset: String,
    /// The part of it.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// All findings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Findings(pub Vec<Finding>);

impl std::error::Error for Findings {}

impl fmt::Display for Findings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            let line_end = if index == 0 { "" } else { "\n" };
            write!(formatter, "{line_end}{}: {}: {}", finding.asset, finding.place, finding.message)?;
        }
        Ok(())
    }
}

/// Checks everything that was rendered, and the team's own configs that are merged in.
#[must_use]
pub fn check_assets(assets: &Assets, rules: &[Rule]) -> Findings {
    // A snippet goes to several roles and is wrong once.
    let snippets = assets.boot_configs.iter().flat_map(|config| &config.snippets);
    let snippets: BTreeMap<&str, _> = snippets.map(|snippet| (snippet.path.as_str(), snippet)).collect();
    let configs = assets.boot_configs.iter().map(|config| &config.file).chain(snippets.into_values());
    let of_configs = configs.flat_map(|config| check_ignition(&config.path, &config.bytes));
    let of_stacks = assets.templates.iter().flat_map(|template| check_stack(template, rules));
    Findings(of_configs.chain(of_stacks).collect())
}

/// A check of one asset that is under way; each kind of asset adds its own rules to it.
struct Check<'a> {
    asset: &'a str,
    findings: Vec<Finding>,
}

impl<'a> Check<'a> {
    fn new(asset: &'a str) -> Self {
        Self { asset, findings: Vec::new() }
    }

    fn note(&mut self, place: &str, message: String) {
        self.findings.push(Finding { asset: self.asset.to_owned(), place: place.to_owned(), message });
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::check_assets;
    use crate::blueprint::Role;
    use crate::durable_file::Access;
    use crate::render::{Asset, Assets, BootConfig};

    #[test]
    fn a_snippet_for_several_roles_is_named_once() {
        let config = |member: u32| BootConfig {
            role: Role::EtcdMember(member),
            file: Asset {
                path: format!("userdata/etcd-{member}.ign"),
                bytes: Zeroizing::new(br#"{"ignition": {"version": "3.3.0"}}"#.to_vec()),
                access: Access::Private,
            },
            snippets: vec![Asset::snippet("etcd.ign", "{".to_owned())],
        };
        let boot_configs = (0..3).map(config).collect();
        let findings =
            check_assets(&Assets { boot_configs, templates: Vec::new(), manifests: Vec::new() }, &[]);
        let named: Vec<&str> = findings.0.iter().map(|finding| finding.asset.as_str()).collect();
        assert_eq!(named, ["snippets/etcd.ign"]);
    }
}
