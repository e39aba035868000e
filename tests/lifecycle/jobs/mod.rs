//! A job's life through the real binary, against a stand-in that keeps objects, runs Jobs, and runs the real programs of the pods
//! that import data and move files.

mod bringing_code;
mod deleting;
mod detaching;
mod earlier_versions;
mod explaining;
mod failing;
mod fetching;
mod fetching_objects;
mod gpu_checks;
mod hostile;
mod importing;
mod kubeconfigs;
mod lacking_adapters;
mod listing_runs;
mod merged_logs;
mod moving_files;
mod nccl_checks;
mod preconditions;
mod queries;
mod reading_logs;
mod refused_objects;
mod rehearsing;
mod screens;
mod secrets;
mod shells;
mod submitting;
mod tcp_notices;
mod teams;
mod tensorboards;
mod transfer_memory;
mod users;

use std::fs;
use std::process::Command;

use crate::support::invocation::Invocation;
use crate::support::job_cluster::JobCluster;
use crate::support::outcome::Outcome;
use crate::support::workspace::Workspace;

/// Two workers with a GPU each.
const TRAIN: &str = "name: train\nframework: pytorch\nimage: registry.example.com/train:1\nreplicas: 2\ngpus: 1\n\
                     command: [python, /code/train.py]\nretries: 0\n";
const DATA: &str = "data: {archive: import/data.tar.gz, split: lines}\n";

/// The cluster of the TensorFlow tutorial: a machine without and three with a GPU.
struct JobWorld {
    workspace: Workspace,
    cluster: JobCluster,
}

impl JobWorld {
    fn new(job: &str) -> Self {
        let world = Self::of_golden("tensorflow-tutorial", job);
        world.cluster.put_node("worker-1", "cpu", 0);
        for number in 1..=3 {
            world.cluster.put_node(&format!("gpu-{number}"), "gpu", 1);
        }
        world
    }

    /// A cluster without machines.
    fn of_golden(name: &str, job: &str) -> Self {
        let workspace = Workspace::of_golden(name);
        let cluster = JobCluster::start(&workspace.credentials());
        let world = Self { workspace, cluster };
        world.write_job(job);
        world
    }

    /// A private cluster in one availability zone, without machines, that has these pools.
    fn with_pools(pools: &str, job: &str) -> Self {
        let world = Self::of_golden("deep-learning", job);
        world.workspace.edit(|text| {
            let (before, _) = text.split_once("pools:\n").unwrap();
            format!("{before}pools:\n{pools}storage: {{efs: {{}}}}\n")
        });
        world
    }

    fn write_job(&self, text: &str) {
        fs::write(self.workspace.path("job.yaml"), text).unwrap();
    }

    fn infra<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let all: Vec<&str> = std::iter::once("job").chain(arguments).collect();
        self.workspace.infra(all).env("INFRA_API_SERVER", &self.cluster.address())
    }

    #[track_caller]
    fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Outcome {
        self.infra(arguments).run()
    }

    /// `infra job …` at a terminal where this is typed.
    fn at_terminal(&self, arguments: &str, typed: &str) -> Outcome {
        let invocation = self.workspace.at_terminal(&format!("job {arguments}"), "dumb");
        invocation.env("INFRA_API_SERVER", &self.cluster.address()).input(typed).run()
    }

    /// An archive on the claim with this many lines to train on, a word list and a directory.
    fn put_archive(&self, lines: usize) {
        let source = self.workspace.path("archive");
        fs::create_dir_all(source.join("config")).unwrap();
        let text: String = (0..lines).map(|number| format!("line {number}\n")).collect();
        fs::write(source.join("train.txt"), text).unwrap();
        fs::write(source.join("words.txt"), "a\nb\n").unwrap();
        fs::write(source.join("config/model.py"), "layers = 3\n").unwrap();
        let target = self.cluster.claim().join("import");
        fs::create_dir_all(&target).unwrap();
        let status = Command::new("tar")
            .arg("-czf")
            .arg(target.join("data.tar.gz"))
            .arg("-C")
            .arg(&source)
            .args(["train.txt", "words.txt", "config"])
            .status()
            .unwrap();
        assert!(status.success());
    }

    fn read_claim(&self, path: &str) -> String {
        let path = self.cluster.claim().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }
}
