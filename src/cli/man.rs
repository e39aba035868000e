//! `infra man`: manual pages from the argument types.

use std::path::PathBuf;

use anyhow::Context;
use clap::builder::Resettable;
use clap::{Args, Command};
use clap_mangen::roff::{Roff, bold, roman};

use super::exit::{CODES, Exit, OF_PROGRAM};
use super::failure::Refusal;
use super::session::Session;
use crate::durable_file::{self, Access};

/// The first commands of a new user: the end of `infra --help`, and the example of its manual page.
pub(super) const FIRST_STEPS: &str = "Start with `infra init`, then `infra validate`.";

/// Print a manual page, or write all of them to a directory
#[derive(Args, Debug)]
pub(super) struct ManArguments {
    /// The command to print the page of, as in `infra man render credentials`
    #[arg(value_name = "COMMAND", conflicts_with = "write_to")]
    path: Vec<String>,
    /// Write the page of every command to this directory
    #[arg(long, value_name = "DIR")]
    write_to: Option<PathBuf>,
}

pub(super) fn run(
    arguments: &ManArguments,
    command_line: Command,
    session: &Session,
) -> anyhow::Result<Exit> {
    // Every page would refer to `help`, which has no page.
    let mut root = command_line.disable_help_subcommand(true);
    root.build();
    if let Some(directory) = &arguments.write_to {
        std::fs::create_dir_all(directory).with_context(|| format!("creating {}", directory.display()))?;
        for command in all_commands(&root) {
            let name = command.get_display_name().unwrap_or_else(|| command.get_name());
            let path = directory.join(format!("{name}.1"));
            durable_file::replace(&path, render_page(command)?.as_bytes(), Access::Public)?;
        }
        return Ok(Exit::Done);
    }
    let mut command = &root;
    for name in &arguments.path {
        let unknown = || Refusal::invalid(format!("there is no command '{}'", arguments.path.join(" ")));
        command = command.find_subcommand(name).ok_or_else(unknown)?;
    }
    session.printer.file(&render_page(command)?)?;
    Ok(Exit::Done)
}

fn render_page(command: &Command) -> anyhow::Result<String> {
    let is_root = command.get_display_name().is_none_or(|name| name == command.get_name());
    let examples = match command.get_after_help() {
        // The rest of the text lists the exit codes, which have a section of their own.
        Some(_) if is_root => FIRST_STEPS.to_owned(),
        text => text.map(ToString::to_string).unwrap_or_default(),
    };
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone().after_help(Resettable::Reset)).render(&mut bytes)?;
    Ok(String::from_utf8(bytes)? + &example_section(&examples) + &exit_status(is_root))
}

/// The examples, line by line: troff would join the lines of a paragraph.
fn example_section(examples: &str) -> String {
    if examples.is_empty() {
        return String::new();
    }
    let mut page = Roff::new();
    page.control("SH", ["EXAMPLES"]);
    page.control("nf", []);
    page.text([roman(examples)]);
    page.control("fi", []);
    page.to_roff()
}

fn exit_status(is_root: bool) -> String {
    let mut page = Roff::new();
    page.control("SH", ["EXIT STATUS"]);
    if !is_root {
        page.text([roman("The same for every command; few commands have all of them.")]);
    }
    let codes = CODES.map(|(code, meaning)| (code.to_string(), meaning));
    for (code, meaning) in codes.into_iter().chain([(OF_PROGRAM.0.to_owned(), OF_PROGRAM.1)]) {
        page.control("TP", []);
        page.text([bold(code)]);
        page.text([roman(meaning)]);
    }
    page.to_roff()
}

fn all_commands(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|child| child.get_name() != "help").flat_map(all_commands);
    std::iter::once(command).chain(below).collect()
}
