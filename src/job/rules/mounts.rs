//! Where a program finds directories of its run.

use std::collections::BTreeMap;

use crate::document::{At, Fault, Position, Problems};
use crate::job::file::JobFile;
use crate::job::names::{SCRATCH_DIRECTORY, SCRIPT_DIRECTORY};
use crate::job::values::{ClaimPath, ContainerPath};

/// Directories that pods need as they are.
const RESERVED: [&str; 6] = ["/", "/dev", "/proc", "/sys", "/dev/shm", SCRIPT_DIRECTORY];

/// The mounts of a job, each below the directory of its run.
pub(super) fn build_mounts(
    file: &JobFile,
    problems: &mut Problems,
) -> Option<BTreeMap<ContainerPath, ClaimPath>> {
    let mut mounts = BTreeMap::new();
    let mut places: Vec<(ContainerPath, Option<Position>)> = Vec::new();
    for (at, directory) in &file.mounts {
        let (place, source) = (problems.parse::<ContainerPath>(at), problems.parse::<ClaimPath>(directory));
        let (Some(place), Some(source)) = (place, source) else { continue };
        if let Some(fault) = mount_objection(&place, &source, file) {
            problems.add(at.position, fault);
            continue;
        }
        places.push((place.clone(), at.position));
        mounts.insert(place, source);
    }
    for (outer, _) in &places {
        let below = format!("{outer}/");
        if let Some((inner, position)) = places.iter().find(|(place, _)| place.as_str().starts_with(&below)) {
            let fault = Fault::new(format!("{inner} is inside of {outer}, which is mounted too"));
            problems.add(*position, fault.help("mount one of them"));
            return None;
        }
    }
    (mounts.len() == file.mounts.len()).then_some(mounts)
}

fn mount_objection(place: &ContainerPath, source: &ClaimPath, file: &JobFile) -> Option<Fault> {
    if let Some(fault) = objection_to_place(place, file) {
        return Some(fault);
    }
    if source.as_str().split('/').any(|part| part.starts_with('.')) || source.as_str() == "logs" {
        let fault = Fault::new(format!("'{source}' is a directory of the launchers"));
        return Some(fault.help("choose another name, such as output"));
    }
    None
}

/// Why nothing can be mounted somewhere.
pub(super) fn objection_to_place(place: &ContainerPath, file: &JobFile) -> Option<Fault> {
    let claim = file.framework.value.mount_path();
    if RESERVED.contains(&place.as_str()) {
        return Some(Fault::new(format!("nothing can be mounted at {place}")));
    }
    if place.as_str() == claim || claim.starts_with(&format!("{place}/")) {
        return Some(
            Fault::new(format!("the whole claim is mounted at {claim}")).help("choose another path"),
        );
    }
    let covers_scratch =
        place.as_str() == SCRATCH_DIRECTORY || SCRATCH_DIRECTORY.starts_with(&format!("{place}/"));
    if file.scratch_gib.is_some() && covers_scratch {
        let fault = Fault::new(format!("the scratch of scratchGiB is mounted at {SCRATCH_DIRECTORY}"));
        return Some(fault.help("choose another path"));
    }
    None
}

/// The directory that the program is started in.
pub(super) fn build_workdir(
    written: Option<&At<String>>,
    problems: &mut Problems,
) -> Option<Option<ContainerPath>> {
    match written {
        None => Some(None),
        Some(text) => problems.parse(text).map(Some),
    }
}
