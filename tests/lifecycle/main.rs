//! A cluster's life through the real binary, against stand-ins for AWS and for the cluster's API server.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::pedantic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says so"
)]

mod az_rebalance;
mod capacity_blocks;
mod change_set_checks;
mod created_keys;
mod dashboard;
mod deep_learning;
mod destroy;
mod destroy_audit;
mod destroy_data;
mod destroy_foreign;
mod destroy_others;
mod destroy_states;
mod drift;
mod drivers;
mod failures;
mod golden;
mod images;
mod interruptions;
mod jobs;
mod kubeconfig;
mod launches;
mod list;
mod lost_events;
mod machine_plans;
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
mod preflight_keys;
mod preflight_run;
mod prices;
mod public_name;
mod queries;
mod random_lives;
mod refusals;
mod reports;
mod rollback;
mod rotation;
mod runbooks;
mod schedules;
#[path = "../support/schema_judge.rs"]
mod schema_judge;
mod screens;
mod silent_losses;
mod snapshot_rules;
mod stand_in_job_sets;
mod stand_ins;
mod statuses;
mod support;
mod terminal;
mod unreachable;
mod unusual_blocks;
mod uploads;
