//! `infra dashboard`: the cluster's Prometheus at an address of this machine.

use std::time::Duration;

use clap::{Args, value_parser};
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

use super::aws_access::block_on;
use super::exit::Exit;
use super::failure::Refusal;
use super::forwarding::{explain_port, report_contact};
use super::interruption::{Interrupted, until_interrupted_with};
use super::session::Session;
use super::target_cluster::TargetCluster;
use crate::cli::cluster_options::ClusterOptions;
use crate::deploy::{PrometheusState, read_prometheus};
use crate::kube::{KubeError, LocalPort, Outage, PodPort};

/// The pause between two looks at Prometheus.
const PAUSE: Duration = Duration::from_secs(2);
/// How often it is looked for before the command gives up: two minutes.
const MOST_LOOKS: u32 = 60;

/// Show graphs and alerts of the cluster at an address of this machine
///
/// Forwards connections to Prometheus until Ctrl-C; only programs of this machine reach the address. A cluster has a Prometheus on every
/// controller if cluster.yaml says `addons: {monitoring: true}`. All of them measure the same, and each of them the control plane's programs
/// of its own machine.
///
/// Needs the right to list pods, and to get and create pods/portforward, in kube-system.
#[derive(Args, Debug)]
pub(super) struct DashboardArguments {
    /// Listen on this port of 127.0.0.1; by default on one that is free
    #[arg(long, value_name = "PORT", value_parser = value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Show the Prometheus of this controller; by default of one that answers
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    #[command(flatten)]
    cluster: ClusterOptions,
}

pub(super) fn run(arguments: &DashboardArguments, session: &Session) -> anyhow::Result<Exit> {
    let session = &session.with_cluster(&arguments.cluster);
    let cluster = TargetCluster::find(session)?;
    let show = async {
        let port =
            LocalPort::open(arguments.port).await.map_err(|error| explain_port(&error, arguments.port))?;
        let (sender, pod) = watch::channel(None);
        let (failures, failed) = mpsc::unbounded_channel();
        let mut dashboard = Dashboard {
            cluster: &cluster,
            session,
            node: arguments.node.as_deref(),
            port: &port,
            shown: None,
            is_known: false,
            pod: sender,
        };
        tokio::select! {
            error = port.forward(&cluster.api, &pod, &failures) => {
                Err(Refusal::new(format!("no more connections can be accepted: {error}")).into())
            }
            ended = dashboard.follow(failed) => ended,
        }
    };
    block_on(until_interrupted_with(show, Interrupted::WhilePrinting))
}

/// What was reported to the user, and where connections go.
struct Dashboard<'a> {
    cluster: &'a TargetCluster,
    session: &'a Session,
    node: Option<&'a str>,
    port: &'a LocalPort,
    shown: Option<PrometheusState>,
    /// Whether the address was printed.
    is_known: bool,
    pod: watch::Sender<Option<PodPort>>,
}

impl Dashboard<'_> {
    /// Follows Prometheus, and lets connections reach the pod that answers, until the user leaves.
    async fn follow(&mut self, mut failed: mpsc::UnboundedReceiver<KubeError>) -> anyhow::Result<Exit> {
        let Session { printer, tempo, .. } = self.session;
        let mut outage = Outage::default();
        let (mut looks, mut told_failure) = (0, None);
        loop {
            let in_use = self.pod.borrow().as_ref().map(|port| port.pod.clone());
            let read = read_prometheus(&self.cluster.api, self.node, in_use.as_deref()).await;
            let state = outage.tolerate(read, |contact| report_contact(&contact, printer))?;
            if let Some(state) = state {
                if let PrometheusState::Ready { port, .. } = &state
                    && in_use.is_none()
                {
                    // Whoever may not do this learns it before the browser does.
                    let probe = self.cluster.api.connect_to_port(port).await;
                    if outage.tolerate(probe, |contact| report_contact(&contact, printer))?.is_none() {
                        sleep(tempo.shorten(PAUSE)).await;
                        continue;
                    }
                }
                looks = if matches!(state, PrometheusState::Waiting { .. }) { looks + 1 } else { 0 };
                self.show(&state, looks)?;
                self.direct(&state);
                self.shown = Some(state);
            }
            tokio::select! {
                () = sleep(tempo.shorten(PAUSE)) => {}
                Some(error) = failed.recv() => {
                    // Browsers retry: one line for all connections that fail of the same.
                    let why = error.to_string();
                    if told_failure.as_ref() != Some(&why) {
                        printer.warning(format_args!("a connection failed: {why}"));
                        told_failure = Some(why);
                    }
                }
            }
        }
    }

    /// Lets connections reach the pod that answers; they wait while none does.
    fn direct(&self, state: &PrometheusState) {
        let now = match state {
            PrometheusState::Ready { port, .. } => Some(port.clone()),
            _ => None,
        };
        self.pod.send_if_modified(|current| {
            let is_new = *current != now;
            *current = now;
            is_new
        });
    }

    /// Says what is new, or why there is nothing to see.
    fn show(&mut self, state: &PrometheusState, looks: u32) -> anyhow::Result<()> {
        let (printer, name) = (&self.session.printer, &self.cluster.name);
        match state {
            PrometheusState::Absent => return Err(self.explain_absence().into()),
            PrometheusState::Elsewhere { nodes } => {
                let asked_for = self.node.unwrap_or_default();
                return Err(Refusal::new(format!("there is no Prometheus on node '{asked_for}'"))
                    .help(format!("it runs on controllers: {}", nodes.join(", ")))
                    .into());
            }
            PrometheusState::Waiting { reason } if looks >= MOST_LOOKS => {
                return Err(Refusal::new(format!("Prometheus does not run: {reason}"))
                    .help("fix the cause; `kubectl describe pods -n kube-system -l k8s-app=prometheus` says more")
                    .into());
            }
            PrometheusState::Waiting { reason } if self.shown.as_ref() != Some(state) => {
                printer.note(format_args!("waiting for Prometheus: {reason}"));
            }
            PrometheusState::Ready { node, .. } if self.shown.as_ref() != Some(state) => {
                if !self.is_known {
                    let address = self.port.address();
                    printer.data(format!("http://{address}/"))?;
                    printer.note(format_args!("alerts: http://{address}/alerts"));
                }
                self.is_known = true;
                printer.note(format_args!(
                    "forwarding to Prometheus of cluster {name} on {node}; Ctrl-C ends it"
                ));
            }
            PrometheusState::Waiting { .. } | PrometheusState::Ready { .. } => {}
        }
        Ok(())
    }

    /// Why there is no Prometheus.
    fn explain_absence(&self) -> Refusal {
        let help = match self.cluster.blueprint().map(|blueprint| &blueprint.cluster.addons.monitoring) {
            Some(None) => {
                "cluster.yaml has addons.monitoring: false; set it to true and run `infra up`, which replaces etcd members and controllers"
            }
            Some(Some(_)) => "cluster.yaml asks for it; run `infra up`",
            None => "its administrator can switch it on: `addons: {monitoring: true}` in cluster.yaml",
        };
        Refusal::new(format!("cluster {} has no monitoring", self.cluster.name)).help(help)
    }
}
