//! A cluster's whole life in an account of its own: up, a change, destroy, destroy of the data; each command may be disturbed once, and
//! is run again if it did not survive that.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::failures::Failure;
use super::traces::leave_traces;
use crate::support::census::Census;
use crate::support::fault_proxy::CallOutcome;
use crate::support::invocation::Invocation;
use crate::support::outcome::Outcome;
use crate::support::reading::is_reading;
use crate::support::world::World;

/// Throttled five times, a run takes half a minute longer; silence takes as long.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// What is run, in the order of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Up,
    Update,
    Destroy,
    DeleteData,
}

impl Step {
    pub const ALL: [Self; 4] = [Self::Up, Self::Update, Self::Destroy, Self::DeleteData];

    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Update => "update",
            Self::Destroy => "destroy",
            Self::DeleteData => "destroy --delete-data",
        }
    }
}

/// The n-th call of an operation. Calls run in parallel, so their order is not always the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    pub operation: String,
    pub number: usize,
}

impl Call {
    pub fn is_reading(&self) -> bool {
        is_reading(&self.operation)
    }
}

/// What every step of an undisturbed life calls, and what there is after it.
pub struct Undisturbed {
    pub calls: BTreeMap<Step, Vec<Call>>,
    after: BTreeMap<Step, Census>,
}

/// How a disturbed step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The call was not made.
    NotReached,
    /// With 0.
    GotOver,
    /// With this code, and with 0 the next time.
    Again(i32),
}

/// An account with all that makes a run call everything it knows: a hosted zone, a missing bucket, a granted key, files, two pools.
pub struct Life {
    world: World,
}

impl Life {
    /// In an account of the same stand-in as another world's.
    pub fn beside(other: &World) -> Self {
        let world = other.neighbour("paddle-tutorial");
        world.make_zone("example.com", false);
        let aws = world.aws();
        aws.send("s3", &aws.region, "DELETE", &format!("/{}", world.bucket()), "");
        world.workspace.edit(|text| {
            let pools = "pools:\n- {name: old, instanceType: m5.large, count: 1}\n";
            format!("{}encryptDisksWithKmsKey: true\n", text.replace("pools:\n", pools))
        });
        Self { world }
    }

    /// Without a disturbance.
    pub fn undisturbed(other: &World) -> Undisturbed {
        let life = Self::beside(other);
        let before = life.holdings();
        let (mut calls, mut after) = (BTreeMap::new(), BTreeMap::new());
        for step in Step::ALL {
            life.prepare(step);
            life.world.proxy.clear();
            life.invocation(step).run().expect_code(0);
            calls.insert(step, numbered(life.world.proxy.calls().into_iter().map(|call| call.operation)));
            life.finish(step);
            after.insert(step, life.holdings());
        }
        let mut kept = before.clone();
        kept.insert("file systems".to_owned(), 1);
        kept.insert("mount targets".to_owned(), 0);
        kept.insert("disk snapshots".to_owned(), 1);
        kept.insert("objects".to_owned(), 1);
        assert_eq!(after[&Step::Destroy], kept, "what is not data is gone");
        assert_eq!(after[&Step::DeleteData], before, "nothing is left");
        Undisturbed { calls, after }
    }

