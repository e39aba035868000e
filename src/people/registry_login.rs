//! The login to a registry, as the document that kubelets read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::config::values::checked_text;
use crate::credentials::SecretText;
use crate::document::Fault;

/// Docker's own registry has this name in its configuration files, and no other works.
const DOCKER_HUB: &str = "https://index.docker.io/v1/";
const DOCKER_HUB_NAMES: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];

/// The login to a registry.
#[derive(Debug)]
pub(crate) struct RegistryLogin {
    /// The registry.
    pub host: RegistryHost,
    /// The name of the user.
    pub username: String,
    /// The password, or a token in its place.
    pub password: SecretText,
}

impl RegistryLogin {
    /// The document, written by hand so that no copy of the password stays in memory.
    pub(super) fn document(&self) -> SecretText {
        let host = self.host.as_str();
        let host = if DOCKER_HUB_NAMES.contains(&host) { DOCKER_HUB } else { host };
        let quoted = |text: &str| Zeroizing::new(Value::from(text).to_string());
        let pair = Zeroizing::new(format!("{}:{}", self.username, self.password.expose()));
        let (host, username) = (quoted(host), quoted(&self.username));
        let password = quoted(self.password.expose());
        let both = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
        SecretText::new(format!(
            r#"{{"auths":{{{}:{{"username":{},"password":{},"auth":"{}"}}}}}}"#,
            host.as_str(),
            username.as_str(),
            password.as_str(),
            both.as_str()
        ))
    }
}

checked_text!(
    /// The host of a registry, as images' names begin with, and a port or path where there is one.
    RegistryHost,
    check_host
);

fn check_host(host: &str) -> Result<(), Fault> {
    let refuse = |reason: String| {
        let help = "write the host as images do, such as ghcr.io or registry.example.com:5000";
        Err(Fault::new(reason).help(help))
    };
    if host.contains("://") {
        return refuse(format!("'{host}' is a URL, not the host of a registry"));
    }
    let is_good = |c: char| c.is_ascii_alphanumeric() || "-._:/".contains(c);
    if host.is_empty() || !host.chars().all(is_good) || host.starts_with(['-', '.', ':', '/']) {
        return refuse(format!("'{host}' is not the host of a registry"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{RegistryHost, RegistryLogin};
    use crate::credentials::SecretText;

    fn document(host: &str, password: &str) -> Result<Value, Box<dyn std::error::Error>> {
        let host: RegistryHost = host.parse()?;
        let password = SecretText::new(password.to_owned());
        let login = RegistryLogin { host, username: "ada".to_owned(), password };
        Ok(serde_json::from_str(login.document().expose())?)
    }

    #[test]
    fn a_login_is_written_as_kubelets_read_it() -> Result<(), Box<dyn std::error::Error>> {
        let login = json!({"username": "ada", "password": "a\"b", "auth": "YWRhOmEiYg=="});
        assert_eq!(document("ghcr.io", "a\"b")?, json!({"auths": {"ghcr.io": login}}));
        let hub = document("docker.io", "x")?;
        assert!(hub["auths"]["https://index.docker.io/v1/"].is_object(), "{hub}");
        Ok(())
    }

    #[test]
    fn a_url_and_nonsense_are_no_hosts() {
        for text in ["https://ghcr.io", "", "a b", "-x", "ghcr.io?x"] {
            assert!(text.parse::<RegistryHost>().is_err(), "{text}");
        }
    }
}
