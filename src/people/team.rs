//! Teams: a namespace with its limits, and a directory of the file system as its claim.
//!
//! Every step can be repeated: what is there stays, what is missing is created.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::PeopleError;
use super::file_system::DirectoryPods;
use super::names::{TeamName, team_directory};
use super::policy::admission_policies;
use super::rights::team_roles;
use super::user::{UserReport, list_users};
use crate::job::life::JobReport;
use crate::job::{CLUSTER_CLAIM, FileSystemClaim, volume_name};
use crate::kube::{ApiServer, ObjectName};
use crate::waiting::{Pace, WaitEnd, Waiting};
use crate::well_known::{GPU_RESOURCE, MANAGER, MANAGER_LABEL, TEAM_LABEL};

/// The quota of a team.
const QUOTA: &str = "team";
/// What Pod Security refuses in a team's namespace.
const POD_SECURITY: &str = "baseline";
/// A claim is bound, and a namespace deleted, within seconds; pods of a lost machine take minutes.
const BINDING_LIMIT: Duration = Duration::from_mins(1);
const DELETION_LIMIT: Duration = Duration::from_mins(5);

/// The most GPUs that the pods of a team may have at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GpuLimit {
    /// This many.
    Most(u32),
    /// As many as there are.
    None,
}

/// What a team needs to know of its cluster.
#[derive(Debug)]
pub(crate) struct TeamPlace<'a> {
    /// The name of the cluster.
    pub cluster: &'a str,
    /// The NFS server of the file system, if there is one.
    pub file_system: Option<&'a str>,
    /// How directories are created and read.
    pub pods: DirectoryPods,
}

/// What happens while a team is added or removed.
#[derive(Debug)]
pub(crate) enum TeamEvent {
    /// An object is as it should be.
    Applied(ObjectName),
    /// A pod creates, or reads, the team's directory.
    Directory(String),
    /// That pod waits for something.
    Waits(String),
    /// The namespace is being deleted.
    Deleting,
}

/// A team.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TeamReport {
    /// The name of the team, which is that of its namespace.
    pub name: String,
    /// The most GPUs that its pods may have; null if there is no limit.
    pub gpu_limit: Option<u32>,
    /// The GPUs that its pods have; null if there is no limit, since nobody counts them then.
    pub gpus: Option<u32>,
    /// Its users.
    pub users: Vec<String>,
    /// How many of its jobs are not finished.
    pub jobs: usize,
}

type Tell<'a> = &'a (dyn Fn(TeamEvent) + Sync);

/// Creates a team, or completes it; a limit that is given replaces the one before.
pub(crate) async fn add_team(
    api: &ApiServer,
    team: &TeamName,
    limit: Option<GpuLimit>,
    place: &TeamPlace<'_>,
    waiting: &Waiting,
    tell: Tell<'_>,
) -> Result<(), PeopleError> {
    expect_own_namespace(api, team).await?;
    let found = expect_own_volume(api, team, place).await?;
    // The rules are there before anything that they are about.
    for object in admission_policies().into_iter().chain(team_roles()).chain([namespace_of(team)]) {
        apply_team_object(api, &object, tell).await?;
    }
    match limit {
        None => {}
        Some(GpuLimit::Most(gpus)) => apply_team_object(api, &quota_of(team, gpus), tell).await?,
        Some(GpuLimit::None) => {
            api.delete_object(&ObjectName::new("ResourceQuota", team.as_str(), QUOTA)).await?;
        }
    }
    let Some(server) = place.file_system else { return Ok(()) };
    let path = team_directory(team.as_str());
    let volume = volume_name(place.cluster, team.as_str());
    if found == Volume::Released {
        // Its namespace was deleted by other means; the files stay.
        api.delete_object(&ObjectName::new("PersistentVolume", "", &volume)).await?;
    }
    if found != Volume::There {
        tell(TeamEvent::Directory(path.clone()));
        let waits = |detail: String| tell(TeamEvent::Waits(detail));
        place.pods.create(api, team.as_str(), waiting, &waits).await?;
    }
    let claim = FileSystemClaim {
        volume: &volume,
        server,
        path: &path,
        namespace: team.as_str(),
        claim: CLUSTER_CLAIM,
    };
    for object in claim.objects() {
        apply_team_object(api, &object, tell).await?;
    }
    wait_for_claim(api, team, waiting).await
}

