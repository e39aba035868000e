//! TLS in both directions: which server is trusted, which client this is, and why either side refuses the other.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::KubeError;
use crate::credentials::Credentials;

const AUTHORITY: &str = "ca";
const ADMINISTRATOR: &str = "admin";

/// A client that is the administrator and trusts only the cluster's own authority.
pub(super) fn client_configuration(credentials: &Credentials) -> Result<ClientConfig, KubeError> {
    let mut authorities = RootCertStore::empty();
    for certificate in read_certificates(credentials, AUTHORITY)? {
        authorities.add(certificate).map_err(|error| {
            unreadable_credential(format!(
                "the certificate '{AUTHORITY}' is not that of a certificate authority: {error}"
            ))
        })?;
    }
    let chain = read_certificates(credentials, ADMINISTRATOR)?;
    let key = credentials
        .key(ADMINISTRATOR)
        .ok_or_else(|| unreadable_credential(format!("there is no key '{ADMINISTRATOR}'")))?;
    // The parser's own words may quote the file.
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes()).map_err(|_| {
        unreadable_credential(format!("the file of the key '{ADMINISTRATOR}' contains no private key"))
    })?;
    // Named, because a default for the whole process could be anything.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreadable_credential(error.to_string()))?
        .with_root_certificates(authorities)
        .with_client_auth_cert(chain, key)
        .map_err(|error| {
            unreadable_credential(format!(
                "the key '{ADMINISTRATOR}' and its certificate do not match: {error}"
            ))
        })
}

fn read_certificates(
    credentials: &Credentials,
    name: &str,
) -> Result<Vec<CertificateDer<'static>>, KubeError> {
    let text = credentials
        .certificate(name)
        .ok_or_else(|| unreadable_credential(format!("there is no certificate '{name}'")))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(unreadable_credential(format!("the file of the certificate '{name}' contains none"))),
    }
}

fn unreadable_credential(reason: String) -> KubeError {
    KubeError::BadCredentials { reason }
}

/// Why one side refuses the other's certificate, if that is why a connection failed.
pub(super) fn objection(error: &(dyn Error + 'static), tls_name: &str) -> Option<String> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = tls_error(error) {
            return Some(in_words(found, tls_name));
        }
        current = error.source();
    }
    None
}

/// An I/O error does not name the error it carries as its source.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    match error.downcast_ref::<io::Error>() {
        Some(carrier) => carrier.get_ref().and_then(|carried| carried.downcast_ref::<rustls::Error>()),
        None => error.downcast_ref::<rustls::Error>(),
    }
}

fn in_words(error: &rustls::Error, tls_name: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(flaw) => match flaw {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "the server's certificate was not signed by this cluster's authority".to_owned()
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                format!("the server's certificate is not for {tls_name}")
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired".to_owned()
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet, by the clock of this machine".to_owned()
            }
            other => format!("the server's certificate is not accepted: {other}"),
        },
        rustls::Error::AlertReceived(alert) if is_about_our_certificate(*alert) => {
            format!("the server does not accept the administrator's certificate ({alert:?})")
        }
        rustls::Error::AlertReceived(alert) => format!("the server closed the connection ({alert:?})"),
        rustls::Error::InvalidMessage(_) => "the server there does not speak TLS".to_owned(),
        other => other.to_string(),
    }
}

fn is_about_our_certificate(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate
    )
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Error, KubeError, client_configuration};
    use crate::blueprint::Blueprint;
    use crate::config;
    use crate::credentials::{Credentials, Store};

    const FILES: [&str; 3] = ["ca.pem", "admin.pem", "admin-key.pem"];

    fn read(change: impl Fn(&Path) -> std::io::Result<()>) -> Result<Credentials, Box<dyn Error>> {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/minimal");
        let directory = tempfile::tempdir()?;
        for name in FILES {
            fs::copy(golden.join("credentials").join(name), directory.path().join(name))?;
        }
        change(directory.path())?;
        let cluster = config::load(&golden.join("cluster.yaml"))?.value;
        let blueprint = Blueprint::new(cluster)?;
        let store = Store::open(directory.path(), || {})?;
        Ok(Credentials::read(&store, &blueprint.identities)?)
    }

    /// The administrator of the cluster in `tests/clusters/minimal`.
    pub(in crate::kube) fn credentials() -> Result<Credentials, Box<dyn Error>> {
        read(|_| Ok(()))
    }

    #[test]
    fn each_credential_that_cannot_be_used_is_named_and_not_shown() -> Result<(), Box<dyn Error>> {
        let key = "-----BEGIN PRIVATE KEY-----\nhunter2 hunter2\n";
        for (file, text, reason) in [
            ("ca.pem", None, "there is no certificate 'ca'"),
            ("admin.pem", Some("nothing"), "the file of the certificate 'admin' contains none"),
            ("admin-key.pem", None, "there is no key 'admin'"),
            ("admin-key.pem", Some(key), "the file of the key 'admin' contains no private key"),
        ] {
            let credentials = read(|directory| match text {
                Some(text) => fs::write(directory.join(file), text),
                None => fs::remove_file(directory.join(file)),
            })?;
            let error = client_configuration(&credentials).err().ok_or("it was accepted")?;
            assert_eq!(error, KubeError::BadCredentials { reason: reason.to_owned() });
        }
        client_configuration(&credentials()?)?;
        Ok(())
    }
}
