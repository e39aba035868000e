//! Names of Kubernetes objects and environment variables.

use crate::config::values::checked_text;
use crate::document::Fault;

/// What a DNS label, and so the name of a Service or a host, may have.
pub(in crate::job) const LONGEST_LABEL: usize = 63;

checked_text!(
    /// The name of a job: its Service's, so it begins with a letter.
    JobName,
    |text: &str| check_label("job name", text, true)
);

checked_text!(
    /// The name of a namespace.
    Namespace,
    |text: &str| check_label("namespace", text, false)
);

checked_text!(
    /// The name of a persistent volume claim.
    ClaimName,
    |text: &str| check_label("claim", text, false)
);

checked_text!(
    /// The name of a Secret.
    SecretName,
    |text: &str| check_label("secret name", text, false)
);

checked_text!(
    /// The name of a Kueue queue.
    QueueName,
    |text: &str| check_label("queue", text, false)
);

checked_text!(
    /// The name of a run: a directory and the value of a label.
    RunName,
    check_run_name
);

checked_text!(
    /// The name of an environment variable that every shell understands.
    EnvironmentName,
    check_environment_name
);

fn check_label(what: &str, text: &str, letter_first: bool) -> Result<(), Fault> {
    let first = if letter_first { "a letter" } else { "a letter or digit" };
    let refuse = |reason: String| {
        Err(Fault::new(reason).help(format!(
            "a {what} has 1 to {LONGEST_LABEL} lower-case letters, digits and '-', beginning with {first} and ending with a letter or digit"
        )))
    };
    if text.is_empty() {
        return refuse(format!("the {what} is empty"));
    }
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-')) {
        return refuse(format!("the {what} '{text}' has a {bad:?} in it"));
    }
    if text.len() > LONGEST_LABEL {
        return refuse(format!("the {what} '{text}' has {} characters", text.len()));
    }
    let good_first = if letter_first {
        text.starts_with(|c: char| c.is_ascii_lowercase())
    } else {
        !text.starts_with('-')
    };
    if !good_first {
        return refuse(format!("the {what} '{text}' does not begin with {first}"));
    }
    if text.ends_with('-') {
        return refuse(format!("the {what} '{text}' ends with '-'"));
    }
    Ok(())
}

impl RunName {
    /// The run that is named after hexadecimal digits, which every name may consist of.
    #[must_use]
    pub(crate) fn of_digest(digest: &str) -> Self {
        Self(digest.to_owned())
    }
}

/// As long as directories and labels stay readable.
const LONGEST_RUN_NAME: usize = 40;

fn check_run_name(text: &str) -> Result<(), Fault> {
    check_label("run name", text, false)?;
    if text.len() > LONGEST_RUN_NAME {
        return Err(Fault::new(format!("the run name '{text}' has {} characters", text.len()))
            .help(format!("a run name has at most {LONGEST_RUN_NAME} characters")));
    }
    Ok(())
}

fn check_environment_name(text: &str) -> Result<(), Fault> {
    let good = !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if good {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' cannot be the name of an environment variable"))
        .help("use letters, digits and '_', and begin with a letter"))
}
