//! The directory of a job's code.

use crate::config::values::checked_text;
use crate::document::Fault;

checked_text!(
    /// A directory relative to that of the job file, without a way out of it.
    CodePath,
    check_code_path
);

/// The job file may be someone else's, and must not choose any directory of this machine.
fn check_code_path(text: &str) -> Result<(), Fault> {
    let refuse = |reason: &str| {
        Err(Fault::new(format!("'{text}' is not a directory for code: {reason}"))
            .help("it is that of the job file, `.`, or one below it, as src"))
    };
    if text.is_empty() {
        return refuse("it is empty");
    }
    if text.starts_with(['/', '~']) {
        return refuse("it is not relative to the job file");
    }
    if text.split('/').any(|part| part == "..") {
        return refuse("it contains '..'");
    }
    if text.chars().any(char::is_control) {
        return refuse("it contains a control character");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::CodePath;

    #[test]
    fn code_is_below_the_job_file() {
        for good in [".", "./src", "src/train", "my code", ".hidden/"] {
            assert!(good.parse::<CodePath>().is_ok(), "{good}");
        }
        for bad in ["", "/home/ada", "~/code", "..", "a/../../b", "a\u{1b}[2J"] {
            assert!(bad.parse::<CodePath>().is_err(), "{bad:?}");
        }
    }
}
