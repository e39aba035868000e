//! A certificate authority that the team provides, checked before anything is signed with it.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::SecretText;
use super::authority::{LoadedAuthority, check_authority, parse_key};
use super::certificate::Certificate;
use super::error::CredentialsError;

/// The smallest RSA key that today's software still trusts.
const SMALLEST_RSA_BITS: usize = 2048;

/// An authority's files as they were found, not yet judged.
#[derive(Debug)]
pub struct ImportedAuthority {
    /// Where the certificate came from.
    pub certificate_path: PathBuf,
    /// The certificate, and possibly the ones above it.
    pub certificate: String,
    /// Where the key came from.
    pub key_path: PathBuf,
    /// The key.
    pub key: SecretText,
}

impl ImportedAuthority {
    /// Reads the two files.
    pub fn read(certificate_path: &Path, key_path: &Path) -> Result<Self, CredentialsError> {
        let read = |path: &Path| {
            let failed = |reason| CredentialsError::Disk { doing: "read", path: path.to_owned(), reason };
            std::fs::read_to_string(path).map_err(failed)
        };
        Ok(Self {
            certificate_path: certificate_path.to_owned(),
            certificate: read(certificate_path)?,
            key_path: key_path.to_owned(),
            key: SecretText::new(read(key_path)?),
        })
    }

    /// Whether it is an authority, may sign, has its own key, is valid today, and its chain allows it.
    pub(super) fn check(&self, now: OffsetDateTime) -> Result<LoadedAuthority, CredentialsError> {
        let unfit =
            |reason: String| CredentialsError::UnfitAuthority { path: self.certificate_path.clone(), reason };
        let unfit_key =
            |reason: String| CredentialsError::UnfitAuthority { path: self.key_path.clone(), reason };
        let chain = Certificate::read_all(&self.certificate).map_err(unfit)?;
        check_authority(&chain[0], now).map_err(unfit)?;
        check_chain(&chain).map_err(unfit)?;
        check_strength(&chain[0]).map_err(unfit)?;
        let key = parse_key(&self.key).map_err(|reason| unfit_key(format!("it {reason}")))?;
        if !chain[0].has_key(&key) {
            return Err(unfit_key(format!(
                "the key does not fit the certificate {}",
                self.certificate_path.display()
            )));
        }
        let certificate = chain.into_iter().next();
        let certificate = certificate.ok_or_else(|| unfit("there is no certificate in it".to_owned()))?;
        Ok(LoadedAuthority { certificate, key: Some(key) })
    }
}

/// Each certificate of the file must be signed by the next, and no one above may forbid those below it.
fn check_chain(chain: &[Certificate]) -> Result<(), String> {
    for (below, (certificate, issuer)) in chain.iter().zip(&chain[1..]).enumerate() {
        if !certificate.is_signed_by(issuer) {
            return Err(format!(
                "'{}' is not signed by '{}', which follows it",
                certificate.subject, issuer.subject
            ));
        }
        if !issuer.authority.is_authority || !issuer.authority.may_sign {
            return Err(format!("'{}' may not sign certificates", issuer.subject));
        }
        if issuer.authority.path_length.is_some_and(|allowed| (allowed as usize) < below + 1) {
            return Err(format!("'{}' allows too few authorities below it (path length)", issuer.subject));
        }
    }
    Ok(())
}

fn check_strength(certificate: &Certificate) -> Result<(), String> {
    match certificate.rsa_bits() {
        Some(bits) if bits < SMALLEST_RSA_BITS => {
            Err(format!("its RSA key has {bits} bits, at least {SMALLEST_RSA_BITS} are needed"))
        }
        _ => Ok(()),
    }
}
