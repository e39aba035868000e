//! The cluster that teams are on, as their commands need it, and what they show while they wait.

use crate::blueprint::Blueprint;
use crate::cli::job::random_mark;
use crate::cli::session::Session;
use crate::document::Fault;
use crate::job::{ClusterFacts, HELPER_IMAGE, tolerations_of_all_pools};
use crate::people::{DirectoryPods, TeamEvent, TeamName, TeamPlace};

/// Printed at the first Ctrl-C.
pub(super) const LEAVING: &str = "leaving as soon as it is tidy; a second Ctrl-C exits at once";

/// The name of a team, as an argument.
pub(in crate::cli) fn parse_team(text: &str) -> Result<TeamName, String> {
    text.parse().map_err(|fault: Fault| fault.to_string())
}

/// What teams need to know of the cluster.
pub(super) fn place_of(blueprint: &Blueprint) -> anyhow::Result<TeamPlace<'_>> {
    let facts = ClusterFacts::Blueprint(blueprint);
    Ok(TeamPlace {
        cluster: blueprint.cluster.name.as_str(),
        file_system: blueprint.cluster.file_system.as_ref().map(|_| blueprint.names.file_system.as_str()),
        pods: DirectoryPods {
            image: facts.mirrored_image(HELPER_IMAGE),
            tolerations: tolerations_of_all_pools(facts),
            mark: random_mark()?,
        },
    })
}

/// Shows what happens.
pub(super) fn show_event(event: &TeamEvent, session: &Session) {
    match event {
        TeamEvent::Applied(name) => session.printer.note(format_args!("{name}: applied")),
        TeamEvent::Directory(path) => {
            session.printer.note(format_args!("starting a pod for the directory {path} of the file system"));
        }
        TeamEvent::Waits(detail) => session.printer.note(format_args!("the pod is waiting: {detail}")),
        TeamEvent::Deleting => session.printer.note("deleting the namespace and everything in it"),
    }
}
