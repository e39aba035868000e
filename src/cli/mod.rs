//! The command line: one file per command, each with its arguments, its call into the layers, and what it prints.
//!
//! Here are the clock, the terminal and the exit codes. No rule about clusters is.

mod attached_program;
mod aws_access;
mod certificates;
mod claim;
mod closed_schema;
mod cluster_options;
mod completions;
mod core_dumps;
mod cost;
mod dashboard;
mod data;
mod deployment;
mod destroy;
mod document;
mod drift;
mod exit;
mod failure;
mod forwarding;
mod hidden_answer;
mod init;
mod interruption;
mod job;
mod key_creation;
mod kubeconfig;
mod list;
mod lock;
mod logs;
mod man;
mod plan;
mod plan_view;
mod policy;
mod progress_view;
mod question;
mod render;
mod report;
mod rollback;
mod schema;
mod secret;
mod session;
mod status;
mod target_cluster;
mod team;
mod terminal;
mod up;
mod user;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use exit::Exit;
use failure::Refusal;
use session::{GlobalOptions, Session};
use terminal::foreign_text::is_controlling;
use terminal::printer::{Output, Printer};

/// Brings up a GPU Kubernetes cluster on AWS from one file, runs training jobs on it, and deletes all of it again.
#[derive(Debug, Parser)]
#[command(
    name = "infra",
    version = env!("INFRA_VERSION"),
    help_expected = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = format!("{}\n\n{}", man::FIRST_STEPS, exit::list_exit_codes())
)]
struct Cli {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: Command,
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
    List(list::ListArguments),
    Drift(drift::DriftArguments),
    Report(report::ReportArguments),
    Dashboard(dashboard::DashboardArguments),
    Logs(logs::LogsArguments),
    Destroy(destroy::DestroyArguments),
    Rollback(rollback::RollbackArguments),
    Certificates(certificates::CertificatesArguments),
    Kubeconfig(kubeconfig::KubeconfigArguments),
    Job(Box<job::JobArguments>),
    Data(data::DataArguments),
    Secret(secret::SecretArguments),
    Team(team::TeamArguments),
    User(user::UserArguments),
    Policy(policy::PolicyArguments),
    Cost(cost::CostArguments),
    Schema(schema::SchemaArguments),
    Completions(completions::CompletionsArguments),
    Man(man::ManArguments),
}

/// Parses the arguments, runs the command and says how it ended.
#[must_use]
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            print_usage(&error);
            return if error.use_stderr() { Exit::Invalid.into() } else { Exit::Done.into() };
        }
    };
    start_logging(cli.global.verbose);
    core_dumps::forbid_core_dumps();
    let printer = Printer::new();
    let session = Session::new(&cli.global, printer.clone());
    match session.and_then(|session| run_command(cli.command, &session)) {
        Ok(exit) => exit.into(),
        Err(error) => failure::print_error(&error, &printer).into(),
    }
}

/// Help and version go to stdout and are no failure; a closed pipe is none either.
fn print_usage(error: &clap::Error) {
    let quotes_control = std::env::args_os().any(|word| word.to_string_lossy().contains(is_controlling));
    if error.use_stderr() && quotes_control {
        // Arguments are quoted as they are.
        Printer::new().note(error.render().to_string().trim_end());
    } else {
        let _ = error.print();
    }
}

fn run_command(command: Command, session: &Session) -> anyhow::Result<Exit> {
    if matches!(session.output, Output::Markdown | Output::Html) && !matches!(command, Command::Plan(_)) {
        return Err(Refusal::invalid("only `infra plan` writes markdown and html")
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
        Command::List(arguments) => list::run(&arguments, session),
        Command::Drift(arguments) => drift::run(&arguments, session),
        Command::Report(arguments) => report::run(&arguments, session),
        Command::Dashboard(arguments) => dashboard::run(&arguments, session),
        Command::Logs(arguments) => logs::run(&arguments, session),
        Command::Destroy(arguments) => destroy::run(&arguments, session),
        Command::Rollback(arguments) => rollback::run(&arguments, session),
        Command::Certificates(arguments) => certificates::run(&arguments, session),
        Command::Kubeconfig(arguments) => kubeconfig::run(&arguments, session),
        Command::Job(arguments) => job::run(&arguments, session),
        Command::Data(arguments) => data::run(&arguments, session),
        Command::Secret(arguments) => secret::run(&arguments, session),
        Command::Team(arguments) => team::run(&arguments, session),
        Command::User(arguments) => user::run(&arguments, session),
        Command::Policy(arguments) => policy::run(&arguments, session),
        Command::Cost(arguments) => cost::run(&arguments, session),
        Command::Schema(arguments) => schema::run(&arguments, session),
        Command::Completions(arguments) => completions::run(&arguments, Cli::command(), session),
        Command::Man(arguments) => man::run(&arguments, Cli::command(), session),
    }
}

fn start_logging(verbose: u8) {
    let default = match verbose {
        // What the SDK warns of comes back as an error of ours, without its insides.
        0 => "warn,aws_config=error",
        1 => "infra=info,warn,aws_config=error",
        _ => "infra=debug,info",
    };
    let mut filter = EnvFilter::try_from_env("INFRA_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // What is signed holds the session's token, and is of no use to anyone else.
    if let Ok(silence) = "aws_sigv4=off".parse() {
        filter = filter.add_directive(silence);
    }
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).without_time().init();
}
