//! The launches of Auto Scaling groups: which machines came of them, which failed, and which of those are permanent.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use time::OffsetDateTime;

use crate::aws::{AUTO_SCALING_GROUP_TYPE, ScalingActivity, StackEvent};
use crate::blueprint::{Role, StackPart};
use crate::config::Cluster;
use crate::deploy::error::DeployError;
use crate::deploy::event::FailureKind;
use crate::deploy::explain::hint::hint_for;

/// Give up after this many identical launch failures.
const MOST_FAILURES: usize = 3;
/// What CloudFormation says of an Auto Scaling group when one of its machines has signalled.
const SIGNALLED: &str = "Received SUCCESS signal with UniqueId ";

/// A launch failure and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchFailure {
    pub(crate) reason: String,
    pub(crate) times: usize,
}

/// A launch failure that retrying cannot fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermanentLaunchFailure {
    pub(crate) reason: String,
    pub(crate) kind: FailureKind,
}

impl PermanentLaunchFailure {
    /// The end of the wait for spot machines that AWS has none of now: they may become available at any time, so AWS keeps trying.
    pub(crate) fn spot_shortage(
        &self,
        cluster: Option<&Cluster>,
        part: &StackPart,
        stack: &str,
    ) -> Option<DeployError> {
        let StackPart::Pool(name) = part else { return None };
        let pool = cluster?.pool(name)?;
        (pool.spot && self.kind == FailureKind::Capacity).then(|| DeployError::StillRunning {
            what: format!("there is no spot capacity for {part}: {}", self.reason),
            running: vec![stack.to_owned()],
        })
    }
}

/// The failed launches of an operation.
#[derive(Debug, Default)]
pub(crate) struct Launches {
    seen: BTreeSet<String>,
    failures: BTreeMap<(String, String), usize>,
    ignored: BTreeMap<(String, String), usize>,
}

impl Launches {
    /// Counts new failures (`activities` has the newest first); returns each reason that occurred, with its count so far.
    pub(crate) fn count_failures(
        &mut self,
        resource: &str,
        activities: impl Iterator<Item = ScalingActivity>,
    ) -> Vec<LaunchFailure> {
        let mut fresh: Vec<ScalingActivity> = activities
            .filter(|activity| activity.failure().is_some() && self.seen.insert(activity.id.clone()))
            .collect();
        fresh.reverse();
        let mut failures: Vec<LaunchFailure> = Vec::new();
        for reason in fresh.iter().filter_map(ScalingActivity::failure).map(str::to_owned) {
            let times = self.failures.entry((resource.to_owned(), reason.clone())).or_default();
            *times += 1;
            match failures.iter_mut().find(|failure| failure.reason == reason) {
                Some(failure) => failure.times = *times,
                None => failures.push(LaunchFailure { reason, times: *times }),
            }
        }
        failures
    }

    /// Marks activities as seen without counting them.
    pub(crate) fn mark_seen<'a>(&mut self, activities: impl Iterator<Item = &'a ScalingActivity>) {
        self.seen.extend(activities.map(|activity| activity.id.clone()));
    }

    /// Failures from before this watch are reported, and are no reason to give up.
    pub(crate) fn ignore_past_failures(&mut self, resource: &str) {
        let past = self.failures.iter().filter(|((failed, _), _)| failed == resource);
        self.ignored.extend(past.map(|(failure, times)| (failure.clone(), *times)));
    }

    /// The failure of a resource that retrying cannot fix.
    pub(crate) fn permanent_failure(&self, resource: &str) -> Option<PermanentLaunchFailure> {
        let is_enough = |(failure, times): &(&(String, String), &usize)| {
            let ignored = self.ignored.get(failure).copied().unwrap_or_default();
            failure.0 == resource && **times - ignored >= MOST_FAILURES
        };
        let mut reasons = self.failures.iter().filter(is_enough).map(|((_, reason), _)| reason);
        reasons.find_map(|reason| {
            let kind = hint_for(reason)?.kind;
            kind.is_permanent().then(|| PermanentLaunchFailure { reason: reason.clone(), kind })
        })
    }
}

