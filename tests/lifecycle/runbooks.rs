//! Every runbook, as its reader would follow it: each line that it shows is run against the stand-ins, in order, and ends as it says.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::support::fault_proxy::{Fault, Times};
use crate::support::invocation::Invocation;
use crate::support::job_cluster::JobCluster;
use crate::support::job_cluster::controller::Fate;
use crate::support::kubernetes::KubernetesApi;
use crate::support::outcome::Outcome;
use crate::support::runbook::{Command, Step, holds, pages, quotes_of, steps_of, with_sections};
use crate::support::world::{DAY, TimeOfBlock, WRITTEN_END, World, coming_end};

const CREATE: &str = "create.md";
const EXPIRED: &str = "expired-credentials.md";
const QUEUES: &str = "share-with-queues.md";
const UPGRADE: &str = "upgrade-kubernetes-and-os.md";
const FRONT_PAGE: &str = "../../README.md";
const FOREIGN_INTERFACE: &str = "AWS Lambda VPC ENI-report-0a1b2c3d";

/// Subcommands of `infra job` that need no cluster.
const OFFLINE: [&str; 4] = ["init", "lint", "render", "schema"];
const ONE_GPU: &str = "0, NVIDIA A10G, 23028 MiB, 570.86\n";
const FOUR_GPUS: &str = "0, NVIDIA A10G, 23028 MiB, 570.86\n1, NVIDIA A10G, 23028 MiB, 570.86\n\
                         2, NVIDIA A10G, 23028 MiB, 570.86\n3, NVIDIA A10G, 23028 MiB, 570.86\n";

/// Each page has a test of its own, so that one can be run alone.
macro_rules! follow_pages {
    ($($test:ident: $page:expr,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $test() {
            follow($page);
        })*
    };
}

follow_pages! {
    add_a_team: "add-a-team.md",
    add_gpus: "add-gpus.md",
    approve_a_node: "approve-a-node.md",
    change_a_pool: "change-a-pool.md",
    create: CREATE,
    expired_credentials: EXPIRED,
    lose_a_controller: "lose-a-controller.md",
    lose_an_etcd_member: "lose-an-etcd-member.md",
    lose_the_claim: "lose-the-claim.md",
    renew_certificates: "renew-certificates.md",
    rotate_keys: "rotate-keys.md",
    run_any_program: "run-any-program.md",
    save_money_at_night: "save-money-at-night.md",
    share_with_queues: QUEUES,
    stuck_destroy: "stuck-destroy.md",
    stuck_stack: "stuck-stack.md",
    tear_down: "tear-down.md",
    train_with_paddle: "train-with-paddle.md",
    train_with_pytorch: "train-with-pytorch.md",
    train_with_tensorflow: "train-with-tensorflow.md",
    upgrade_kubernetes_and_os: UPGRADE,
    use_a_capacity_block: "use-a-capacity-block.md",
    watch_a_cluster: "watch-a-cluster.md",
}

/// The label of a job with the name of its run.
const RUN: &str = "infra.internal/run";

#[test]
fn the_front_page() {
    follow(FRONT_PAGE);
}

#[test]
fn every_page_is_followed() {
    assert_eq!(pages(), PAGES, "a page of docs/runbooks has no test, or a test no page");
}

/// Arguments are parsed in order, so that help at the end is shown only if everything before it is known.
#[test]
fn every_command_of_a_runbook_is_accepted() {
    let world = World::of_golden("minimal");
    let mut count = 0;
    for page in PAGES.iter().chain(&[FRONT_PAGE]) {
        for command in steps_of(page).iter().filter_map(as_command) {
            let arguments = command.arguments.iter().map(String::as_str).chain(["--help"]);
            let Outcome { code, stderr, .. } = world.workspace.infra(arguments).run();
            assert_eq!(code, 0, "{page}: {}\n{stderr}", command.line);
            count += 1;
        }
    }
    assert!(count > 90, "only {count} lines were found");
    world.workspace.infra(["job", "submit", "--nonsense", "--help"]).run().expect_code(2);
}

