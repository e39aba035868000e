//! Every chain, judged by OpenSSL and by rustls-webpki: the right ones pass, the wrong ones are refused by both.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::support::{Workspace, openssl};

/// What is asked of a certificate.
struct Question<'a> {
    authority: &'a Path,
    leaf: &'a Path,
    purpose: Purpose,
    name: Option<&'a str>,
    /// Seconds from now.
    later: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Server,
    Client,
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn openssl_accepts(question: &Question<'_>) -> bool {
    let purpose = if question.purpose == Purpose::Server { "sslserver" } else { "sslclient" };
    let time = (now() + question.later).to_string();
    let (authority, leaf) = (question.authority.to_str().unwrap(), question.leaf.to_str().unwrap());
    let mut arguments = vec!["verify", "-x509_strict", "-purpose", purpose, "-attime", &time];
    if let Some(name) = question.name {
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        arguments.extend([if is_address { "-verify_ip" } else { "-verify_hostname" }, name]);
    }
    arguments.extend(["-CAfile", authority, leaf]);
    openssl(arguments).is_ok()
}

fn webpki_accepts(question: &Question<'_>) -> bool {
    let read = |path: &Path| CertificateDer::from_pem_slice(&fs::read(path).unwrap()).unwrap();
    let (authority, leaf) = (read(question.authority), read(question.leaf));
    let anchors = [anchor_from_trusted_cert(&authority).unwrap()];
    let certificate = EndEntityCert::try_from(&leaf).unwrap();
    let usage = match question.purpose {
        Purpose::Server => KeyUsage::server_auth(),
        Purpose::Client => KeyUsage::client_auth(),
    };
    let time = UnixTime::since_unix_epoch(Duration::from_secs(now() + question.later));
    let chain = certificate.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors, &[], time, usage, None, None);
    let name = question
        .name
        .map(|name| certificate.verify_is_valid_for_subject_name(&ServerName::try_from(name).unwrap()));
    chain.is_ok() && name.is_none_or(|result| result.is_ok())
}

#[track_caller]
fn expect(question: &Question<'_>, accepted: bool) {
    let about = format!("{} {:?} {:?}", question.leaf.display(), question.purpose, question.name);
    assert_eq!(openssl_accepts(question), accepted, "openssl: {about}");
    assert_eq!(webpki_accepts(question), accepted, "webpki: {about}");
}

/// Each leaf with its authority and what it is good for.
const LEAVES: [(&str, &str, &[Purpose]); 12] = [
    ("apiserver", "ca", &[Purpose::Server]),
    ("apiserver-kubelet-client", "ca", &[Purpose::Client]),
    ("admin", "ca", &[Purpose::Client]),
    ("controller-manager", "ca", &[Purpose::Client]),
    ("scheduler", "ca", &[Purpose::Client]),
    ("worker", "ca", &[Purpose::Client]),
    ("controller-bootstrap", "ca", &[Purpose::Client]),
    ("etcd-0", "etcd-ca", &[Purpose::Server, Purpose::Client]),
    ("etcd-1", "etcd-ca", &[Purpose::Server, Purpose::Client]),
    ("etcd-2", "etcd-ca", &[Purpose::Server, Purpose::Client]),
    ("etcd-client", "etcd-ca", &[Purpose::Client]),
    ("front-proxy-client", "front-proxy-ca", &[Purpose::Client]),
];

#[test]
fn each_chain_holds_for_its_own_authority_and_use_and_for_no_other() {
    let workspace = Workspace::with_credentials();
    let file = |name: &str| workspace.credential(&format!("{name}.pem"));
    for (name, own, purposes) in LEAVES {
        for authority in ["ca", "etcd-ca", "front-proxy-ca"] {
            for purpose in [Purpose::Server, Purpose::Client] {
                let accepted = authority == own && purposes.contains(&purpose);
                let (authority, leaf) = (file(authority), file(name));
                expect(
                    &Question { authority: &authority, leaf: &leaf, purpose, name: None, later: 0 },
                    accepted,
                );
            }
        }
    }
}

#[test]
fn the_same_names_under_a_foreign_authority_are_refused() {
    let (own, foreign) = (Workspace::with_credentials(), Workspace::with_credentials());
    let (authority, leaf) = (own.credential("ca.pem"), foreign.credential("admin.pem"));
    expect(
        &Question { authority: &authority, leaf: &leaf, purpose: Purpose::Client, name: None, later: 0 },
        false,
    );
}

#[test]
fn server_certificates_are_valid_for_their_names_and_no_other() {
    let workspace = Workspace::with_credentials();
    let check = |leaf: &str, authority: &str, name: &str, accepted: bool| {
        let (authority, leaf) = (workspace.credential(authority), workspace.credential(leaf));
        let question = Question {
            authority: &authority,
            leaf: &leaf,
            purpose: Purpose::Server,
            name: Some(name),
            later: 0,
        };
        expect(&question, accepted);
    };
    for name in [
        "k8s.example.com",
        "api.paddle.infra.internal",
        "kubernetes",
        "kubernetes.default.svc.cluster.local",
        "10.3.0.1",
        "127.0.0.1",
        "localhost",
    ] {
        check("apiserver.pem", "ca.pem", name, true);
    }
    for name in ["example.com", "other.example.com", "10.3.0.2", "etcd-0.paddle.infra.internal"] {
        check("apiserver.pem", "ca.pem", name, false);
    }
    check("etcd-0.pem", "etcd-ca.pem", "etcd-0.paddle.infra.internal", true);
    check("etcd-0.pem", "etcd-ca.pem", "127.0.0.1", true);
    check("etcd-0.pem", "etcd-ca.pem", "etcd-1.paddle.infra.internal", false);
}

#[test]
fn no_certificate_is_valid_after_its_last_day() {
    let workspace = Workspace::with_credentials();
    let (authority, leaf) = (workspace.credential("ca.pem"), workspace.credential("admin.pem"));
    let day = 24 * 60 * 60;
    for (days, accepted) in [(0, true), (364, true), (366, false)] {
        let question = Question {
            authority: &authority,
            leaf: &leaf,
            purpose: Purpose::Client,
            name: None,
            later: days * day,
        };
        expect(&question, accepted);
    }
}

#[test]
fn serials_never_repeat() {
    let workspace = Workspace::with_credentials();
    let serial = |name: &str| {
        let path = workspace.credential(name);
        openssl(["x509", "-in", path.to_str().unwrap(), "-noout", "-serial"]).unwrap()
    };
    let mut serials: Vec<String> = LEAVES.iter().map(|(name, ..)| serial(&format!("{name}.pem"))).collect();
    workspace.infra(["render", "credentials", "--renew"]).expect_code(0);
    serials.extend(LEAVES.iter().map(|(name, ..)| serial(&format!("{name}.pem"))));
    let count = serials.len();
    serials.sort();
    serials.dedup();
    assert_eq!(serials.len(), count);
    assert!(serials.iter().all(|serial| serial.trim().len() == "serial=".len() + 32), "{serials:?}");
}
