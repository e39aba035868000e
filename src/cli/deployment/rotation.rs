//! What is next in a rotation of keys, for the commands that take its steps.

use crate::cli::session::Session;
use crate::credentials::{KeysInUse, RotatedKey, Stage};

/// Prints how each rotation continues whose files were just written.
pub(in crate::cli) fn print_next_steps(keys: KeysInUse, session: &Session) {
    print_each(keys, session, |key, stage| match stage {
        Stage::Settled => None,
        Stage::Announced { .. } => {
            Some(format!("step 1 of 2: run `infra up`, then `infra render credentials --rotate {key}` again"))
        }
        Stage::Switched { .. } => Some(format!(
            "step 2 of 2: run `infra up`; later, `infra render credentials --retire {key}` and `infra up` drop the previous key"
        )),
    });
}

/// Prints how each rotation continues whose step was just deployed.
pub(in crate::cli) fn print_deployed_steps(keys: KeysInUse, session: &Session) {
    print_each(keys, session, |key, stage| match stage {
        Stage::Settled => None,
        Stage::Announced { .. } => {
            Some(format!("step 1 of 2 is deployed: continue with `infra render credentials --rotate {key}`"))
        }
        Stage::Switched { .. } => {
            // Pods get new tokens within an hour; Secrets are encrypted again already.
            let when = if key == RotatedKey::ServiceAccount { ", in an hour at the earliest" } else { "" };
            Some(format!(
                "step 2 of 2 is deployed: `infra render credentials --retire {key}` drops the previous key{when}"
            ))
        }
    });
}

fn print_each(keys: KeysInUse, session: &Session, next: impl Fn(RotatedKey, Stage) -> Option<String>) {
    for key in RotatedKey::ALL {
        if let Some(step) = next(key, keys.of(key).stage) {
            session.printer.note(format_args!("rotation of {key}, {step}"));
        }
    }
}
