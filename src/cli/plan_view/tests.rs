//! What the three views of one small plan say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use super::PlanView;
use crate::blueprint::{Role, StackPart};
use crate::config::Cluster;
use crate::config::values::PoolName;
use crate::deploy::event::Outage;
use crate::deploy::{
    DisruptedJob, FileChange, ImageOrigin, MachineAction, MachineChange, MachinePlan, Plan, PropertyChange,
    ResourceAction, ResourceChange, Service, StackAction, StackPlan, TextChange,
};
use crate::document::Problems;

const HIDDEN: &str = "what user data says";

type Files = BTreeMap<(String, String), Vec<FileChange>>;

fn cluster() -> Result<Cluster, Problems> {
    let text = "{clusterName: paddle, externalDNSName: k8s.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1234abcd'}";
    Ok(crate::config::validate(Path::new("cluster.yaml"), text)?.value)
}

fn stack(part: StackPart, action: StackAction, resources: Vec<ResourceChange>) -> StackPlan {
    let stack = format!("paddle-{}", part.file_name());
    StackPlan { part, stack, action, resources, tags: Vec::new(), after: Vec::new() }
}

fn resource(id: &str, kind: &str, action: ResourceAction, properties: Vec<PropertyChange>) -> ResourceChange {
    ResourceChange { logical_id: id.to_owned(), kind: format!("AWS::{kind}"), action, properties }
}

fn property(path: &str, from: Value, to: Value, replaces: bool) -> PropertyChange {
    PropertyChange { path: path.to_owned(), from: Some(from), to: Some(to), replaces }
}

fn plan() -> Plan {
    let user_data = |end: &str| json!({"Fn::Base64": {"Fn::Sub": format!("{HIDDEN}{end}")}});
    let zone = property("AvailabilityZone", json!("us-west-2a"), json!("us-west-2b"), true);
    let data = property("LaunchTemplateData.UserData", user_data("1"), user_data("2"), false);
    let image = property("LaunchTemplateData.ImageId", json!("ami-1"), json!("ami-2"), false);
    let whole = property("Other", json!({"UserData": user_data("1")}), json!(["x".repeat(80)]), false);
    let mut control_plane = stack(
        StackPart::ControlPlane,
        StackAction::Update,
        vec![
            resource("EtcdVolume0", "EC2::Volume", ResourceAction::Replace, vec![zone]),
            resource(
                "EtcdLaunchTemplate0",
                "EC2::LaunchTemplate",
                ResourceAction::Change,
                vec![data, image, whole],
            ),
        ],
    );
    control_plane.tags = vec![property("team", json!("a"), json!("b"), false)];
    control_plane.after = vec!["paddle-network".to_owned()];
    let nodes = |action| vec![resource("Nodes", "AutoScaling::AutoScalingGroup", action, Vec::new())];
    Plan {
        releases: Vec::new(),
        stacks: vec![
            stack(StackPart::Network, StackAction::Unchanged, Vec::new()),
            control_plane,
            stack(
                StackPart::Pool(PoolName::of_test("gpu")),
                StackAction::Create,
                nodes(ResourceAction::Create),
            ),
            stack(
                StackPart::Pool(PoolName::of_test("old")),
                StackAction::Delete,
                nodes(ResourceAction::Delete),
            ),
        ],
    }
}

fn machines() -> MachinePlan {
    let change = |role, machines, change, resources: &[&str]| {
        let resources: BTreeSet<String> = resources.iter().map(|id| (*id).to_owned()).collect();
        MachineChange { role, machines, change, resources }
    };
    let replaced = MachineAction::Replace { at_once: 1, in_service: 0 };
    let pool = |name: &str| Role::Pool(PoolName::of_test(name));
    let [namespace, job, pod, node] = ["default", "train", "train-0", "ip-10-0-0-1"].map(str::to_owned);
    MachinePlan {
        held: Vec::new(),
        blocks: Vec::new(),
        released: Vec::new(),
        machines: vec![
            change(Role::EtcdMember(0), 1, replaced, &["EtcdMember0", "EtcdLaunchTemplate0"]),
            change(pool("gpu"), 2, MachineAction::Create, &["Nodes"]),
            change(pool("old"), 1, MachineAction::Terminate, &["Nodes"]),
        ],
        outages: vec![Outage {
            of: Service::EtcdQuorum,
            about_minutes: 2,
            because: "it has only 1 member".to_owned(),
        }],
        jobs: Some(vec![DisruptedJob { pool: PoolName::of_test("old"), namespace, job, pod, node }]),
        jobs_unknown: None,
    }
}

