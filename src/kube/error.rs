//! Why a request to the Kubernetes API failed.

use super::denial::Denial;
use crate::outcome::Explain;

const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;

/// A request to the Kubernetes API that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum KubeError {
    /// There was no answer, or the connection broke.
    #[error("the Kubernetes API at {address} cannot be reached: {reason}")]
    Unreachable {
        /// The address of the API.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// One side did not accept the other's certificate, or they did not agree on how to talk.
    #[error("no secure connection to the Kubernetes API at {address}: {reason}")]
    Tls {
        /// The address of the API.
        address: String,
        /// Whose certificate was not accepted, and why.
        reason: String,
    },
    /// There was no answer in time.
    #[error("the Kubernetes API at {address} did not answer within {seconds} seconds")]
    TimedOut {
        /// The address of the API.
        address: String,
        /// The time limit.
        seconds: u64,
    },
    /// The API answered with a refusal.
    #[error("{}", describe_refusal(method, path, *status, reason, message))]
    Refused {
        /// The HTTP method.
        method: String,
        /// The path of the request, without the query.
        path: String,
        /// The HTTP status.
        status: u16,
        /// Kubernetes' word for it, as `Forbidden`.
        reason: String,
        /// What the API said.
        message: String,
    },
    /// The keys and certificates at hand cannot be used.
    #[error("the credentials for the Kubernetes API cannot be used: {reason}")]
    BadCredentials {
        /// What is wrong with which of them.
        reason: String,
    },
    /// The request cannot be sent, or its answer cannot be read.
    #[error("the Kubernetes API's answer to {path} cannot be used: {reason}")]
    Answer {
        /// The path of the request, without the query.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A program could not be run in a pod, or a port of the pod could not be reached.
    #[error("pod {pod}: {reason}")]
    Pod {
        /// The pod.
        pod: String,
        /// What Kubernetes said.
        reason: String,
    },
    /// The answer is larger than any expected one.
    #[error("the Kubernetes API's answer to {path} is larger than 64 MiB")]
    TooLarge {
        /// The path of the request, without the query.
        path: String,
    },
}

impl KubeError {
    /// Whether there was no answer, so that a retry may help later.
    #[must_use]
    pub(crate) fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::TimedOut { .. })
    }

    /// Whether a retry may help soon: there was no answer, or the server cannot answer just now.
    #[must_use]
    pub(crate) fn is_passing(&self) -> bool {
        self.is_unreachable() || matches!(self.status(), Some(429 | 500..=599))
    }

    /// Whether the API refused because the client may not do this.
    #[must_use]
    pub(crate) fn is_forbidden(&self) -> bool {
        self.status() == Some(FORBIDDEN)
    }

    /// The HTTP status, if the API answered with a refusal.
    #[must_use]
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn describe_refusal(method: &str, path: &str, status: u16, reason: &str, message: &str) -> String {
    match Denial::of(message).filter(|_| status == FORBIDDEN) {
        Some(denial) => format!("{denial} ({status} {reason})"),
        None => format!("the Kubernetes API refused {method} {path}: {message} ({status} {reason})"),
    }
}

impl Explain for KubeError {
    fn help(&self) -> Option<String> {
        match self {
            Self::Refused { status: FORBIDDEN, message, .. } => {
                return Some(match Denial::of(message)?.namespace {
                    Some(namespace) => format!(
                        "name the namespace of your team with `--namespace`; the administrator lets you in with `infra user add NAME --team {namespace}`"
                    ),
                    None => {
                        "the administrator lets you in with `infra user add NAME --team NAMESPACE`".to_owned()
                    }
                });
            }
            Self::Refused { status: UNAUTHORIZED, .. } => {
                return Some(
                    "the certificate or token is not accepted, or has expired; the administrator issues a new one with `infra user add --replace`"
                        .to_owned(),
                );
            }
            _ => {}
        }
        self.is_unreachable().then(|| {
            "check that the cluster is up (`infra status`) and that its name resolves from here; INFRA_API_SERVER=host:port names a tunnel"
                .to_owned()
        })
    }
}
