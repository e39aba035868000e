//! The etcd members: which of them have a machine in service, and why the others have none. They are not nodes, and the API answers
//! with a majority of them, so no other part of a status shows a lost one.

use std::cmp::Ordering;

use time::UtcOffset;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

use super::shape::{EtcdMemberState, EtcdState, FailedLaunch};
use super::unreadable::Unreadable;
use crate::aws::{AwsError, Clients, ScalingActivity, ScalingGroup};
use crate::blueprint::Role;
use crate::deploy::event::FailureKind;
use crate::deploy::explain::hint::hint_for;
use crate::deploy::state::live::LiveCluster;

/// What AWS ends every message about a launch with.
const FAILED: &str = "Launching EC2 instance failed.";
/// What AWS begins a text of hundreds of characters with that only AWS can read.
const ENCODED: &str = "Encoded authorization failure message:";
const MINUTES: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day] [hour]:[minute] UTC");

/// Reads the members; the activities of those only that are not in service.
pub(crate) async fn read_etcd(
    clients: &Clients,
    live: &LiveCluster,
    count: u32,
    unreadable: &mut Unreadable,
) -> Result<EtcdState, AwsError> {
    let mut members = Vec::new();
    for number in 0..count {
        let role = Role::EtcdMember(number);
        let group = live.group_of_role(&role);
        let mut member = member_state(role.name(), group);
        if let (false, Some(group)) = (member.in_service, group) {
            let activities = clients.scaling_activities(&group.name).await;
            let activities = unreadable.take("the failed launches of etcd members", activities)?;
            member.failed_launch = activities.as_deref().and_then(last_failure);
        }
        members.push(member);
    }
    Ok(EtcdState::of(members))
}

/// A member by its Auto Scaling group.
#[must_use]
pub(super) fn member_state(name: String, group: Option<&ScalingGroup>) -> EtcdMemberState {
    let machines = group.map(|group| group.machines.as_slice()).unwrap_or_default();
    let in_service = machines.iter().find(|machine| machine.is_in_service());
    let machine = in_service.or_else(|| machines.first());
    EtcdMemberState {
        name,
        in_service: in_service.is_some(),
        machine: machine.map(|machine| machine.id.clone()),
        state: machine.map(|machine| machine.state.clone()),
        failed_launch: None,
    }
}

/// The newest failed launch since the last one that worked.
fn last_failure(activities: &[ScalingActivity]) -> Option<FailedLaunch> {
    let launches = activities.iter().filter(|activity| activity.is_launch());
    let mut since = launches.take_while(|activity| activity.status != "Successful");
    let (activity, reason) = since.find_map(|activity| Some((activity, activity.failure()?)))?;
    Some(FailedLaunch { at: activity.started, reason: shorten_launch_message(reason) })
}

/// AWS's message in one line, without what every message about a launch contains.
fn shorten_launch_message(message: &str) -> String {
    let readable = message.split(ENCODED).next().unwrap_or_default();
    let words: Vec<&str> = readable.split_whitespace().collect();
    let text = words.join(" ");
    let text = text.trim_end_matches(FAILED).trim();
    if text.is_empty() { FAILED.to_owned() } else { text.to_owned() }
}

impl EtcdState {
    /// The state of these members.
    #[must_use]
    pub(super) fn of(members: impl IntoIterator<Item = EtcdMemberState>) -> Self {
        let members: Vec<EtcdMemberState> = members.into_iter().collect();
        let in_service = members.iter().filter(|member| member.in_service).count();
        Self { in_service, wanted: members.len(), members }
    }

    /// What is wrong with the members.
    #[must_use]
    pub(crate) fn problems(&self) -> Vec<String> {
        let Self { in_service, wanted, members } = self;
        if in_service == wanted {
            return Vec::new();
        }
        let risk = match in_service.cmp(&(wanted / 2 + 1)) {
            Ordering::Less => ", fewer than the majority that etcd needs: the API cannot work",
            Ordering::Equal => "; if one more is lost, the API stops",
            Ordering::Greater => "",
        };
        let mut problems = vec![format!("etcd: {in_service} of {wanted} members are in service{risk}")];
        for member in members.iter().filter(|member| !member.in_service) {
            problems.extend(member.failed_launch.as_ref().map(|launch| launch.problem(&member.name)));
        }
        problems
    }
}

