//! A cluster's life through the real binary, against stand-ins for AWS and for the cluster's API server.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says so"
)]

mod destroy;
mod destroy_audit;
mod destroy_data;
mod destroy_foreign;
mod destroy_others;
mod destroy_states;
mod failures;
mod golden;
mod images;
mod interruptions;
mod jobs;
mod launches;
mod matrix;
mod network_faults;
mod operators;
mod operators_at_once;
mod output;
mod overhead;
mod plans;
mod pool_sizes;
mod pools;
mod preflight;
mod preflight_adopted;
mod preflight_run;
mod public_name;
mod queries;
mod refusals;
mod rollback;
mod rotation;
mod runbooks;
#[path = "../support/schema_judge.rs"]
mod schema_judge;
mod stand_ins;
mod statuses;
mod support;
mod terminal;
mod unreachable;
mod uploads;
mod zone_balance;
