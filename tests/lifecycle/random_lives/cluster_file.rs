//! The cluster.yaml of a random life, and the changes that its user makes to it.

use std::fmt::Write as _;

use super::chance::Chance;

const VERSIONS: [&str; 3] = ["v1.35.6", "v1.36.2", "v1.36.3"];
const MACHINES: [&str; 4] = ["m5.large", "m5.xlarge", "c5.xlarge", "c6i.large"];
const CONTROLLERS: [&str; 3] = ["t3.medium", "t3.large", "m5.large"];
const LIFECYCLES: [&str; 3] = ["7d", "30d", "never"];

/// How the cluster begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One controller, one etcd member, one availability zone, and a file system.
    Single,
    /// Two controllers, three etcd members, three availability zones, and a file system.
    HighlyAvailable,
}

impl Shape {
    /// The golden cluster whose name and credentials it has.
    pub fn golden(self) -> &'static str {
        match self {
            Self::Single => "paddle-tutorial",
            Self::HighlyAvailable => "ha-gpu-efs",
        }
    }
}

/// What a user changes in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    AddPool,
    AllowSsh,
    ControllerType,
    Count,
    EtcdType,
    EtcdVolume,
    Label,
    Lifecycle,
    MaxCount,
    PoolType,
    RemovePool,
    RootVolume,
    Tag,
    Version,
}

impl Change {
    pub const ALL: [Self; 14] = [
        Self::AddPool,
        Self::AllowSsh,
        Self::ControllerType,
        Self::Count,
        Self::EtcdType,
        Self::EtcdVolume,
        Self::Label,
        Self::Lifecycle,
        Self::MaxCount,
        Self::PoolType,
        Self::RemovePool,
        Self::RootVolume,
        Self::Tag,
        Self::Version,
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pool {
    name: String,
    machine: &'static str,
    count: u32,
    max: u32,
    root_volume: u32,
    label: u32,
}

impl Pool {
    fn change(&mut self, change: Change, chance: &mut Chance) {
        let mut number = |first: usize, limit| u32::try_from(first + chance.below(limit)).unwrap();
        match change {
            Change::Count => {
                self.count = number(0, 4);
                self.max = self.max.max(self.count);
            }
            Change::Label => self.label += 1,
            Change::MaxCount => self.max = self.count.max(number(1, 5)),
            Change::PoolType => self.machine = chance.pick(&MACHINES),
            Change::RootVolume => self.root_volume += 10,
            _ => {}
        }
    }
}

/// The content of cluster.yaml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterFile {
    head: String,
    shape: Shape,
    version: usize,
    controller: &'static str,
    etcd: &'static str,
    etcd_volume: u32,
    ssh: bool,
    lifecycle: &'static str,
    tag: u32,
    pools: Vec<Pool>,
    pools_so_far: usize,
}

impl ClusterFile {
    /// With the name and the location of a golden cluster's file.
    pub fn new(shape: Shape, golden: &str, bucket: &str, chance: &mut Chance) -> Self {
        let kept = ["clusterName", "externalDNSName", "region", "availabilityZones", "kmsKeyArn"];
        let lines = golden.lines().filter(|line| kept.iter().any(|key| line.starts_with(key)));
        let mut head: String = lines.map(|line| format!("{line}\n")).collect();
        let _ = writeln!(head, "s3URI: s3://{bucket}/clusters");
        let mut file = Self {
            head,
            shape,
            version: chance.below(VERSIONS.len()),
            controller: CONTROLLERS[0],
            etcd: CONTROLLERS[0],
            etcd_volume: 20,
            ssh: false,
            lifecycle: LIFECYCLES[0],
            tag: 0,
            pools: Vec::new(),
            pools_so_far: 0,
        };
        for _ in 0..chance.below(3) {
            file.add_pool(chance);
        }
        file
    }

    pub fn text(&self) -> String {
        let (etcd, controllers) = match self.shape {
            Shape::Single => (1, 1),
            Shape::HighlyAvailable => (3, 2),
        };
        let mut text = self.head.clone();
        let _ = writeln!(text, "kubernetes: {{version: {}}}", VERSIONS[self.version]);
        let _ = writeln!(
            text,
            "etcd: {{count: {etcd}, instanceType: {}, volumeGiB: {}}}",
            self.etcd, self.etcd_volume
        );
        let _ = writeln!(text, "controllers: {{count: {controllers}, instanceType: {}}}", self.controller);
        let _ = writeln!(text, "storage: {{efs: {{lifecycle: {}}}}}", self.lifecycle);
        if self.ssh {
            text.push_str("sshAllowedCIDRs: [192.0.2.0/24]\n");
        }
        if self.tag > 0 {
            let _ = writeln!(text, "tags: {{round: \"{}\"}}", self.tag);
        }
        if !self.pools.is_empty() {
            text.push_str("pools:\n");
        }
        for Pool { name, machine, count, max, root_volume, label } in &self.pools {
            let _ = writeln!(
                text,
                "- {{name: {name}, instanceType: {machine}, count: {count}, minCount: 0, maxCount: {max}, \
                 rootVolumeGiB: {root_volume}, labels: {{round: \"{label}\"}}}}"
            );
        }
        text
    }

    /// The names of the pools.
    pub fn pools(&self) -> impl Iterator<Item = &str> {
        self.pools.iter().map(|pool| pool.name.as_str())
    }

    /// The golden cluster whose name and credentials it has.
    pub fn golden(&self) -> &'static str {
        self.shape.golden()
    }

    /// How many machines a pool should have.
    pub fn count(&self, pool: &str) -> Option<u32> {
        Some(self.pools.iter().find(|found| found.name == pool)?.count)
    }

    /// The most machines that a pool may have.
    pub fn most(&self, pool: &str) -> Option<u32> {
        Some(self.pools.iter().find(|found| found.name == pool)?.max)
    }

    /// Makes a change; where it cannot be made, another tag.
    pub fn change(&mut self, change: Change, chance: &mut Chance) {
        let before = self.clone();
        match change {
            Change::AddPool if self.pools.len() < 3 => self.add_pool(chance),
            Change::AllowSsh => self.ssh = !self.ssh,
            Change::ControllerType => self.controller = chance.pick(&CONTROLLERS),
            Change::EtcdType => self.etcd = chance.pick(&CONTROLLERS),
            Change::EtcdVolume => self.etcd_volume += 5,
            Change::Lifecycle => self.lifecycle = chance.pick(&LIFECYCLES),
            Change::RemovePool => drop(self.pools.pop()),
            Change::Version if self.version + 1 < VERSIONS.len() => self.version += 1,
            _ if !self.pools.is_empty() => {
                let place = chance.below(self.pools.len());
                self.pools[place].change(change, chance);
            }
            _ => {}
        }
        if *self == before {
            self.tag += 1;
        }
    }

    fn add_pool(&mut self, chance: &mut Chance) {
        self.pools_so_far += 1;
        let count = u32::try_from(chance.below(3)).unwrap();
        self.pools.push(Pool {
            name: format!("pool{}", self.pools_so_far),
            machine: chance.pick(&MACHINES),
            count,
            max: count + 2,
            root_volume: 100,
            label: 0,
        });
    }
}
