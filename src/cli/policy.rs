//! `infra policy`: the IAM policies of an operator.

use clap::Args;
use serde_json::{Map, Value};

use super::exit::Exit;
use super::failure::Refusal;
use super::session::Session;
use crate::cli::terminal::printer::{Output, align_columns};
use crate::config::Cluster;
use crate::config::values::S3Uri;
use crate::operator::{Policy, operator_policies, permissions_boundary};

/// Print the IAM policies that an operator of this cluster needs, and the permissions boundary of its IAM roles; no network and no AWS
/// account are needed
///
/// The policies allow the calls of infra itself, limited to the cluster's resources where AWS supports that, and the calls that
/// CloudFormation makes on behalf of the operator, through CloudFormation only. There are several because a managed policy may have at
/// most 6,144 characters.
///
/// They do not allow reading data of jobs in S3 (`data.url: s3://bucket/key`): that needs s3:ListBucket, s3:GetObject and, for a KMS key, kms:Decrypt on
/// the buckets of your data.
///
/// The boundary is what the IAM roles of machines may be allowed at most. With these policies an operator can create and change only
/// roles that have it, so nobody makes themselves an administrator with them. Have an administrator create it first, and put its ARN into
/// cluster.yaml as permissionsBoundaryArn. Without that, IAM roles can be created only by someone with more rights than these.
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
    let cluster = session.load_project_quietly()?.blueprint.cluster;
    let s3_uri = arguments.s3_uri.as_ref().or(cluster.s3_uri.as_ref());
    let s3_uri = s3_uri.ok_or_else(|| {
        Refusal::new("policies name the bucket, and no S3 URI is given")
            .help("give `--s3-uri s3://bucket/prefix`, or set s3URI in cluster.yaml")
    })?;
    let boundary = permissions_boundary(&cluster, s3_uri);
    let policies: Vec<Policy> =
        std::iter::once(boundary.clone()).chain(operator_policies(&cluster, s3_uri)).collect();
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
    let rows: Vec<[String; 3]> = policies
        .iter()
        .map(|policy| {
            let size = format!("{} of 6144 characters", policy.document.to_string().len());
            let of = if *policy == boundary { "the boundary of IAM roles" } else { "of the operator" };
            [policy.name.clone(), size, of.to_owned()]
        })
        .collect();
    session.printer.data(align_columns(&rows))?;
    print_notes(session, &cluster, s3_uri, &boundary.name);
    Ok(Exit::Done)
}

fn print_notes(session: &Session, cluster: &Cluster, s3_uri: &S3Uri, boundary: &str) {
    session.printer.note(format_args!(
        "for each: aws iam create-policy --policy-name {boundary} --policy-document \"$(infra policy {boundary} --s3-uri {s3_uri})\""
    ));
    session.printer.note(format_args!(
        "then attach all but {boundary} to the operator, and set permissionsBoundaryArn in cluster.yaml to the ARN of {boundary}"
    ));
    if cluster.permissions_boundary.is_none() {
        session.printer.warning(format_args!(
            "cluster.yaml has no permissionsBoundaryArn: an operator with these policies cannot create IAM roles, and so no cluster"
        ));
    }
    let extended: Vec<&str> = cluster
        .pools
        .iter()
        .filter(|pool| !pool.managed_policies.is_empty())
        .map(|pool| pool.name.as_str())
        .collect();
    if !extended.is_empty() {
        session.printer.note(format_args!(
            "pools with managedPolicyArns: {}; what those policies allow counts only if {boundary} allows it, too: add it there",
            extended.join(", ")
        ));
    }
}
