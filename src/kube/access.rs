//! Who calls an API server, and which authority must have signed its certificate.

use super::KubeError;
use crate::credentials::{Credentials, SecretText};

const AUTHORITY: &str = "ca";
const ADMINISTRATOR: &str = "admin";

/// Who calls an API server. At least one of certificate and token is there.
#[derive(Clone, Debug)]
pub(crate) struct ApiAccess {
    /// The certificates of authorities, as PEM.
    pub authority: Named<String>,
    /// The client's certificate.
    pub certificate: Option<ClientCertificate>,
    /// A bearer token, sent with every request.
    pub token: Option<SecretText>,
}

/// A client's certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct ClientCertificate {
    /// The certificate, and those between it and its authority.
    pub chain: Named<String>,
    /// The key of the certificate.
    pub key: Named<SecretText>,
}

/// A text and what messages call it.
#[derive(Clone, Debug)]
pub(crate) struct Named<T> {
    /// What it is, such as "the file of the key 'admin'".
    pub what: String,
    /// The text.
    pub text: T,
}

impl ApiAccess {
    /// The administrator, with the keys of the asset directory.
    pub(super) fn of_administrator(credentials: &Credentials) -> Result<Self, KubeError> {
        let missing = |what: String| KubeError::BadCredentials { reason: format!("there is no {what}") };
        let certificate = |name: &str| {
            let text = credentials.certificate(name).map(str::to_owned);
            let text = text.ok_or_else(|| missing(format!("certificate '{name}'")))?;
            Ok(Named { what: format!("the file of the certificate '{name}'"), text })
        };
        let authority = certificate(AUTHORITY)?;
        let chain = certificate(ADMINISTRATOR)?;
        let key = credentials.key(ADMINISTRATOR).cloned();
        let key = key.ok_or_else(|| missing(format!("key '{ADMINISTRATOR}'")))?;
        let key = Named { what: format!("the file of the key '{ADMINISTRATOR}'"), text: key };
        Ok(Self { authority, certificate: Some(ClientCertificate { chain, key }), token: None })
    }
}
