//! Every check of everything that was rendered.

use std::collections::BTreeMap;

use super::finding::Findings;
use super::ignition::check_ignition;
use super::stack::check_stack;
use crate::blueprint::Rule;
use crate::render::{Assets, BootForm};

/// Checks everything that was rendered, and the team's own configs that are merged in.
#[must_use]
pub fn check_assets(assets: &Assets, rules: &[Rule]) -> Findings {
    // A snippet that several roles merge in is checked once.
    let snippets = assets.boot_configs.iter().flat_map(|config| &config.snippets);
    let snippets: BTreeMap<&str, _> = snippets.map(|snippet| (snippet.path.as_str(), snippet)).collect();
    let ignition = assets.boot_configs.iter().filter(|config| config.form == BootForm::Ignition);
    let configs = ignition.map(|config| &config.file).chain(snippets.into_values());
    let of_configs = configs.flat_map(|config| check_ignition(&config.path, &config.bytes));
    let of_stacks = assets.templates.iter().flat_map(|template| check_stack(template, rules));
    Findings(of_configs.chain(of_stacks).collect())
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::check_assets;
    use crate::blueprint::Role;
    use crate::durable_file::Access;
    use crate::render::{Asset, Assets, BootConfig, BootForm};

    #[test]
    fn a_snippet_for_several_roles_is_named_once() {
        let config = |member: u32| BootConfig {
            role: Role::EtcdMember(member),
            form: BootForm::Ignition,
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
