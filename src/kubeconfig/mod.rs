//! Kubeconfig files into the cluster, the namespace and the user that a context names.
//!
//! In: one file or several, in the order of `KUBECONFIG`, and the name of a context. Out: where the API server is, what its certificate must
//! say, and who the user is. What infra cannot honour (plug-ins, proxies, servers that are not verified) is refused by name. It runs no
//! program, and no key or token is in an error.

mod entries;
mod error;
mod sections;
mod server;
mod user;

use std::path::PathBuf;

pub(crate) use error::KubeconfigError;

use entries::{FoundEntry, KubeconfigEntries};
use sections::ClusterSection;
use server::Server;
use user::{certificate_of, token_of};

use crate::kube::{Address, ApiAccess, Named};

/// What a context of a kubeconfig means.
#[derive(Debug)]
pub(crate) struct Context {
    /// The name of the context.
    pub name: String,
    /// The file that the context is in.
    pub file: PathBuf,
    /// The name of the cluster.
    pub cluster: String,
    /// The namespace that is meant where none is named.
    pub namespace: Option<String>,
    /// Where the API server is.
    pub address: Address,
    /// The name that its certificate must be for.
    pub tls_name: String,
    /// Who calls it.
    pub access: ApiAccess,
}

/// Reads the context of that name, or the current one. Of entries with one name, the first counts.
pub(crate) fn read_context(files: &[PathBuf], name: Option<&str>) -> Result<Context, KubeconfigError> {
    let entries = KubeconfigEntries::read(files)?;
    let context = entries.context(name)?;
    let cluster = entries.cluster(&context)?;
    let user = entries.user(&context)?;
    let Server { address, host } = cluster.section.server(&cluster.name)?;
    let access = ApiAccess {
        authority: authority_of(&cluster)?,
        certificate: certificate_of(&user)?,
        token: token_of(&user)?,
    };
    if access.certificate.is_none() && access.token.is_none() {
        return Err(KubeconfigError::NoCredentials { user: user.name.clone() });
    }
    Ok(Context {
        tls_name: cluster.section.tls_server_name.clone().filter(|name| !name.is_empty()).unwrap_or(host),
        namespace: context.section.namespace.clone().filter(|name| !name.is_empty()),
        cluster: cluster.name.clone(),
        name: context.name.clone(),
        file: context.file.clone(),
        address,
        access,
    })
}

fn authority_of(cluster: &FoundEntry<'_, ClusterSection>) -> Result<Named<String>, KubeconfigError> {
    let section = cluster.section;
    let (data, file) = (&section.certificate_authority_data, &section.certificate_authority);
    let text = cluster.public_text("certificate-authority", data.as_deref(), file.as_deref())?;
    text.ok_or_else(|| KubeconfigError::NoAuthority { cluster: cluster.name.clone() })
}

#[cfg(test)]
mod tests;
