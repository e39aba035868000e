//! `infra logs`: a machine's console.

use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;

use super::aws_access::{AwsOptions, block_on};
use super::exit::Exit;
use super::session::Session;
use crate::cli::terminal::printer::Output;
use crate::deploy::{console_evidence, read_log};

/// Print what a machine wrote to its console
///
/// Works without SSH and also for a machine that never became a node. EC2 collects the console every few minutes on older types. The
/// last step that the boot scripts reported is printed at the end.
#[derive(Args, Debug)]
pub(super) struct LogsArguments {
    /// A node's name, an instance id, an address, or a role: etcd-0, controller, a pool's name
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    aws: AwsOptions,
}

/// What is known of a machine's start.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogDocument {
    /// The machine's id.
    instance: String,
    /// The role of the machine, as `etcd-0`, `controller` or `pool-NAME`.
    role: Option<String>,
    /// The state of the machine, in EC2's words.
    state: String,
    /// What the machine wrote to its console; null if EC2 has not collected it yet.
    console: Option<String>,
    /// The last step that the boot scripts reported.
    last_step: Option<String>,
}

pub(super) fn run(arguments: &LogsArguments, session: &Session) -> anyhow::Result<Exit> {
    let blueprint = session.load_project_quietly()?.blueprint;
    block_on(async {
        let clients = arguments.aws.connect(&blueprint.cluster, session).await;
        let log = read_log(&clients, &blueprint.cluster, &arguments.node).await?;
        let machine = &log.instance;
        let evidence = log.text.as_deref().map(|text| console_evidence(&machine.id, text));
        let last_step = evidence.and_then(|evidence| evidence.last_step);
        if session.output == Output::Json {
            let (machine, console) = (log.instance, log.text);
            session.printer.json(&LogDocument {
                instance: machine.id,
                role: machine.role,
                state: machine.state,
                console,
                last_step,
            })?;
            return Ok(Exit::Done);
        }
        let role = machine.role.as_deref().unwrap_or("no role");
        session
            .printer
            .note(format_args!("{} ({role}, {}, {})", machine.id, machine.instance_type, machine.state));
        match &log.text {
            Some(text) => {
                let mut log = session.printer.log();
                log.print(format!("{}\n", text.trim_end()).as_bytes())?;
                log.finish()?;
            }
            None => session.printer.note("EC2 has not collected its console yet; retry in a few minutes"),
        }
        if let Some(step) = last_step {
            session.printer.note(format_args!("the last step it reported: {step}"));
        }
        Ok(Exit::Done)
    })
}
