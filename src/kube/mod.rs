//! The only code that talks to a Kubernetes API: HTTPS with a client's certificate or token, and thin typed calls.
//!
//! In: credentials, the name that the API server's certificate must be for, and where to connect. Out: plain values, or a
//! [`KubeError`] that says whether there was no answer, the certificates did not match, or the API refused. It prints nothing and knows
//! no rule about clusters.

mod access;
mod address;
mod api_server;
mod body;
mod connection;
mod denial;
mod error;
mod event;
mod exec;
mod frame;
mod job;
mod job_pod;
mod job_set;
mod list;
mod local_port;
mod message;
mod node;
mod object;
mod outage;
mod path;
mod pod;
mod port_forward;
mod queue;
mod readiness;
mod refusal;
mod retry;
mod secret;
mod secret_document;
mod service;
mod taint;
mod tls;
mod volume_claim;
mod web_socket;

pub(crate) use access::{ApiAccess, ClientCertificate, Named};
pub(crate) use address::{Address, resolve_host_name};
pub(crate) use api_server::ApiServer;
pub(crate) use body::Body;
pub(crate) use error::KubeError;
pub(crate) use event::Event;
pub(crate) use exec::{ExecEvent, ExecInput, ExecOutput, ExecRequest, WindowSize};
pub(crate) use job::{Job, JobEnd};
pub(crate) use job_set::{JobSet, JobSetEnd};
pub(crate) use local_port::LocalPort;
pub(crate) use node::Node;
pub(crate) use object::ObjectName;
pub(crate) use outage::{Contact, MayPass, Outage};
pub(crate) use pod::{LogPart, Pod, PodPhase};
pub(crate) use port_forward::PodPort;
pub(crate) use queue::QueuePresence;
pub(crate) use readiness::Readiness;
pub(crate) use secret::{SecretMetadata, SecretType};
pub(crate) use taint::{Taint, TaintEffect, Toleration};

#[cfg(test)]
mod connection_tests;
#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod port_forward_tests;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod test_web_socket;
