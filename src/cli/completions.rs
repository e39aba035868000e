//! `infra completions`: what a shell needs to complete commands and flags.

use clap::Args;
use clap_complete::Shell;

use super::Session;
use super::exit::Exit;

/// Print completions for a shell
///
/// For bash: `infra completions bash > /etc/bash_completion.d/infra`.
#[derive(Args, Debug)]
pub(super) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments, session: &Session) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command_line(), "infra", &mut script);
    session.printer.raw(&String::from_utf8(script)?)?;
    Ok(Exit::Done)
}