async fn apply_team_object(api: &ApiServer, object: &Value, tell: Tell<'_>) -> Result<(), PeopleError> {
    api.apply(object).await?;
    tell(TeamEvent::Applied(ObjectName::of(object)));
    Ok(())
}

fn namespace_of(team: &TeamName) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": team,
            "labels": {
                MANAGER_LABEL: MANAGER,
                TEAM_LABEL: team,
                "pod-security.kubernetes.io/enforce": POD_SECURITY,
                "pod-security.kubernetes.io/warn": POD_SECURITY,
            },
        },
    })
}

fn quota_of(team: &TeamName, gpus: u32) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": QUOTA, "namespace": team, "labels": {MANAGER_LABEL: MANAGER, TEAM_LABEL: team}},
        "spec": {"hard": {format!("requests.{GPU_RESOURCE}"): gpus.to_string()}},
    })
}

/// Refuses a namespace that is no team's: others may depend on what pods there may do.
async fn expect_own_namespace(api: &ApiServer, team: &TeamName) -> Result<bool, PeopleError> {
    let Some(namespace) = api.object(&ObjectName::new("Namespace", "", team.as_str())).await? else {
        return Ok(false);
    };
    let metadata = &namespace["metadata"];
    if metadata["labels"][TEAM_LABEL] != team.as_str() {
        return Err(PeopleError::ForeignNamespace { namespace: team.to_string() });
    }
    if !metadata["deletionTimestamp"].is_null() {
        return Err(PeopleError::Leaving { team: team.to_string() });
    }
    Ok(true)
}

/// What there is of a team's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Volume {
    Missing,
    /// It is kept for a claim that was deleted, and binds no other.
    Released,
    There,
}

/// The volume of a team. One of that name on another directory is refused: its path cannot be changed.
async fn expect_own_volume(
    api: &ApiServer,
    team: &TeamName,
    place: &TeamPlace<'_>,
) -> Result<Volume, PeopleError> {
    let name = volume_name(place.cluster, team.as_str());
    let Some(volume) = api.object(&ObjectName::new("PersistentVolume", "", &name)).await? else {
        return Ok(Volume::Missing);
    };
    let path = volume["spec"]["nfs"]["path"].as_str().unwrap_or_default();
    if path != team_directory(team.as_str()) {
        return Err(PeopleError::OtherVolume { volume: name, path: path.to_owned(), team: team.to_string() });
    }
    let is_released = matches!(volume["status"]["phase"].as_str(), Some("Released" | "Failed"));
    Ok(if is_released { Volume::Released } else { Volume::There })
}

async fn wait_for_claim(api: &ApiServer, team: &TeamName, waiting: &Waiting) -> Result<(), PeopleError> {
    let waiting = waiting.at_most(BINDING_LIMIT);
    let mut pace = Pace::of_moment();
    loop {
        let phase = api.claim_phase(team.as_str(), CLUSTER_CLAIM).await?;
        if phase.as_deref() == Some("Bound") {
            return Ok(());
        }
        pause_removal(&waiting, &mut pace, || PeopleError::NotBound { team: team.to_string() }).await?;
    }
}

async fn pause_removal(
    waiting: &Waiting,
    pace: &mut Pace,
    late: impl FnOnce() -> PeopleError,
) -> Result<(), PeopleError> {
    match waiting.pause(pace.next_pause()).await {
        Ok(()) => Ok(()),
        Err(WaitEnd::Interrupted) => Err(PeopleError::Interrupted),
        Err(WaitEnd::TimedOut) => Err(late()),
    }
}