/// A page shows the job of its example, so that a reader runs what they have read.
#[test]
fn job_files_are_those_of_the_examples() {
    for (page, example) in [
        ("run-any-program.md", "paddle-quick-start"),
        ("train-with-paddle.md", "paddle-recommendation"),
        ("train-with-pytorch.md", "pytorch-ddp"),
        ("train-with-tensorflow.md", "tensorflow-cnn"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example).join("job.yaml");
        let written = fs::read_to_string(path).unwrap();
        let without_comments: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).collect();
        let shown = steps_of(page).into_iter().find_map(|step| match step {
            Step::Edit { file, text } if file == "job.yaml" => Some(text),
            _ => None,
        });
        assert_eq!(shown.unwrap().lines().collect::<Vec<_>>(), without_comments, "{page}");
    }
}

fn as_command(step: &Step) -> Option<&Command> {
    match step {
        Step::Command(command) => Some(command),
        Step::Edit { .. } => None,
    }
}

#[track_caller]
fn follow(page: &str) {
    let steps = steps_of(page);
    let mut reader = Reader::new(page);
    // Pages that begin with a new cluster begin with nothing, all others with the cluster of create.md.
    if !steps.iter().filter_map(as_command).any(|command| command.is("init")) {
        reader.make_cluster();
    }
    let mut number = 0;
    for step in &steps {
        if let Step::Command(_) = step {
            reader.come_about(number);
            number += 1;
        }
        reader.take(step);
    }
    assert!(number > 0, "{page} has no line to run");
    for quote in quotes_of(page) {
        assert!(holds(&reader.said, &quote), "{page}: nothing printed `{quote}`:\n{}", reader.said);
    }
}

/// A reader who follows a page in a world of their own.
struct Reader {
    page: String,
    world: World,
    has_api: bool,
    /// Everything that commands of the page printed.
    said: String,
    /// The same cluster as jobs see it, once one is there.
    jobs: Option<JobCluster>,
}

impl Reader {
    fn new(page: &str) -> Self {
        let world = World::of_golden("minimal");
        fs::remove_file(world.workspace.path("cluster.yaml")).unwrap();
        fs::remove_dir_all(world.workspace.credentials()).unwrap();
        Self { page: page.to_owned(), world, has_api: false, said: String::new(), jobs: None }
    }

    /// What create.md does, up to where this page begins.
    fn make_cluster(&mut self) {
        for step in steps_of(CREATE) {
            let Step::Command(command) = &step else {
                self.take(&step);
                continue;
            };
            if command.is("up") && self.page == EXPIRED {
                return;
            }
            if command.is("up") && self.page == UPGRADE {
                self.edit_cluster("kubernetes: {version: v1.35.7}\n");
            }
            if ["init", "render", "up"].iter().any(|name| command.is(name)) {
                self.take(&step);
            }
        }
    }

    /// What happens to a cluster before the line with this number is typed, as the page describes it.
    fn come_about(&self, number: usize) {
        let world = &self.world;
        match (self.page.as_str(), number) {
            (EXPIRED, 0) => (2..10).for_each(|call| {
                world.proxy.fault(
                    "cloudformation:DescribeStackEvents",
                    Fault::ExpiredToken,
                    Times::Nth(call),
                );
            }),
            (EXPIRED, 1) => world.proxy.heal(),
            ("lose-a-controller.md" | "approve-a-node.md", 0) => self.set_controller("Unknown"),
            ("lose-a-controller.md", 3) | ("approve-a-node.md", 2) => self.set_controller("True"),
            ("lose-the-claim.md", 0) => world.api.claim("efs", "Pending"),
            ("lose-the-claim.md", 1) => world.api.claim("efs", "Bound"),
            ("stuck-destroy.md", 0) => {
                let subnet = world.tagged("DescribeSubnets", "subnetId");
                world.make_interface(&subnet, FOREIGN_INTERFACE, &[]);
            }
            ("stuck-destroy.md", 2) => {
                for id in world.interfaces() {
                    world.ec2("DeleteNetworkInterface", &[("NetworkInterfaceId", &id)]);
                }
            }
            ("stuck-stack.md", 0) => self.get_stuck(150),
            ("stuck-stack.md", 3) => self.get_stuck(250),
            // Fixed.
            ("stuck-stack.md", 1 | 4) => world.control(json!({})),
            _ => {}
        }
    }

