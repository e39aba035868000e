//! `infra job init`: writes a job file that explains itself.

use clap::{Args, ValueEnum};

use super::target::JobFileOptions;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::session::Session;
use crate::durable_file::{self, Access, WriteError};
use crate::job::Framework;
use crate::render::Templates;

/// Write an example job file
///
/// An existing file is never overwritten.
#[derive(Args, Debug)]
pub(super) struct InitArguments {
    /// The framework of the example
    #[arg(long, value_name = "FRAMEWORK")]
    framework: FrameworkName,
    #[command(flatten)]
    job: JobFileOptions,
}

/// A framework, as an argument.
#[derive(Clone, Copy, Debug)]
struct FrameworkName(Framework);

impl ValueEnum for FrameworkName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [FrameworkName; 6] = {
            let [one, two, three, four, five, six] = Framework::ALL;
            [
                FrameworkName(one),
                FrameworkName(two),
                FrameworkName(three),
                FrameworkName(four),
                FrameworkName(five),
                FrameworkName(six),
            ]
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.0.name()))
    }
}

pub(super) fn run(arguments: &InitArguments, session: &Session) -> anyhow::Result<Exit> {
    let path = arguments.job.path(session)?;
    let templates = Templates::new(&session.assets.read_overrides()?)?;
    let name = format!("jobs/examples/{}.yaml", arguments.framework.0);
    let text = templates.plain(&name).unwrap_or_default();
    match durable_file::create(&path, text.as_bytes(), Access::Public) {
        Err(WriteError::Exists { path }) => {
            return Err(Refusal::new(format!("{} is there already", path.display()))
                .help("`-f FILE` writes another; nothing was changed")
                .into());
        }
        other => other?,
    }
    session.printer.note(format_args!(
        "{}: written; next: change its image and program, then `infra job lint` and `infra job submit`",
        path.display()
    ));
    Ok(Exit::Done)
}
