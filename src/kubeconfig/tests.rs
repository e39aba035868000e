//! Kubeconfigs as tools write them, and everything that is refused in one.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{Context, KubeconfigError, read_context};

const CLUSTER: &str = "clusters:\n- name: paddle\n  cluster: {server: 'https://k8s.example.com', certificate-authority-data: YQ==}\n";
const CONTEXT: &str = "contexts:\n- name: here\n  context: {cluster: paddle, user: ada, namespace: vision}\ncurrent-context: here\n";

struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { directory: tempfile::tempdir()? })
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Box<dyn Error>> {
        let path = self.directory.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

fn user(fields: &str) -> String {
    format!("{CLUSTER}{CONTEXT}users:\n- name: ada\n  user: {{{fields}}}\n")
}

fn read(text: &str) -> Result<Context, Box<dyn Error>> {
    let files = Files::new()?;
    Ok(read_context(&[files.write("config", text)?], None)?)
}

fn refusal(text: &str) -> Result<String, Box<dyn Error>> {
    match read(text) {
        Ok(context) => Err(format!("{context:?} was accepted").into()),
        Err(error) => Ok(error.to_string()),
    }
}

#[test]
fn a_context_names_a_cluster_a_namespace_and_a_user() -> Result<(), Box<dyn Error>> {
    let context = read(&user("client-certificate-data: Yg==, client-key-data: Yw=="))?;
    assert_eq!((context.name.as_str(), context.cluster.as_str()), ("here", "paddle"));
    assert_eq!(context.namespace.as_deref(), Some("vision"));
    assert_eq!(
        (context.address.to_string().as_str(), context.tls_name.as_str()),
        ("k8s.example.com:443", "k8s.example.com")
    );
    assert_eq!(context.access.authority.text, "a");
    let certificate = context.access.certificate.ok_or("there is no certificate")?;
    assert_eq!((certificate.chain.text.as_str(), certificate.key.text.expose()), ("b", "c"));
    assert!(context.access.token.is_none());
    Ok(())
}

#[test]
fn files_are_beside_the_kubeconfig_that_names_them() -> Result<(), Box<dyn Error>> {
    let files = Files::new()?;
    for (name, text) in [
        ("ca.pem", "the authority"),
        ("ada.pem", "the certificate"),
        ("ada-key.pem", "the key"),
        ("token", "the token\n"),
    ] {
        files.write(name, text)?;
    }
    let text = user("client-certificate: ada.pem, client-key: ada-key.pem, tokenFile: token").replace(
        "certificate-authority-data: YQ==",
        "certificate-authority: ca.pem, tls-server-name: other.example.com",
    );
    let context = read_context(&[files.write("config", &text)?], None)?;
    assert_eq!(context.access.authority.text, "the authority");
    assert_eq!(context.tls_name, "other.example.com");
    let certificate = context.access.certificate.ok_or("there is no certificate")?;
    assert_eq!(
        (certificate.chain.text.as_str(), certificate.key.text.expose()),
        ("the certificate", "the key")
    );
    assert_eq!(context.access.token.map(|token| token.expose().to_owned()).as_deref(), Some("the token"));
    Ok(())
}

#[test]
fn of_several_files_the_first_with_a_name_counts() -> Result<(), Box<dyn Error>> {
    let files = Files::new()?;
    let first = files.write("first", &format!("{CLUSTER}users: null\n"))?;
    let second = files.write("second", &user("token: t").replace("k8s.example.com", "other.example.com"))?;
    let missing = files.directory.path().join("missing");
    let context = read_context(&[missing.clone(), first, second], None)?;
    assert_eq!(context.tls_name, "k8s.example.com");
    let none = read_context(&[missing.clone(), missing], None);
    assert!(matches!(none, Err(KubeconfigError::NoFile { .. })), "{none:?}");
    Ok(())
}

#[test]
fn another_context_can_be_named() -> Result<(), Box<dyn Error>> {
    let files = Files::new()?;
    let path = files.write("config", &user("token: t").replace("current-context: here\n", ""))?;
    let none = read_context(std::slice::from_ref(&path), None).err().ok_or("it was accepted")?;
    assert_eq!(none.to_string(), "the kubeconfig has no current context");
    assert_eq!(read_context(std::slice::from_ref(&path), Some("here"))?.name, "here");
    let wrong = read_context(&[path], Some("there")).err().ok_or("it was accepted")?;
    assert_eq!(wrong.to_string(), "the kubeconfig has no context 'there'");
    Ok(())
}

#[test]
fn what_infra_cannot_honour_is_refused_by_name() -> Result<(), Box<dyn Error>> {
    for (fields, message) in [
        (
            "exec: {command: aws, apiVersion: v1}",
            "the user 'ada' of the kubeconfig logs in with the exec plug-in 'aws', which infra does not run",
        ),
        (
            "auth-provider: {name: gcp}",
            "the user 'ada' of the kubeconfig logs in with the auth provider 'gcp', which infra does not run",
        ),
        (
            "username: ada, password: hunter2",
            "the user 'ada' of the kubeconfig has username: Kubernetes no longer accepts passwords",
        ),
        (
            "token: hunter2, as: root",
            "the user 'ada' of the kubeconfig has as: infra does not act for other users",
        ),
        ("client-certificate-data: Yg==", "the user 'ada' of the kubeconfig has no client-key"),
        ("client-key-data: Yg==", "the user 'ada' of the kubeconfig has no client-certificate"),
        (
            "client-certificate-data: Yg==, client-key-data: hunter2-",
            "client-key-data of user 'ada' is not base64",
        ),
        ("client-certificate-data: Yg==, client-key: none", "does not exist"),
        ("token: [hunter2]", "a field of its clusters, contexts or users has the wrong type"),
    ] {
        let said = refusal(&user(fields))?;
        assert!(said.contains(message) && !said.contains("hunter2"), "{fields}: {said}");
    }
    assert!(refusal(&user(""))?.contains("neither a client certificate nor a token"));
    for (fields, message) in [
        ("server: 'https://a', insecure-skip-tls-verify: true", "insecure-skip-tls-verify"),
        (
            "server: 'https://a', proxy-url: 'http://b'",
            "infra connects directly; INFRA_API_SERVER=host:port names a tunnel",
        ),
        (
            "server: 'http://a'",
            "the server of cluster 'paddle' is 'http://a': it does not begin with https://",
        ),
        ("server: 'https://a'", "the cluster 'paddle' of the kubeconfig has no certificate-authority-data"),
    ] {
        let text = user("token: t")
            .replace("server: 'https://k8s.example.com', certificate-authority-data: YQ==", fields);
        let said = refusal(&text)?;
        assert!(said.contains(message), "{fields}: {said}");
    }
    assert!(
        refusal(&user("token: t").replace("user: ada", "user: bob"))?
            .contains("names the user 'bob', which the kubeconfig does not have")
    );
    assert!(refusal("kind: Pod\n")?.contains("is not a kubeconfig"));
    assert!(refusal("a: [\n")?.contains("config:"));
    Ok(())
}
