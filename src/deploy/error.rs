//! How a deployment can fail.

use std::fmt;

use super::event::{FailureReport, Finding, Refusal};
use crate::aws::{AwsError, StackStatus};
use crate::config::values::PoolName;
use crate::document::Problems;
use crate::kube::KubeError;
use crate::outcome::{Explain, Outcome};

/// Why a command of this layer did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeployError {
    /// A call to AWS failed.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// Neither a flag nor cluster.yaml nor the live cluster says where assets are uploaded.
    #[error("there is no S3 URI to upload assets to")]
    NoS3Uri,
    /// Something may not change.
    #[error("{}", join_lines(.0.iter().map(|refusal| &refusal.what)))]
    Refused(Vec<Refusal>),
    /// Preflight found what would fail later.
    #[error("preflight found {} that would fail later; nothing was changed", count_things(.0.len()))]
    Preflight(Vec<Finding>),
    /// Stacks failed.
    #[error("{}", join_lines(.0.iter()))]
    Failed(Vec<FailureReport>),
    /// Stacks are complete, but their Auto Scaling groups cannot start machines.
    #[error("{}", join_lines(.0.iter().map(FailureReport::without_machines)))]
    NoMachines(Vec<FailureReport>),
    /// A stack is in a state that needs a decision.
    #[error("stack {stack} is in {status}: {reason}")]
    Stuck {
        /// The stack.
        stack: String,
        /// The status of the stack.
        status: StackStatus,
        /// Why the stack needs a decision.
        reason: String,
        /// What to do next.
        help: String,
    },
    /// Another process deleted a stack that this run was working on.
    #[error("{stack} was deleted by another process meanwhile")]
    DeletedMeanwhile {
        /// The stack.
        stack: String,
    },
    /// The template of a stack is not what infra writes.
    #[error("the template of {stack} is not the JSON that infra writes: {reason}")]
    UnreadableTemplate {
        /// The stack.
        stack: String,
        /// What is wrong with the template.
        reason: String,
    },
    /// The user interrupted the wait, or the time limit was reached; AWS continues.
    #[error("{what}; {} in AWS", what_continues(.running))]
    StillRunning {
        /// What ended the wait.
        what: String,
        /// The stacks that AWS still works on.
        running: Vec<String>,
    },
    /// A call to the Kubernetes API failed.
    #[error(transparent)]
    Kube(#[from] KubeError),
    /// Secrets are still encrypted with a key that was to be dropped.
    #[error(
        "Secrets could not be encrypted with the current key, so the previous one is not dropped: {reason}"
    )]
    SecretsNotEncrypted {
        /// Why not.
        reason: KubeError,
    },
    /// No machine has the name that was given.
    #[error("no machine of this cluster is called '{name}'")]
    NoSuchMachine {
        /// The name that was given.
        name: String,
        /// The machines that there are.
        machines: Vec<String>,
    },
    /// Several machines have the role that was given.
    #[error("'{role}' has {} machines", .machines.len())]
    AmbiguousMachine {
        /// The role that was given.
        role: String,
        /// The machines.
        machines: Vec<String>,
    },
    /// A pool was never brought up.
    #[error("pool {pool} has no Auto Scaling group")]
    NoScalingGroup {
        /// The pool.
        pool: PoolName,
    },
    /// A pool was to be brought up alone, before the cluster.
    #[error("pool {pool} cannot be created before the cluster")]
    PoolBeforeCluster {
        /// The pool.
        pool: PoolName,
    },
    /// CloudFormation does not accept a change set.
    #[error("CloudFormation refuses the change of {stack}: {reason}")]
    ChangeSetRefused {
        /// The stack.
        stack: String,
        /// Why: each check that failed, or what CloudFormation says of the change set.
        reason: String,
        /// What to do about each reason, if that is known.
        help: Vec<String>,
    },
    /// No stack has the outputs that another one needs.
    #[error("{stack}: no stack has the outputs {}", .outputs.join(", "))]
    MissingOutputs {
        /// The stack that needs them.
        stack: String,
        /// The names of the outputs.
        outputs: Vec<String>,
    },
    /// Another process changes a stack again and again.
    #[error("{stack} keeps changing its state")]
    Contended {
        /// The stack.
        stack: String,
    },
    /// Another process deletes a stack that this run needs.
    #[error(
        "{stack} is being deleted: another user's `infra destroy` is in progress, and nothing was changed"
    )]
    BeingDeleted {
        /// The stack.
        stack: String,
    },
    /// Another process protected a stack that this run deletes.
    #[error(
        "{stack} was protected again before it could be deleted: another user's `infra up` is in progress"
    )]
    ProtectedAgain {
        /// The stack.
        stack: String,
    },
    /// A resource cannot be skipped: its rollback has not failed.
    #[error("{resource} is not a resource whose rollback failed")]
    RollbackNotFailed {
        /// The resource's logical id.
        resource: String,
        /// The resources whose rollback failed.
        failed: Vec<String>,
    },
    /// An object is no longer what was uploaded.
    #[error("s3://{bucket}/{key} is not what was uploaded a moment ago")]
    UploadChanged {
        /// The bucket.
        bucket: String,
        /// The object's key.
        key: String,
    },
    /// A change set was made from another template than ours.
    #[error("CloudFormation read a template for {stack} that infra did not write; {stack} was not changed")]
    ForeignTemplate {
        /// The stack.
        stack: String,
    },
    /// The bucket for assets belongs to another account.
    #[error("the bucket {bucket} belongs to another account")]
    ForeignBucket {
        /// The bucket.
        bucket: String,
    },
    /// The public name has a record that infra did not write.
    #[error(
        "hosted zone {zone} already has a record {name} of type {kind}: it points at {target}, which is not this cluster"
    )]
    ForeignRecord {
        /// The hosted zone.
        zone: String,
        /// The record's name.
        name: String,
        /// The record's type.
        kind: String,
        /// What the record points at.
        target: String,
        /// Whether infra can take the record over.
        can_be_adopted: bool,
    },
    /// infra.lock belongs to another cluster.
    #[error("infra.lock belongs to {key} '{locked}', cluster.yaml says '{wanted}'")]
    LockMismatch {
        /// The key of cluster.yaml that differs.
        key: &'static str,
        /// What infra.lock says.
        locked: String,
        /// What cluster.yaml says.
        wanted: String,
    },
    /// infra.lock cannot be read.
    #[error("infra.lock is not valid")]
    InvalidLock(#[from] Problems),
    /// AWS has no image of the cluster's channel.
    #[error("account {owner} has no image {pattern} in {region}")]
    NoImage {
        /// The account that should own it.
        owner: String,
        /// How images of the channel are called.
        pattern: String,
        /// The region.
        region: String,
    },
}

