//! Programs that scripts/prepare-tests provides.

use std::path::{Path, PathBuf};

/// The path of such a program, as `venv/bin/check-jsonschema`.
#[track_caller]
pub fn test_tool(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/test-tools").join(name);
    assert!(path.exists(), "{} is not there: run scripts/prepare-tests once", path.display());
    path
}
