//! `code:` in a job file: which files are code, by git's own judgement, and what is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::Workspace;

const JOB: &str = "\
name: train
framework: pytorch
image: pytorch/pytorch:2.15.0
replicas: 2
gpus: 1
command: [python, train.py]
deadline: 1h
";

/// Paths of every shape that patterns distinguish.
const TREE: [&str; 30] = [
    "train.py",
    "model.pt",
    "a.txt",
    "b.txt",
    "B.TXT",
    "1.log",
    "[x].txt",
    "#hash",
    "!mark",
    "end ",
    "back\\slash",
    "ünï.txt",
    ".hidden",
    "build",
    "lib/model.py",
    "lib/model.pt",
    "lib/build/a.o",
    "lib/data/keep.txt",
    "lib/data/drop.txt",
    "data/a.txt",
    "data/b/c.txt",
    "data/b/d/e.txt",
    "logs/1/2/3.log",
    "deep/logs/x",
    "deep/er/logs/y",
    "deep/er/model.pt",
    "x/y/z/w",
    "x/z",
    "foo/bar/baz",
    "node_modules/a/index.js",
];

/// Ignore files: the one at the top, and another in lib/.
const IGNORED: [(&str, &str); 24] = [
    ("*.pt\n", ""),
    ("*.pt\n!lib/model.pt\n", ""),
    ("*.pt\n", "!*.pt\n"),
    ("/model.pt\n/b.txt\n", ""),
    ("build\n", ""),
    ("build/\n", ""),
    ("data/\n!data/a.txt\n", ""),
    ("data/*\n!data/b\ndata/b/*\n!data/b/c.txt\n", ""),
    ("/data/**\n", "data/*\n!data/keep.txt\n"),
    ("**/logs\n", ""),
    ("logs/**\n", ""),
    ("deep/**/logs\n", ""),
    ("x/**/z\n", ""),
    ("**/*.txt\n!**/a.txt\n", ""),
    ("[ab].txt\n", ""),
    ("[!a].txt\n[0-9].log\n", ""),
    ("[[:upper:]]*\n", ""),
    ("\\#hash\n\\!mark\nend\\ \n", ""),
    ("# a comment\n#hash\n   \n\ntrain.py   \n", ""),
    ("back\\\\slash\n\\[x].txt\n", ""),
    ("?.txt\n*/b/*\n", ""),
    ("foo/*\r\n/lib/data/\r\n", "\\\n[a-\n"),
    ("*\n!*/\n!*.py\n", ""),
    ("x/**z\n**foo**\ndata/b/**/\n/**/w\nünï.txt\n.h*\n", "model.p[y-z]\n"),
];

fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The directory of the code on the claim, in the objects of the job.
#[track_caller]
fn code_of(workspace: &Workspace) -> String {
    let mount = mount_of(workspace);
    mount["subPath"].as_str().unwrap().to_owned()
}

#[track_caller]
fn container_of(workspace: &Workspace) -> Value {
    let run = workspace.infra(["job", "render", "--output", "json"]).expect_code(0);
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    let set = list["items"].as_array().unwrap().iter().find(|object| object["kind"] == "JobSet").unwrap();
    set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0].clone()
}

#[track_caller]
fn mount_of(workspace: &Workspace) -> Value {
    let container = container_of(workspace);
    let mut mounts = container["volumeMounts"].as_array().unwrap().iter();
    mounts.find(|mount| mount["readOnly"] == true && mount["name"] == "storage").unwrap().clone()
}

