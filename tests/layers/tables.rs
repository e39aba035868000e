//! The tables that the rules go by: layers, the order inside deploy/, words that only some places may say.

/// Each layer and the layers, or the folders of a layer, that it may use; the order is that of the data.
pub const LAYERS: [(&str, &[&str]); 24] = [
    ("outcome", &[]),
    ("document", &["outcome"]),
    ("durable_file", &[]),
    ("confined_directory", &["durable_file", "outcome"]),
    ("hexadecimal", &[]),
    ("plural", &[]),
    ("waiting", &[]),
    ("well_known", &[]),
    ("config", &["document"]),
    ("blueprint", &["config", "document"]),
    ("credentials", &["blueprint", "config", "confined_directory", "durable_file", "outcome"]),
    ("render", &["blueprint", "config", "credentials", "document", "durable_file", "hexadecimal", "outcome"]),
    ("check", &["blueprint", "document", "outcome", "render"]),
    (
        "project",
        &[
            "blueprint",
            "check",
            "config",
            "confined_directory",
            "credentials",
            "document",
            "durable_file",
            "hexadecimal",
            "outcome",
            "render",
        ],
    ),
    ("aws", &["outcome", "waiting"]),
    ("kube", &["credentials", "outcome"]),
    ("kubeconfig", &["credentials", "document", "kube", "outcome"]),
    (
        "deploy",
        &[
            "aws",
            "blueprint",
            "check",
            "config",
            "credentials",
            "document",
            "hexadecimal",
            "kube",
            "outcome",
            "plural",
            "render",
            "waiting",
        ],
    ),
    ("operator", &["aws", "blueprint", "check", "config", "deploy/state", "document", "outcome"]),
    (
        "job",
        &[
            "blueprint",
            "config",
            "confined_directory",
            "document",
            "hexadecimal",
            "kube",
            "outcome",
            "plural",
            "waiting",
        ],
    ),
    ("people", &["config", "credentials", "document", "job", "kube", "outcome", "waiting"]),
    (
        "report",
        &[
            "blueprint",
            "config",
            "credentials",
            "deploy/destroy",
            "deploy/event",
            "deploy/plan",
            "deploy/state",
            "deploy/status",
            "operator",
            "plural",
        ],
    ),
    ("cli", &ALL),
    ("lib", &ALL),
];

const ALL: [&str; 22] = [
    "aws",
    "blueprint",
    "check",
    "cli",
    "config",
    "confined_directory",
    "credentials",
    "deploy",
    "document",
    "durable_file",
    "hexadecimal",
    "job",
    "kube",
    "kubeconfig",
    "operator",
    "outcome",
    "people",
    "plural",
    "project",
    "render",
    "report",
    "waiting",
];

/// What only the named places may say, and why.
pub const WORDS: [(&str, &[&str], &str); 16] = [
    ("aws_sdk_", &["aws"], "the SDK stays behind aws/"),
    (
        "aws_config",
        &["aws", "cli/mod.rs"],
        "the SDK is configured in one place, and its log is quieted in another",
    ),
    ("serde_saphyr", &["document/yaml.rs"], "the YAML library can be exchanged in one file"),
    ("tera::", &["render/engine.rs"], "the template engine can be exchanged in one file"),
    ("rcgen", &["credentials"], "keys and certificates are made in one layer"),
    ("x509_parser", &["credentials"], "certificates are read in one layer"),
    ("now_utc", &["cli"], "the time comes in as an argument"),
    (
        "SystemTime",
        &["cli", "aws/clock.rs"],
        "the time comes in as an argument, and is compared with AWS's in one file",
    ),
    ("Instant::", &["cli", "waiting.rs"], "the time comes in as an argument"),
    (
        "tokio::time",
        &["cli", "waiting.rs", "kube/connection.rs", "kube/api_server.rs", "kube/web_socket.rs"],
        "all waiting goes through one clock",
    ),
    ("hyper", &["kube"], "one layer speaks HTTP to the cluster"),
    ("rustls", &["kube"], "one layer speaks TLS to the cluster"),
    ("std::env::", &["cli"], "the environment is looked at where the user is"),
    ("std::process", &["cli", "main.rs"], "only the command line ends the process"),
    (
        "rustix",
        &[
            "cli/core_dumps.rs",
            "cli/hidden_answer.rs",
            "cli/raw_terminal.rs",
            "cli/screen/terminal.rs",
            "credentials/store.rs",
        ],
        "the operating system is asked beside the standard library in five files",
    ),
    ("anyhow", &["cli"], "layers have errors with fields"),
];

/// Labels, tags, domains and resources that well_known.rs alone spells. Every layer may use that file; templates get its constants as values.
pub const SPELLED_ONCE: [&str; 19] = [
    "infra.internal",
    "infra:cluster",
    "infra:role",
    "infra:count",
    "infra:s3-uri",
    "infra:credentials",
    "kubernetes.io/cluster/",
    "k8s.io/cluster-autoscaler",
    "nvidia.com/gpu",
    "k8s.amazonaws.com/accelerator",
    "aws:cloudformation:stack-name",
    "aws:autoscaling:groupName",
    "kubernetes.io/service-name",
    "kubernetes.io/rule/nlb/",
    "service.k8s.aws",
    "elbv2.k8s.aws",
    "registry.k8s.io",
    "dl.k8s.io",
    "\"pool-",
];

/// The folders and files of deploy/ in the order of the data. Those of one row may import one another, but not in a circle.
pub const DEPLOY_ORDER: [&[&str]; 8] = [
    &["error", "event", "run"],
    &["inputs"],
    &["state"],
    &["plan"],
    &["preflight"],
    &["explain", "machines"],
    &["stack"],
    &["destroy", "status", "up"],
];

/// The one file that spells the statuses of stacks.
pub const STATUS_FILE: &str = "aws/stack_status.rs";

pub const LONGEST_FILE: usize = 400;
