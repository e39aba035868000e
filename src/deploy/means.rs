//! What every step of a deployment has at hand.

use super::failure::DeployError;
use super::progress::Progress;
use crate::aws::{AwsError, Clients};
use crate::config::Cluster;
use crate::hexadecimal::hexadecimal;
use crate::waiting::{WaitEnd, Waiting};

/// The means of one run.
#[derive(Clone, Debug)]
pub struct Means {
    /// AWS.
    pub clients: Clients,
    /// The cluster, unless its description is lost.
    pub cluster: Option<Cluster>,
    /// Where reports go.
    pub progress: Progress,
    /// How long to wait.
    pub waiting: Waiting,
    /// Whether an interruption also ends what AWS is doing.
    pub cancel_on_interrupt: bool,
}

impl Means {
    /// What to say when a wait for a stack ended early.
    pub(super) fn still_running(end: WaitEnd, stack: &str) -> DeployError {
        DeployError::StillRunning { what: end.to_string(), running: vec![stack.to_owned()] }
    }
}

/// A name for one call, so that AWS knows a repetition of it.
pub(super) fn new_token() -> Result<String, AwsError> {
    let mut bytes = [0_u8; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| AwsError::lost("no random bytes".to_owned()))?;
    Ok(hexadecimal(&bytes))
}
