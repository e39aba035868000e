//! The command line: one file a command, each with its arguments, its call into the layers, and what it prints.
//!
//! No rule about clusters lives here; what does is the clock, the terminal and the exit code.

mod asset_directory;
mod aws_access;
mod certificates;
mod closed_schema;
mod completions;
mod cost;
mod deployment;
mod destroy;
mod exit;
mod failure;
mod init;
mod interruption;
mod job;
mod kubeconfig;
mod lock;
mod logs;
mod man;
mod plan;

mod plan_view;
mod policy;
mod preflight;
mod printer;
mod progress_view;
mod question;
mod render;
mod rollback;
mod schema;
mod status;
mod up;
mod validate;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use asset_directory::AssetDirectory;
use exit::Exit;
use failure::Refusal;
use printer::{Format, Output, Printer};

const FIRST_STEPS: &str = "Start with `infra init`, then `infra validate`.";

/// Brings up a GPU Kubernetes cluster on AWS from one file, runs training jobs on it, and takes all of it away again.
#[derive(Debug, Parser)]
#[command(
    name = "infra",
    version = env!("INFRA_VERSION"),
    help_expected = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = format!("{FIRST_STEPS}\n\n{}", exit::list())
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
struct GlobalOptions {
    /// Work in this directory instead of the current one
    #[arg(short = 'C', value_name = "DIR", default_value = ".", hide_default_value = true, global = true)]
    asset_directory: PathBuf,
    /// Take templates of your own from this directory instead of templates/
    #[arg(long, value_name = "DIR", global = true)]
    templates: Option<PathBuf>,
    /// How results are printed; markdown is for `plan`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text, global = true)]
    output: Format,
    /// Answer yes where a question would be asked
    #[arg(long, global = true)]
    yes: bool,
    /// Say more about what is done; twice for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    Init(Box<init::InitArguments>),
    Validate(validate::ValidateArguments),
    Lock(lock::LockArguments),
    Render(render::RenderArguments),
    Plan(plan::PlanArguments),
    Up(Box<up::UpArguments>),
    Status(status::StatusArguments),
    Logs(logs::LogsArguments),
    Destroy(destroy::DestroyArguments),
    Rollback(rollback::RollbackArguments),
    Certificates(certificates::CertificatesArguments),
    Kubeconfig(kubeconfig::KubeconfigArguments),
    Job(Box<job::JobArguments>),
    Policy(policy::PolicyArguments),
    Cost(cost::CostArguments),
    Schema(schema::SchemaArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

/// What a command works with.
struct Session {
    assets: AssetDirectory,
    printer: Printer,
    output: Output,
    markdown: bool,
    verbose: u8,
    yes: bool,
}

/// Parses the arguments, runs the command and says how it ended.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to stdout and are no failure; a closed pipe is none either.
            let _ = error.print();
            return if error.use_stderr() { Exit::Invalid.into() } else { Exit::Done.into() };
        }
    };
    start_logging(cli.global.verbose);
    let session = Session {
        assets: AssetDirectory::new(&cli.global.asset_directory, cli.global.templates.as_deref()),
        printer: Printer::new(),
        output: if cli.global.output == Format::Json { Output::Json } else { Output::Text },
        markdown: cli.global.output == Format::Markdown,
        verbose: cli.global.verbose,
        yes: cli.global.yes,
    };
    let result = run_command(cli.command, &session);
    match result {
        Ok(exit) => exit.into(),
        Err(error) => failure::report(&error, &session.printer).into(),
    }
}

fn run_command(command: Command, session: &Session) -> anyhow::Result<Exit> {
    if session.markdown && !matches!(command, Command::Plan(_)) {
        return Err(Refusal::invalid("only `infra plan` writes markdown")
            .help("use --output text or json")
            .into());
    }
    match command {
        Command::Init(arguments) => init::run(&arguments, session),
        Command::Validate(arguments) => validate::run(&arguments, session),
        Command::Lock(arguments) => lock::run(&arguments, session),
        Command::Render(arguments) => render::run(&arguments, session),
        Command::Plan(arguments) => plan::run(&arguments, session),
        Command::Up(arguments) => up::run(&arguments, session),
        Command::Status(arguments) => status::run(&arguments, session),
        Command::Logs(arguments) => logs::run(&arguments, session),
        Command::Destroy(arguments) => destroy::run(&arguments, session),
        Command::Rollback(arguments) => rollback::run(&arguments, session),
        Command::Certificates(arguments) => certificates::run(&arguments, session),
        Command::Kubeconfig(arguments) => kubeconfig::run(&arguments, session),
        Command::Job(arguments) => job::run(&arguments, session),
        Command::Policy(arguments) => policy::run(&arguments, session),
        Command::Cost(arguments) => cost::run(&arguments, session),
        Command::Schema(arguments) => schema::run(&arguments, session),
        Command::Completions(arguments) => completions::run(&arguments, session),
        Command::Man(arguments) => man::run(&arguments, session),
    }
}

/// The whole command line as data, for completions and manual pages.
fn command_line() -> clap::Command {
    Cli::command()
}

fn start_logging(verbose: u8) {
    let default = match verbose {
        // What the SDK warns of comes back as an error of ours, without its insides.
        0 => "warn,aws_config=error",
        1 => "infra=info,warn,aws_config=error",
        _ => "infra=debug,info",
    };
    let filter = EnvFilter::try_from_env("INFRA_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
}
