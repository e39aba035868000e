//! The only code that names AWS's SDK: one place that configures it, thin typed calls, and errors that say what was asked.
//!
//! In: plain values. Out: plain values, or an [`AwsError`] with operation, code, message and request id. It prints nothing and
//! knows no rule about clusters.

mod account;
mod clients;
mod configuration;
mod error;

pub use account::CallerIdentity;
pub use clients::Clients;
pub use configuration::Connection;
pub use error::{AwsError, Cause};
