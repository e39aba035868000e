//! `examples/`: every cluster and job there is valid, and its objects can be rendered.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Workspace;

fn examples() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    found
}

#[test]
fn every_example_validates_unchanged() {
    let examples = examples();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let workspace = Workspace::new();
        for file in ["cluster.yaml", "job.yaml"] {
            workspace.write(file, fs::read_to_string(example.join(file)).unwrap());
        }
        let name = example.display();
        let run = workspace.infra(["job", "lint"]).expect_code(0);
        assert!(run.stdout.is_empty(), "{name}: {}", run.stdout);
        let run = workspace.infra(["validate"]);
        assert_eq!(run.code, 0, "{name}: {}{}", run.stdout, run.stderr);
        let run = workspace.infra(["job", "render", "--output", "json"]).expect_code(0);
        assert!(run.stdout.contains(r#""completionMode": "Indexed""#), "{name}: {}", run.stdout);
    }
}

/// What `infra job init` writes is valid, whatever the framework.
#[test]
fn every_job_file_that_init_writes_passes_lint() {
    for framework in ["paddle-v0", "paddle", "tensorflow-seed", "tensorflow", "pytorch"] {
        let workspace = Workspace::new();
        workspace.infra(["job", "init", "--framework", framework]).expect_code(0);
        let run = workspace.infra(["job", "lint"]).expect_code(0);
        assert!(run.stdout.is_empty(), "{framework}: {}", run.stdout);
        let again = workspace.infra(["job", "init", "--framework", framework]).expect_code(1);
        assert!(again.stderr.contains("job.yaml is there already"), "{}", again.stderr);
    }
}
