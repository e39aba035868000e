//! Plays a story through the real binary. After every act the next undisturbed run converges, and the invariants hold.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use super::chance::Chance;
use super::cluster_file::{Change, ClusterFile};
use super::figures::Figures;
use super::groups::{desired_count, scale};
use super::story::{Act, Pair, StackFault, Story, Trouble};
use super::verdict::{Ends, judge};
use crate::matrix::failures::Failure;
use crate::matrix::traces::leave_traces;
use crate::support::census::Census;
use crate::support::fault_proxy::CallOutcome;
use crate::support::invocation::Invocation;
use crate::support::outcome::Outcome;
use crate::support::reading::is_reading;
use crate::support::world::World;

/// Throttled calls take half a minute; so do stacks that wait for machines.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// What a refused `up` says while another operator's destroy is in progress.
const BEING_DELETED: &str = "is being deleted";

/// A life in an account of its own.
pub struct Life {
    world: World,
    file: ClusterFile,
    chance: Chance,
    /// What the account held before the cluster.
    before: Census,
    /// Whether the cluster exists, and its cluster.yaml when it was last as that file says.
    settled: Option<ClusterFile>,
    is_used: bool,
    /// Every file system that was ever created: none may be lost.
    file_systems: BTreeSet<String>,
    snapshots: usize,
    pub figures: Figures,
}

impl Life {
    /// In an account of the same stand-in as another world's.
    pub fn beside(other: &World, story: &Story, mut chance: Chance) -> Self {
        let world = other.neighbour(story.shape.golden());
        world.make_zone("example.com", false);
        let file = ClusterFile::new(
            story.shape,
            &world.workspace.read("cluster.yaml"),
            &world.bucket(),
            &mut chance,
        );
        world.workspace.write("cluster.yaml", file.text());
        Self {
            before: world.census(),
            world,
            file,
            chance,
            settled: None,
            is_used: false,
            file_systems: BTreeSet::new(),
            snapshots: 0,
            figures: Figures::default(),
        }
    }

    /// All acts, then the end; the error names the act.
    pub fn play(&mut self, story: &Story) -> Result<(), String> {
        for (number, act) in story.acts.iter().enumerate() {
            if number + 1 == story.acts.len() {
                self.compare_with_twin().map_err(|error| format!("before the last act: {error}"))?;
            }
            self.figures.acts += 1;
            self.perform(act).map_err(|error| format!("act {}, {act:?}: {error}", number + 1))?;
        }
        self.end().map_err(|error| format!("the end: {error}"))
    }