    /// One step, disturbed at a call; then again, until it is done.
    pub fn disturb(
        &self,
        step: Step,
        call: Option<&Call>,
        failure: Failure,
        usual: &Undisturbed,
    ) -> Result<Ending, String> {
        self.prepare(step);
        self.world.proxy.clear();
        let Some(call) = call else {
            let outcome = self.invocation(step).run();
            expect_done(&outcome, "undisturbed")?;
            self.finish(step);
            return self.expect(step, usual).map(|()| Ending::NotReached);
        };
        let (fault, times) = failure.fault(call.number);
        self.world.proxy.fault(&call.operation, fault, times);
        let outcome =
            if failure == Failure::Killed { self.run_and_kill(step) } else { self.invocation(step).run() };
        self.world.proxy.heal();
        let reached = self.world.proxy.calls().iter().any(|call| call.outcome == CallOutcome::Faulted);
        if reached {
            failure.allows(call, &outcome)?;
        } else {
            expect_done(&outcome, "although nothing happened, it")?;
        }
        if outcome.code != 0 {
            expect_done(&self.invocation(step).run(), "the next run")?;
            if step == Step::Update {
                expect_done(&self.world.run(["plan", "--detailed-exitcode"]), "the plan after that")?;
            }
        }
        self.finish(step);
        self.expect(step, usual)?;
        Ok(match (reached, outcome.code) {
            (false, _) => Ending::NotReached,
            (true, 0) => Ending::GotOver,
            (true, code) => Ending::Again(code),
        })
    }

    fn run_and_kill(&self, step: Step) -> Outcome {
        // Stacks are in the middle of something when the next run comes.
        self.world.control(json!({"delay": 0.02}));
        let mut running = self.invocation(step).spawn();
        while self.world.proxy.kept_back() == 0 && !running.has_ended() {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.kill();
        let outcome = running.wait();
        self.world.control(json!({}));
        outcome
    }

    /// What changes before a step.
    fn prepare(&self, step: Step) {
        let world = &self.world;
        match step {
            Step::Update => {
                // Every stack changes, and one is deleted.
                world.workspace.edit(|text| {
                    text.replace("- {name: old, instanceType: m5.large, count: 1}\n", "")
                        .replace("m5.xlarge, count: 2", "m5.xlarge, count: 2, rootVolumeGiB: 150")
                        .replace("lifecycle: never", "lifecycle: 30d")
                        .replace("controllers: {count: 1}", "controllers: {count: 1, instanceType: t3.large}")
                        + "sshAllowedCIDRs: [10.0.0.0/8]\n"
                });
            }
            Step::Up | Step::Destroy | Step::DeleteData => {}
        }
    }

    /// What happens once a step is done.
    fn finish(&self, step: Step) {
        if step == Step::Update {
            leave_traces(&self.world);
        }
    }

    fn invocation(&self, step: Step) -> Invocation {
        let world = &self.world;
        let invocation = match step {
            Step::Up => world.up_invocation(["--create-bucket", "--yes"]),
            Step::Update => world.infra(["up", "--prune", "--yes"]),
            Step::Destroy => world.infra(["destroy", "--yes"]),
            Step::DeleteData => {
                world.infra(["destroy", "--yes", "--delete-data", "--confirm", &world.cluster()])
            }
        };
        invocation.time_limit(TIME_LIMIT)
    }

    /// Everything, data too.
    fn holdings(&self) -> Census {
        let mut census = self.world.census();
        census.insert("disk snapshots".to_owned(), self.world.snapshots());
        census
    }

    fn expect(&self, step: Step, usual: &Undisturbed) -> Result<(), String> {
        let (found, wanted) = (self.holdings(), &usual.after[&step]);
        if found == *wanted {
            return Ok(());
        }
        let names = found.keys().chain(wanted.keys());
        let differs = names.filter(|name| found.get(*name) != wanted.get(*name));
        let differs: BTreeMap<&String, _> =
            differs.map(|name| (name, (found.get(name), wanted.get(name)))).collect();
        Err(format!("there is something else than usual (found, usual): {differs:?}"))
    }
}

fn expect_done(outcome: &Outcome, which: &str) -> Result<(), String> {
    if outcome.code == 0 {
        return Ok(());
    }
    Err(format!("{which} ended with {}:\n{}", outcome.code, outcome.stderr))
}

fn numbered(operations: impl Iterator<Item = String>) -> Vec<Call> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    operations
        .map(|operation| {
            let number = seen.entry(operation.clone()).or_default();
            *number += 1;
            Call { operation, number: *number }
        })
        .collect()
}
