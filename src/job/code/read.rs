//! The code that a job file names, or why it cannot be used, at its position in the file.

use std::path::Path;

use super::tree::CodeTree;
use crate::document::Problems;
use crate::job::TrainingJob;

/// Reads the code of a job, if it has any; `file` is the job file.
pub(crate) fn read_code(file: &Path, job: &TrainingJob) -> Result<Option<CodeTree>, Problems> {
    let Some(code) = &job.code else { return Ok(None) };
    CodeTree::read(file, code.value.as_str(), &job.mounts_in_code()).map(Some).map_err(|fault| {
        let mut problems = Problems::new(file);
        problems.add(code.position, fault);
        problems
    })
}
