//! TLS in both directions: which server is trusted, which client this is, and why either side refuses the other.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{AlertDescription, CertificateError, ClientConfig, RootCertStore};

use super::KubeError;
use super::access::{ApiAccess, ClientCertificate, Named};

/// A client with its certificate, if it has one, that trusts only the cluster's own authority.
pub(super) fn client_configuration(access: &ApiAccess) -> Result<ClientConfig, KubeError> {
    let mut authorities = RootCertStore::empty();
    for certificate in read_certificates(&access.authority)? {
        authorities.add(certificate).map_err(|error| {
            let what = &access.authority.what;
            unreadable_credential(format!("{what} is not that of a certificate authority: {error}"))
        })?;
    }
    // Named, because a default for the whole process could be anything.
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unreadable_credential(error.to_string()))?
        .with_root_certificates(authorities);
    let Some(ClientCertificate { chain, key }) = &access.certificate else {
        return Ok(builder.with_no_client_auth());
    };
    let certificates = read_certificates(chain)?;
    // The parser's own words may quote the file.
    let private = PrivateKeyDer::from_pem_slice(key.text.expose().as_bytes())
        .map_err(|_| unreadable_credential(format!("{} contains no private key", key.what)))?;
    builder.with_client_auth_cert(certificates, private).map_err(|error| {
        unreadable_credential(format!("{} does not belong to the certificate: {error}", key.what))
    })
}

fn read_certificates(pem: &Named<String>) -> Result<Vec<CertificateDer<'static>>, KubeError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.text.as_bytes()).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        _ => Err(unreadable_credential(format!("{} contains none", pem.what))),
    }
}

fn unreadable_credential(reason: String) -> KubeError {
    KubeError::BadCredentials { reason }
}

/// Why one side refuses the other's certificate, if that is why a connection failed.
pub(super) fn certificate_objection(error: &(dyn Error + 'static), tls_name: &str) -> Option<String> {
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
            format!("the server does not accept the client's certificate ({alert:?})")
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

    use super::{ApiAccess, Error, KubeError, client_configuration};
    use crate::blueprint::Blueprint;
    use crate::config;
    use crate::credentials::{CredentialStore, Credentials};

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
        let store = CredentialStore::open(directory.path(), || {})?;
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
            let read =
                ApiAccess::of_administrator(&credentials).and_then(|access| client_configuration(&access));
            let error = read.err().ok_or("it was accepted")?;
            assert_eq!(error, KubeError::BadCredentials { reason: reason.to_owned() });
        }
        client_configuration(&ApiAccess::of_administrator(&credentials()?)?)?;
        Ok(())
    }
}