/// The machine that came of an activity, if one did. Auto Scaling names it in the description.
pub(crate) fn launched_machine(activity: &ScalingActivity) -> Option<&str> {
    if !activity.is_launch() || activity.failure().is_some() || activity.status == "Cancelled" {
        return None;
    }
    instance_id(activity.description.rsplit_once(": ")?.1)
}

/// The machine whose signal an event is about, if it is about one.
pub(crate) fn signalled_machine(event: &StackEvent) -> Option<&str> {
    if event.kind != AUTO_SCALING_GROUP_TYPE {
        return None;
    }
    instance_id(event.reason.as_deref()?.strip_prefix(SIGNALLED)?)
}

fn instance_id(text: &str) -> Option<&str> {
    text.split_whitespace().next().filter(|word| word.starts_with("i-"))
}

/// The role of the machines of an Auto Scaling group, by its name in the template.
pub(crate) fn role_of_group(part: &StackPart, resource: &str) -> Option<Role> {
    let role = match part {
        StackPart::Network | StackPart::Storage => return None,
        StackPart::Pool(pool) => Role::Pool(pool.clone()),
        StackPart::ControlPlane => {
            let digits = resource.trim_start_matches(|character: char| !character.is_ascii_digit());
            digits.parse().map_or(Role::Controller, Role::EtcdMember)
        }
    };
    (role.group_resource() == resource).then_some(role)
}

