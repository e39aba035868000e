//! The values a job file is made of, each a type that cannot hold a bad one.

mod archive_name;
mod claim_path;
mod code_path;
mod container_path;
mod deadline;
mod image_reference;
mod name;
mod quantity;
mod s3_source;
mod url;

pub(crate) use archive_name::{ARCHIVE_ENDINGS, is_archive};
pub(crate) use claim_path::ClaimPath;
pub(crate) use code_path::CodePath;
pub(crate) use container_path::ContainerPath;
pub(crate) use deadline::parse_deadline;
pub(crate) use image_reference::ImageReference;
pub(crate) use name::{ClaimName, EnvironmentName, JobName, Namespace, QueueName, RunName, SecretName};
pub(crate) use quantity::{Processors, Size};
pub(crate) use s3_source::S3Source;
pub(crate) use url::parse_url;
