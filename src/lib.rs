//! `infra` brings up a GPU Kubernetes cluster on AWS from one file, runs training jobs on it, and takes all of it away again.

pub mod aws;
pub mod blueprint;
pub mod check;
pub mod cli;
pub mod config;
pub mod credentials;
pub mod deploy;
pub mod document;
pub mod durable_file;
pub mod hexadecimal;
pub mod job;
pub mod kube;
pub mod operator;
pub mod outcome;
pub(crate) mod plural;
pub(crate) mod project;
pub mod render;
pub mod waiting;
mod well_known;
