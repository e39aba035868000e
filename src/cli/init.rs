//! `infra init`: writes a cluster.yaml that explains itself.

use std::path::Path;

use clap::Args;

use super::Session;
use super::exit::Exit;
use super::failure::Refusal;
use super::printer::Printer;
use super::question::{ask, ask_list, ask_optional, can_ask};
use crate::config::values::{
    AvailabilityZone, ClusterName, DnsName, InstanceType, KeyName, KmsKeyArn, Region, S3Uri,
};
use crate::config::{self, Cluster};
use crate::durable_file::{self, Access, WriteError};
use crate::render::{ClusterAnswers, GpuPool, render_cluster_file, render_gitignore};

const EXAMPLE: &str = "\
Example:
  infra init --cluster-name paddle --external-dns-name k8s.example.com \\
    --region us-west-2 --availability-zone us-west-2a \\
    --kms-key-arn arn:aws:kms:us-west-2:111122223333:key/1234abcd --gpu g5.xlarge";

/// Write a new cluster.yaml
///
/// On a terminal it asks for what the flags leave out. It overwrites nothing.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub(super) struct InitArguments {
    /// The cluster's name
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<ClusterName>,
    /// The API server's DNS name
    #[arg(long, value_name = "DNS_NAME")]
    external_dns_name: Option<DnsName>,
    /// The AWS region
    #[arg(long)]
    region: Option<Region>,
    /// A zone to spread machines over; repeat for more
    #[arg(long = "availability-zone", value_name = "ZONE", value_delimiter = ',')]
    availability_zones: Vec<AvailabilityZone>,
    /// The EC2 key pair for SSH; optional
    #[arg(long)]
    key_name: Option<KeyName>,
    /// The KMS key that protects uploads and the file system
    #[arg(long, value_name = "ARN")]
    kms_key_arn: Option<KmsKeyArn>,
    /// Where `infra up` uploads assets, as `s3://bucket/prefix`; optional
    #[arg(long)]
    s3_uri: Option<S3Uri>,
    /// Survive the loss of a machine: three etcd members and two controllers
    #[arg(long)]
    ha: bool,
    /// Add a pool of GPU machines of this type
    #[arg(long, value_name = "INSTANCE_TYPE")]
    gpu: Option<InstanceType>,
    /// How many GPU machines
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "gpu")]
    gpu_count: u32,
}

pub(super) fn run(arguments: &InitArguments, session: &Session) -> anyhow::Result<Exit> {
    let path = session.assets.cluster_file();
    if path.symlink_metadata().is_ok() {
        return Err(exists(&path));
    }
    let answers = gather(arguments, &session.printer)?;
    let text = render_cluster_file(&answers)?;
    // Flags were checked one by one; together they may still contradict each other.
    let cluster = config::validate(&path, &text).map_err(|problems| refuse(&problems))?.cluster;
    match durable_file::create(&path, text.as_bytes(), Access::Public) {
        Err(WriteError::Exists { path }) => return Err(exists(&path)),
        other => other?,
    }
    session.printer.note(format_args!("{}: written", path.display()));
    write_gitignore(session)?;
    if arguments.ha {
        for line in zone_losses(&cluster) {
            session.printer.note(line);
        }
    }
    let place = match session.assets.directory() {
        here if here == Path::new(".") => String::new(),
        elsewhere => format!(" -C {}", elsewhere.display()),
    };
    session.printer.note(format_args!(
        "next: read it and change what you like, then `infra{place} validate` and `infra{place} render credentials --generate-ca`"
    ));
    Ok(Exit::Done)
}

