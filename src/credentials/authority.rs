//! Certificate authorities: created, or read from disk.

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use super::certificate::Certificate;
use super::error::{CredentialsError, expiry_day};
use super::issuing::{clock_tolerance, random_serial};
use super::{CredentialStore, SecretText};
use crate::blueprint::Authority;

/// An authority that can say what it signed and, if its key is here, sign more.
pub(super) struct LoadedAuthority {
    pub(super) certificate: Certificate,
    pub(super) key: Option<Zeroizing<KeyPair>>,
}

impl LoadedAuthority {
    /// The authority as the signer of a leaf; `None` without its key.
    pub(super) fn issuer(&self) -> Option<Result<Issuer<'_, &KeyPair>, CredentialsError>> {
        let key: &KeyPair = self.key.as_ref()?;
        let der = self.certificate.der().into();
        Some(Issuer::from_ca_cert_der(&der, key).map_err(CredentialsError::crypto("an issuer")))
    }
}

/// Creates an authority: its certificate and key as PEM.
pub(super) fn create_authority(
    authority: &Authority,
    now: OffsetDateTime,
) -> Result<(String, SecretText), CredentialsError> {
    let failed = || CredentialsError::crypto(&authority.name);
    let key = Zeroizing::new(KeyPair::generate().map_err(failed())?);
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, authority.common_name.as_str());
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.serial_number = Some(random_serial()?);
    params.not_before = now - clock_tolerance();
    params.not_after = now + Duration::days(authority.days.into());
    let certificate = params.self_signed(&*key).map_err(failed())?;
    Ok((certificate.pem(), SecretText::new(key.serialize_pem())))
}

/// Reads an authority from disk and refuses one that cannot be used; `None` if neither of its files is there.
pub(super) fn load_authority(
    store: &CredentialStore,
    name: &str,
    now: OffsetDateTime,
) -> Result<Option<LoadedAuthority>, CredentialsError> {
    let broken = |reason: String| CredentialsError::BrokenAuthority { name: name.to_owned(), reason };
    let key = store.read_key(name)?.map(|key| parse_key(&key)).transpose();
    let key = key.map_err(|reason| broken(format!("{name}-key.pem {reason}")))?;
    let Some(pem) = store.read_certificate(name)? else {
        return match key {
            Some(_) => Err(broken(format!("{name}-key.pem is there, {name}.pem is not"))),
            None => Ok(None),
        };
    };
    let certificate = Certificate::read(&pem).map_err(|reason| broken(format!("{name}.pem: {reason}")))?;
    check_authority(&certificate, now).map_err(&broken)?;
    if key.as_ref().is_some_and(|key| !certificate.has_key(key)) {
        return Err(broken(format!("{name}-key.pem does not fit {name}.pem")));
    }
    Ok(Some(LoadedAuthority { certificate, key }))
}

/// Whether a certificate may sign others today.
pub(super) fn check_authority(certificate: &Certificate, now: OffsetDateTime) -> Result<(), String> {
    if !certificate.authority.is_authority {
        return Err(
            "its certificate is not a certificate authority's (basicConstraints CA is not set)".to_owned()
        );
    }
    if !certificate.authority.may_sign {
        return Err("its certificate may not sign others (key usage lacks keyCertSign)".to_owned());
    }
    if certificate.not_after <= now {
        return Err(format!("its certificate expired on {}", expiry_day(certificate.not_after)));
    }
    if certificate.not_before > now {
        return Err(format!("its certificate is valid only from {}", expiry_day(certificate.not_before)));
    }
    Ok(())
}

/// Reads a private key in any of the usual PEM forms.
pub(super) fn parse_key(pem: &SecretText) -> Result<Zeroizing<KeyPair>, String> {
    let text = pem.expose();
    if text.contains("ENCRYPTED") {
        return Err("is protected by a passphrase; `openssl pkey -in FILE -out PLAIN` removes it".to_owned());
    }
    KeyPair::from_pem(text)
        .map(Zeroizing::new)
        .map_err(|_| "is not a private key in PEM form (RSA or EC)".to_owned())
}
