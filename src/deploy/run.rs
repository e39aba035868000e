//! The context of one run: AWS, where events go, and how long to wait.

use super::error::DeployError;
use super::event::Progress;
use crate::aws::{AwsError, Clients};
use crate::config::Cluster;
use crate::hexadecimal::hexadecimal;
use crate::waiting::{WaitEnd, Waiting};

/// The context that every step of a run needs.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// The clients of AWS.
    pub clients: Clients,
    /// The cluster, in whose terms failures are explained; none if cluster.yaml is lost.
    pub cluster: Option<Cluster>,
    /// The receiver of events.
    pub progress: Progress,
    /// How long to wait.
    pub waiting: Waiting,
    /// Whether an interruption also cancels what AWS is doing.
    pub cancel_on_interrupt: bool,
}

impl Run {
    /// The error for a wait for a stack that ended early.
    pub(crate) fn still_running(end: WaitEnd, stack: &str) -> DeployError {
        DeployError::StillRunning { what: end.to_string(), running: vec![stack.to_owned()] }
    }
}

/// A random token for one call, by which AWS recognises a retry.
pub(crate) fn new_token() -> Result<String, AwsError> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| AwsError::lost("no random bytes".to_owned()))?;
    Ok(hexadecimal(&bytes))
}
