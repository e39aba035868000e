//! Issues one certificate with a key of its own.

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use time::{Duration, OffsetDateTime};
use zeroize::Zeroizing;

use super::SecretText;
use super::authority::LoadedAuthority;
use super::error::CredentialsError;
use super::issuing::{clock_tolerance, random_serial};
use crate::blueprint::{LeafCertificate, Usage};
use crate::config::values::CertificateName;

/// Creates a key and has the authority sign a certificate for it; `None` if the authority's key is not here.
pub(super) fn create_leaf(
    leaf: &LeafCertificate,
    authority: &LoadedAuthority,
    now: OffsetDateTime,
) -> Option<Result<(String, SecretText), CredentialsError>> {
    let issuer = authority.issuer()?;
    let sign = || {
        let issuer = issuer?;
        let failed = || CredentialsError::crypto(&leaf.name);
        let key = Zeroizing::new(KeyPair::generate().map_err(failed())?);
        let params = certificate_parameters(leaf, authority, now)?;
        let certificate = params.signed_by(&*key, &issuer).map_err(failed())?;
        Ok((certificate.pem(), SecretText::new(key.serialize_pem())))
    };
    Some(sign())
}

fn certificate_parameters(
    leaf: &LeafCertificate,
    authority: &LoadedAuthority,
    now: OffsetDateTime,
) -> Result<CertificateParams, CredentialsError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(organization) = &leaf.organization {
        params.distinguished_name.push(DnType::OrganizationName, organization.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, leaf.common_name.as_str());
    for name in &leaf.names {
        params.subject_alt_names.push(match name {
            CertificateName::Address(address) => SanType::IpAddress(*address),
            CertificateName::Dns(name) => {
                SanType::DnsName(name.as_str().try_into().map_err(CredentialsError::crypto(&leaf.name))?)
            }
        });
    }
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = leaf.usages.iter().map(|usage| extended_usage(*usage)).collect();
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(random_serial()?);
    params.not_before = now - clock_tolerance();
    // From its issuer's last day on, every program refuses a certificate that outlives the issuer.
    params.not_after = (now + Duration::days(leaf.days.into())).min(authority.certificate.not_after);
    Ok(params)
}

fn extended_usage(usage: Usage) -> ExtendedKeyUsagePurpose {
    match usage {
        Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
        Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
    }
}
