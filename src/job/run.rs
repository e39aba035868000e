//! One run of a workload: its id and its digest.

use crate::hexadecimal::hexadecimal;

use super::workload::{RolePlan, Variable, Workload};

/// The id of a run of a job: two runs never take each other's markers for their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunId(String);

impl RunId {
    /// The run with this name, of which only letters, digits and `-` are kept.
    #[must_use]
    pub(crate) fn new(name: &str) -> Self {
        let clean: String =
            name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(40).collect();
        Self(format!("r-{}", clean.trim_matches('-').to_ascii_lowercase()))
    }

    /// The run of a job that exists, as its label says it.
    #[must_use]
    pub(crate) fn of_label(label: &str) -> Self {
        Self(label.to_owned())
    }

    /// The id as labels and paths have it.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A workload that is to run under an id.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// What runs.
    pub workload: Workload,
    /// The digest of the workload, the same in every run of it.
    pub digest: String,
    /// Which run it is.
    pub id: RunId,
}

impl Run {
    /// A run of a workload; without an id of its own it is named after the workload's digest.
    #[must_use]
    pub(crate) fn new(workload: Workload, id: Option<RunId>) -> Self {
        let digest = digest_of(&workload);
        let id = id.unwrap_or_else(|| RunId::new(&digest));
        Self { workload, digest, id }
    }

    /// The variables of a role's containers. Other variables may refer to the index, so it stays first.
    pub(super) fn variables_of(&self, role: &RolePlan) -> Vec<Variable> {
        let marks = format!("{}/.infra/{}", self.workload.root(), self.id.as_str());
        let mut variables = role.variables.clone();
        variables.insert(1.min(variables.len()), Variable::text("INFRA_RUN_DIR", marks));
        variables
    }
}

fn digest_of(workload: &Workload) -> String {
    let text = serde_json::json!(workload).to_string();
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    hexadecimal(&digest.as_ref()[..6])
}
