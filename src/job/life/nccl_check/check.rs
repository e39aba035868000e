//! A check from its first pod to its report.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::compilation::compile_report;
use super::measurements::Measurements;
use super::members::{Absence, Member, Runner, members_of};
use super::pods::{NAMESPACE, Objects, ROLE};
use super::report::NcclCheckReport;
use super::rounds::rounds_of_pairs;
use super::settings::{NcclCheckProgress, NcclCheckSettings};
use super::watch::{NcclCheckWatch, ProgressReporter};
use crate::job::life::error::JobError;
use crate::job::names::{JOB_LABEL, ROLE_LABEL};
use crate::kube::{ApiServer, ObjectName, Pod, PodPhase};
use crate::waiting::Waiting;

/// How long a group may take for one measurement.
const GROUP_SECONDS: u64 = 60;
/// Pods that were left behind end this much later than the command would have ended.
const LEFT_BEHIND: Duration = Duration::from_mins(1);

/// A check of a pool.
#[derive(Debug)]
pub(crate) struct NcclCheck<'a> {
    api: &'a ApiServer,
    mark: String,
    settings: NcclCheckSettings,
}

impl<'a> NcclCheck<'a> {
    /// A check whose objects carry `mark`, which distinguishes them from those of other checks.
    #[must_use]
    pub(crate) fn new(api: &'a ApiServer, mark: &str, settings: NcclCheckSettings) -> Self {
        Self { api, mark: mark.to_owned(), settings }
    }

    /// Measures every pair of free machines, and all of them together. The objects must be deleted afterwards.
    pub(crate) async fn run(
        &self,
        waiting: &Waiting,
        report_progress: &mut ProgressReporter<'_>,
    ) -> Result<NcclCheckReport, JobError> {
        Box::pin(self.measure(waiting, report_progress)).await.map_err(|error| match error {
            JobError::Kube(error) if error.is_forbidden() => JobError::ForAdministrators(error),
            other => other,
        })
    }

    async fn measure(
        &self,
        waiting: &Waiting,
        report_progress: &mut ProgressReporter<'_>,
    ) -> Result<NcclCheckReport, JobError> {
        let (nodes, pods) = tokio::try_join!(Box::pin(self.api.nodes()), Box::pin(self.api.pods(None, "")))?;
        self.tidy_up(&pods).await?;
        let settings = &self.settings;
        let mut members = members_of(nodes, &pods, &settings.pool, settings.backend);
        let count = members.iter().filter(|member| member.absence.is_none()).count();
        if count < 2 {
            return self.without_measuring(&members);
        }
        report_progress(NcclCheckProgress::Starting(count));
        let objects = self.objects();
        self.api.apply(&objects.program(&settings.program)).await?;
        for (number, member) in members.iter().enumerate().filter(|(_, member)| member.absence.is_none()) {
            let processes = member.processes(settings.backend);
            self.api.apply(&objects.machine(number, &member.node, processes)).await?;
        }
        let mut watch = NcclCheckWatch::new(self.api, &objects, waiting, report_progress);
        let addresses = watch.wait_for_machines(&mut members).await?;
        let runners: Vec<Runner<'_>> = members
            .iter()
            .enumerate()
            .filter(|(_, member)| member.absence.is_none())
            .filter_map(|(number, member)| {
                let address = addresses.get(&number)?.clone();
                let (pod, processes) = (objects.pod_name(number), member.processes(settings.backend));
                Some(Runner { node: &member.node, pod, processes, address })
            })
            .collect();
        let [first, _, ..] = runners.as_slice() else { return Err(nobody_runs(&members)) };
        let machines =
            runners.iter().map(|runner| json!({"address": runner.address, "processes": runner.processes}));
        let plan = json!({
            "machines": machines.collect::<Vec<_>>(),
            "rounds": rounds_of_pairs(runners.len()),
            "bytes": settings.bytes,
            "limit": GROUP_SECONDS,
        });
        self.api.apply(&objects.conductor(first.node, &plan)).await?;
        let mut measured = watch.wait_for_measurements(settings.bytes).await?;
        self.explain_ends(&runners, &mut measured).await;
        if runners.len() == measured.errors.len() {
            return Err(nobody_begins(&runners, &measured));
        }
        Ok(compile_report(settings, &members, &runners, &measured))
    }

