//! Which symbolic links may be moved.

use std::path::{Component, Path};

/// Whether a link at `path` leads to something below the directory. Upwards it may lead only first, from its own directory, which is a real
/// one: what is above another link is not known from names.
pub(super) fn stays_inside(path: &Path, target: &Path) -> bool {
    let depth =
        path.components().filter(|part| matches!(part, Component::Normal(_))).count().saturating_sub(1);
    let rest = target.components().filter(|part| *part != Component::CurDir);
    let upwards = rest.clone().take_while(|part| *part == Component::ParentDir).count();
    upwards <= depth && rest.skip(upwards).all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::stays_inside;

    #[test]
    fn links_may_lead_to_what_is_below_the_directory_only() {
        let inside = [("latest", "pass-1"), ("a/latest", "../b/x"), ("a/b/c", "../../d"), ("x", "./y")];
        for (path, target) in inside {
            assert!(stays_inside(Path::new(path), Path::new(target)), "{path} -> {target}");
        }
        // A name can be a link itself, so what is above it is not known.
        let outside =
            [("x", "/etc/passwd"), ("x", ".."), ("a/x", "../../y"), ("x", "a/../b"), ("./x", "../y")];
        for (path, target) in outside {
            assert!(!stays_inside(Path::new(path), Path::new(target)), "{path} -> {target}");
        }
    }
}
