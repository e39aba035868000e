//! `infra completions`: what a shell needs to complete commands and flags.

use clap::{Args, Command};
use clap_complete::Shell;

use super::exit::Exit;
use super::session::Session;

/// Print completions for a shell
///
/// For bash: `infra completions bash > /etc/bash_completion.d/infra`.
#[derive(Args, Debug)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(
    arguments: &CompletionsArguments,
    mut command_line: Command,
    session: &Session,
) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command_line, "infra", &mut script);
    session.printer.file(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