fn image() -> ImageOrigin {
    let [id, name, owner] = ["ami-2", "Flatcar-stable-2.0.0-hvm", "075585003325"].map(str::to_owned);
    ImageOrigin { id, name, owner }
}

fn files() -> Files {
    let file = |path: &str, change| FileChange { path: path.to_owned(), change };
    let lines = ["mode 0644 -> 0755", " ```", "-A=1", "+A=2"].map(str::to_owned).to_vec();
    let place = ("paddle-control-plane".to_owned(), "EtcdLaunchTemplate0".to_owned());
    let list = vec![
        file("/etc/a.env", TextChange::Lines(lines)),
        file("/etc/a-key.pem", TextChange::Masked),
        file("/etc/new", TextChange::Added),
    ];
    BTreeMap::from([(place, list)])
}

fn with_view<T>(verbose: bool, look: impl FnOnce(&PlanView<'_>) -> T) -> Result<T, Problems> {
    let (plan, cluster, files) = (plan(), cluster()?, files());
    let (machines, image) = (machines(), image());
    let image = Some(&image);
    let view = PlanView {
        plan: &plan,
        machines: &machines,
        cluster: &cluster,
        image,
        user_data: &files,
        cost: None,
        verbose,
    };
    Ok(look(&view))
}

fn plain(view: &PlanView<'_>) -> String {
    view.text().bare()
}

fn as_json(view: &PlanView<'_>) -> Value {
    json!(view.document())
}

const SUMMARY: &str =
    "Plan: 1 stack to create, 1 to update (1 resource to change, 1 to replace), 1 to delete";

#[test]
fn the_text_says_what_changes_and_what_is_lost() -> Result<(), Problems> {
    let text = with_view(false, plain)?;
    let lines: Vec<&str> = text.lines().collect();
    for expected in [
        "network: no changes",
        "control plane: update (2 resources)",
        "    ! etcd member 0 loses its disk",
        "    AvailabilityZone: us-west-2a → us-west-2b (replaces)",
        "    LaunchTemplateData.UserData: these files change",
        "      ~ /etc/a.env",
        "        mode 0644 -> 0755",
        "        - A=1",
        "        + A=2",
        "      ~ /etc/a-key.pem: holds keys: changed",
        "      + /etc/new",
        "    LaunchTemplateData.ImageId: ami-1 → ami-2",
        "      Flatcar-stable-2.0.0-hvm of account 075585003325",
        "  ~ tags of the stack and of everything in it: team: a → b",
        "  after network: may change more once that is done",
        "pool gpu: create (1 resource)",
        "pool old: DELETE (1 resource); deleted only with --prune or a yes",
        SUMMARY,
    ] {
        assert!(lines.contains(&expected), "{expected:?} is not in\n{text}");
    }
    let replaced = lines.iter().find(|line| line.starts_with("  -/+ REPLACED: etcd member 0, volume of "));
    assert!(replaced.is_some_and(|line| line.ends_with(" (EtcdVolume0, AWS::EC2::Volume)")), "{text}");
    assert!(!text.contains("Nodes"), "resources of whole stacks are for the verbose: {text}");
    assert!(lines.iter().any(|line| line.ends_with("xxx…")), "a long value is shown whole: {text}");
    Ok(())
}

#[test]
fn the_text_begins_with_machines_and_their_jobs() -> Result<(), Problems> {
    let text = with_view(false, plain)?;
    let first = "machines:\n  -/+ etcd-0 is replaced\n  + 2 machines of pool gpu are created\n\
         \x20 - 1 machine of pool old is terminated; only with --prune or a yes\n\
         \x20   ! job default/train runs on ip-10-0-0-1 (pod train-0), which will be terminated\n\
         \x20 ! etcd's quorum is unavailable for about 2 minutes: it has only 1 member\n\
         \x20 ~ in place: tags of 1 stack\n\nnetwork: no changes\n";
    assert!(text.starts_with(first), "{text}");
    Ok(())
}

#[test]
fn jobs_that_cannot_be_read_and_machines_that_stay_are_mentioned() -> Result<(), Problems> {
    let (plan, cluster, files) = (plan(), cluster()?, Files::new());
    let mut machines = machines();
    machines.machines.truncate(1);
    machines.outages.clear();
    machines.jobs = None;
    machines.jobs_unknown = Some("the API at x\ndid not answer".to_owned());
    let of = |machines: &MachinePlan| {
        let view = PlanView {
            plan: &plan,
            machines,
            cluster: &cluster,
            image: None,
            user_data: &files,
            cost: None,
            verbose: false,
        };
        let text = plain(&view);
        text.split("\n\n").next().unwrap_or_default().to_owned()
    };
    let unknown = of(&machines);
    for expected in [
        "\n  ! jobs may be running on machines that will be terminated: `the API at x",
        "\n  the API stays available; requests may fail for seconds\n",
    ] {
        assert!(unknown.contains(expected), "{unknown}");
    }
    assert_eq!(
        of(&MachinePlan::default()),
        "machines:\n  none is created, replaced or terminated\n  ~ in place: 1 resource of control plane, tags of 1 stack"
    );
    Ok(())
}

#[test]
fn a_stack_with_other_tags_only_is_one_line_unless_verbose() -> Result<(), Problems> {
    let (cluster, files, machines) = (cluster()?, Files::new(), MachinePlan::default());
    let tag = |path: &str| property(path, json!("a"), json!("b"), false);
    let vpc = resource("Vpc", "EC2::VPC", ResourceAction::Change, vec![tag("Tags[team]")]);
    let mut network = stack(StackPart::Network, StackAction::Update, vec![vpc]);
    network.tags = vec![tag("team")];
    let plan = Plan { stacks: vec![network], releases: Vec::new() };
    let view = |verbose| PlanView {
        plan: &plan,
        machines: &machines,
        cluster: &cluster,
        image: None,
        user_data: &files,
        cost: None,
        verbose,
    };
    let one_line = "network: update (tags only: team: a → b)";
    assert_eq!(
        plain(&view(false)),
        format!(
            "machines:\n  none is created, replaced or terminated\n  ~ in place: tags of 1 stack\n\n{one_line}\n\nPlan: 1 stack to update"
        )
    );
    let verbose = plain(&view(true));
    assert!(
        verbose.contains(&format!(
            "{one_line}\n  ~ VPC 10.0.0.0/16 (Vpc, AWS::EC2::VPC)\n    Tags[team]: a → b\n"
        )),
        "{verbose}"
    );
    // Values are in a block of code alone, where they mean nothing.
    let markdown = view(false).markdown();
    assert!(
        markdown
            .contains("\n| network | update (tags only) |\n\n<details><summary>network: update (tags only)<"),
        "{markdown}"
    );
    assert!(
        markdown.contains("\n! tags of the stack and of everything in it: team: a → b\n```"),
        "{markdown}"
    );
    let value = as_json(&view(false));
    assert_eq!(value["stacks"][0]["resources"][0]["tagsOnly"], true);
    assert_eq!(value["summary"]["resources"]["change"], 1);
    Ok(())
}

#[test]
fn verbose_output_lists_the_resources_of_whole_stacks() -> Result<(), Problems> {
    let text = with_view(true, plain)?;
    assert!(text.contains("  + pool gpu (Nodes, AWS::AutoScaling::AutoScalingGroup)"), "{text}");
    assert!(text.contains("  - pool old (Nodes, AWS::AutoScaling::AutoScalingGroup)"), "{text}");
    Ok(())
}

#[test]
fn markdown_warns_first_and_cannot_be_broken_out_of() -> Result<(), Problems> {
    let text = with_view(false, super::markdown::plan_as_markdown)?;
    let beginning = "### infra plan: paddle\n\n**Machines**\n\n- **etcd-0 is replaced**\n- 2 machines of pool gpu are created\n\
         - **1 machine of pool old is terminated; only with --prune or a yes**\n\
         \x20 - **job default/train runs on ip-10-0-0-1 (pod train-0), which will be terminated**\n\
         - **etcd's quorum is unavailable for about 2 minutes: it has only 1 member**\n- in place: tags of 1 stack\n\n";
    assert!(text.starts_with(&format!("{beginning}{SUMMARY}\n\n- **REPLACED: etcd")), "{text}");
    for expected in [
        " (EtcdVolume0): etcd member 0 loses its disk**\n",
        "- **pool old: DELETE (1 resource); deleted only with --prune or a yes**\n",
        "\n| network | no changes |\n",
        "\n| pool gpu | create (1 resource) |\n",
        "<details><summary>control plane: update (2 resources)</summary>\n\n````diff\n",
        "\n-   etcd member 0 loses its disk\n",
        "\n!     /etc/a.env\n",
        "\n-       A=1\n+       A=2\n",
        "\n````\n\n</details>\n",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}') && !text.contains("summary>network"), "{text}");
    Ok(())
}

#[test]
fn json_has_numbers_descriptions_and_files() -> Result<(), Problems> {
    let value = with_view(false, as_json)?;
    assert_eq!(value["cluster"], "paddle");
    assert_eq!(value["changes"], true);
    assert_eq!(value["summary"]["resources"], json!({"create": 0, "change": 1, "replace": 1, "delete": 0}));
    let template = &value["stacks"][1]["resources"][1];
    assert_eq!(template["logicalId"], "EtcdLaunchTemplate0");
    assert_eq!(template["properties"][0]["to"], "(user data)");
    assert_eq!(value["image"]["owner"], "075585003325");
    assert_eq!(template["properties"][2]["from"], json!({"UserData": "(user data)"}));
    assert_eq!(template["userData"][1], json!({"path": "/etc/a-key.pem", "change": {"kind": "masked"}}));
    assert_eq!(value["stacks"][1]["after"], json!(["paddle-network"]));
    let replaced = json!({"kind": "replace", "atOnce": 1, "inService": 0});
    assert_eq!(value["machines"][0], json!({"role": "etcd-0", "machines": 1, "change": replaced}));
    assert_eq!(value["machines"][2]["change"], json!({"kind": "terminate"}));
    let outage = json!({"of": "etcd-quorum", "aboutMinutes": 2, "because": "it has only 1 member"});
    assert_eq!(value["outages"], json!([outage]));
    assert_eq!(value["jobs"][0]["pod"], "train-0");
    Ok(())
}

#[test]
fn user_data_is_in_none_of_them() -> Result<(), Problems> {
    let all = with_view(true, |view| [view.text().bare(), view.markdown(), as_json(view).to_string()])?;
    for text in all {
        assert!(!text.contains(HIDDEN), "{text}");
    }
    Ok(())
}

#[test]
fn nothing_to_do_is_said_in_one_line() -> Result<(), Problems> {
    let plan = plan().only(|part| *part == StackPart::Network);
    let (cluster, files) = (cluster()?, Files::new());
    let machines = MachinePlan::default();
    let view = PlanView {
        plan: &plan,
        machines: &machines,
        cluster: &cluster,
        image: None,
        user_data: &files,
        cost: None,
        verbose: false,
    };
    let said = "No changes. The cluster is as cluster.yaml says.";
    assert_eq!(view.summary(), said);
    assert_eq!(plain(&view), format!("network: no changes\n\n{said}"));
    assert_eq!(view.markdown(), format!("### infra plan: paddle\n\n{said}"));
    Ok(())
}
