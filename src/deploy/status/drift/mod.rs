//! `infra drift`: what is no longer as the templates of the stacks say.
//!
//! In: CloudFormation's drift detection. Out: `DriftReport`, in which drift, changes by design and what was not checked are apart.

mod by_design;
mod detection;
mod results;
mod shape;

pub(crate) use detection::detect_drift;
pub(crate) use shape::{DriftKind, DriftReport, DriftVerdict, DriftedResource, PropertyDrift, StackDrift};
