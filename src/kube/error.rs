//! Why the Kubernetes API did not do what it was asked.

use crate::outcome::Explain;

/// A question to the Kubernetes API that got no good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeError {
    /// Nobody answered, or the connection broke.
    #[error("the Kubernetes API at {address} cannot be reached: {reason}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// One side did not accept the other's certificate, or they did not agree on how to talk.
    #[error("no secure connection to the Kubernetes API at {address}: {reason}")]
    Tls {
        /// Where it was looked for.
        address: String,
        /// Whose certificate was not accepted, and why.
        reason: String,
    },
    /// The answer did not come in time.
    #[error("the Kubernetes API at {address} gave no answer within {seconds} seconds")]
    TimedOut {
        /// Where it was looked for.
        address: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The API answered with a refusal.
    #[error("the Kubernetes API refused {method} {path}: {message} ({status} {reason})")]
    Refused {
        /// The HTTP method.
        method: String,
        /// What was asked for, without the query.
        path: String,
        /// The HTTP status.
        status: u16,
        /// Kubernetes' word for it, as `Forbidden`.
        reason: String,
        /// What the API said.
        message: String,
    },
    /// The keys and certificates at hand cannot be used.
    #[error("the administrator's credentials cannot be used: {reason}")]
    BadCredentials {
        /// What is wrong with which of them.
        reason: String,
    },
    /// The question or its answer makes no sense.
    #[error("cannot make sense of {path} of the Kubernetes API: {reason}")]
    Answer {
        /// What was asked for, without the query.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The answer is larger than any that is expected.
    #[error("the Kubernetes API's answer to {path} is larger than 64 MiB")]
    TooLarge {
        /// What was asked for, without the query.
        path: String,
    },
}

impl KubeError {
    /// Whether nobody answered, so that asking again later may help.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// Whether the same question may get an answer soon: nobody answered, or somebody who cannot just now.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        self.is_unreachable() || matches!(self.status(), Some(429 | 500..=599))
    }

    /// The HTTP status, if the API answered with a refusal.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

impl Explain for KubeError {
    fn help(&self) -> Option<String> {
        self.is_unreachable().then(|| {
            "is the cluster up (`infra status`), and does its name lead to it from here? INFRA_API_SERVER=host:port names a tunnel"
                .to_owned()
        })
    }
}