impl FailedLaunch {
    fn problem(&self, member: &str) -> String {
        let at = self.at.and_then(|at| at.to_offset(UtcOffset::UTC).format(MINUTES).ok());
        let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
        let reason = self.reason.trim_end_matches('.');
        // What helps a pool when AWS has no machines does not help a member, whose disk is in one availability zone.
        let hint = hint_for(&self.reason).filter(|hint| hint.kind != FailureKind::Capacity);
        let hint = hint.map(|hint| format!("; {}", hint.text)).unwrap_or_default();
        format!("{member}: its last launch failed{at}: {reason}{hint}")
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::{last_failure, shorten_launch_message};
    use crate::aws::ScalingActivity;
    use crate::deploy::status::shape::{EtcdMemberState, EtcdState, FailedLaunch};

    fn activity(description: &str, status: &str, message: Option<&str>) -> ScalingActivity {
        ScalingActivity {
            id: status.to_owned(),
            description: description.to_owned(),
            status: status.to_owned(),
            message: message.map(str::to_owned),
            started: Some(datetime!(2026-03-01 12:03 UTC)),
        }
    }

    #[test]
    fn the_last_failure_is_the_newest_since_a_launch_that_worked() {
        let launch = "Launching a new EC2 instance";
        let failed = |message| activity(launch, "Failed", Some(message));
        let pending = activity(launch, "PreInService", None);
        let ended = activity("Terminating EC2 instance: i-1", "Successful", None);
        let worked = activity(launch, "Successful", None);
        let reason = |activities: &[ScalingActivity]| last_failure(activities).map(|launch| launch.reason);
        let activities = [pending.clone(), ended.clone(), failed("second"), failed("first"), worked.clone()];
        assert_eq!(reason(&activities).as_deref(), Some("second"));
        assert_eq!(reason(&[ended, pending, worked, failed("old")]), None);
    }

    #[test]
    fn messages_are_one_line_without_what_every_one_says() {
        let message = "The image id '[ami-1]' does not exist.\n  Launching EC2 instance failed.";
        assert_eq!(shorten_launch_message(message), "The image id '[ami-1]' does not exist.");
        let denied = "You are not authorized. Encoded authorization failure message: ab12. Launching EC2 instance failed.";
        assert_eq!(shorten_launch_message(denied), "You are not authorized.");
        assert_eq!(
            shorten_launch_message("Launching EC2 instance failed."),
            "Launching EC2 instance failed."
        );
    }

    #[test]
    fn what_a_lost_member_means_depends_on_the_majority() {
        let state = |in_service: usize, wanted: usize| {
            let member = |number: usize| EtcdMemberState {
                name: format!("etcd-{number}"),
                in_service: number < in_service,
                machine: None,
                state: None,
                failed_launch: (number == 2).then(|| FailedLaunch {
                    at: Some(datetime!(2026-03-01 14:03 +2)),
                    reason: "The image id '[ami-1]' does not exist.".to_owned(),
                }),
            };
            EtcdState { in_service, wanted, members: (0..wanted).map(member).collect() }.problems()
        };
        assert_eq!(state(3, 3), [""; 0]);
        let lost = state(2, 3);
        assert_eq!(lost[0], "etcd: 2 of 3 members are in service; if one more is lost, the API stops");
        assert!(
            lost[1].starts_with("etcd-2: its last launch failed at 2026-03-01 12:03 UTC: The image id"),
            "{lost:?}"
        );
        assert!(lost[1].contains("--upgrade-os"), "{lost:?}");
        assert!(state(0, 1)[0].ends_with("the API cannot work"));
        assert!(state(4, 5)[0].ends_with("are in service"));
    }
}
