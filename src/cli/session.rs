//! What every command works with, from the options that all of them take.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::failure::Refusal;
use crate::cli::cluster_options::ClusterOptions;
use crate::cli::terminal::printer::{Output, Printer};
use crate::cli::terminal::screen::{ProgressChoice, Stream};
use crate::credentials::CredentialStore;
use crate::project::{AssetDirectory, Project, ProjectError, RenderedProject};
use crate::waiting::{Interrupter, Tempo, Waiting};

/// The variable that shortens pauses, so that tests do not sleep; never for users, whose calls AWS would throttle.
const TEMPO_VARIABLE: &str = "INFRA_TEST_TEMPO";
/// The variable with the server to ask whether Flatcar publishes a driver: for a network that reaches only copies of Flatcar's release
/// files, and for tests.
const RELEASE_SERVER_VARIABLE: &str = "INFRA_RELEASE_SERVER";
/// The variable with which a user of a screen reader, or anyone else, has every line printed once.
const PROGRESS_VARIABLE: &str = "INFRA_PROGRESS";

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(super) struct GlobalOptions {
    /// Work in this directory instead of the current one
    #[arg(short = 'C', value_name = "DIR", default_value = ".", hide_default_value = true, global = true)]
    asset_directory: PathBuf,
    /// Read overriding templates from this directory instead of templates/
    #[arg(long, value_name = "DIR", global = true)]
    templates: Option<PathBuf>,
    /// How results are printed; markdown and html are for `plan`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Output::Text, global = true)]
    output: Output,
    /// Answer yes where a question would be asked
    #[arg(long, global = true)]
    yes: bool,
    /// Log more; twice for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
}

/// What a command works with.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) assets: AssetDirectory,
    pub(super) printer: Printer,
    pub(super) output: Output,
    pub(super) verbose: u8,
    pub(super) yes: bool,
    pub(super) tempo: Tempo,
    /// Whether lines may be drawn again.
    progress: ProgressChoice,
    /// Where Flatcar's release files are, if not on Flatcar's own server.
    pub(super) release_server: Option<String>,
    /// Which cluster the command is about, for those that take options for it.
    pub(super) cluster: ClusterOptions,
}

impl Session {
    pub(super) fn new(options: &GlobalOptions, printer: Printer) -> anyhow::Result<Self> {
        Ok(Self {
            assets: AssetDirectory::new(&options.asset_directory, options.templates.as_deref()),
            printer,
            output: options.output,
            verbose: options.verbose,
            yes: options.yes,
            tempo: read_tempo()?,
            progress: read_progress_choice()?,
            release_server: read_release_server()?,
            cluster: ClusterOptions::default(),
        })
    }

    /// The same session with the cluster that the user chose.
    pub(super) fn with_cluster(&self, cluster: &ClusterOptions) -> Self {
        Self { cluster: cluster.clone(), ..self.clone() }
    }

    /// Whether lines are drawn again on a stream. With `--verbose` they are not: the log is written between them.
    pub(super) fn can_redraw(&self, stream: Stream) -> bool {
        self.verbose == 0 && self.progress.can_redraw(stream)
    }

    /// Begins a wait that ends when the limit is reached or the user interrupts it.
    pub(super) fn begin_waiting(&self, limit: Option<Duration>) -> (Interrupter, Waiting) {
        let (interrupter, waiting) = Waiting::new(limit);
        (interrupter, waiting.at_tempo(self.tempo))
    }

    /// Reads and validates cluster.yaml, and prints its warnings: once in a command.
    pub(super) fn load_project(&self) -> Result<Project, ProjectError> {
        let (project, warnings) = Project::load(&self.assets)?;
        if !warnings.list().is_empty() {
            self.printer.note(&warnings);
        }
        Ok(project)
    }

    /// As [`Session::load_project`], for a command that does not use what the warnings are about: validate, render, plan and up print
    /// them.
    pub(super) fn load_project_quietly(&self) -> Result<Project, ProjectError> {
        Ok(Project::load(&self.assets)?.0)
    }

    /// The credentials, which must be there already, locked.
    pub(super) fn open_existing_credentials(&self) -> Result<CredentialStore, ProjectError> {
        self.assets.open_existing_credentials(|| self.print_waiting())
    }

    /// The credentials, locked.
    pub(super) fn open_credentials(&self) -> Result<CredentialStore, ProjectError> {
        self.assets.open_credentials(|| self.print_waiting())
    }

    fn print_waiting(&self) {
        let directory = self.assets.credentials();
        self.printer.note(format_args!("waiting for another infra that uses {} …", directory.display()));
    }

    /// Prints which snippets nothing uses.
    pub(super) fn print_unused_snippets(&self, rendered: &RenderedProject) {
        rendered.unused_snippets.iter().for_each(|snippet| self.printer.warning(snippet));
    }
}

fn read_tempo() -> anyhow::Result<Tempo> {
    let Ok(text) = std::env::var(TEMPO_VARIABLE) else { return Ok(Tempo::default()) };
    Ok(text.parse().map_err(|problem| Refusal::invalid(format!("{TEMPO_VARIABLE}: {problem}")))?)
}

fn read_progress_choice() -> anyhow::Result<ProgressChoice> {
    let Ok(text) = std::env::var(PROGRESS_VARIABLE) else { return Ok(ProgressChoice::default()) };
    Ok(text.parse().map_err(|problem| {
        Refusal::invalid(format!("{PROGRESS_VARIABLE}: {problem}"))
            .help("`plain` prints every line once, for screen readers and logs; `auto` draws lines again at a terminal")
    })?)
}

fn read_release_server() -> anyhow::Result<Option<String>> {
    let Ok(text) = std::env::var(RELEASE_SERVER_VARIABLE) else { return Ok(None) };
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace)) {
        return Ok(Some(text.trim_end_matches('/').to_owned()));
    }
    Err(Refusal::invalid(format!("{RELEASE_SERVER_VARIABLE} is '{text}'"))
        .help("it is a URL, as https://update.release.flatcar-linux.net")
        .into())
}