    /// Why pods of machines have ended, which the pod that conducts the check does not know.
    async fn explain_ends(&self, runners: &[Runner<'_>], measured: &mut Measurements) {
        let Ok(pods) = self.api.pods(Some(NAMESPACE), &self.objects().selector()).await else { return };
        for (number, runner) in runners.iter().enumerate() {
            let pod = pods.iter().find(|pod| pod.name == runner.pod);
            let why = match pod {
                None => Some("its pod was deleted".to_owned()),
                Some(pod) => {
                    let detail = pod.detail.as_ref().filter(|_| pod.phase.is_over());
                    detail.map(|detail| format!("its pod ended: {detail}"))
                }
            };
            if let Some(why) = why {
                measured.errors.insert(number, why);
            }
        }
    }

    /// The report of a pool of which fewer than two machines are free.
    fn without_measuring(&self, members: &[Member]) -> Result<NcclCheckReport, JobError> {
        let left_out = |member: &Member| match &member.absence {
            Some(Absence::LeftOut(why)) => Some(format!("{}: {why}", member.node.name)),
            _ => None,
        };
        let left_out: Vec<String> = members.iter().filter_map(left_out).collect();
        let has_problem = members.iter().any(|member| matches!(member.absence, Some(Absence::Problem(_))));
        let has_free = members.iter().any(|member| member.absence.is_none());
        let pool = &self.settings.pool;
        let free = if has_free {
            format!("only one machine of pool {pool} is free, so there is nothing to compare it with")
        } else {
            format!("no machine of pool {pool} is free")
        };
        // What is wrong with a machine is a finding, whoever uses the others.
        if left_out.is_empty() || has_problem {
            let mut report = compile_report(&self.settings, members, &[], &Measurements::default());
            if has_problem && has_free {
                report.problems.push(free);
            }
            return Ok(report);
        }
        Err(JobError::CheckImpossible {
            reason: format!("{free}; {}", left_out.join("; ")),
            advice: "the check never disturbs a job: run it again when at least two machines are free",
        })
    }

    /// Deletes what an earlier check left behind that was killed, once its pods have ended.
    async fn tidy_up(&self, pods: &[Pod]) -> Result<(), JobError> {
        let is_of_check = |pod: &&Pod| {
            pod.labels.get(ROLE_LABEL).is_some_and(|role| role == ROLE) && pod.namespace == NAMESPACE
        };
        let mut checks: BTreeMap<&str, bool> = BTreeMap::new();
        for pod in pods.iter().filter(is_of_check) {
            let name = pod.labels.get(JOB_LABEL).map(String::as_str).unwrap_or_default();
            *checks.entry(name).or_insert(true) &= pod.phase == PodPhase::Failed;
        }
        for (name, _) in checks.into_iter().filter(|(_, has_ended)| *has_ended) {
            self.delete(&format!("{JOB_LABEL}={name}")).await?;
        }
        Ok(())
    }

    /// Deletes the objects of the check.
    pub(crate) async fn remove(&self) -> Result<(), JobError> {
        self.delete(&self.objects().selector()).await
    }

    async fn delete(&self, selector: &str) -> Result<(), JobError> {
        for pod in self.api.pods(Some(NAMESPACE), selector).await? {
            self.api.delete_object(&ObjectName::new("Pod", NAMESPACE, &pod.name)).await?;
        }
        for map in self.api.objects("ConfigMap", Some(NAMESPACE), selector).await? {
            let name = map.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.api.delete_object(&ObjectName::new("ConfigMap", NAMESPACE, name)).await?;
        }
        Ok(())
    }

    fn objects(&self) -> Objects<'_> {
        let Self { mark, settings, .. } = self;
        let longest_seconds = (settings.limit + LEFT_BEHIND).as_secs();
        Objects { mark, image: &settings.image, backend: settings.backend, longest_seconds }
    }
}

/// The pods run, and none of their programs begins: that is the image.
fn nobody_begins(runners: &[Runner<'_>], measured: &Measurements) -> JobError {
    let errors = measured.errors.iter().map(|(number, why)| format!("{}: {why}", runners[*number].node.name));
    JobError::CheckImpossible {
        reason: format!("no machine could begin; {}", errors.collect::<Vec<_>>().join("; ")),
        advice: "the image needs python3 with PyTorch; name another one with `--image`",
    }
}

fn nobody_runs(members: &[Member]) -> JobError {
    let absent = members.iter().filter_map(|member| match member.absence.as_ref()? {
        Absence::LeftOut(why) | Absence::Problem(why) => Some(format!("{}: {why}", member.node.name)),
    });
    JobError::CheckImpossible {
        reason: format!("fewer than two machines could begin; {}", absent.collect::<Vec<_>>().join("; ")),
        advice: "fix this, or name an image that the machines can pull with `--image`, then run the check again",
    }
}