    fn perform(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Up { change, trouble } => self.up(*change, trouble),
            Act::Destroy { trouble } => self.destroy(trouble),
            Act::Together { pair, delay } => self.run_two(*pair, *delay),
            Act::Read { command, trouble } => self.read(command, trouble),
            Act::Use => {
                if self.settled.is_some() && !self.is_used {
                    leave_traces(&self.world);
                    self.is_used = true;
                }
                Ok(())
            }
            Act::Scale { machines } => {
                if let Some(settled) = &self.settled
                    && let Some(pool) = settled.pools().next()
                {
                    scale(&self.world, pool, (*machines).min(settled.most(pool).unwrap_or_default()));
                }
                Ok(())
            }
            Act::Squat => self.destroy_around_squatter(),
        }
    }

    fn up(&mut self, change: Option<Change>, trouble: &Trouble) -> Result<(), String> {
        if let Some(change) = change {
            self.file.change(change, &mut self.chance);
            self.world.workspace.write("cluster.yaml", self.file.text());
        }
        let sizes = self.expected_sizes();
        let outcome = self.run_disturbed(self.up_invocation(), trouble)?;
        if outcome.code != 0 {
            self.converge()?;
        }
        self.expect_settled(&sizes)
    }

    /// Runs until cluster.yaml is what there is: the first run does it, unless a stack is stuck or another operator is not done.
    fn converge(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            let outcome = self.run(self.up_invocation());
            if outcome.code == 0 {
                return Ok(());
            }
            if outcome.stderr.contains("UPDATE_ROLLBACK_FAILED") {
                expect_code(&self.run(self.world.infra(["rollback"])), 0, "the rollback")?;
            } else if outcome.stderr.contains(BEING_DELETED) {
                thread::sleep(Duration::from_secs(1));
            } else {
                return expect_code(&outcome, 0, "the next run");
            }
        }
        Err("no run converged".to_owned())
    }

    fn destroy(&mut self, trouble: &Trouble) -> Result<(), String> {
        let outcome = self.run_disturbed(self.world.infra(["destroy", "--yes"]), trouble)?;
        if outcome.code != 0 {
            expect_code(&self.run(self.world.infra(["destroy", "--yes"])), 0, "the next destroy")?;
        }
        self.expect_gone()
    }

    fn run_two(&mut self, pair: Pair, delay: u64) -> Result<(), String> {
        let sizes = self.expected_sizes();
        let other = self.world.workspace.elsewhere(true);
        let place = self.place();
        let up = ["up", "--prune", "--yes", "--s3-uri", &place];
        let destroy = ["destroy", "--yes"];
        let (first, second): (&[&str], &[&str]) = match pair {
            Pair::TwoUps => (&up, &up),
            Pair::UpAndDestroy if delay.is_multiple_of(2) => (&destroy, &up),
            Pair::UpAndDestroy => (&up, &destroy),
            Pair::TwoDestroys => (&destroy, &destroy),
        };
        self.world.control_account(serde_json::json!({"delay": 0.02}));
        let one = self.world.infra(first.iter().copied()).time_limit(TIME_LIMIT).spawn();
        thread::sleep(Duration::from_millis(delay));
        let two = self.world.infra_in(&other, second.iter().copied()).time_limit(TIME_LIMIT).spawn();
        let outcomes = [one.wait(), two.wait()];
        self.world.control_account(serde_json::json!({}));
        for outcome in &outcomes {
            self.figures.command(outcome);
            let ends: &[i32] = if pair == Pair::UpAndDestroy { &[0, 1, 7] } else { &[0] };
            judge(outcome, ends)?;
        }
        match pair {
            Pair::TwoUps => self.expect_settled(&sizes),
            Pair::TwoDestroys => self.expect_gone(),
            Pair::UpAndDestroy if delay.is_multiple_of(3) => self.destroy(&Trouble::default()),
            Pair::UpAndDestroy => {
                self.converge()?;
                self.expect_settled(&[])
            }
        }
    }

    fn read(&mut self, command: &[&str], trouble: &Trouble) -> Result<(), String> {
        let Trouble { calls, .. } = trouble;
        let (outcome, faulted) = self.disturb(self.world.infra(command.iter().copied()), trouble);
        let mut ends = Ends::of(trouble, &faulted);
        if self.settled.is_none() {
            ends.allow(3);
        }
        ends.judge(&outcome)?;
        let changing = self.world.proxy.calls().into_iter().find(|call| !is_reading(&call.operation));
        if let Some(call) = changing {
            return Err(format!("it has called {}", call.operation));
        }
        let healthy = self.settled.is_some() || command[0] == "destroy";
        if calls.is_empty() && (outcome.code == 0) != healthy {
            return Err(format!("ended with {}:\n{}{}", outcome.code, outcome.stdout, outcome.stderr));
        }
        Ok(())
    }

    /// A foreign interface blocks the network: it is named and kept, and the rest is deleted once it is removed.
    fn destroy_around_squatter(&mut self) -> Result<(), String> {
        if self.settled.is_none() {
            return Ok(());
        }
        let subnet = self.world.tagged("DescribeSubnets", "subnetId");
        let squatter = self.world.make_interface(&subnet, "another user's", &[("team", "other")]);
        let outcome = self.run(self.world.infra(["destroy", "--yes"]));
        expect_code(&outcome, 7, "a destroy around a foreign interface")?;
        if !outcome.stderr.contains(&squatter) {
            return Err(format!("{squatter} is not named:\n{}", outcome.stderr));
        }
        if !self.world.interfaces().contains(&squatter) {
            return Err("the foreign interface is gone".to_owned());
        }
        self.world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &squatter)]);
        self.destroy(&Trouble::default())
    }

    /// Nothing is left of the cluster, not even its data.
    fn end(&mut self) -> Result<(), String> {
        let (cluster, place) = (self.world.cluster(), self.place());
        let arguments = ["destroy", "--yes", "--delete-data", "--confirm", &cluster, "--s3-uri", &place];
        expect_code(&self.run(self.world.infra(arguments)), 0, "the destroy of the data")?;
        if self.world.snapshots() > 0 {
            return Err(format!("{} snapshots of disks are left", self.world.snapshots()));
        }
        same(&self.world.census(), &self.before, &[])
    }

    fn run(&mut self, invocation: Invocation) -> Outcome {
        let outcome = invocation.time_limit(TIME_LIMIT).run();
        self.figures.command(&outcome);
        outcome
    }

    /// Runs a command, which may end in the ways that its faults allow.
    fn run_disturbed(&mut self, invocation: Invocation, trouble: &Trouble) -> Result<Outcome, String> {
        let (outcome, faulted) = self.disturb(invocation, trouble);
        Ends::of(trouble, &faulted).judge(&outcome)?;
        Ok(outcome)
    }

    /// Runs a command with faults; also returns the calls that failed.
    fn disturb(&mut self, invocation: Invocation, trouble: &Trouble) -> (Outcome, Vec<String>) {
        let world = &self.world;
        world.proxy.clear();
        let mut settings = trouble.stacks.map_or_else(|| serde_json::json!({}), StackFault::settings);
        let kills = trouble.calls.iter().any(|fault| fault.failure == Failure::Killed);
        if kills {
            // Stacks are in the middle of something when the run is killed.
            settings["delay"] = serde_json::json!(0.02);
        }
        world.control_account(settings);
        for fault in &trouble.calls {
            let (kind, times) = fault.failure.fault(fault.call);
            world.proxy.fault("*", kind, times);
        }
        let mut running = invocation.time_limit(TIME_LIMIT).spawn();
        while kills && world.proxy.kept_back() == 0 && !running.has_ended() {
            thread::sleep(Duration::from_millis(5));
        }
        if world.proxy.kept_back() > 0 {
            running.kill();
        }
        let outcome = running.wait();
        world.proxy.heal();
        world.control_account(serde_json::json!({}));
        let faulted: Vec<String> = world
            .proxy
            .calls()
            .into_iter()
            .filter(|call| call.outcome == CallOutcome::Faulted)
            .map(|call| call.operation)
            .collect();
        self.figures.trouble(trouble, faulted.len());
        self.figures.command(&outcome);
        (outcome, faulted)
    }

    fn place(&self) -> String {
        format!("s3://{}/clusters", self.world.bucket())
    }

    fn up_invocation(&self) -> Invocation {
        self.world.up_invocation(["--prune", "--yes"])
    }

    /// The size that each pool has after `up`: a changed count wins, else what the autoscaler set stays.
    fn expected_sizes(&self) -> Vec<(String, u32)> {
        let Some(settled) = &self.settled else { return Vec::new() };
        let sizes = self.file.pools().filter_map(|pool| {
            let count = self.file.count(pool)?;
            let most = self.file.most(pool)?;
            let live = if settled.count(pool)? == count { desired_count(&self.world, pool)? } else { count };
            Some((pool.to_owned(), live.min(most)))
        });
        sizes.collect()
    }

    /// The cluster is as cluster.yaml says, whole and healthy.
    fn expect_settled(&mut self, sizes: &[(String, u32)]) -> Result<(), String> {
        let plan = self.run(self.world.infra(["plan", "--detailed-exitcode"]));
        expect_code(&plan, 0, &format!("the plan afterwards\n{}", plan.stdout))?;
        let status = self.run(self.world.infra(["status"]));
        expect_code(&status, 0, &format!("the status afterwards\n{}", status.stdout))?;
        for (pool, wanted) in sizes {
            if desired_count(&self.world, pool) != Some(*wanted) {
                let found = desired_count(&self.world, pool);
                return Err(format!("pool {pool} has the size {found:?} instead of {wanted}"));
            }
        }
        if let Some((what, _)) =
            self.world.census().iter().find(|(what, _)| what.contains("open change sets"))
        {
            return Err(format!("{what} are left"));
        }
        let found: BTreeSet<String> = self.world.file_systems().into_iter().collect();
        let used = found.difference(&self.file_systems).count();
        let expected = usize::from(self.settled.is_none());
        if used > 1 || (self.file_systems.is_empty() && used != expected) {
            return Err(format!("there are file systems {found:?}, before {:?}", self.file_systems));
        }
        self.expect_data()?;
        self.file_systems = found;
        self.settled = Some(self.file.clone());
        Ok(())
    }

    /// Only data is left.
    fn expect_gone(&mut self) -> Result<(), String> {
        let stacks = self.world.stacks();
        if !stacks.is_empty() {
            return Err(format!("stacks are left: {stacks:?}"));
        }
        self.expect_data()?;
        if self.settled.take().is_some() && self.world.snapshots() == self.snapshots {
            return Err("no snapshot was made of etcd's disks".to_owned());
        }
        self.snapshots = self.world.snapshots();
        self.file_systems = self.world.file_systems().into_iter().collect();
        same(&self.world.census(), &self.before, &["file systems", "mount targets", "objects"])
    }

    /// No file system and no snapshot of a disk is lost.
    fn expect_data(&self) -> Result<(), String> {
        let found: BTreeSet<String> = self.world.file_systems().into_iter().collect();
        let lost: Vec<&String> = self.file_systems.difference(&found).collect();
        if !lost.is_empty() {
            return Err(format!("file systems are lost: {lost:?}"));
        }
        if self.world.snapshots() < self.snapshots {
            return Err("snapshots of disks are lost".to_owned());
        }
        Ok(())
    }

    /// A cluster that was always as cluster.yaml says now holds the same resources.
    fn compare_with_twin(&mut self) -> Result<(), String> {
        if self.settled.is_none() || self.is_used {
            return Ok(());
        }
        let twin = self.world.neighbour(self.file.golden());
        twin.make_zone("example.com", false);
        twin.workspace.write("cluster.yaml", self.file.text());
        expect_code(&self.run(twin.up_invocation(["--yes"])), 0, "the twin")?;
        let [mut found, mut wanted] = [&self.world, &twin].map(World::census);
        for census in [&mut found, &mut wanted] {
            // The autoscaler may have changed the size of a pool; each machine has one disk that is its own.
            let machines = census.remove("instances").unwrap_or_default();
            for kind in ["interfaces", "volumes"] {
                *census.entry(kind.to_owned()).or_default() -= machines;
            }
        }
        same(&found, &wanted, &["file systems", "objects"])
    }
}

fn expect_code(outcome: &Outcome, code: i32, what: &str) -> Result<(), String> {
    if outcome.code == code {
        return Ok(());
    }
    Err(format!("{what} ended with {}:\n{}", outcome.code, outcome.stderr))
}

/// Whether two accounts hold the same, some kinds aside.
fn same(found: &Census, wanted: &Census, aside: &[&str]) -> Result<(), String> {
    let names: BTreeSet<&String> = found.keys().chain(wanted.keys()).collect();
    let count = |census: &Census, name: &str| census.get(name).copied().unwrap_or_default();
    let differs: Vec<String> = names
        .into_iter()
        .filter(|name| !aside.contains(&name.as_str()) && count(found, name) != count(wanted, name))
        .map(|name| format!("{name}: {} instead of {}", count(found, name), count(wanted, name)))
        .collect();
    if differs.is_empty() { Ok(()) } else { Err(differs.join(", ")) }
}
