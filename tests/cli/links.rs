//! Links between documents lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

/// Every document of the project.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn what_a_document_links_to_is_there() {
    let mut links = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let path = document.parent().unwrap().join(target.split('#').next().unwrap());
            assert!(path.exists(), "{} links to {target}, which is not there", document.display());
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
}
