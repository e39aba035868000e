//! `infra secret set`: stores values for jobs.

use std::collections::BTreeMap;

use clap::Args;

use super::place::{NamespaceOptions, parse_secret_name};
use super::value::{ValueSource, parse_key};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::interruption::until_interrupted;
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::document::Fault;
use crate::job::values::{EnvironmentName, SecretName};
use crate::people::{RegistryHost, RegistryLogin, SecretChange, SecretContent, set_secret};

/// The one value of a registry's login that is a secret.
const PASSWORD: &str = "password";

/// Store variables, or the login to a registry, for jobs
///
/// `infra secret set wandb WANDB_API_KEY` asks for the value without showing it; `secrets: [wandb]` in job.yaml gives the processes the
/// variable. Other keys of the secret stay. `infra secret set ghcr --registry ghcr.io --username ada` asks for the password, or a token in
/// its place; `imagePullSecrets: [ghcr]` uses it. Of a file or standard input, the last line end is left out.
#[derive(Args, Debug)]
pub(super) struct SetArguments {
    /// The name of the secret
    #[arg(value_name = "NAME", value_parser = parse_secret_name)]
    name: SecretName,
    /// A variable: KEY asks for its value, KEY=@FILE reads it from a file, KEY=- from standard input. With --registry the only key is password
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// Store the login to this registry, such as ghcr.io, instead of variables
    #[arg(long, value_name = "HOST", value_parser = parse_host, requires = "username")]
    registry: Option<RegistryHost>,
    /// The user of the registry
    #[arg(long, value_name = "USER", requires = "registry")]
    username: Option<String>,
    #[command(flatten)]
    namespace: NamespaceOptions,
}

fn parse_host(text: &str) -> Result<RegistryHost, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}

pub(super) fn run(arguments: &SetArguments, session: &Session) -> anyhow::Result<Exit> {
    let sources = parse_keys(&arguments.keys)?;
    let names = check_keys(&sources, arguments)?;
    let namespace = arguments.namespace.resolve(session)?;
    let cluster = TargetCluster::find(session)?;
    let content = match (&arguments.registry, &arguments.username) {
        (Some(host), Some(username)) => {
            let source = sources.first().map_or(&ValueSource::Question, |(_, source)| source);
            let password = source.read(&format!("the password of {username} at {host}"), session)?;
            let (host, username) = (host.clone(), username.clone());
            SecretContent::Registry(RegistryLogin { host, username, password })
        }
        _ => {
            let mut variables = BTreeMap::new();
            for (name, (key, source)) in names.into_iter().zip(&sources) {
                variables.insert(name, source.read(key, session)?);
            }
            SecretContent::Variables(variables)
        }
    };
    let name = arguments.name.as_str();
    let change = block_on(until_interrupted(async {
        Ok(set_secret(&cluster.api, &namespace, name, &content).await?)
    }))?;
    let done = match change {
        SecretChange::Created => "created",
        SecretChange::Changed => "changed",
    };
    session
        .printer
        .note(format_args!("secret '{name}' {done} in namespace {namespace} of cluster {}", cluster.name));
    session.printer.note(match &content {
        SecretContent::Variables(_) => {
            format!("`secrets: [{name}]` in job.yaml gives its variables to a job")
        }
        SecretContent::Registry(_) => {
            format!("`imagePullSecrets: [{name}]` in job.yaml lets a job pull with it")
        }
    });
    Ok(Exit::Done)
}

/// Every key with the source of its value; all values can be read.
fn parse_keys(arguments: &[String]) -> anyhow::Result<Vec<(&str, ValueSource)>> {
    let mut sources: Vec<(&str, ValueSource)> = Vec::new();
    for argument in arguments {
        let (key, source) = parse_key(argument)?;
        if sources.iter().any(|(other, _)| *other == key) {
            return Err(Refusal::invalid(format!("{key} is given twice")).into());
        }
        if source == ValueSource::Input && sources.iter().any(|(_, other)| *other == ValueSource::Input) {
            return Err(Refusal::invalid("two values cannot both come from standard input").into());
        }
        sources.push((key, source));
    }
    Ok(sources)
}

/// The variables, or none for a registry.
fn check_keys(
    sources: &[(&str, ValueSource)],
    arguments: &SetArguments,
) -> anyhow::Result<Vec<EnvironmentName>> {
    let keys: Vec<&str> = sources.iter().map(|(key, _)| *key).collect();
    let refuse = |message: &str, help: &str| Err(Refusal::invalid(message).help(help).into());
    if arguments.registry.is_some() {
        return match keys.as_slice() {
            [] | [PASSWORD] => Ok(Vec::new()),
            _ => refuse(
                "with --registry the only key is password",
                "write password=@FILE or password=-, or no key to be asked",
            ),
        };
    }
    if keys.is_empty() {
        let name = &arguments.name;
        let help = format!("`infra secret set {name} WANDB_API_KEY` asks for its value");
        return refuse("a secret needs at least one key", &help);
    }
    let names = keys.iter().map(|key| key.parse::<EnvironmentName>());
    let Ok(names) = names.collect::<Result<Vec<_>, Fault>>() else {
        return refuse(
            "a KEY cannot be the name of an environment variable (it is not repeated here, in case it is the secret itself)",
            "use letters, digits and '_', and begin with a letter",
        );
    };
    Ok(names)
}