/// Every team, by name.
pub(crate) async fn list_teams(api: &ApiServer) -> Result<Vec<TeamReport>, PeopleError> {
    let selector = format!("{MANAGER_LABEL}={MANAGER},{TEAM_LABEL}");
    let namespaces = api.objects("Namespace", None, TEAM_LABEL).await?;
    let quotas = api.objects("ResourceQuota", None, &selector).await?;
    let users = list_users(api, None).await?;
    let jobs = JobReport::read_all(api, None).await?;
    let report = |namespace: &Value| {
        let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
        let quota = quotas.iter().find(|quota| quota["metadata"]["namespace"] == name);
        let amount = |pointer: &str| {
            let amounts = quota?.pointer(pointer)?;
            amounts[format!("requests.{GPU_RESOURCE}")].as_str()?.parse::<u32>().ok()
        };
        let limit = amount("/spec/hard");
        TeamReport {
            name: name.to_owned(),
            gpu_limit: limit,
            gpus: limit.map(|_| amount("/status/used").unwrap_or(0)),
            users: users.iter().filter(|user| user.team == name).map(|user| user.name.clone()).collect(),
            jobs: jobs.iter().filter(|job| job.namespace == name && !job.state.is_over()).count(),
        }
    };
    let mut teams: Vec<TeamReport> = namespaces.iter().map(report).collect();
    teams.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(teams)
}

/// What is lost, and what stays, if a team is removed.
#[derive(Debug)]
pub(crate) struct TeamRemoval {
    /// Its users, who lose their rights.
    pub users: Vec<UserReport>,
    /// Its jobs that are not finished.
    pub jobs: Vec<String>,
    /// How many files and directories are in its directory, which stay.
    pub files: u64,
    has_namespace: bool,
    has_volume: bool,
}

impl TeamRemoval {
    /// Whether there is nothing of the team.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_namespace && !self.has_volume && self.users.is_empty()
    }

    /// Reads what there is of a team; nothing is changed.
    pub(crate) async fn plan(
        api: &ApiServer,
        team: &TeamName,
        place: &TeamPlace<'_>,
        waiting: &Waiting,
        tell: Tell<'_>,
    ) -> Result<Self, PeopleError> {
        let has_namespace = match expect_own_namespace(api, team).await {
            Err(PeopleError::Leaving { .. }) => true,
            found => found?,
        };
        let has_volume = expect_own_volume(api, team, place).await? != Volume::Missing;
        let jobs = JobReport::read_all(api, Some(team.as_str())).await?;
        let jobs = jobs.into_iter().filter(|job| !job.state.is_over()).map(|job| job.name).collect();
        let files = if has_volume {
            tell(TeamEvent::Directory(team_directory(team.as_str())));
            let waits = |detail: String| tell(TeamEvent::Waits(detail));
            place.pods.count_files(api, team.as_str(), waiting, &waits).await?
        } else {
            0
        };
        let users = list_users(api, Some(team)).await?;
        Ok(Self { users, jobs, files, has_namespace, has_volume })
    }

    /// Deletes the namespace with everything in it, and the volume; the files stay.
    pub(crate) async fn carry_out(
        &self,
        api: &ApiServer,
        team: &TeamName,
        place: &TeamPlace<'_>,
        waiting: &Waiting,
        tell: Tell<'_>,
    ) -> Result<(), PeopleError> {
        for user in &self.users {
            user.delete_rights(api).await?;
        }
        let namespace = ObjectName::new("Namespace", "", team.as_str());
        api.delete_object(&namespace).await?;
        tell(TeamEvent::Deleting);
        let waiting = waiting.at_most(DELETION_LIMIT);
        let mut pauses = Pace::of_moment();
        while api.object(&namespace).await?.is_some() {
            pause_removal(&waiting, &mut pauses, || PeopleError::Leaving { team: team.to_string() }).await?;
        }
        if self.has_volume {
            let volume = volume_name(place.cluster, team.as_str());
            api.delete_object(&ObjectName::new("PersistentVolume", "", &volume)).await?;
        }
        Ok(())
    }
}
