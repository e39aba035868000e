//! Pages and pictures of a cluster and of a plan: HTML and SVG that need nothing but themselves.
//!
//! In: a blueprint and what was read of the cluster. Out: text. Nothing is read here, neither AWS nor a file; the time is passed as an
//! argument. No page has a script, and nothing in it is fetched.

mod certificates;
mod cluster_page;
mod connections;
mod deletion;
mod machines;
mod markup;
mod page;
mod picture;
mod plan_page;
mod policies;
mod sources;
mod stacks;
mod table;

pub(crate) use certificates::CertificateSources;
pub(crate) use cluster_page::cluster_page;
pub(crate) use picture::{GENERATOR, Marks, picture_file};
pub(crate) use plan_page::{PlanLine, PlanPage, PlanSign, PlanStack, plan_page};
pub(crate) use sources::{LiveSources, PageImage, ReportSources};
