//! `infra job tensorboard`: the TensorBoard of a job at an address of this machine.

use std::time::Duration;

use clap::{Args, value_parser};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::target::{JobNameOptions, JobTarget};
use crate::cli::aws_access::block_on;
use crate::cli::exit::Exit;
use crate::cli::failure::Refusal;
use crate::cli::forwarding::{explain_port, report_contact};
use crate::cli::interruption::{Interrupted, until_interrupted_with};
use crate::cli::session::Session;
use crate::cli::target_cluster::TargetCluster;
use crate::cli::terminal::printer::Printer;
use crate::job::life::{JobReport, TensorboardState, read_tensorboard};
use crate::kube::{ApiServer, KubeError, LocalPort, Outage, PodPort};

/// The pause between two looks at the TensorBoard.
const PAUSE: Duration = Duration::from_secs(2);

/// Show the TensorBoard of a job at an address of this machine
///
/// Waits until the TensorBoard answers, then forwards connections to it until Ctrl-C, or until it ends, a day after its job. Only programs
/// of this machine reach the address. A job has a TensorBoard if its file says `tensorboard: true`; it shows all runs of the job.
///
/// Needs the right to get and create pods/portforward.
#[derive(Args, Debug)]
pub(super) struct TensorboardArguments {
    #[command(flatten)]
    job: JobNameOptions,
    /// Listen on this port of 127.0.0.1; by default on one that is free
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    port: Option<u16>,
}

pub(super) fn run(arguments: &TensorboardArguments, session: &Session) -> anyhow::Result<Exit> {
    let target = arguments.job.resolve(session)?;
    let api = TargetCluster::find(session)?.api;
    let show = async {
        let port =
            LocalPort::open(arguments.port).await.map_err(|error| explain_port(&error, arguments.port))?;
        let (sender, pod) = watch::channel(None);
        let (failures, failed) = mpsc::unbounded_channel();
        tokio::select! {
            error = port.forward(&api, &pod, &failures) => {
                Err(Refusal::new(format!("no more connections can be accepted: {error}")).into())
            }
            ended = follow(&api, &target, &port, (sender, failed), session) => ended,
        }
    };
    block_on(until_interrupted_with(show, Interrupted::WhilePrinting))
}

/// Follows the TensorBoard to its end, and lets connections reach the pod that it is in.
async fn follow(
    api: &ApiServer,
    target: &JobTarget,
    port: &LocalPort,
    (pod, mut failed): (watch::Sender<Option<PodPort>>, mpsc::UnboundedReceiver<KubeError>),
    session: &Session,
) -> anyhow::Result<Exit> {
    let mut view = View { name: &target.name, port, printer: &session.printer, shown: None, is_known: false };
    let mut outage = Outage::default();
    let mut told_failure = None;
    loop {
        let read = read_tensorboard(api, &target.namespace, &target.name).await;
        let state = outage.tolerate(read, |contact| report_contact(&contact, &session.printer))?;
        if let Some(state) = state {
            if state == TensorboardState::Absent && !view.is_known {
                return Err(explain_absence(api, target).await);
            }
            if !view.is_known
                && let TensorboardState::Ready(pod) = &state
            {
                // Whoever may not do this learns it before the browser does.
                let probe = api.connect_to_port(pod).await;
                if outage.tolerate(probe, |contact| report_contact(&contact, &session.printer))?.is_none() {
                    sleep(session.tempo.shorten(PAUSE)).await;
                    continue;
                }
            }
            if let Some(exit) = view.show(&state)? {
                return Ok(exit);
            }
            pod.send_if_modified(|current| {
                let now = match state {
                    TensorboardState::Ready(pod) => Some(pod),
                    _ => None,
                };
                let is_new = *current != now;
                *current = now;
                is_new
            });
        }
        tokio::select! {
            () = sleep(session.tempo.shorten(PAUSE)) => {}
            Some(error) = failed.recv() => {
                // Browsers retry: one line for all connections that fail of the same.
                let why = error.to_string();
                if told_failure.as_ref() != Some(&why) {
                    session.printer.warning(format_args!("a connection failed: {why}"));
                    told_failure = Some(why);
                }
            }
        }
    }
}

/// Why there is no TensorBoard: no job, or one without.
async fn explain_absence(api: &ApiServer, target: &JobTarget) -> anyhow::Error {
    match JobReport::read(api, &target.namespace, &target.name).await {
        Err(error) => error.into(),
        Ok(report) => Refusal::new(format!("job '{}' has no TensorBoard", report.name))
            .help("write `tensorboard: true` into the job file, then run `infra job submit --replace`; a TensorBoard ends a day after its job")
            .into(),
    }
}

/// What was reported to the user.
struct View<'a> {
    name: &'a str,
    port: &'a LocalPort,
    printer: &'a Printer,
    shown: Option<TensorboardState>,
    /// Whether the TensorBoard was there.
    is_known: bool,
}

impl View<'_> {
    /// Says what is new; how the command ends if the TensorBoard has.
    fn show(&mut self, state: &TensorboardState) -> anyhow::Result<Option<Exit>> {
        let (name, printer) = (self.name, self.printer);
        if self.shown.as_ref() == Some(state) {
            return Ok(None);
        }
        let is_back = matches!(self.shown, Some(TensorboardState::Waiting { .. })) && self.is_known;
        match state {
            TensorboardState::Waiting { reason } => {
                printer.note(format_args!("waiting for the TensorBoard of job '{name}': {reason}"));
            }
            TensorboardState::Ready(_) if is_back => printer.note("the TensorBoard answers again"),
            TensorboardState::Ready(_) => {
                if !self.is_known {
                    printer.data(format!("http://{}/", self.port.address()))?;
                    printer
                        .note(format_args!("forwarding to the TensorBoard of job '{name}'; Ctrl-C ends it"));
                }
                self.is_known = true;
            }
            TensorboardState::Absent | TensorboardState::Complete => {
                let how = if *state == TensorboardState::Complete { "has ended" } else { "was deleted" };
                printer.note(format_args!("the TensorBoard of job '{name}' {how}"));
                return Ok(Some(Exit::Done));
            }
            TensorboardState::Failed { reason } => {
                return Err(Refusal::new(format!("the TensorBoard of job '{name}' failed: {reason}"))
                    .help("the job is not affected; fix the cause: Kubernetes deletes the failed TensorBoard within an hour, and the next `infra job submit` starts a new one")
                    .into());
            }
        }
        self.shown = Some(state.clone());
        Ok(None)
    }
}
