//! The code that a job file wants to have uploaded.

use super::mounts::objection_to_place;
use crate::document::{At, Fault, Problems};
use crate::job::file::JobFile;
use crate::job::framework::Framework;
use crate::job::names::SCRIPT_DIRECTORY;
use crate::job::training::CODE_MOUNT;
use crate::job::values::{CodePath, ContainerPath};

/// The directory of the code; what it holds is read later.
pub(super) fn build_code(code: &At<String>, file: &JobFile, problems: &mut Problems) -> Option<At<CodePath>> {
    let path: Option<CodePath> = problems.parse(code);
    if file.seed_image.value {
        let fault = Fault::new(
            "a seed image reads its configuration from the job's directory on the claim, not from code",
        );
        problems.add(
            code.position,
            fault.help("remove code, and put the files there with `infra data put`; or remove seedImage"),
        );
        return None;
    }
    check_mount(code, file, problems)?;
    Some(At { value: path?, position: code.position })
}

/// Code is mounted at the directory that the program is started in.
fn check_mount(code: &At<String>, file: &JobFile, problems: &mut Problems) -> Option<()> {
    let written = file.workdir.as_ref();
    let position = written.map_or(code.position, |workdir| workdir.position);
    if written.is_some() && file.framework.value == Framework::PaddleV0 {
        let fault = Fault::new("paddle-v0 starts programs in /root, where the code is copied to");
        problems.add(position, fault.help("remove workdir"));
        return None;
    }
    // A path that is none is reported where it is read.
    let place: ContainerPath = written.map_or(CODE_MOUNT, |workdir| workdir.value.as_str()).parse().ok()?;
    let is_above_scripts = SCRIPT_DIRECTORY.starts_with(&format!("{place}/"));
    let fault = if file.mounts.keys().any(|at| at.value == place.as_str()) {
        Fault::new(format!("both the code and a directory of the run are mounted at {place}"))
    } else if is_above_scripts {
        Fault::new(format!(
            "the launchers are in {SCRIPT_DIRECTORY}, so that code cannot be mounted at {place}"
        ))
    } else {
        match objection_to_place(&place, file) {
            Some(fault) => fault,
            None => return Some(()),
        }
    };
    problems.add(position, fault.help("the code is mounted at workdir: choose another path"));
    None
}
