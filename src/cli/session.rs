//! What every command works with, from the options that all of them take.

use std::path::PathBuf;

use clap::Args;

use super::asset_directory::AssetDirectory;
use super::printer::{Output, Printer};

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(super) struct GlobalOptions {
    /// Work in this directory instead of the current one
    #[arg(short = 'C', value_name = "DIR", default_value = ".", hide_default_value = true, global = true)]
    asset_directory: PathBuf,
    /// Take templates of your own from this directory instead of templates/
    #[arg(long, value_name = "DIR", global = true)]
    templates: Option<PathBuf>,
    /// How results are printed; markdown is for `plan`
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Output::Text, global = true)]
    output: Output,
    /// Answer yes where a question would be asked
    #[arg(long, global = true)]
    yes: bool,
    /// Say more about what is done; twice for details
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(super) verbose: u8,
}

/// What a command works with.
pub(super) struct Session {
    pub(super) assets: AssetDirectory,
    pub(super) printer: Printer,
    pub(super) output: Output,
    pub(super) verbose: u8,
    pub(super) yes: bool,
}

impl Session {
    pub(super) fn new(options: &GlobalOptions) -> Self {
        Self {
            assets: AssetDirectory::new(&options.asset_directory, options.templates.as_deref()),
            printer: Printer::new(),
            output: options.output,
            verbose: options.verbose,
            yes: options.yes,
        }
    }
}
