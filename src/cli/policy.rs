//! `infra policy`: the IAM policies of an operator.

use clap::Args;
use serde_json::{Map, Value};

use super::exit::Exit;
use super::failure::Refusal;
use super::printer::{Output, columns};
use super::session::Session;
use crate::config::values::S3Uri;
use crate::operator::{Policy, operator_policies};

/// Print the IAM policies that an operator of this cluster needs, and no more; no network and no AWS account are needed
///
/// The policies allow the calls of infra itself, limited to the cluster's resources where AWS supports that, and the calls that
/// CloudFormation makes on behalf of the operator, through CloudFormation only. There are several because a managed policy may have at
/// most 6,144 characters.
#[derive(Args, Debug)]
pub(super) struct PolicyArguments {
    /// The policy to print; without it, all of them are listed
    #[arg(value_name = "POLICY")]
    policy: Option<String>,
    /// Where assets are uploaded: s3://bucket/prefix; wins over s3URI in cluster.yaml
    #[arg(long, value_name = "URI")]
    s3_uri: Option<S3Uri>,
}

pub(super) fn run(arguments: &PolicyArguments, session: &Session) -> anyhow::Result<Exit> {
    let cluster = session.load_project()?.blueprint.cluster;
    let s3_uri = arguments.s3_uri.as_ref().or(cluster.s3_uri.as_ref());
    let s3_uri = s3_uri.ok_or_else(|| {
        Refusal::new("policies name the bucket, and no S3 URI is given")
            .help("give `--s3-uri s3://bucket/prefix`, or set s3URI in cluster.yaml")
    })?;
    let policies = operator_policies(&cluster, s3_uri);
    if let Some(wanted) = &arguments.policy {
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        let found = policies.iter().find(|policy| policy.name == *wanted).ok_or_else(|| {
            Refusal::invalid(format!("there is no policy '{wanted}'"))
                .help(format!("there are {}", names.join(", ")))
        })?;
        session.printer.foreign_json(&found.document)?;
        return Ok(Exit::Done);
    }
    if session.output == Output::Json {
        let all: Map<String, Value> =
            policies.into_iter().map(|policy| (policy.name, policy.document)).collect();
        session.printer.foreign_json(&all)?;
        return Ok(Exit::Done);
    }
    let rows: Vec<[String; 2]> = policies
        .iter()
        .map(|policy| {
            [policy.name.clone(), format!("{} of 6144 characters", policy.document.to_string().len())]
        })
        .collect();
    session.printer.data(columns(&rows))?;
    if let Some(Policy { name, .. }) = policies.first() {
        session.printer.note(format_args!(
            "for each: aws iam create-policy --policy-name {name} --policy-document \"$(infra policy {name} --s3-uri {s3_uri})\"; then \
             attach all of them to the operator"
        ));
    }
    Ok(Exit::Done)
}
