//! `infra render credentials`, killed at any moment or out of disk space: no file is ever half written or readable by others, and
//! the next run finishes the work.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{KeyPair, PublicKeyData};

use crate::support::{MINIMAL, Outcome, Workspace, openssl};

const KILLS: u32 = 50;

/// Whatever state the run was in, each file by itself is whole, and no secret is readable by others.
fn check_files(directory: &Path, when: &str) {
    if !directory.exists() {
        return;
    }
    assert_eq!(fs::metadata(directory).unwrap().permissions().mode() & 0o777, 0o700, "{when}");
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let text = String::from_utf8_lossy(&bytes);
        if text.contains("PRIVATE") || name.ends_with(".key") {
            assert_eq!(mode, 0o600, "{when}: {name}");
        }
        if name.starts_with('.') {
            continue;
        }
        let whole = match name.as_str() {
            "secrets-encryption.key" => bytes.len() == 32,
            _ => {
                text.starts_with("-----BEGIN ")
                    && text.trim_end().ends_with("-----")
                    && text.matches("-----END ").count() == 1
            }
        };
        assert!(whole, "{when}: {name} is broken: {text:?}");
    }
}

/// Every certificate is there, is signed by its authority, and has its own key.
fn check_complete(workspace: &Workspace, when: &str) {
    for (leaf, authority) in [
        ("apiserver", "ca"),
        ("apiserver-kubelet-client", "ca"),
        ("admin", "ca"),
        ("controller-manager", "ca"),
        ("scheduler", "ca"),
        ("worker", "ca"),
        ("controller-bootstrap", "ca"),
        ("etcd-0", "etcd-ca"),
        ("etcd-1", "etcd-ca"),
        ("etcd-2", "etcd-ca"),
        ("etcd-client", "etcd-ca"),
        ("front-proxy-client", "front-proxy-ca"),
    ] {
        let file = |name: &str| workspace.credential(name).to_string_lossy().into_owned();
        let (certificate, authority) = (file(&format!("{leaf}.pem")), file(&format!("{authority}.pem")));
        openssl(["verify", "-CAfile", &authority, &certificate])
            .unwrap_or_else(|error| panic!("{when}: {error}"));
        let key = KeyPair::from_pem(&workspace.read(&format!("credentials/{leaf}-key.pem"))).unwrap();
        let (_, block) = x509_parser::pem::parse_x509_pem(&fs::read(&certificate).unwrap()).unwrap();
        let parsed = block.parse_x509().unwrap();
        assert_eq!(key.subject_public_key_info(), parsed.public_key().raw, "{when}: {leaf}");
    }
    let hidden: Vec<String> = fs::read_dir(workspace.path("credentials"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.') && name != ".lock")
        .collect();
    assert!(hidden.is_empty(), "{when}: {hidden:?} was left behind");
}

#[test]
fn killed_at_random_moments_it_never_breaks_a_file_and_the_next_run_finishes() {
    let workspace = Workspace::with_cluster();
    let started = Instant::now();
    workspace.infra(["render", "credentials", "--generate-ca"]).expect_code(0);
    let mut whole = started.elapsed();
    // A fixed sequence of moments, spread over a whole run; how long that is depends on what else the machine does.
    let mut state: u32 = 20_261_116;
    let (mut killed, mut round) = (0, 0);
    while killed < KILLS {
        assert!(round < KILLS * 20, "only {killed} of {round} runs could be killed");
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let delay = whole.mul_f64(f64::from(state >> 8) / f64::from(1 << 24));
        let flags: &[&str] = match round % 3 {
            0 => {
                fs::remove_dir_all(workspace.path("credentials")).unwrap();
                &["--generate-ca"]
            }
            1 => &["--renew"],
            _ => &["--generate-ca", "--replace-ca", "--yes"],
        };
        round += 1;
        let mut child = workspace
            .command(["render", "credentials"])
            .args(flags)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            whole = whole.min(delay.max(Duration::from_millis(5)));
            continue;
        }
        killed += 1;
        let when = format!("killed after {delay:?} with {flags:?}");
        check_files(&workspace.path("credentials"), &when);
        workspace.infra(["render", "credentials", "--generate-ca"]).expect_code(0);
        check_complete(&workspace, &when);
    }
}

/// A small file system of its own, for tests that fill it.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let options = format!("size={size},mode=700");
        let run = Outcome::of(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path));
        (run.code == 0).then(|| Self(path.to_owned()))
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        Outcome::of(Command::new("mount").args(["-o", &options]).arg(&self.0)).expect_code(0);
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_leaves_whole_files_and_a_clear_message() {
    let workspace = Workspace::new();
    let directory = workspace.path("disk");
    let Some(disk) = SmallDisk::mount(&directory, "64k") else {
        eprintln!("SKIPPED: a small disk can be mounted by the superuser only");
        return;
    };
    fs::write(directory.join("cluster.yaml"), MINIMAL).unwrap();
    let render = || workspace.infra(["-C", "disk", "render", "credentials", "--generate-ca"]);
    let run = render().expect_code(1);
    assert!(run.stderr.contains("No space left on device"), "{}", run.stderr);
    check_files(&directory.join("credentials"), "on a full disk");
    disk.grow("4m");
    render().expect_code(0);
    workspace.infra(["-C", "disk", "certificates"]).expect_code(0);
    workspace
        .infra(["-C", "disk", "render", "credentials"])
        .expect_code(0)
        .expect_stderr("credentials: 17 kept");
}