/// The flags, completed by questions where somebody can answer them.
fn gather(arguments: &InitArguments, printer: &Printer) -> anyhow::Result<ClusterAnswers> {
    let given = arguments.clone_required();
    let missing = given.missing();
    let asking = !missing.is_empty() && can_ask();
    if !missing.is_empty() && !asking {
        let noun = if missing.len() == 1 { "flag is" } else { "flags are" };
        return Err(Refusal::invalid(format!("{noun} missing: {}", missing.join(", ")))
            .help("there is no terminal to ask at; `infra init --help` shows an example")
            .into());
    }
    let cluster_name = match given.cluster_name {
        Some(name) => name,
        None => ask(
            "Cluster name",
            "Every stack, tag and inside DNS name begins with the cluster's name.",
            printer,
        )?,
    };
    let external_dns_name = match given.external_dns_name {
        Some(name) => name,
        None => ask(
            "DNS name of the API server",
            "kubectl and certificates use this name, as k8s.example.com; its domain should be a Route 53 zone of yours.",
            printer,
        )?,
    };
    let region = match given.region {
        Some(region) => region,
        None => ask(
            "Region",
            "Machines, keys and the file system live in one AWS region, as us-west-2.",
            printer,
        )?,
    };
    let zones = if given.zones.is_empty() {
        let why = "Machines are spread over these zones; three let etcd survive the loss of one. They cannot be changed later.";
        ask_list("Availability zones", why, printer)?
    } else {
        given.zones
    };
    let kms_key = match given.kms_key {
        Some(key) => key,
        None => ask(
            "ARN of the KMS key",
            "Keys and certificates on their way to the machines, and the file system, are encrypted with it.",
            printer,
        )?,
    };
    let key_name = match &arguments.key_name {
        None if asking => {
            ask_optional("EC2 key pair", "Only for SSH; Session Manager works without one.", printer)?
        }
        other => other.clone(),
    };
    let s3_uri = match &arguments.s3_uri {
        None if asking => ask_optional(
            "S3 place for assets",
            "Machines read their configuration from there, as s3://bucket/prefix.",
            printer,
        )?,
        other => other.clone(),
    };
    Ok(ClusterAnswers {
        cluster_name,
        external_dns_name,
        region,
        zones,
        kms_key,
        key_name,
        s3_uri,
        etcd_count: if arguments.ha { 3 } else { 1 },
        controllers_count: if arguments.ha { 2 } else { 1 },
        gpu: arguments.gpu.clone().map(|instance_type| GpuPool { instance_type, count: arguments.gpu_count }),
    })
}

/// The flags that a cluster.yaml cannot do without.
struct Required {
    cluster_name: Option<ClusterName>,
    external_dns_name: Option<DnsName>,
    region: Option<Region>,
    zones: Vec<AvailabilityZone>,
    kms_key: Option<KmsKeyArn>,
}

impl InitArguments {
    fn clone_required(&self) -> Required {
        Required {
            cluster_name: self.cluster_name.clone(),
            external_dns_name: self.external_dns_name.clone(),
            region: self.region.clone(),
            zones: self.availability_zones.clone(),
            kms_key: self.kms_key_arn.clone(),
        }
    }
}

impl Required {
    fn missing(&self) -> Vec<&'static str> {
        let flags = [
            (self.cluster_name.is_none(), "--cluster-name"),
            (self.external_dns_name.is_none(), "--external-dns-name"),
            (self.region.is_none(), "--region"),
            (self.zones.is_empty(), "--availability-zone"),
            (self.kms_key.is_none(), "--kms-key-arn"),
        ];
        flags.into_iter().filter(|(missing, _)| *missing).map(|(_, flag)| flag).collect()
    }
}

/// What losing each zone would cost.
fn zone_losses(cluster: &Cluster) -> Vec<String> {
    let fatal = cluster.zones_that_hold_a_quorum();
    let name =
        |zones: &[&AvailabilityZone]| zones.iter().map(|zone| zone.as_str()).collect::<Vec<_>>().join(", ");
    if fatal.is_empty() {
        return vec!["any one zone can be lost: etcd keeps its majority".to_owned()];
    }
    let zones = cluster.zones.len();
    vec![format!(
        "with {zones} {}, losing {} stops the API: most etcd members are there; three zones survive the loss of any",
        if zones == 1 { "zone" } else { "zones" },
        name(&fatal)
    )]
}

fn write_gitignore(session: &Session) -> anyhow::Result<()> {
    let path = session.assets.gitignore();
    match durable_file::create(&path, render_gitignore().as_bytes(), Access::Public) {
        Ok(()) => session.printer.note(format_args!("{}: written", path.display())),
        Err(WriteError::Exists { .. }) => {
            let lines = std::fs::read_to_string(&path).unwrap_or_default();
            let wanted = render_gitignore().lines().filter(|line| line.starts_with('/'));
            let missing: Vec<&str> =
                wanted.filter(|line| !lines.lines().any(|there| there.trim() == *line)).collect();
            if !missing.is_empty() {
                session.printer.warning(format_args!(
                    "{} is there and was left alone; add {} to it, they will hold private keys",
                    path.display(),
                    missing.join(" ")
                ));
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn refuse(problems: &crate::document::Problems) -> anyhow::Error {
    let lines = problems.list().iter().map(|problem| match &problem.help {
        Some(help) => format!("{}\n  help: {help}", problem.message),
        None => problem.message.clone(),
    });
    Refusal::invalid(lines.collect::<Vec<_>>().join("\n")).into()
}

fn exists(path: &Path) -> anyhow::Error {
    Refusal::new(format!("{} is there already and was not touched", path.display()))
        .help("edit it, or use `-C DIR` for another cluster")
        .into()
}
