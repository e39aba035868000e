//! How far the work on a stack is, by what CloudFormation says about its resources.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::typical_time::usual_time;
use crate::aws::{Phase, ResourceStatus};
use crate::cli::terminal::screen::Share;
use crate::deploy::StackOperation;

/// The work on one stack.
#[derive(Debug)]
pub(super) struct StackWork {
    operation: StackOperation,
    /// What CloudFormation does instead, once it undoes the operation.
    undoing: Option<StackOperation>,
    resources: Option<usize>,
    began: Instant,
    done: BTreeSet<String>,
    /// Resources in progress, the one longest in it first.
    in_progress: Vec<ResourceWork>,
    failed: bool,
}

#[derive(Debug, PartialEq)]
struct ResourceWork {
    name: String,
    kind: String,
    status: ResourceStatus,
}

impl StackWork {
    pub(super) fn new(operation: StackOperation, resources: Option<usize>) -> Self {
        Self {
            operation,
            undoing: None,
            resources,
            began: Instant::now(),
            done: BTreeSet::new(),
            in_progress: Vec::new(),
            failed: false,
        }
    }

    /// From now on CloudFormation undoes what was begun.
    pub(super) fn undo(&mut self, operation: StackOperation) {
        self.undoing = Some(operation);
    }

    /// Applies the status of a resource. Says whether it is the first failure.
    pub(super) fn apply(&mut self, resource: &str, kind: &str, status: &ResourceStatus) -> bool {
        match status.phase() {
            Phase::InProgress => {
                self.begin(resource, kind, status);
                false
            }
            Phase::Failed => {
                self.in_progress.retain(|work| work.name != resource);
                !std::mem::replace(&mut self.failed, true)
            }
            Phase::Complete => {
                self.in_progress.retain(|work| work.name != resource);
                if self.undoing.is_some() {
                    self.done.remove(resource);
                } else {
                    self.done.insert(resource.to_owned());
                }
                false
            }
        }
    }

    fn begin(&mut self, resource: &str, kind: &str, status: &ResourceStatus) {
        let work = ResourceWork { name: resource.to_owned(), kind: kind.to_owned(), status: status.clone() };
        // CloudFormation says the same twice: when it begins, and when the service has taken it on.
        if !self.in_progress.contains(&work) {
            self.in_progress.retain(|work| work.name != resource);
            self.in_progress.push(work);
        }
    }

    /// What is done now.
    pub(super) fn operation(&self) -> StackOperation {
        self.undoing.unwrap_or(self.operation)
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

    /// How much is done, if that is known.
    pub(super) fn share(&self) -> Option<Share> {
        let done = self.done.len();
        self.resources.map(|all| Share { done: done as u64, all: all.max(done) as u64 })
    }

    /// The resource longest in progress.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.in_progress.first().map(|work| work.name.as_str())
    }

    /// How long AWS usually takes for that resource.
    pub(super) fn usual_time(&self) -> Option<String> {
        self.in_progress.first().and_then(|work| usual_time(&work.kind, &work.status))
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::StackWork;
    use crate::deploy::StackOperation::{self, Create, Delete, RollBack, Update};

    fn apply(work: &mut StackWork, events: &[(&str, &str)]) {
        for (resource, status) in events {
            work.apply(resource, "AWS::EC2::VPC", &(*status).into());
        }
    }

    fn after(operation: StackOperation, resources: Option<usize>, events: &[(&str, &str)]) -> StackWork {
        let mut work = StackWork::new(operation, resources);
        apply(&mut work, events);
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
        assert!(work.apply("Group", "AWS::EC2::VPC", &"CREATE_FAILED".into()));
        assert!(
            !work.apply("Subnet", "AWS::EC2::VPC", &"CREATE_FAILED".into()),
            "only the first one is the first"
        );
        assert_eq!(work.operation(), Create, "CloudFormation has not said so yet");
        work.undo(RollBack);
        apply(&mut work, &[("Group", "DELETE_IN_PROGRESS")]);
        assert_eq!((work.operation(), work.waits_for()), (RollBack, Some("Group")));
        apply(&mut work, &[("Group", "DELETE_COMPLETE")]);
        assert_eq!(work.count(), "2/3");
        apply(&mut work, &[("Role", "DELETE_COMPLETE"), ("Vpc", "DELETE_SKIPPED")]);
        assert_eq!((work.count().as_str(), work.waits_for()), ("0/3", None));
    }

    #[test]
    fn an_update_counts_what_it_removes_until_it_is_undone() {
        let good = after(Update, Some(2), &[("New", "UPDATE_COMPLETE"), ("Old", "DELETE_COMPLETE")]);
        assert_eq!(good.count(), "2/2");
        let mut undone = after(
            Update,
            Some(3),
            &[
                ("New", "CREATE_IN_PROGRESS"),
                ("New", "CREATE_COMPLETE"),
                ("Role", "UPDATE_COMPLETE"),
                ("Group", "UPDATE_FAILED"),
            ],
        );
        assert_eq!(undone.count(), "2/3");
        undone.undo(RollBack);
        apply(&mut undone, &[("Role", "UPDATE_COMPLETE"), ("New", "DELETE_COMPLETE")]);
        assert_eq!(undone.count(), "0/3");
    }

    #[test]
    fn the_resource_that_is_waited_for_has_its_usual_time() {
        let mut work = StackWork::new(Create, Some(2));
        work.apply("Nat", "AWS::EC2::NatGateway", &"CREATE_IN_PROGRESS".into());
        work.apply("Vpc", "AWS::EC2::VPC", &"CREATE_IN_PROGRESS".into());
        assert_eq!(work.usual_time().as_deref(), Some("usually 1–3 min"));
        work.apply("Nat", "AWS::EC2::NatGateway", &"CREATE_COMPLETE".into());
        assert_eq!((work.waits_for(), work.usual_time()), (Some("Vpc"), None));
        assert_eq!(work.share().map(|share| (share.done, share.all)), Some((1, 2)));
    }

    #[test]
    fn a_deletion_counts_what_is_gone() {
        let events = [("Vpc", "DELETE_IN_PROGRESS"), ("Group", "DELETE_FAILED"), ("Role", "DELETE_COMPLETE")];
        assert_eq!(after(Delete, None, &events).count(), "1");
        // A creation that is given up is deleted without having failed.
        let mut given_up =
            after(Create, Some(1), &[("Vpc", "CREATE_IN_PROGRESS"), ("Vpc", "CREATE_COMPLETE")]);
        given_up.undo(Delete);
        apply(&mut given_up, &[("Vpc", "DELETE_COMPLETE")]);
        assert_eq!((given_up.count().as_str(), given_up.operation()), ("0/1", Delete));
    }
}
