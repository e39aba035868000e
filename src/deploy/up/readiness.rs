//! Waits until the cluster works: its API answers, every node is Ready, GPUs can be used, the claim is bound.

use std::time::Duration;

use super::arriving_nodes::report_nodes;
use crate::config::values::ClusterName;
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, Progress};
use crate::deploy::machines::expected_nodes::ExpectedNodes;
use crate::deploy::machines::pool_launches::PoolLaunches;
use crate::deploy::run::Run;
use crate::deploy::stack::concurrent_deletion::check_all_exist;
use crate::deploy::state::live::LiveCluster;
use crate::kube::{ApiServer, KubeError, Readiness};
use crate::waiting::Pace;

/// The time a load balancer needs to find its targets and its name to spread; after that the API counts as unreachable.
const UNREACHABLE: Duration = Duration::from_mins(5);

/// About one call in half a minute: another process may delete the cluster, machines may not start, and the autoscaler may change how
/// many are wanted.
const POLLS_PER_AWS_CALL: u32 = 3;

/// How a wait for readiness ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// Nothing is missing.
    Ready,
    /// The API cannot be reached from here; all that is known is that the nodes signalled to CloudFormation.
    NotReachable,
}

/// A wait for the nodes of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadinessWait<'a> {
    pub(crate) run: &'a Run,
    pub(crate) api: &'a ApiServer,
    pub(crate) cluster: &'a ClusterName,
    /// The stacks that the nodes are in.
    pub(crate) stacks: &'a [String],
}

impl ReadinessWait<'_> {
    /// Waits until nothing is missing, one of the stacks of the nodes is deleted, or their machines cannot start.
    pub(crate) async fn until_ready(
        &self,
        mut expected: ExpectedNodes,
        mut launches: PoolLaunches<'_>,
    ) -> Result<Reached, DeployError> {
        let Self { run, api, stacks, .. } = *self;
        let unreachable = run.waiting.at_most(UNREACHABLE);
        let mut pace = Pace::of_stack();
        let mut answered = false;
        let mut reported = Vec::new();
        let mut polls = 0;
        // Machines that start fast are all in service by now, and their nodes may be Ready.
        let is_read = launches.has_changed_pools();
        if is_read {
            self.read_groups(&mut expected, &mut launches).await?;
        }
        loop {
            let missing = match find_missing(api, &expected, &run.progress).await {
                Ok(missing) => {
                    answered = true;
                    missing
                }
                Err(error) if error.is_passing() => {
                    answered |= !error.is_unreachable();
                    vec![format!("the API server: {error}")]
                }
                Err(error) => return Err(error.into()),
            };
            if missing.is_empty() {
                return Ok(Reached::Ready);
            }
            if missing != reported {
                run.progress.report(Event::Waiting { waiting_for: missing.clone() });
                reported.clone_from(&missing);
            }
            if polls % POLLS_PER_AWS_CALL == 0 && (polls > 0 || !is_read) {
                if polls > 0 {
                    check_all_exist(&run.clients, stacks).await?;
                }
                self.read_groups(&mut expected, &mut launches).await?;
            }
            polls += 1;
            let pause = pace.next_pause();
            let waited =
                if answered { run.waiting.pause(pause).await } else { unreachable.pause(pause).await };
            match waited {
                Ok(()) => {}
                Err(_) if !answered && run.waiting.end().is_none() => return Ok(Reached::NotReachable),
                Err(end) => {
                    let what = format!("{end} while waiting for {}", missing.join("; "));
                    return Err(DeployError::StillRunning { what, running: Vec::new() });
                }
            }
        }
    }

    /// A pool's stack can be complete before its machines start, so CloudFormation does not report those that cannot.
    async fn read_groups(
        &self,
        expected: &mut ExpectedNodes,
        launches: &mut PoolLaunches<'_>,
    ) -> Result<(), DeployError> {
        if expected.pools.is_empty() {
            return Ok(());
        }
        let groups = self.run.clients.groups_of_cluster(self.cluster.as_str()).await?;
        let live = LiveCluster { groups, ..LiveCluster::default() };
        expected.follow_groups(&live);
        for (pool, ..) in &expected.pools {
            if let Some(group) = live.pool_group(pool) {
                launches.count_failures(pool, group).await?;
            }
        }
        launches.fail_if_permanent().await
    }
}

/// What is missing now; reports nodes that are there.
async fn find_missing(
    api: &ApiServer,
    expected: &ExpectedNodes,
    progress: &Progress,
) -> Result<Vec<String>, KubeError> {
    if let Readiness::NotReady { failed } = api.check_ready().await? {
        return Ok(vec![format!("the API server is not ready: {}", failed.join(", "))]);
    }
    let nodes = api.nodes().await?;
    report_nodes(progress, &nodes);
    let mut missing = expected.missing(&nodes);
    if expected.claim {
        match api.claim_phase("default", "efs").await? {
            Some(phase) if phase == "Bound" => {}
            Some(phase) => missing.push(format!("the file system's claim is {phase}")),
            None => missing.push("the file system's claim does not exist yet".to_owned()),
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, TcpListener};

    use super::{ExpectedNodes, PoolLaunches, Reached, ReadinessWait};
    use crate::aws::test_script::Script;
    use crate::deploy::test_run::TestRun;
    use crate::kube::{Address, ApiServer};

    #[tokio::test(start_paused = true)]
    async fn an_api_that_never_answers_is_given_five_minutes() -> Result<(), Box<dyn std::error::Error>> {
        let script = Script::new(|_| (200, String::new()));
        let test = TestRun::new(&script).await?;
        let nobody: SocketAddr = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let store = tempfile::tempdir()?;
        let golden =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clusters/minimal/credentials");
        for entry in std::fs::read_dir(golden)? {
            let entry = entry?;
            std::fs::copy(entry.path(), store.path().join(entry.file_name()))?;
        }
        let store = crate::credentials::CredentialStore::open(store.path(), || ())?;
        let credentials = crate::credentials::Credentials::read(&store, &test.blueprint.identities)?;
        let api = ApiServer::new(&credentials, "a.example.com", Address::Socket(nobody))?;
        let expected = ExpectedNodes { controllers: 1, pools: Vec::new(), claim: false };
        let start = tokio::time::Instant::now();
        let cluster = &test.blueprint.cluster.name;
        let launches = PoolLaunches::of_unchanged_pools(&test.run, cluster);
        let wait = ReadinessWait { run: &test.run, api: &api, cluster, stacks: &[] };
        assert_eq!(wait.until_ready(expected, launches).await?, Reached::NotReachable);
        let waited = start.elapsed().as_secs();
        assert!((300..=320).contains(&waited), "{waited} s");
        assert_eq!(test.events().len(), 1, "the same list is reported once: {:?}", test.events());
        Ok(())
    }
}
