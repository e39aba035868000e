//! `infra render credentials` with authorities of the user: which are imported, and which are refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::credentials::ENSURE;
use crate::support::{Outcome, Workspace, files_in, openssl};

/// Creates an authority with openssl, as a company's security team would.
fn make_authority(directory: &Path, name: &str, key: &[&str], more: &[&str]) {
    let file = |suffix: &str| directory.join(format!("{name}{suffix}")).to_string_lossy().into_owned();
    let made =
        Outcome::of(Command::new("openssl").arg("genpkey").args(key).args(["-out", &file("-key.pem")]));
    made.expect_code(0);
    let mut request = Command::new("openssl");
    request.args(["req", "-x509", "-new", "-sha256", "-key", &file("-key.pem"), "-out", &file(".pem")]);
    request.args(["-subj", &format!("/O=Example/CN={name}")]);
    Outcome::of(request.args(more)).expect_code(0);
}

const EC: [&str; 4] = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"];
const RSA: [&str; 4] = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"];
const SIGNS: [&str; 4] = [
    "-addext",
    "basicConstraints=critical,CA:TRUE,pathlen:0",
    "-addext",
    "keyUsage=critical,keyCertSign,cRLSign",
];

fn bring(workspace: &Workspace, certificate: &str, key: &str) -> Outcome {
    let (certificate, key) = (workspace.path(certificate), workspace.path(key));
    let mut command = workspace.command(ENSURE);
    Outcome::of(command.arg("--ca-cert-path").arg(certificate).arg("--ca-key-path").arg(key))
}

#[test]
fn an_rsa_or_ec_authority_can_be_imported() {
    for key in [EC, RSA] {
        let workspace = Workspace::with_cluster();
        make_authority(&workspace.path(""), "corp", &key, &[&SIGNS[..], &["-days", "90"]].concat());
        bring(&workspace, "corp.pem", "corp-key.pem").expect_code(0).expect_stderr("imported   ca");
        assert_eq!(workspace.read("credentials/ca.pem"), workspace.read("corp.pem"));
        let (ca, leaf) = (workspace.credential("ca.pem"), workspace.credential("apiserver.pem"));
        openssl(["verify", "-x509_strict", "-CAfile", ca.to_str().unwrap(), leaf.to_str().unwrap()]).unwrap();
        let end = openssl(["x509", "-in", leaf.to_str().unwrap(), "-noout", "-enddate"]).unwrap();
        assert_eq!(end, openssl(["x509", "-in", ca.to_str().unwrap(), "-noout", "-enddate"]).unwrap());
        bring(&workspace, "corp.pem", "corp-key.pem").expect_code(0).expect_stderr("credentials: 17 kept");
        workspace.infra(ENSURE).expect_code(0).expect_stderr("credentials: 17 kept");
    }
}

