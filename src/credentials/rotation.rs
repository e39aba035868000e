//! Changes a key of a running cluster, one step a run: a new key is written first, and the file that says which keys are in use last, so that
//! a run that is killed has changed everything or nothing. No key is ever overwritten or deleted.

use super::ensure::{create_secret, create_signing_key};
use super::{CredentialStore, CredentialsError, KeySet, KeysInUse, RotatedKey, Stage};
use crate::blueprint::Identities;

/// What a run does to the keys in use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationRequest {
    /// The keys to take one step further.
    pub rotate: Vec<RotatedKey>,
    /// The keys whose previous one is dropped.
    pub retire: Vec<RotatedKey>,
}

/// Takes the step, for all keys at once; returns the identities that were created.
pub fn rotate_keys(
    store: &CredentialStore,
    identities: &Identities,
    request: &RotationRequest,
) -> Result<Vec<String>, CredentialsError> {
    let mut keys = KeysInUse::read(store)?;
    let mut created = Vec::new();
    for key in each_key_once(&request.rotate) {
        let KeySet { current, stage } = keys.of(key);
        let next = match stage {
            Stage::Settled => {
                let next = unused_number(store, key, current);
                create_next_key(store, identities, key, next)?;
                created.push(key.numbered(next));
                KeySet { current, stage: Stage::Announced { next } }
            }
            Stage::Announced { next } => {
                KeySet { current: next, stage: Stage::Switched { previous: current } }
            }
            Stage::Switched { .. } => return Err(CredentialsError::PreviousKeyInUse { key }),
        };
        keys.set(key, next);
    }
    for key in each_key_once(&request.retire) {
        let KeySet { current, stage } = keys.of(key);
        match stage {
            Stage::Switched { .. } => keys.set(key, KeySet { current, stage: Stage::Settled }),
            Stage::Settled | Stage::Announced { .. } => {
                return Err(CredentialsError::NoPreviousKey { key, is_announced: stage != Stage::Settled });
            }
        }
    }
    if keys != KeysInUse::read(store)? {
        keys.write(store)?;
    }
    Ok(created)
}

/// A key that is named twice is taken one step further, not two.
fn each_key_once(keys: &[RotatedKey]) -> impl Iterator<Item = RotatedKey> {
    RotatedKey::ALL.into_iter().filter(|key| keys.contains(key))
}

/// A number that no file has: one that exists may be in use, whatever became of the file that says so.
fn unused_number(store: &CredentialStore, key: RotatedKey, current: u32) -> u32 {
    let exists = |number: u32| {
        let name = key.numbered(number);
        store.key_path(&name).exists() || store.file_path(&name).exists()
    };
    let mut number = current.saturating_add(1);
    while exists(number) && number < u32::MAX {
        number += 1;
    }
    number
}

fn create_next_key(
    store: &CredentialStore,
    identities: &Identities,
    key: RotatedKey,
    number: u32,
) -> Result<(), CredentialsError> {
    let first = key.numbered(1);
    for signing_key in identities.signing_keys.iter().filter(|known| known.name == first) {
        create_signing_key(store, &key.numbered(number), signing_key.kind)?;
    }
    for secret in identities.secrets.iter().filter(|known| known.name == first) {
        create_secret(store, &key.numbered(number), secret.bytes)?;
    }
    Ok(())
}