    /// A change of the GPU pool fails, and so does its undoing.
    fn get_stuck(&self, gibibytes: u32) {
        self.edit_cluster(&format!(
            "pools:\n- {{name: cpu, instanceType: m5.large}}\n\
             - {{name: gpu, instanceType: g5.xlarge, count: 2, rootVolumeGiB: {gibibytes}}}\n"
        ));
        let template = "paddle-pool-gpu/NodeLaunchTemplate";
        let failures =
            json!({"fail_update": {template: "not today"}, "fail_rollback": {template: "no way back"}});
        self.world.control(failures);
        self.invocation(["up", "--yes"]).run().expect_code(6);
    }

    /// How the first controller's node is.
    fn set_controller(&self, ready: &str) {
        let nodes = self.world.api.nodes();
        let is_controller = |node: &&serde_json::Value| {
            node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] == ""
        };
        let controller = nodes.iter().find(is_controller).unwrap();
        let condition = json!({"type": "Ready", "status": ready, "reason": "NodeStatusUnknown"});
        let name = controller["metadata"]["name"].as_str().unwrap();
        self.world.api.change_node(name, json!({"status": {"conditions": [condition]}}));
    }

    #[track_caller]
    fn take(&mut self, step: &Step) {
        match step {
            Step::Edit { file, text } if file == "cluster.yaml" => self.edit_cluster(&self.filled_in(text)),
            Step::Edit { file, text } => {
                fs::write(self.world.workspace.path(file), text).unwrap();
                if let Some(code) = text.lines().find_map(|line| line.strip_prefix("code: ")) {
                    // What its reader has.
                    let directory = self.world.workspace.path(code);
                    fs::create_dir_all(&directory).unwrap();
                    fs::write(directory.join("trainer_config.py"), "settings()").unwrap();
                }
            }
            Step::Command(command) => self.run(command),
        }
    }

    fn edit_cluster(&self, edit: &str) {
        self.world.workspace.edit(|text| with_sections(text, edit));
    }

    #[track_caller]
    fn run(&mut self, command: &Command) {
        let arguments: Vec<String> = command.arguments.iter().map(|word| self.filled_in(word)).collect();
        let mut invocation = self.invocation(arguments.iter().map(String::as_str));
        if command.is("data") && command.arguments[1] == "put" {
            // What its reader has.
            fs::write(self.world.workspace.path(&command.arguments[2]), "an archive").unwrap();
        }
        let is_about_jobs = ["job", "data", "secret", "team", "user"].iter().any(|name| command.is(name));
        let is_online = |words: &[String]| {
            !OFFLINE.contains(&words[1].as_str()) || words.iter().any(|word| word == "--online")
        };
        if is_about_jobs && is_online(&command.arguments) {
            invocation = invocation.env("INFRA_API_SERVER", &self.jobs().address());
        }
        let outcome = invocation.run();
        let Outcome { code, stdout, stderr } = &outcome;
        self.said.extend([stdout.as_str(), "\n", stderr.as_str(), "\n"]);
        let (page, line) = (&self.page, &command.line);
        assert_eq!(*code, command.code, "{page}: {line}\nstdout:\n{stdout}\nstderr:\n{stderr}");
        if command.is("render") && !self.has_api {
            self.start_api();
        }
    }

    /// A command that reaches everything through the environment, so that it is the same as on the page.
    fn invocation<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Invocation {
        let world = &self.world;
        let invocation = world.workspace.infra(arguments).kubernetes(&world.api);
        invocation.env("AWS_ENDPOINT_URL", &world.proxy.url()).time_limit(Duration::from_secs(300))
    }

    /// The cluster's nodes, on which every pod succeeds, and what training leaves on the claim.
    fn jobs(&mut self) -> &JobCluster {
        let world = &self.world;
        let jobs = self.jobs.get_or_insert_with(|| {
            let jobs = JobCluster::start(&world.workspace.credentials());
            let (count, gpus) = if has_large_machines(world) { ("4", FOUR_GPUS) } else { ("1", ONE_GPU) };
            // Every machine with GPUs sees the same ones here.
            let fits = |node: &serde_json::Value| {
                let found = node["status"]["allocatable"]["nvidia.com/gpu"].as_str().unwrap_or("0");
                ["0", count].contains(&found)
            };
            for node in world.api.nodes().into_iter().filter(fits) {
                jobs.put("nodes", node);
            }
            jobs.decide(move |role, _, _| match role {
                // It runs the real program.
                "reader" | "files" | "team-directory" => Fate::Wait,
                "gpu-check" => Fate::Succeed("a-node", gpus),
                _ => Fate::Succeed("a-node", "well\n"),
            });
            if self.page == QUEUES {
                jobs.put("namespaces", json!({"metadata": {"name": "team-a"}}));
                jobs.install_kueue(&[]);
                jobs.put_queue("team-a", "training");
            }
            jobs
        });
        let job = fs::read_to_string(world.workspace.path("job.yaml")).unwrap_or_default();
        if let Some(name) = job.lines().find_map(|line| line.strip_prefix("name: ")) {
            let run =
                jobs.object("jobsets", "default", name).map(|set| set["metadata"]["labels"][RUN].clone());
            if let Some(run) = run.as_ref().and_then(serde_json::Value::as_str) {
                let output = jobs.claim().join(name).join("runs").join(run).join("output");
                fs::create_dir_all(&output).unwrap();
                fs::write(output.join("model"), "weights").unwrap();
            }
        }
        jobs
    }

    /// What a page cannot know.
    fn filled_in(&self, text: &str) -> String {
        let mut text = text.replace("s3://bucket/", &format!("s3://{}/", self.world.bucket()));
        text = text.replace(WRITTEN_END, &coming_end());
        if text.contains("cr-0123456789abcdef0") {
            let block = self.world.put_block("cr-0123456789abcdef0", &TimeOfBlock::from_now(DAY, 3 * DAY));
            text = text.replace("cr-0123456789abcdef0", &block);
        }
        if text.contains("fs-0123456789abcdef0") {
            text = text.replace("fs-0123456789abcdef0", &self.world.file_systems()[0]);
        }
        if text.contains("i-0123456789abcdef0") {
            let machine = self.world.made("DescribeInstances", &[], "instanceId");
            text = text.replace("i-0123456789abcdef0", &machine);
        }
        text
    }

    /// There are keys now, so there can be an API server that has them, and a hosted zone for its name.
    fn start_api(&mut self) {
        let world = &mut self.world;
        let api = KubernetesApi::start(&world.workspace.credentials());
        let aws = world.aws();
        api.follow_machines(aws.url(), world.workspace.account(), &aws.region, &world.cluster());
        api.gpus("gpu", if has_large_machines(world) { 4 } else { 1 });
        api.gpus("train", 4);
        api.claim("efs", "Bound");
        world.api = api;
        world.make_zone("example.com", false);
        self.has_api = true;
    }
}

fn has_large_machines(world: &World) -> bool {
    world.workspace.read("cluster.yaml").contains("g5.12xlarge")
}
