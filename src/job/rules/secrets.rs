//! Secrets that a job names, and secrets that it should name instead of spelling them out.

use crate::document::{At, Fault, Position, Problems};
use crate::job::values::{EnvironmentName, SecretName};

/// What the names of variables that hold a password end with.
const SECRET_ENDINGS: [&str; 6] =
    ["_TOKEN", "_API_KEY", "_SECRET", "_PASSWORD", "_SECRET_ACCESS_KEY", "_PASSPHRASE"];

/// The names of Secrets, each once.
pub(super) fn build_secrets(
    key: &str,
    written: &[At<String>],
    problems: &mut Problems,
) -> Option<Vec<SecretName>> {
    let mut names: Vec<SecretName> = Vec::new();
    for text in written {
        let Some(name) = problems.parse::<SecretName>(text) else { continue };
        if names.contains(&name) {
            problems.add(text.position, Fault::new(format!("{key} names '{name}' twice")));
            continue;
        }
        names.push(name);
    }
    (names.len() == written.len()).then_some(names)
}

/// Warns of a variable whose value everyone can read who can read the job.
pub(super) fn warn_of_secret(
    name: &EnvironmentName,
    position: Option<Position>,
    value: &str,
    problems: &mut Problems,
) {
    if value.is_empty() || !SECRET_ENDINGS.iter().any(|ending| name.as_str().ends_with(ending)) {
        return;
    }
    let secret = name.as_str().split('_').next().unwrap_or_default().to_lowercase();
    let fault = Fault::new(format!("{name} looks like a secret, and is readable in the job's objects"));
    problems.warn(
        position,
        fault.help(format!(
            "remove it from env, store it with `infra secret set {secret} {name}`, and write secrets: [{secret}]"
        )),
    );
}
