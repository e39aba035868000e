//! What secrets are for.

use schemars::JsonSchema;
use serde::Serialize;

use crate::kube::SecretType;

/// What a Secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SecretUse {
    /// Variables of a job's processes: `secrets:` of a job file.
    Variables,
    /// The login to a registry: `imagePullSecrets:` of a job file.
    Registry,
}

impl SecretUse {
    /// The word for it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Variables => "variables",
            Self::Registry => "registry",
        }
    }

    /// The type that Kubernetes knows it by.
    pub(super) fn kubernetes_type(self) -> SecretType {
        match self {
            Self::Variables => SecretType::Opaque,
            Self::Registry => SecretType::Registry,
        }
    }
}
