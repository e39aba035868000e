//! `infra init`: writes a cluster.yaml that explains itself.

use std::path::Path;
use std::str::FromStr;

use clap::Args;

use super::exit::Exit;
use super::failure::Refusal;
use super::key_creation::KeyCreation;
use super::session::Session;
use crate::cli::question::{ask_for_value, ask_list, ask_optional, ask_or_default, ask_yes_or_no, can_ask};
use crate::cli::terminal::printer::Printer;
use crate::config::values::{
    AvailabilityZone, ClusterName, DnsName, InstanceType, KeyName, KmsKeyArn, MachineCount, Region, S3Uri,
};
use crate::config::{self, Cluster, GpuInstanceType};
use crate::document::{Fault, Problems};
use crate::durable_file::{self, Access, WriteError};
use crate::project::Gitignore;
use crate::render::{ClusterAnswers, GpuPool, render_cluster_file};

const EXAMPLE: &str = "\
Example:
  infra init --cluster-name paddle --external-dns-name k8s.example.com \\
    --region us-west-2 --availability-zone us-west-2a \\
    --kms-key-arn arn:aws:kms:us-west-2:111122223333:key/1234abcd --gpu g5.xlarge";

/// Write a new cluster.yaml
///
/// On a terminal it asks for what the flags leave out. It never overwrites a file. The cluster gets a shared file system (EFS), which
/// training jobs need, unless `--no-efs` is given. Only --create-key calls AWS.
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
    /// An availability zone to spread machines over; repeat for more
    #[arg(long = "availability-zone", value_name = "ZONE", value_delimiter = ',')]
    availability_zones: Vec<AvailabilityZone>,
    /// The EC2 key pair for SSH; optional
    #[arg(long)]
    key_name: Option<KeyName>,
    /// The KMS key that protects uploads and the file system
    #[arg(long, value_name = "ARN")]
    kms_key_arn: Option<KmsKeyArn>,
    #[command(flatten)]
    key_creation: KeyCreation,
    /// Where `infra up` uploads assets, as `s3://bucket/prefix`; optional
    #[arg(long)]
    s3_uri: Option<S3Uri>,
    /// Survive the loss of a machine: three etcd members and two controllers
    #[arg(long)]
    ha: bool,
    /// Add a pool of GPU machines of this type
    #[arg(long, value_name = "INSTANCE_TYPE")]
    gpu: Option<InstanceType>,
    /// The number of GPU machines
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "gpu")]
    gpu_count: u32,
    /// Leave out the shared file system; training jobs need one
    #[arg(long)]
    no_efs: bool,
}

pub(super) fn run(arguments: &InitArguments, session: &Session) -> anyhow::Result<Exit> {
    let path = session.assets.cluster_file();
    if path.symlink_metadata().is_ok() {
        return Err(file_exists(&path));
    }
    let mut answers = gather_answers(arguments, session)?;
    // Each flag was checked alone; together they may contradict each other.
    let (mut text, mut cluster) = render_checked(&answers, &path)?;
    if let Some(gpu) = &answers.gpu {
        GpuInstanceType::try_from(gpu.instance_type.clone()).map_err(|fault| refuse_machines(&fault))?;
    }
    if arguments.key_creation.create_key {
        answers.kms_key = arguments.key_creation.create(&answers.cluster_name, &answers.region, session)?;
        (text, cluster) = render_checked(&answers, &path)?;
    }
    match durable_file::create(&path, text.as_bytes(), Access::Public) {
        Err(WriteError::Exists { path }) => return Err(file_exists(&path)),
        other => other?,
    }
    session.printer.note(format_args!("{}: written", path.display()));
    write_gitignore(session)?;
    if arguments.ha {
        session.printer.note(describe_availability_zone_loss(&cluster));
    }
    let place = match session.assets.directory() {
        here if here == Path::new(".") => String::new(),
        elsewhere => format!(" -C {}", elsewhere.display()),
    };
    session.printer.note(format_args!(
        "next: review it, then run `infra{place} validate`, `infra{place} render --generate-ca` and `infra{place} up --s3-uri s3://bucket/prefix`"
    ));
    Ok(Exit::Done)
}

fn render_checked(answers: &ClusterAnswers, path: &Path) -> anyhow::Result<(String, Cluster)> {
    let text = render_cluster_file(answers)?;
    let cluster = config::validate(path, &text).map_err(|problems| refuse_overwriting(&problems))?.value;
    Ok((text, cluster))
}

/// The flags, completed by questions where there is a terminal.
fn gather_answers(arguments: &InitArguments, session: &Session) -> anyhow::Result<ClusterAnswers> {
    let printer = &session.printer;
    let missing = arguments.missing_flags();
    let asking = !missing.is_empty() && can_ask();
    if !missing.is_empty() && !asking {
        let noun = if missing.len() == 1 { "flag is" } else { "flags are" };
        return Err(Refusal::invalid(format!("{noun} missing: {}", missing.join(", ")))
            .help("there is no terminal to ask on; `infra init --help` shows an example")
            .into());
    }
    let cluster_name = or_ask(arguments.cluster_name.as_ref(), "Cluster name", WHY_NAME, printer)?;
    let external_dns_name = or_ask(arguments.external_dns_name.as_ref(), "DNS name", WHY_DNS_NAME, printer)?;
    let region = or_ask(arguments.region.as_ref(), "Region", WHY_REGION, printer)?;
    let created_key = arguments.key_creation.placeholder(&region);
    Ok(ClusterAnswers {
        cluster_name,
        external_dns_name,
        region,
        availability_zones: match arguments.availability_zones.as_slice() {
            [] => ask_list("Availability zones", WHY_ZONES, printer)?,
            given => given.to_vec(),
        },
        kms_key: or_ask(
            arguments.kms_key_arn.as_ref().or(created_key.as_ref()),
            "ARN of the KMS key",
            WHY_KMS_KEY,
            printer,
        )?,
        key_name: match &arguments.key_name {
            None if asking => ask_optional("EC2 key pair", WHY_KEY_NAME, printer)?,
            given => given.clone(),
        },
        s3_uri: match &arguments.s3_uri {
            None if asking => ask_optional("S3 URI", WHY_S3_URI, printer)?,
            given => given.clone(),
        },
        etcd_count: if arguments.ha { 3 } else { 1 },
        controllers_count: if arguments.ha { 2 } else { 1 },
        gpu: match &arguments.gpu {
            None if asking => ask_gpu_pool(printer)?,
            given => given.clone().map(|instance_type| GpuPool { instance_type, count: arguments.gpu_count }),
        },
        file_system: match arguments.no_efs {
            false if asking && !session.yes => ask_yes_or_no("Shared file system", WHY_FILE_SYSTEM, printer)?,
            without => !without,
        },
    })
}

