//! The binary: hands over to the library's command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    infra::cli::run()
}