#[test]
fn an_unsuitable_authority_is_refused_with_the_reason() {
    let workspace = Workspace::with_cluster();
    let here = workspace.path("");
    make_authority(&here, "good", &EC, &SIGNS);
    make_authority(&here, "leaf", &EC, &["-addext", "basicConstraints=critical,CA:FALSE"]);
    make_authority(&here, "mute", &EC, &["-addext", "keyUsage=critical,digitalSignature"]);
    make_authority(&here, "weak", &["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], &SIGNS);
    Outcome::of(Command::new("openssl").current_dir(&here).args([
        "pkey",
        "-in",
        "good-key.pem",
        "-aes256",
        "-passout",
        "pass:x",
        "-out",
        "locked-key.pem",
    ]))
    .expect_code(0);
    expired_authority(&here);
    workspace.write("text.pem", "hello\n");
    for (certificate, key, reason) in [
        ("leaf.pem", "leaf-key.pem", "is not a certificate authority's"),
        ("mute.pem", "mute-key.pem", "may not sign others (key usage lacks keyCertSign)"),
        ("weak.pem", "weak-key.pem", "its RSA key has 1024 bits, at least 2048 are needed"),
        ("good.pem", "mute-key.pem", "the key does not fit the certificate"),
        ("good.pem", "locked-key.pem", "is protected by a passphrase"),
        ("good.pem", "text.pem", "is not a private key in PEM form"),
        ("text.pem", "good-key.pem", "there is no certificate in it"),
        ("good-key.pem", "good-key.pem", "it holds a private key"),
        ("old.pem", "old-key.pem", "its certificate expired on "),
        ("missing.pem", "good-key.pem", "cannot read"),
    ] {
        let run = bring(&workspace, certificate, key).expect_code(1);
        assert!(run.stderr.contains(reason), "{certificate} {key}: {}", run.stderr);
        assert!(!workspace.credential("ca.pem").exists());
    }
}

/// An authority that expired yesterday; older versions of `openssl req` cannot create one, `openssl ca` can.
fn expired_authority(directory: &Path) {
    make_authority(directory, "old", &EC, &[&SIGNS[..], &["-days", "1"]].concat());
    let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
    let configuration = format!(
        "[ca]\ndefault_ca=d\n[d]\ndatabase={}\nserial={}\nnew_certs_dir={}\ndefault_md=sha256\npolicy=p\nx509_extensions=x\n\
         [p]\nO=optional\nCN=supplied\n[x]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\n",
        file("index.txt"),
        file("serial"),
        file("")
    );
    fs::write(file("ca.cnf"), configuration).unwrap();
    fs::write(file("index.txt"), "").unwrap();
    fs::write(file("serial"), "01\n").unwrap();
    let run = |arguments: &[&str]| Outcome::of(Command::new("openssl").args(arguments)).expect_code(0);
    let (key, request, out) = (file("old-key.pem"), file("old.csr"), file("old.pem"));
    run(&["req", "-new", "-key", &key, "-subj", "/O=Example/CN=old", "-out", &request]);
    run(&[
        "ca",
        "-batch",
        "-selfsign",
        "-config",
        &file("ca.cnf"),
        "-keyfile",
        &key,
        "-in",
        &request,
        "-out",
        &out,
        "-notext",
        "-startdate",
        "20200101000000Z",
        "-enddate",
        "20210101000000Z",
    ]);
}

#[test]
fn another_authority_is_not_overwritten() {
    let workspace = Workspace::with_credentials();
    make_authority(&workspace.path(""), "corp", &EC, &SIGNS);
    let before = files_in(&workspace.path("credentials"));
    let run = bring(&workspace, "corp.pem", "corp-key.pem").expect_code(1);
    assert!(
        run.stderr.contains("there is another certificate authority in credentials/ca.pem already"),
        "{}",
        run.stderr
    );
    assert_eq!(files_in(&workspace.path("credentials")), before);
    let mut command = workspace.command(["render", "credentials", "--replace-ca", "--yes"]);
    let run = Outcome::of(command.args(["--ca-cert-path", "corp.pem", "--ca-key-path", "corp-key.pem"]))
        .expect_code(0);
    assert!(
        run.stderr.contains("replaced   ca\n") && run.stderr.contains("8 created, 9 kept"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_chain_can_be_imported_if_its_authorities_allow_it() {
    let workspace = Workspace::with_cluster();
    let here = workspace.path("");
    for (root, allowed) in [("wide", true), ("narrow", false)] {
        let length = if allowed { 1 } else { 0 };
        let constraints = format!("basicConstraints=critical,CA:TRUE,pathlen:{length}");
        make_authority(
            &here,
            root,
            &EC,
            &["-addext", &constraints, "-addext", "keyUsage=critical,keyCertSign"],
        );
        fs::write(
            here.join("x.cnf"),
            "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=critical,keyCertSign\n",
        )
        .unwrap();
        let run = |arguments: &[&str]| {
            Outcome::of(Command::new("openssl").current_dir(&here).args(arguments)).expect_code(0);
        };
        run(&["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "sub-key.pem"]);
        run(&["req", "-new", "-key", "sub-key.pem", "-subj", "/CN=sub", "-out", "sub.csr"]);
        let (certificate, key) = (format!("{root}.pem"), format!("{root}-key.pem"));
        run(&[
            "x509",
            "-req",
            "-in",
            "sub.csr",
            "-CA",
            &certificate,
            "-CAkey",
            &key,
            "-CAcreateserial",
            "-extfile",
            "x.cnf",
            "-days",
            "30",
            "-out",
            "sub.pem",
        ]);
        workspace.write("chain.pem", workspace.read("sub.pem") + &workspace.read(&certificate));
        let run = bring(&workspace, "chain.pem", "sub-key.pem");
        if allowed {
            run.expect_code(0);
            let (ca, leaf) = (workspace.credential("ca.pem"), workspace.credential("admin.pem"));
            openssl(["verify", "-CAfile", ca.to_str().unwrap(), leaf.to_str().unwrap()]).unwrap();
            fs::remove_dir_all(workspace.path("credentials")).unwrap();
        } else {
            run.expect_code(1).expect_stderr("allows too few authorities below it (path length)");
        }
    }
}
