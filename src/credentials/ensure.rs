//! Creates what a credentials directory lacks of the identities, and renews what no longer fits.

use rcgen::KeyPair;
use time::OffsetDateTime;
use zeroize::Zeroizing;

use super::authority::{LoadedAuthority, create_authority, load_authority, parse_key};
use super::error::{CredentialsError, expiry_day};
use super::fitness::{Fitness, judge_leaf};
use super::issuing::fill_random;
use super::leaf::create_leaf;
use super::{CredentialStore, ImportedAuthority, KeysInUse, SecretText};
use crate::blueprint::{Authority, Identities, LeafCertificate, Secret, SigningKey};
use crate::config::ServiceAccountKey;

/// What a credentials directory must hold, and what may be created or replaced for that.
#[derive(Debug)]
pub struct Request<'a> {
    /// What must exist.
    pub identities: &'a Identities,
    /// The time that validity is judged by.
    pub now: OffsetDateTime,
    /// Where missing authorities come from.
    pub authorities: AuthoritySource,
    /// Whether existing authorities are replaced.
    pub replace_authorities: bool,
    /// Whether valid certificates are issued again too.
    pub renew: bool,
}

/// Where missing authorities come from.
#[derive(Debug)]
pub enum AuthoritySource {
    /// Nowhere: a missing authority is an error.
    OnDisk,
    /// All are generated.
    Generated,
    /// The team provides the authority of the cluster; the others are generated.
    Imported(ImportedAuthority),
}

/// What was done to one identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file was valid and is unchanged.
    Kept,
    /// The file did not exist.
    Created,
    /// The file existed and was created again, for this reason.
    Recreated(String),
    /// The certificate was valid and was issued again on request.
    Renewed,
    /// An authority was copied from the files that the team provides.
    Imported,
    /// An authority was replaced on request.
    Replaced,
}

/// What was done to every identity, in order.
#[derive(Clone, Debug, Default)]
pub struct Ensured {
    /// The names of the identities, each with what was done to it.
    pub actions: Vec<(String, Action)>,
}

/// Creates what is missing in the directory, and renews what no longer fits.
pub fn ensure_credentials(
    store: &CredentialStore,
    request: &Request<'_>,
) -> Result<Ensured, CredentialsError> {
    let mut ensured = Ensured::default();
    let mut authorities: Vec<(&str, LoadedAuthority)> = Vec::new();
    for authority in &request.identities.authorities {
        let (loaded, action) = ensure_authority(store, authority, request)?;
        tracing::debug!(authority = authority.name, ?action, "authority");
        authorities.push((&authority.name, loaded));
        ensured.actions.push((authority.name.clone(), action));
    }
    for leaf in &request.identities.certificates {
        let authority = authorities.iter().find(|(name, _)| *name == leaf.authority);
        let (_, authority) = authority.ok_or_else(|| CredentialsError::BrokenAuthority {
            name: leaf.authority.clone(),
            reason: format!("{} is to be signed by it, but it is not among the authorities", leaf.name),
        })?;
        let action = ensure_leaf(store, leaf, authority, request)?;
        tracing::debug!(certificate = leaf.name, ?action, "certificate");
        ensured.actions.push((leaf.name.clone(), action));
    }
    let keys = KeysInUse::read(store)?;
    for key in &request.identities.signing_keys {
        for name in keys.names_of(&key.name) {
            let action = ensure_signing_key(store, key, &name)?;
            ensured.actions.push((name, action));
        }
    }
    for secret in &request.identities.secrets {
        for name in keys.names_of(&secret.name) {
            let action = ensure_secret(store, secret, &name)?;
            ensured.actions.push((name, action));
        }
    }
    Ok(ensured)
}

fn ensure_authority(
    store: &CredentialStore,
    authority: &Authority,
    request: &Request<'_>,
) -> Result<(LoadedAuthority, Action), CredentialsError> {
    if let AuthoritySource::Imported(imported) = &request.authorities
        && authority.may_be_imported
    {
        return import_authority(store, authority, imported, request);
    }
    let replace = request.replace_authorities && matches!(request.authorities, AuthoritySource::Generated);
    let there = store.certificate_path(&authority.name).exists() || store.key_path(&authority.name).exists();
    if there && !replace {
        if let Some(loaded) = load_authority(store, &authority.name, request.now)? {
            return Ok((loaded, Action::Kept));
        }
    } else if matches!(request.authorities, AuthoritySource::OnDisk) {
        return Err(CredentialsError::NoAuthority { path: store.certificate_path(&authority.name) });
    }
    let (certificate, key) = create_authority(authority, request.now)?;
    store.write_pair(&authority.name, &certificate, &key)?;
    let action = if there { Action::Replaced } else { Action::Created };
    reload_certificate(store, &authority.name, request.now).map(|loaded| (loaded, action))
}