fn git(directory: &Path, arguments: &[&str]) -> Vec<u8> {
    let run = Command::new("git")
        .current_dir(directory)
        .args(["-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

#[test]
fn what_git_ignores_is_no_code() {
    for (number, (top, lib)) in IGNORED.iter().enumerate() {
        let workspace = Workspace::new();
        workspace.write("job.yaml", format!("{JOB}code: all\n"));
        let all = workspace.path("all");
        TREE.iter().for_each(|path| write(&all, path, path));
        write(&all, ".gitignore", top);
        write(&all, "lib/.gitignore", lib);
        git(&all, &["init", "--quiet"]);
        let listed = git(&all, &["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
        let kept: Vec<&str> =
            std::str::from_utf8(&listed).unwrap().split('\0').filter(|path| !path.is_empty()).collect();
        let judged = code_of(&workspace);
        // The same files and nothing else, where no rule counts.
        fs::remove_dir_all(&all).unwrap();
        kept.iter().filter(|path| !path.ends_with(".gitignore")).for_each(|path| write(&all, path, path));
        let plain = code_of(&workspace);
        write(&all, "more", "");
        assert_ne!(plain, code_of(&workspace));
        fs::remove_file(all.join("more")).unwrap();
        // The ignore files themselves are code for both.
        for (path, text) in [(".gitignore", top), ("lib/.gitignore", lib)] {
            if kept.contains(&path) {
                write(&all, path, text);
            }
        }
        assert_eq!(judged, code_of(&workspace), "{number}: {top:?} and {lib:?}: git keeps {kept:?}");
    }
}

#[test]
fn infraignore_wins_and_what_is_never_code_stays_here() {
    let workspace = Workspace::new();
    workspace.write("job.yaml", format!("{JOB}code: .\n"));
    write(&workspace.path("."), "cluster/cluster.yaml", "clusterName: paddle\n");
    workspace.write("train.py", "print(1)\n");
    workspace.write("model.pt", "weights");
    workspace.write(".gitignore", "*.pt\n");
    let without_model = code_of(&workspace);
    workspace.write(".infraignore", "!model.pt\n!credentials\n!.git\n");
    let with_model = code_of(&workspace);
    assert_ne!(without_model, with_model);
    // Caches, results, parts of downloads, repositories and keys change nothing.
    for path in [
        "__pycache__/train.pyc",
        "lib/__pycache__/a.pyc",
        ".git/HEAD",
        "results/train/.infra-source",
        "results/train/model.pt",
        ".infra-parts/1",
        "cluster/credentials/ca-key.pem",
        "cluster/kubeconfig",
        "cluster/userdata/controller.ign",
    ] {
        write(&workspace.path("."), path, "changed");
    }
    assert_eq!(code_of(&workspace), with_model);
    // Only beside a cluster.yaml these names mean keys.
    write(&workspace.path("."), "lib/credentials/a.py", "x");
    assert_ne!(code_of(&workspace), with_model);
}

#[test]
fn rules_of_the_repository_count_below_it() {
    let workspace = Workspace::new();
    workspace.write("job.yaml", format!("{JOB}code: src\n"));
    write(&workspace.path("."), "src/train.py", "print(1)\n");
    let alone = code_of(&workspace);
    write(&workspace.path("."), "src/model.pt", "weights");
    assert_ne!(code_of(&workspace), alone);
    workspace.write(".infraignore", "/src/*.pt\nsrc/\n");
    assert_eq!(code_of(&workspace), alone, "the directory itself was named, and its rules count");
}

#[test]
fn a_tree_is_known_by_paths_contents_links_and_executable_bits() {
    let workspace = Workspace::new();
    workspace.write("job.yaml", format!("{JOB}code: src\n"));
    write(&workspace.path("."), "src/train.py", "print(1)\n");
    let path = workspace.path("src/train.py");
    let mut seen = vec![code_of(&workspace)];
    fs::File::open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    fs::create_dir(workspace.path("src/empty")).unwrap();
    assert_eq!(code_of(&workspace), seen[0], "neither times nor empty directories count");
    let changes: [&dyn Fn(); 4] = [
        &|| fs::write(&path, "print(2)\n").unwrap(),
        &|| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap(),
        &|| symlink("train.py", workspace.path("src/main.py")).unwrap(),
        &|| fs::rename(&path, workspace.path("src/train2.py")).unwrap(),
    ];
    for change in changes {
        change();
        let code = code_of(&workspace);
        assert!(!seen.contains(&code), "{code} again");
        seen.push(code);
    }
    assert!(seen.iter().all(|code| code.len() == "code/".len() + 32 && code.starts_with("code/")));
}

#[test]
fn code_is_mounted_read_only_where_the_program_starts() {
    let workspace = Workspace::new();
    write(&workspace.path("."), "src/train.py", "print(1)\n");
    workspace.write("job.yaml", format!("{JOB}code: src\n"));
    let container = container_of(&workspace);
    assert_eq!(container["workingDir"], "/mnt/code");
    assert_eq!(mount_of(&workspace)["mountPath"], "/mnt/code");
    let has = |container: &Value, name: &str, value: &str| {
        container["env"].as_array().unwrap().contains(&json!({"name": name, "value": value}))
    };
    assert!(
        has(&container, "INFRA_CODE_DIR", "/mnt/code") && has(&container, "PYTHONDONTWRITEBYTECODE", "1")
    );
    workspace.write(
        "job.yaml",
        format!("{JOB}code: src\nworkdir: /app\nmounts: {{/app/output: output}}\nenv: {{PYTHONDONTWRITEBYTECODE: \"\"}}\n"),
    );
    let container = container_of(&workspace);
    assert_eq!(
        (container["workingDir"].as_str(), mount_of(&workspace)["mountPath"].as_str()),
        (Some("/app"), Some("/app"))
    );
    assert!(
        has(&container, "PYTHONDONTWRITEBYTECODE", "") && !has(&container, "PYTHONDONTWRITEBYTECODE", "1")
    );
    write(&workspace.path("."), "src/output", "a file");
    workspace.infra(["job", "lint"]).expect_code(2).expect_stdout(
        "job.yaml:8:7: nothing can be mounted at 'output' of the code: 'output' is a file\n  help: change mounts, or rename the file\n",
    );
}

#[test]
fn a_program_of_the_code_may_be_named_by_its_path() {
    let workspace = Workspace::new();
    write(&workspace.path("."), "src/bin/train", "#!/bin/sh\n");
    let job = JOB.replace("[python, train.py]", "[bin/train]").replace("pytorch\n", "program\n");
    workspace.write("job.yaml", format!("{job}code: src\n"));
    workspace.infra(["job", "lint"]).expect_code(0);
}

#[test]
fn directories_that_are_no_code_are_refused_by_name() {
    let workspace = Workspace::new();
    workspace.write("train.py", "print(1)\n");
    write(&workspace.path("."), "empty/.gitignore", "*\n");
    let outside = Workspace::new();
    outside.write("secret", "secret");
    symlink(outside.path("."), workspace.path("way")).unwrap();
    for (code, expected) in [
        (
            "none",
            "there is no directory 'none' beside job.yaml\n  help: `code: .` is the directory of job.yaml\n",
        ),
        (
            "train.py",
            "'train.py' is not a directory\n  help: name the directory that it is in; `code: .` is that of job.yaml\n",
        ),
        (
            "empty",
            "there is no code in 'empty': it has no files, or all are ignored\n  help: see .gitignore and .infraignore, which say what is left out; '!name' includes it again\n",
        ),
        (
            "way",
            "/way is a symbolic link, which infra does not follow\n  help: the job file may come from someone else, so code is taken from real directories below its own only: name one\n",
        ),
    ] {
        workspace.write("job.yaml", format!("{JOB}code: {code}\n"));
        for command in ["lint", "render"] {
            let run = workspace.infra(["job", command]).expect_code(2);
            let said = format!("{}{}", run.stdout, run.stderr);
            assert!(said.contains("job.yaml:8:7: ") && said.contains(expected), "{code}: {said}");
        }
    }
}

#[test]
fn code_that_is_too_large_names_what_to_leave_out() {
    let workspace = Workspace::new();
    workspace.write("job.yaml", format!("{JOB}code: .\n"));
    workspace.write("train.py", "print(1)\n");
    write(&workspace.path("."), "data/train.bin", "");
    // Without content on the disk.
    let file = fs::OpenOptions::new().write(true).open(workspace.path("data/train.bin")).unwrap();
    file.set_len(150 << 20).unwrap();
    let run = workspace.infra(["job", "lint"]).expect_code(2);
    run.expect_stdout(
        "job.yaml:8:7: the code has 150 MiB in 3 files, at most 100 MiB are allowed; the largest: data/train.bin (150 MiB), ",
    )
    .expect_stdout("help: leave out what the program does not need, with lines in .infraignore as `/data/` or `*.pt`; data goes to the claim with `infra data put`\n");
    workspace.write(".infraignore", "/data/\n");
    workspace.infra(["job", "lint"]).expect_code(0);
}
