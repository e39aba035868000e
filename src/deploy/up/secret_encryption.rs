//! Has every Secret encrypted with the key that encrypts now, so that none needs the previous one.

use std::time::Duration;

use crate::blueprint::StackPart;
use crate::credentials::{Credentials, RotatedKey, Stage};
use crate::deploy::error::DeployError;
use crate::deploy::inputs::credential_digests::{CredentialDigests, Transition};
use crate::deploy::run::Run;
use crate::deploy::state::live::LiveCluster;
use crate::kube::{ApiServer, KubeError};
use crate::plural::count_of;
use crate::waiting::{Pace, Waiting};
use crate::well_known::CREDENTIALS_TAG;

/// An API server that is being replaced is unavailable for less.
const UNREACHABLE: Duration = Duration::from_mins(5);

/// Whether a run would take a key from the live controllers that Secrets may be encrypted with.
#[must_use]
pub(crate) fn drops_encryption_key(credentials: &Credentials, live: &LiveCluster) -> bool {
    let Some(found) = live.tag(&StackPart::ControlPlane, CREDENTIALS_TAG) else { return false };
    let wanted = CredentialDigests::of(credentials);
    let name = RotatedKey::SecretsEncryption.name();
    matches!(wanted.transition(name, &CredentialDigests::parse(found)), Transition::Safe { drops: true, .. })
}

/// Whether Secrets may still be encrypted with the previous key.
#[must_use]
pub(crate) fn has_previous_encryption_key(credentials: &Credentials) -> bool {
    matches!(credentials.keys_in_use(RotatedKey::SecretsEncryption).stage, Stage::Switched { .. })
}

/// Has every Secret stored again. All controllers must encrypt with the current key already: then what others store meanwhile is
/// encrypted with it, too.
pub(crate) async fn encrypt_secrets_again(run: &Run, api: &ApiServer) -> Result<(), DeployError> {
    run.progress.stage("encrypting Secrets with the current key");
    let names = retry_while_api_unavailable(&run.waiting, async || api.secret_names().await).await?;
    for name in &names {
        retry_while_api_unavailable(&run.waiting, async || api.store_secret_again(name).await).await?;
    }
    let verb = if names.len() == 1 { "is" } else { "are" };
    run.progress.note(format!("{} {verb} encrypted with the current key", count_of(names.len(), "Secret")));
    Ok(())
}

/// Retries while the API is unavailable.
async fn retry_while_api_unavailable<T>(
    waiting: &Waiting,
    ask: impl AsyncFn() -> Result<T, KubeError>,
) -> Result<T, DeployError> {
    let limit = waiting.at_most(UNREACHABLE);
    let mut pace = Pace::of_stack();
    loop {
        match ask().await {
            Err(error) if error.is_passing() => {
                if let Err(end) = limit.pause(pace.next_pause()).await {
                    let what = format!("{end} while encrypting Secrets: {error}");
                    return Err(match waiting.end() {
                        Some(_) => DeployError::StillRunning { what, running: Vec::new() },
                        None => DeployError::SecretsNotEncrypted { reason: error },
                    });
                }
            }
            asked => return asked.map_err(|reason| DeployError::SecretsNotEncrypted { reason }),
        }
    }
}
