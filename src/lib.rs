//! `infra` brings up a GPU Kubernetes cluster on AWS from one file, runs training jobs on it, and deletes all of it again.

// Tests need few of these layers; every other one is private, so that the compiler finds dead code.
#![warn(unreachable_pub)]

mod aws;
pub mod blueprint;
pub mod check;
pub mod cli;
pub mod config;
mod confined_directory;
pub mod credentials;
mod deploy;
mod document;
mod durable_file;
mod hexadecimal;
mod job;
mod kube;
mod kubeconfig;
mod operator;
mod outcome;
mod people;
mod plural;
mod project;
pub mod render;
mod report;
mod waiting;
mod well_known;
