//! A look at the pods of a check, again and again.

use std::collections::BTreeMap;

use super::measurements::Measurements;
use super::members::{Absence, Member};
use super::pods::{NAMESPACE, Objects};
use super::settings::NcclCheckProgress;
use crate::job::life::error::JobError;
use crate::kube::{ApiServer, LogPart, Outage, Pod, PodPhase};
use crate::plural::count_of;
use crate::waiting::{Pace, WaitEnd, Waiting};

/// How many looks in a row pods may wait for what rarely passes by itself, such as an image that cannot be pulled: about a minute.
const MOST_STUCK_LOOKS: u32 = 14;
/// Hundreds of machines print less.
const LONGEST_LOG: usize = 16 << 20;

/// Whoever hears what a check does.
pub(super) type ProgressReporter<'t> = dyn FnMut(NcclCheckProgress) + Send + 't;

/// The pods of a check, and whoever waits for them.
pub(super) struct NcclCheckWatch<'w> {
    api: &'w ApiServer,
    objects: &'w Objects<'w>,
    waiting: &'w Waiting,
    report_progress: &'w mut ProgressReporter<'w>,
    outage: Outage,
    reported: Option<NcclCheckProgress>,
}

impl<'w> NcclCheckWatch<'w> {
    pub(super) fn new(
        api: &'w ApiServer,
        objects: &'w Objects<'w>,
        waiting: &'w Waiting,
        report_progress: &'w mut ProgressReporter<'w>,
    ) -> Self {
        Self { api, objects, waiting, report_progress, outage: Outage::default(), reported: None }
    }

    /// The addresses of the pods of machines, once all run that ever will.
    pub(super) async fn wait_for_machines(
        &mut self,
        members: &mut [Member],
    ) -> Result<BTreeMap<usize, String>, JobError> {
        let mut pace = Pace::of_moment();
        let mut stuck_looks = 0;
        loop {
            let mut addresses = BTreeMap::new();
            let mut open = Vec::new();
            if let Some(pods) = self.pods().await? {
                for (number, member) in
                    members.iter_mut().enumerate().filter(|(_, member)| member.absence.is_none())
                {
                    let name = self.objects.pod_name(number);
                    match pods.iter().find(|pod| pod.name == name) {
                        None => {
                            member.absence =
                                Some(Absence::Problem("its pod was deleted before it ran".to_owned()));
                        }
                        Some(pod) if pod.phase.is_over() => {
                            let why = pod.detail.clone().unwrap_or_else(|| "it does not say why".to_owned());
                            member.absence = Some(Absence::Problem(format!("its pod ended: {why}")));
                        }
                        Some(Pod { phase: PodPhase::Running, address: Some(address), .. }) => {
                            addresses.insert(number, address.clone());
                        }
                        Some(pod) => open.push((number, pod.node.is_some(), pod.detail.clone())),
                    }
                }
                if open.is_empty() {
                    return Ok(addresses);
                }
                let is_stuck = open.iter().all(|(_, _, detail)| detail.is_some());
                stuck_looks = if is_stuck { stuck_looks + 1 } else { 0 };
                self.tell_open(&open, members);
            }
            let end = self.waiting.pause(pace.next_pause()).await.err();
            if end == Some(WaitEnd::Interrupted) {
                return Ok(BTreeMap::new());
            }
            if end.is_some() || stuck_looks > MOST_STUCK_LOOKS {
                for (number, is_placed, detail) in open {
                    let why = detail.unwrap_or_else(|| "its image is still being pulled".to_owned());
                    let why = format!("its pod does not start: {why}");
                    // Someone else was faster; that says nothing of the machine.
                    let absence = if is_placed { Absence::Problem(why) } else { Absence::LeftOut(why) };
                    members[number].absence = Some(absence);
                }
                return Ok(addresses);
            }
        }
    }

    fn tell_open(&mut self, open: &[(usize, bool, Option<String>)], members: &[Member]) {
        let Some((number, _, detail)) = open.first() else { return };
        let node = &members[*number].node.name;
        let why = detail.as_deref().unwrap_or("its image is being pulled, or its container created");
        let waits = count_of(open.len(), "pod");
        self.tell_once(NcclCheckProgress::Waiting(format!("{waits}, such as that of {node}: {why}")));
    }

    /// What was measured, at the end of it or of the time.
    pub(super) async fn wait_for_measurements(&mut self, bytes: u64) -> Result<Measurements, JobError> {
        let mut pace = Pace::of_moment();
        let name = self.objects.conductor_name();
        let mut measured = Measurements::default();
        loop {
            let phase = self.pods().await?.map(|pods| pods.into_iter().find(|pod| pod.name == name));
            if let Some(pod) = phase {
                let Some(pod) = pod else { return Ok(measured) };
                let log = if pod.phase == PodPhase::Pending {
                    String::new()
                } else {
                    self.log(&name).await?.unwrap_or_default()
                };
                measured = Measurements::read(&log, bytes);
                if let Some((round, of)) = measured.round {
                    self.tell_once(NcclCheckProgress::Round { round, of });
                }
                if measured.has_ended {
                    return Ok(measured);
                }
                if pod.phase.is_over() {
                    let last = log.lines().rfind(|line| !line.trim().is_empty());
                    let last = last
                        .map_or_else(|| "it printed nothing".to_owned(), |line| format!("last line: {line}"));
                    let said: Vec<String> = pod.detail.into_iter().chain([last]).collect();
                    return Err(JobError::CheckImpossible {
                        reason: format!("the pod that conducts the check ended early: {}", said.join("; ")),
                        advice: "`--image` names another image, if python3 or PyTorch is missing",
                    });
                }
            }
            if self.waiting.pause(pace.next_pause()).await.is_err() {
                return Ok(measured);
            }
        }
    }

    async fn pods(&mut self) -> Result<Option<Vec<Pod>>, JobError> {
        let read = self.api.pods(Some(NAMESPACE), &self.objects.selector()).await;
        let report_progress = &mut self.report_progress;
        Ok(self.outage.tolerate(read, |contact| report_progress(NcclCheckProgress::Contact(contact)))?)
    }

    async fn log(&mut self, pod: &str) -> Result<Option<String>, JobError> {
        let read = async {
            let mut body = self.api.pod_log(NAMESPACE, pod, LogPart::default()).await?;
            body.beginning(LONGEST_LOG).await
        };
        let read = read.await;
        let report_progress = &mut self.report_progress;
        let text =
            self.outage.tolerate(read, |contact| report_progress(NcclCheckProgress::Contact(contact)))?;
        Ok(text.map(|text| String::from_utf8_lossy(&text).into_owned()))
    }

    fn tell_once(&mut self, progress: NcclCheckProgress) {
        if self.reported.as_ref() != Some(&progress) {
            (self.report_progress)(progress.clone());
            self.reported = Some(progress);
        }
    }
}
