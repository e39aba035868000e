//! Everything that is rendered for a cluster, each kind as a type of its own: boot configs by role, CloudFormation templates by stack,
//! manifests by name. The path of a file is where it is written, never what it is found by.

use super::asset::Asset;
use super::template::Template;
use crate::blueprint::{Role, StackPart};

/// Everything that was rendered, in a stable order.
#[derive(Clone, Debug)]
pub struct Assets {
    /// What machines boot with, one for each role.
    pub boot_configs: Vec<BootConfig>,
    /// The CloudFormation templates, in the order their stacks are created.
    pub templates: Vec<StackTemplate>,
    /// The manifests, in the order they are applied.
    pub manifests: Vec<Manifest>,
}

/// What machines of one role boot with.
#[derive(Clone, Debug)]
pub struct BootConfig {
    /// The role.
    pub role: Role,
    /// How the machines read it.
    pub form: BootForm,
    /// The Ignition config or the archive.
    pub file: Asset,
    /// The team's own Ignition configs, which are merged in.
    pub snippets: Vec<Asset>,
}

/// How machines read what they boot with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootForm {
    /// An Ignition config, which Flatcar applies.
    Ignition,
    /// A tar archive, which a script in the user data unpacks.
    Archive,
}

impl BootForm {
    /// How the names of such files end.
    #[must_use]
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ignition => "ign",
            Self::Archive => "tar",
        }
    }
}

/// The template of one stack.
#[derive(Clone, Debug)]
pub struct StackTemplate {
    /// The stack.
    pub part: StackPart,
    /// The parsed template.
    pub template: Template,
    /// The template as a file.
    pub file: Asset,
}

/// Kubernetes objects that the control plane applies.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The name of the file, which gives the order.
    pub name: String,
    /// The objects as a file.
    pub file: Asset,
}

impl Assets {
    /// Every rendered file, for writing them.
    pub fn files(&self) -> impl Iterator<Item = &Asset> {
        let configs = self.boot_configs.iter().map(|config| &config.file);
        let templates = self.templates.iter().map(|template| &template.file);
        configs.chain(templates).chain(self.manifests.iter().map(|manifest| &manifest.file))
    }
}
