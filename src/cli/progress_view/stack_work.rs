//! How far the work on a stack is, by what CloudFormation says about its resources.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::deploy::StackOperation;

/// The work on one stack.
#[derive(Debug)]
pub(super) struct StackWork {
    operation: StackOperation,
    resources: Option<usize>,
    began: Instant,
    done: BTreeSet<String>,
    /// What this work began to create: its deletion takes it back.
    made: BTreeSet<String>,
    /// Resources with their status, the one longest in it first.
    going: Vec<(String, String)>,
    failed: bool,
    undoing: bool,
}

impl StackWork {
    pub(super) fn new(operation: StackOperation, resources: Option<usize>) -> Self {
        Self {
            operation,
            resources,
            began: Instant::now(),
            done: BTreeSet::new(),
            made: BTreeSet::new(),
            going: Vec::new(),
            failed: false,
            undoing: false,
        }
    }

    /// Takes in a resource's status. Says whether it is the first failure.
    pub(super) fn take_in(&mut self, resource: &str, status: &str) -> bool {
        if status.ends_with("_IN_PROGRESS") {
            self.begin(resource, status);
            return false;
        }
        self.going.retain(|(name, _)| name != resource);
        if status.ends_with("_FAILED") {
            // What fails to be deleted, or to be rolled back, makes CloudFormation turn round no more.
            self.undoing |= self.operation != StackOperation::RollBack && !status.starts_with("DELETE");
            return !std::mem::replace(&mut self.failed, true);
        }
        let undone = match status {
            "CREATE_COMPLETE" | "IMPORT_COMPLETE" => false,
            "DELETE_COMPLETE" | "DELETE_SKIPPED" => self.undoing || self.made.contains(resource),
            _ => self.undoing,
        };
        if undone {
            self.done.remove(resource);
        } else {
            self.done.insert(resource.to_owned());
        }
        false
    }

    fn begin(&mut self, resource: &str, status: &str) {
        if status.starts_with("CREATE") {
            self.made.insert(resource.to_owned());
        }
        // CloudFormation says the same twice: when it begins, and when the service has taken it on.
        if !self.going.iter().any(|(name, since)| name == resource && since == status) {
            self.going.retain(|(name, _)| name != resource);
            self.going.push((resource.to_owned(), status.to_owned()));
        }
    }

    /// What is done now; another thing than what was begun once that has failed.
    pub(super) fn operation(&self) -> StackOperation {
        if self.undoing { StackOperation::RollBack } else { self.operation }
    }

    /// What was begun, once it is done.
    pub(super) fn past_operation(&self) -> Option<&'static str> {
        match self.operation {
            StackOperation::Create => Some("created"),
            StackOperation::Update => Some("updated"),
            StackOperation::Delete => Some("deleted"),
            StackOperation::RollBack => Some("rolled back"),
            StackOperation::Attach => None,
        }
    }

    /// How many resources are done, of how many if that is known.
    pub(super) fn count(&self) -> String {
        let done = self.done.len();
        match self.resources {
            Some(all) => format!("{done}/{}", all.max(done)),
            None => done.to_string(),
        }
    }

    /// The resource longest in progress.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.going.first().map(|(name, _)| name.as_str())
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::StackWork;
    use crate::deploy::StackOperation::{self, Create, Delete, RollBack, Update};

    fn after(operation: StackOperation, resources: Option<usize>, events: &[(&str, &str)]) -> StackWork {
        let mut work = StackWork::new(operation, resources);
        for (resource, status) in events {
            work.take_in(resource, status);
        }
        work
    }

    #[test]
    fn what_is_complete_counts_and_the_longest_in_progress_is_waited_for() {
        let work = after(
            Create,
            Some(3),
            &[
                ("Vpc", "CREATE_IN_PROGRESS"),
                ("Group", "CREATE_IN_PROGRESS"),
                ("Role", "CREATE_IN_PROGRESS"),
                ("Vpc", "CREATE_COMPLETE"),
                ("Group", "CREATE_IN_PROGRESS"),
            ],
        );
        assert_eq!(
            (work.count().as_str(), work.waits_for(), work.operation()),
            ("1/3", Some("Group"), Create)
        );
    }

    #[test]
    fn a_rollback_counts_backwards() {
        let mut work = after(
            Create,
            Some(3),
            &[("Vpc", "CREATE_COMPLETE"), ("Role", "CREATE_COMPLETE"), ("Group", "CREATE_IN_PROGRESS")],
        );
        assert_eq!(work.count(), "2/3");
        assert!(work.take_in("Group", "CREATE_FAILED"));
        assert!(!work.take_in("Subnet", "CREATE_FAILED"), "only the first one is the first");
        work.take_in("Group", "DELETE_IN_PROGRESS");
        assert_eq!((work.operation(), work.waits_for()), (RollBack, Some("Group")));
        work.take_in("Group", "DELETE_COMPLETE");
        assert_eq!(work.count(), "2/3");
        work.take_in("Role", "DELETE_COMPLETE");
        work.take_in("Vpc", "DELETE_SKIPPED");
        assert_eq!((work.count().as_str(), work.waits_for()), ("0/3", None));
    }

    #[test]
    fn an_update_counts_what_it_removes_until_it_is_undone() {
        let good = after(Update, Some(2), &[("New", "UPDATE_COMPLETE"), ("Old", "DELETE_COMPLETE")]);
        assert_eq!(good.count(), "2/2");
        let undone = after(
            Update,
            Some(3),
            &[
                ("New", "CREATE_IN_PROGRESS"),
                ("New", "CREATE_COMPLETE"),
                ("Role", "UPDATE_COMPLETE"),
                ("Group", "UPDATE_FAILED"),
                ("Role", "UPDATE_COMPLETE"),
                ("New", "DELETE_COMPLETE"),
            ],
        );
        assert_eq!(undone.count(), "0/3");
    }

    #[test]
    fn a_deletion_counts_what_is_gone() {
        let events = [("Vpc", "DELETE_IN_PROGRESS"), ("Group", "DELETE_FAILED"), ("Role", "DELETE_COMPLETE")];
        assert_eq!(after(Delete, None, &events).count(), "1");
        // A creation that is given up is deleted without having failed.
        let given_up =
            [("Vpc", "CREATE_IN_PROGRESS"), ("Vpc", "CREATE_COMPLETE"), ("Vpc", "DELETE_COMPLETE")];
        assert_eq!(after(Create, Some(1), &given_up).count(), "0/1");
    }
}