fn import_authority(
    store: &CredentialStore,
    authority: &Authority,
    imported: &ImportedAuthority,
    request: &Request<'_>,
) -> Result<(LoadedAuthority, Action), CredentialsError> {
    let new = imported.check(request.now)?;
    let there = store.certificate_path(&authority.name).exists();
    if there && !request.replace_authorities {
        let old = reload_certificate(store, &authority.name, request.now)?;
        if !old.certificate.is_same_as(&new.certificate) {
            return Err(CredentialsError::OtherAuthority {
                path: store.certificate_path(&authority.name),
                until: expiry_day(old.certificate.not_after),
            });
        }
        if old.key.is_some() {
            return Ok((old, Action::Kept));
        }
    }
    store.write_pair(&authority.name, &imported.certificate, &imported.key)?;
    Ok((new, if there { Action::Replaced } else { Action::Imported }))
}

fn reload_certificate(
    store: &CredentialStore,
    name: &str,
    now: OffsetDateTime,
) -> Result<LoadedAuthority, CredentialsError> {
    load_authority(store, name, now)?
        .ok_or_else(|| CredentialsError::NoAuthority { path: store.certificate_path(name) })
}

fn ensure_leaf(
    store: &CredentialStore,
    leaf: &LeafCertificate,
    authority: &LoadedAuthority,
    request: &Request<'_>,
) -> Result<Action, CredentialsError> {
    let action = match judge_leaf(store, leaf, authority, request.now)? {
        Fitness::Good if request.renew => Action::Renewed,
        Fitness::Good => return Ok(Action::Kept),
        Fitness::Missing => Action::Created,
        Fitness::Unfit(reason) => Action::Recreated(reason),
    };
    let made = create_leaf(leaf, authority, request.now).ok_or_else(|| CredentialsError::NoAuthorityKey {
        key: store.key_path(&leaf.authority),
        leaf: leaf.name.clone(),
    })?;
    let (certificate, key) = made?;
    store.write_pair(&leaf.name, &certificate, &key)?;
    Ok(action)
}

/// A key that signs tokens is never replaced: every token it signed would become invalid.
fn ensure_signing_key(
    store: &CredentialStore,
    wanted: &SigningKey,
    name: &str,
) -> Result<Action, CredentialsError> {
    let unusable = |reason: String| CredentialsError::Unusable { path: store.key_path(name), reason };
    let (key, action) = match store.read_key(name)? {
        Some(pem) => (parse_key(&pem).map_err(unusable)?, Action::Kept),
        None if name == wanted.name => {
            return create_signing_key(store, name, wanted.kind).map(|()| Action::Created);
        }
        None => return Err(CredentialsError::MissingKey { path: store.key_path(name) }),
    };
    let kind = if key.is_compatible(&rcgen::PKCS_RSA_SHA256) {
        ServiceAccountKey::Rsa
    } else {
        ServiceAccountKey::Ecdsa
    };
    if kind != wanted.kind {
        let name = |kind| if kind == ServiceAccountKey::Rsa { "rsa" } else { "ecdsa" };
        return Err(unusable(format!(
            "is an {} key, but cluster.yaml asks for {}",
            name(kind),
            name(wanted.kind)
        )));
    }
    let public = key.public_key_pem();
    if store.read_certificate(name)?.as_deref() != Some(&public) {
        store.write_public(name, &public)?;
    }
    Ok(action)
}

/// Creates a key that signs tokens, and its public key.
pub(super) fn create_signing_key(
    store: &CredentialStore,
    name: &str,
    kind: ServiceAccountKey,
) -> Result<(), CredentialsError> {
    let key = match kind {
        ServiceAccountKey::Ecdsa => KeyPair::generate(),
        ServiceAccountKey::Rsa => {
            KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048)
        }
    };
    let key = key.map(Zeroizing::new).map_err(CredentialsError::crypto(name))?;
    store.write_key(name, &SecretText::new(key.serialize_pem()))?;
    store.write_public(name, &key.public_key_pem())
}

/// Creates a secret of random bytes.
pub(super) fn create_secret(
    store: &CredentialStore,
    name: &str,
    length: usize,
) -> Result<(), CredentialsError> {
    let mut bytes = Zeroizing::new(vec![0; length]);
    fill_random(&mut bytes)?;
    store.write_secret(name, &bytes)
}

fn ensure_secret(store: &CredentialStore, secret: &Secret, name: &str) -> Result<Action, CredentialsError> {
    let Some(bytes) = store.read_secret(name)? else {
        if name != secret.name {
            return Err(CredentialsError::MissingKey { path: store.file_path(name) });
        }
        return create_secret(store, name, secret.bytes).map(|()| Action::Created);
    };
    if bytes.len() == secret.bytes {
        return Ok(Action::Kept);
    }
    let reason = format!("has {} bytes, but must have {}", bytes.len(), secret.bytes);
    Err(CredentialsError::Unusable { path: store.file_path(name), reason })
}
