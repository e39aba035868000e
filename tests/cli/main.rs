//! Tests through the real binary, judged where possible by programs that we did not write.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says so"
)]

mod boot_configs;
mod broken;
mod broken_stacks;
mod chains;
mod code;
mod commands;
mod credentials;
mod customized;
mod documents;
mod drives;
mod etcd;
mod examples;
mod golden;
mod hostile;
mod imported_authorities;
mod init;
mod job_commands;
mod job_objects;
mod job_placement;
mod kill;
mod kubeconfig;
mod links;
mod manual;
mod memory;
mod output;
mod owners;
mod peers;
mod policy;
mod prices;
mod reference;
mod reference_output;
mod report;
mod rotation;
mod schema;
#[path = "../support/schema_judge.rs"]
mod schema_judge;
mod secrecy;
mod support;