fn ask_gpu_pool(printer: &Printer) -> anyhow::Result<Option<GpuPool>> {
    let Some(chosen) = ask_optional::<GpuInstanceType>("Instance type of GPU machines", WHY_GPUS, printer)?
    else {
        return Ok(None);
    };
    let count: MachineCount = ask_or_default("Number of GPU machines", "1", printer)?;
    Ok(Some(GpuPool { instance_type: chosen.instance_type().clone(), count: count.get() }))
}

const WHY_NAME: &str = "Every stack, tag and internal DNS name begins with the cluster's name.";
const WHY_DNS_NAME: &str = "kubectl and certificates call the API server by this name, for example k8s.example.com. Its domain should be a \
                            Route 53 hosted zone of yours.";
const WHY_REGION: &str = "Machines, keys and the file system are in one AWS region, for example us-west-2.";
const WHY_ZONES: &str = "Machines are spread over these availability zones; with three, etcd survives the loss of one. They cannot be changed later.";
const WHY_KMS_KEY: &str = "Keys and certificates on their way to the machines, and the file system, are encrypted with it. `infra init --create-key` creates one.";
const WHY_KEY_NAME: &str = "Only for SSH; Session Manager works without one.";
const WHY_S3_URI: &str = "Machines download their configuration from there, for example s3://bucket/prefix.";
const WHY_GPUS: &str =
    "Training runs on GPU machines, for example g5.xlarge, in a pool of their own; pools can be added later.";
const WHY_FILE_SYSTEM: &str = "Training jobs keep their data and results in a file system (EFS) that every node mounts. AWS charges for what is stored.";

fn or_ask<T: FromStr<Err = Fault> + Clone>(
    given: Option<&T>,
    question: &str,
    why: &str,
    printer: &Printer,
) -> anyhow::Result<T> {
    given.cloned().map_or_else(|| ask_for_value(question, why, printer), Ok)
}

impl InitArguments {
    /// Required flags that were not given.
    fn missing_flags(&self) -> Vec<&'static str> {
        let flags = [
            (self.cluster_name.is_none(), "--cluster-name"),
            (self.external_dns_name.is_none(), "--external-dns-name"),
            (self.region.is_none(), "--region"),
            (self.availability_zones.is_empty(), "--availability-zone"),
            (self.kms_key_arn.is_none() && !self.key_creation.create_key, "--kms-key-arn or --create-key"),
        ];
        flags.into_iter().filter(|(missing, _)| *missing).map(|(_, flag)| flag).collect()
    }
}

/// What the loss of an availability zone would mean.
fn describe_availability_zone_loss(cluster: &Cluster) -> String {
    let fatal: Vec<&str> =
        cluster.availability_zones_with_quorum().into_iter().map(AvailabilityZone::as_str).collect();
    if fatal.is_empty() {
        return "any one availability zone can be lost: etcd keeps its majority".to_owned();
    }
    let zones = if cluster.availability_zones.len() == 1 {
        "1 availability zone".to_owned()
    } else {
        format!("{} availability zones", cluster.availability_zones.len())
    };
    format!(
        "with {zones}, losing {} stops the API: most etcd members are there; with three, the API survives the loss of any one",
        fatal.join(", ")
    )
}

fn write_gitignore(session: &Session) -> anyhow::Result<()> {
    match session.assets.write_gitignore()? {
        Gitignore::Written(path) => session.printer.note(format_args!("{}: written", path.display())),
        Gitignore::Kept { path, missing } if !missing.is_empty() => {
            session.printer.warning(format_args!(
                "{} exists already and was not changed; add {} to it: they will hold private keys and the results of jobs",
                path.display(),
                missing.join(" ")
            ));
        }
        Gitignore::Kept { .. } => {}
    }
    Ok(())
}

fn refuse_overwriting(problems: &Problems) -> anyhow::Error {
    let lines = problems.list().iter().map(|problem| match &problem.help {
        Some(help) => format!("{}\n  help: {help}", problem.message),
        None => problem.message.clone(),
    });
    Refusal::invalid(lines.collect::<Vec<_>>().join("\n")).into()
}

fn refuse_machines(fault: &Fault) -> anyhow::Error {
    let refusal = Refusal::invalid(format!("--gpu: {fault}"));
    match &fault.help {
        Some(help) => refusal.help(help.clone()).into(),
        None => refusal.into(),
    }
}

fn file_exists(path: &Path) -> anyhow::Error {
    Refusal::new(format!("{} exists already and was not changed", path.display()))
        .help("edit it, or use `-C DIR` for another cluster")
        .into()
}
