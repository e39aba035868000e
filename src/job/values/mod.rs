//! The values a job file is made of, each a type that cannot hold a bad one.

mod claim_path;
mod deadline;
mod image_reference;
mod name;
mod quantity;
mod url;

pub use claim_path::ClaimPath;
pub use deadline::parse_deadline;
pub use image_reference::ImageReference;
pub use name::{ClaimName, EnvironmentName, JobName, Namespace, QueueName};
pub use quantity::{Processors, Size};
pub use url::parse_url;