/// Whether a launch began after an operation did.
pub(crate) fn is_since(started: Option<OffsetDateTime>, began: Option<OffsetDateTime>) -> bool {
    // The two services' clocks need not agree to the second.
    matches!((started, began), (Some(started), Some(began)) if started >= began - Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::{Launches, PermanentLaunchFailure, launched_machine, role_of_group};
    use crate::aws::ScalingActivity;
    use crate::blueprint::{Role, StackPart};
    use crate::deploy::event::FailureKind;

    const CAPACITY: &str = "We currently do not have sufficient g5.xlarge capacity in the Availability Zone you requested \
                            (us-west-2a). Launching EC2 instance failed.";

    fn failed(id: &str, message: &str) -> ScalingActivity {
        ScalingActivity {
            id: id.to_owned(),
            description: "Launching a new EC2 instance".to_owned(),
            status: "Failed".to_owned(),
            message: Some(message.to_owned()),
            started: None,
        }
    }

    fn reason(launches: &Launches) -> Option<String> {
        launches.permanent_failure("Nodes").map(|permanent| permanent.reason)
    }

    #[test]
    fn a_launch_names_its_machine() {
        let launched = |description: &str, status: &str| {
            let activity = ScalingActivity {
                description: description.to_owned(),
                status: status.to_owned(),
                message: None,
                ..failed("1", "")
            };
            launched_machine(&activity).map(str::to_owned)
        };
        let named = "Launching a new EC2 instance: i-0abc";
        assert_eq!(launched(named, "InProgress").as_deref(), Some("i-0abc"));
        assert_eq!(launched(named, "Successful").as_deref(), Some("i-0abc"));
        assert_eq!(launched(named, "Failed"), None);
        assert_eq!(launched(named, "Cancelled"), None);
        assert_eq!(launched("Launching a new EC2 instance", "InProgress"), None);
        assert_eq!(launched("Terminating EC2 instance: i-0abc", "InProgress"), None);
    }

    #[test]
    fn a_group_has_the_role_of_its_machines() -> Result<(), Box<dyn std::error::Error>> {
        let role = |part: &StackPart, resource| role_of_group(part, resource);
        let control_plane = StackPart::ControlPlane;
        assert_eq!(role(&control_plane, "EtcdMember2"), Some(Role::EtcdMember(2)));
        assert_eq!(role(&control_plane, "Controllers"), Some(Role::Controller));
        assert_eq!(role(&control_plane, "EtcdVolume2"), None);
        assert_eq!(role(&StackPart::Network, "Nodes"), None);
        let pool = StackPart::Pool("gpu".parse()?);
        assert_eq!(role(&pool, "Nodes"), Some(Role::Pool("gpu".parse()?)));
        assert_eq!(role(&pool, "Other"), None);
        Ok(())
    }

    #[test]
    fn the_same_permanent_failure_three_times_is_enough() {
        let mut launches = Launches::default();
        let first = launches.count_failures("Nodes", [failed("1", CAPACITY)].into_iter());
        assert_eq!((first.len(), first[0].times), (1, 1));
        assert_eq!(launches.count_failures("Nodes", [failed("1", CAPACITY)].into_iter()), []);
        assert_eq!(launches.permanent_failure("Nodes"), None);
        launches.count_failures("Nodes", [failed("3", CAPACITY), failed("2", CAPACITY)].into_iter());
        assert_eq!(reason(&launches).as_deref(), Some(CAPACITY));
        assert_eq!(launches.permanent_failure("Others"), None);
    }

    #[test]
    fn what_failed_before_the_watch_began_is_ignored() {
        let mut launches = Launches::default();
        launches.count_failures("Nodes", ["1", "2", "3", "4"].map(|id| failed(id, CAPACITY)).into_iter());
        launches.ignore_past_failures("Nodes");
        assert_eq!(launches.permanent_failure("Nodes"), None);
        let again = launches.count_failures("Nodes", ["5", "6"].map(|id| failed(id, CAPACITY)).into_iter());
        assert_eq!((again[0].times, launches.permanent_failure("Nodes")), (6, None));
        launches.count_failures("Nodes", [failed("7", CAPACITY)].into_iter());
        assert_eq!(reason(&launches).as_deref(), Some(CAPACITY));
    }

    #[test]
    fn what_may_fix_itself_is_watched_longer() {
        let mut launches = Launches::default();
        let list = ["1", "2", "3", "4"].map(|id| failed(id, "Rate exceeded"));
        launches.count_failures("Nodes", list.into_iter());
        assert_eq!(launches.permanent_failure("Nodes"), None);
    }

    #[test]
    fn a_machine_that_could_not_open_its_disks_is_a_failed_launch_although_it_is_called_cancelled() {
        const KEY: &str = "Instance became unhealthy while waiting for instance to be in InService state. Termination Reason: \
                           Client.InvalidKMSKey.InvalidState: The KMS key provided is in an incorrect state";
        let cancelled = |id: &str| ScalingActivity { status: "Cancelled".to_owned(), ..failed(id, KEY) };
        let mut launches = Launches::default();
        let told = launches.count_failures("Nodes", ["1", "2", "3"].map(cancelled).into_iter());
        assert_eq!((told.len(), told[0].times, told[0].reason.as_str()), (1, 3, KEY));
        assert_eq!(
            launches.permanent_failure("Nodes").map(|permanent| permanent.kind),
            Some(FailureKind::Key)
        );
        // A machine that was not terminated, and a launch that was no longer wanted.
        let ending =
            ScalingActivity { description: "Terminating EC2 instance: i-1".to_owned(), ..cancelled("4") };
        let unwanted = ScalingActivity { message: None, ..cancelled("5") };
        assert_eq!(launches.count_failures("Nodes", [ending, unwanted].into_iter()), []);
    }

    #[test]
    fn only_a_shortage_of_spot_machines_is_left_to_aws() -> Result<(), Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1', \
                    pools: [{name: spot, instanceType: m5.large, spot: true}, {name: cpu, instanceType: m5.large}]}";
        let cluster = crate::config::validate(std::path::Path::new("cluster.yaml"), text)?.value;
        let (spot, on_demand) = (StackPart::Pool("spot".parse()?), StackPart::Pool("cpu".parse()?));
        let left = |part: &StackPart, kind| {
            let permanent = PermanentLaunchFailure { reason: "no".to_owned(), kind };
            permanent.spot_shortage(Some(&cluster), part, "paddle-pool").is_some()
        };
        assert!(left(&spot, FailureKind::Capacity));
        assert!(!left(&on_demand, FailureKind::Capacity));
        for kind in [FailureKind::Quota, FailureKind::Key, FailureKind::Image, FailureKind::Permission] {
            assert!(!left(&spot, kind), "{kind:?}");
        }
        Ok(())
    }
}
