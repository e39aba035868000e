//! What happens in a random life, in order: a seed into acts with their faults.

use serde_json::{Value, json};

use super::chance::Chance;
use super::cluster_file::{Change, Shape};
use crate::matrix::failures::Failure;

/// A call fails: the n-th of the command.
#[derive(Clone, Copy, Debug)]
pub struct CallFault {
    pub failure: Failure,
    pub call: usize,
}

/// What CloudFormation and EC2 cannot do for now.
#[derive(Clone, Copy, Debug)]
pub enum StackFault {
    /// Resources of a type cannot be created.
    Create(&'static str),
    /// Resources of a type cannot be updated.
    Update(&'static str),
    /// Launch templates cannot be updated, nor be put back.
    UpdateAndRollback,
    /// Resources of a type cannot be deleted.
    Delete(&'static str),
    /// EC2 has no machines for pools.
    Launch,
    /// Machines of pools start, and never signal.
    Signal,
}

impl StackFault {
    /// The settings of the stand-in that bring it about.
    pub fn settings(self) -> Value {
        const NO_CAPACITY: &str = "We currently do not have sufficient m5.large capacity in the Availability Zone you requested \
                                   (us-west-2a). Launching EC2 instance failed.";
        const TEMPLATE: &str = "AWS::EC2::LaunchTemplate";
        match self {
            Self::Create(kind) => json!({"fail_create": {kind: "Internal Failure"}}),
            Self::Update(kind) => json!({"fail_update": {kind: "Internal Failure"}}),
            Self::UpdateAndRollback => {
                json!({"fail_update": {TEMPLATE: "Internal Failure"}, "fail_rollback": {TEMPLATE: "Internal Failure"}})
            }
            Self::Delete(kind) => json!({"fail_delete": {kind: "Internal Failure"}}),
            Self::Launch => json!({"fail_launch": {"Nodes": NO_CAPACITY}, "signal_timeout": 5}),
            Self::Signal => json!({"no_signal": ["Nodes"], "signal_timeout": 2}),
        }
    }
}

/// The faults while a command runs.
#[derive(Clone, Debug, Default)]
pub struct Trouble {
    pub calls: Vec<CallFault>,
    pub stacks: Option<StackFault>,
}

impl Trouble {
    pub fn count(&self) -> usize {
        self.calls.len() + usize::from(self.stacks.is_some())
    }
}

/// Two commands at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    TwoUps,
    UpAndDestroy,
    TwoDestroys,
}

/// What a user does.
#[derive(Clone, Debug)]
pub enum Act {
    /// `infra up`, perhaps with another cluster.yaml.
    Up { change: Option<Change>, trouble: Trouble },
    /// `infra destroy`, which keeps the data.
    Destroy { trouble: Trouble },
    /// A second operator runs a command too; `delay` is in milliseconds.
    Together { pair: Pair, delay: u64 },
    /// A command that only reads.
    Read { command: &'static [&'static str], trouble: Trouble },
    /// Kubernetes creates load balancers, security groups and interfaces; etcd uploads a snapshot.
    Use,
    /// The autoscaler changes the size of a pool.
    Scale { machines: u32 },
    /// Another user puts an interface into the cluster's network, so that a destroy ends before it is removed.
    Squat,
}

/// A whole life. It ends with a destroy that deletes the data, too.
#[derive(Clone, Debug)]
pub struct Story {
    pub shape: Shape,
    pub acts: Vec<Act>,
}

impl Story {
    pub fn draw(chance: &mut Chance) -> Self {
        let shape = chance.weighted(&[(3, Shape::Single), (1, Shape::HighlyAvailable)]);
        let mut acts = vec![Act::Up { change: None, trouble: creation_trouble(chance) }];
        for _ in 0..2 + chance.below(4) {
            acts.push(act(chance));
        }
        acts.push(Act::Destroy { trouble: deletion_trouble(chance) });
        Self { shape, acts }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Change,
    Again,
    Destroy,
    Pair(Pair),
    Read,
    Use,
    Scale,
    Squat,
}

fn act(chance: &mut Chance) -> Act {
    let kinds = [
        (10, Kind::Change),
        (1, Kind::Again),
        (1, Kind::Destroy),
        (1, Kind::Pair(Pair::TwoUps)),
        (1, Kind::Pair(Pair::UpAndDestroy)),
        (1, Kind::Pair(Pair::TwoDestroys)),
        (2, Kind::Read),
        (2, Kind::Use),
        (2, Kind::Scale),
        (1, Kind::Squat),
    ];
    match chance.weighted(&kinds) {
        Kind::Change => Act::Up { change: Some(chance.pick(&Change::ALL)), trouble: update_trouble(chance) },
        Kind::Again => Act::Up { change: None, trouble: update_trouble(chance) },
        Kind::Destroy => Act::Destroy { trouble: deletion_trouble(chance) },
        Kind::Pair(pair) => Act::Together { pair, delay: u64::try_from(chance.below(3000)).unwrap() },
        Kind::Read => {
            let commands: [&[&str]; 3] =
                [&["status"], &["plan", "--detailed-exitcode"], &["destroy", "--plan-only"]];
            Act::Read { command: chance.pick(&commands), trouble: call_trouble(chance, 40) }
        }
        Kind::Use => Act::Use,
        Kind::Scale => Act::Scale { machines: u32::try_from(chance.below(4)).unwrap() },
        Kind::Squat => Act::Squat,
    }
}

fn creation_trouble(chance: &mut Chance) -> Trouble {
    let kinds = [
        StackFault::Create("AWS::AutoScaling::AutoScalingGroup"),
        StackFault::Create("AWS::EC2::SecurityGroup"),
        StackFault::Create("AWS::EFS::MountTarget"),
        StackFault::Create("AWS::ElasticLoadBalancingV2::LoadBalancer"),
        StackFault::Create("AWS::IAM::Role"),
        StackFault::Launch,
        StackFault::Signal,
    ];
    trouble(chance, &kinds)
}

fn update_trouble(chance: &mut Chance) -> Trouble {
    let kinds = [
        StackFault::Create("AWS::AutoScaling::AutoScalingGroup"),
        StackFault::Update("AWS::AutoScaling::AutoScalingGroup"),
        StackFault::Update("AWS::EC2::LaunchTemplate"),
        StackFault::Update("AWS::EC2::SecurityGroup"),
        StackFault::UpdateAndRollback,
        StackFault::Launch,
        StackFault::Signal,
    ];
    trouble(chance, &kinds)
}

fn deletion_trouble(chance: &mut Chance) -> Trouble {
    let kinds = [
        StackFault::Delete("AWS::AutoScaling::AutoScalingGroup"),
        StackFault::Delete("AWS::EC2::SecurityGroup"),
        StackFault::Delete("AWS::EFS::MountTarget"),
        StackFault::Delete("AWS::Route53::HostedZone"),
    ];
    trouble(chance, &kinds)
}

/// Two faults at once are as usual as one, and as none.
fn trouble(chance: &mut Chance, kinds: &[StackFault]) -> Trouble {
    let mut trouble = call_trouble(chance, 150);
    if chance.one_in(3) {
        trouble.calls.truncate(1);
        trouble.stacks = Some(chance.pick(kinds));
    }
    trouble
}

/// None, one or two calls fail.
fn call_trouble(chance: &mut Chance, calls: usize) -> Trouble {
    let failures = [
        (6, Failure::Killed),
        (4, Failure::Lost),
        (3, Failure::Reset),
        (3, Failure::InternalError),
        (2, Failure::Throttled),
        (2, Failure::Expired),
        (2, Failure::Denied),
    ];
    let calls = (0..chance.below(3))
        .map(|_| CallFault { failure: chance.weighted(&failures), call: 1 + chance.below(calls) });
    Trouble { calls: calls.collect(), stacks: None }
}
