//! The frameworks whose environment contract we know.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the processes of a job find each other, and what they are started with.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Framework {
    /// PaddlePaddle before 1.0: a parameter server beside every trainer, configured by `CONF_PADDLE_*`.
    PaddleV0,
    /// PaddlePaddle today: `paddle.distributed.launch`.
    Paddle,
    /// TensorFlow programs that read `POD_NAME` and `CLUSTER_CONFIG`.
    TensorflowSeed,
    /// TensorFlow programs that read `TF_CONFIG`.
    Tensorflow,
    /// PyTorch: torchrun, configured by `PET_*`.
    Pytorch,
    /// Any program: no contract, no launcher of a framework.
    Program,
}

impl Framework {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::PaddleV0, Self::Paddle, Self::TensorflowSeed, Self::Tensorflow, Self::Pytorch, Self::Program];

    /// The name of the framework in a job file.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PaddleV0 => "paddle-v0",
            Self::Paddle => "paddle",
            Self::TensorflowSeed => "tensorflow-seed",
            Self::Tensorflow => "tensorflow",
            Self::Pytorch => "pytorch",
            Self::Program => "program",
        }
    }

    /// Where its pods find the claim; programs of the first generation have the path built in.
    #[must_use]
    pub(crate) fn mount_path(self) -> &'static str {
        match self {
            Self::PaddleV0 => "/home/jobpath",
            Self::TensorflowSeed => "/var/tensorflow",
            Self::Paddle | Self::Tensorflow | Self::Pytorch | Self::Program => "/mnt/training",
        }
    }

    /// Whether it knows parameter servers that are pods of their own.
    #[must_use]
    pub(crate) fn has_parameter_servers(self) -> bool {
        matches!(self, Self::TensorflowSeed | Self::Tensorflow)
    }

    /// Whether the job is complete when its first replica is: the others hold the same model, or serve the first.
    #[must_use]
    pub(crate) fn is_complete_with_first(self) -> bool {
        matches!(self, Self::Pytorch | Self::Tensorflow)
    }

    /// What it calls a replica.
    #[must_use]
    pub(crate) fn replica_role(self) -> &'static str {
        match self {
            Self::PaddleV0 => "trainer",
            _ => "worker",
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