impl Explain for DeployError {
    fn help(&self) -> Option<String> {
        let text = match self {
            Self::Aws(error) => return error.help(),
            Self::Kube(error) => return error.help(),
            Self::SecretsNotEncrypted { reason } => reason.help().unwrap_or_else(|| {
                "fix the cause, then run `infra up` again".to_owned()
            }),
            Self::NoS3Uri => {
                "give `--s3-uri s3://bucket/prefix`, or set s3URI in cluster.yaml; `--create-bucket` creates a missing bucket".to_owned()
            }
            Self::Refused(refusals) => {
                refusals.iter().map(|refusal| refusal.instead.as_str()).collect::<Vec<_>>().join("\n      ")
            }
            Self::Preflight(_) => "fix what is listed above; `--skip-preflight` continues regardless".to_owned(),
            Self::Failed(reports) => {
                let hints = hints_of(reports);
                return (!hints.is_empty()).then(|| hints.join("\n      "));
            }
            Self::NoMachines(reports) => {
                let mut lines = hints_of(reports);
                lines.push("AWS keeps trying; run the same command again to resume the wait");
                lines.join("\n      ")
            }
            Self::Stuck { help, .. } => help.clone(),
            Self::DeletedMeanwhile { .. } => {
                "agree with that user whether the cluster should exist: `infra up` creates it again, `infra destroy` deletes what \
                 is left of it"
                    .to_owned()
            }
            Self::StillRunning { .. } => {
                "run the same command again to resume; `infra status` reports without waiting".to_owned()
            }
            Self::NoSuchMachine { machines, .. } if machines.is_empty() => "it has no machines yet".to_owned(),
            Self::NoSuchMachine { machines, .. } => format!("it has {}", machines.join(", ")),
            Self::AmbiguousMachine { machines, .. } => format!("name one: {}", machines.join(", ")),
            Self::NoScalingGroup { .. } => "`infra up` creates it".to_owned(),
            Self::PoolBeforeCluster { .. } => "run `infra up` without --pool first".to_owned(),
            Self::ChangeSetRefused { stack, help, .. } => {
                let last = format!("{stack} was not changed; run the same command again after the fix");
                help.iter().cloned().chain([last]).collect::<Vec<_>>().join("\n      ")
            }
            Self::MissingOutputs { .. } => {
                "a stack it needs is older than this version of infra: run `infra up` without --pool"
                    .to_owned()
            }
            Self::Contended { .. } => {
                "another process is modifying it: wait, then run `infra up` again".to_owned()
            }
            Self::BeingDeleted { .. } => {
                "wait until `infra status` reports that there is no such cluster, then run `infra up` again; \
                 `infra destroy` finishes a destroy that was interrupted"
                    .to_owned()
            }
            Self::ProtectedAgain { .. } => "agree with that user, then run the same command again".to_owned(),
            Self::RollbackNotFailed { failed, .. } if failed.is_empty() => {
                "no stack of this cluster needs a rollback".to_owned()
            }
            Self::RollbackNotFailed { failed, .. } => format!("those that failed: {}", failed.join(", ")),
            Self::UploadChanged { .. } => {
                "another process writes to that prefix, or a lifecycle rule deletes objects there".to_owned()
            }
            Self::ForeignTemplate { .. } => {
                "another process replaced the uploaded template: find out who may write below the S3 URI and revoke that permission, \
                 then run the same command again"
                    .to_owned()
            }
            Self::ForeignBucket { .. } => "name a bucket of your own account".to_owned(),
            Self::ForeignRecord { can_be_adopted: true, .. } => {
                "`--adopt-record` points it at this cluster; or choose another externalDNSName for the next cluster"
                    .to_owned()
            }
            Self::ForeignRecord { kind, .. } => format!(
                "infra writes one plain A record: delete the {kind} record by hand, then run `infra up` again"
            ),
            Self::UnreadableTemplate { stack, .. } => format!(
                "another tool has updated {stack}: update it again with the template of `infra render` (stacks/), then retry"
            ),
            Self::LockMismatch { key, locked, .. } => format!(
                "{key} cannot change while the cluster lives: put '{locked}' back; for a new cluster use a directory of its own"
            ),
            Self::InvalidLock(_) => "fix it, or delete it and run `infra lock`".to_owned(),
            Self::NoImage { .. } => {
                "another os.channel may have one; copies of Flatcar's images in an account of yours are found with os.imageOwner"
                    .to_owned()
            }
        };
        Some(text)
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Aws(error) => error.outcome(),
            Self::Kube(error) | Self::SecretsNotEncrypted { reason: error } => error.outcome(),
            Self::StillRunning { .. } => Outcome::StillRunning,
            Self::Failed(_) => Outcome::RolledBack,
            Self::InvalidLock(problems) => problems.outcome(),
            _ => Outcome::Failed,
        }
    }
}

/// The hints of some reports, each once.
fn hints_of(reports: &[FailureReport]) -> Vec<&str> {
    let mut hints: Vec<&str> = Vec::new();
    for hint in reports.iter().filter_map(|report| report.hint.as_ref()) {
        if !hints.contains(&hint.text.as_str()) {
            hints.push(&hint.text);
        }
    }
    hints
}

fn join_lines(texts: impl Iterator<Item = impl fmt::Display>) -> String {
    texts.map(|text| text.to_string()).collect::<Vec<_>>().join("\n       ")
}

fn count_things(number: usize) -> String {
    if number == 1 { "one thing".to_owned() } else { format!("{number} things") }
}

fn what_continues(running: &[String]) -> String {
    match running {
        [] => "nothing is running".to_owned(),
        [one] => format!("{one} continues"),
        many => format!("{} continue", many.join(", ")),
    }
}
