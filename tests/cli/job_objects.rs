//! `infra job lint` on objects from any source: what a real API server refuses is refused, and what it accepts although it cannot
//! work is explained.

use serde_json::{Value, json};

use crate::support::{Outcome, Workspace};

const JOB: &str = "\
name: ddp
framework: pytorch
image: pytorch/pytorch:2.15.0
replicas: 2
gpus: 4
command: [python, train.py]
memory: 96Gi
deadline: 1h
";

/// The objects of a good job.
fn rendered() -> Vec<Value> {
    let workspace = Workspace::new();
    workspace.write("job.yaml", JOB);
    let run = workspace.infra(["job", "render", "--output", "json"]).expect_code(0);
    let list: Value = serde_json::from_str(&run.stdout).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn job_set(objects: &[Value]) -> Value {
    objects.iter().find(|object| object["kind"] == "JobSet").unwrap().clone()
}

/// The Job that a JobSet creates, written by itself.
fn training(objects: &[Value]) -> Value {
    let template = &job_set(objects)["spec"]["replicatedJobs"][0]["template"];
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "ddp"}, "spec": template["spec"]})
}

#[test]
fn the_jobs_of_a_job_set_are_checked_too() {
    let mut set = job_set(&rendered());
    lint(&set).expect_code(0);
    set["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] = json!("indexed");
    let run = lint(&set).expect_code(2);
    assert!(
        run.stdout.contains("JobSet ddp: spec.replicatedJobs[0].template.spec.completionMode:"),
        "{}",
        run.stdout
    );
}

fn lint(object: &Value) -> Outcome {
    let workspace = Workspace::new();
    workspace.write("objects.yaml", object.to_string());
    let path = workspace.path("objects.yaml").display().to_string();
    workspace.infra(["job", "lint", &path])
}

/// One thing made wrong: where, with what (nothing removes the field), and what is said about it.
const BROKEN: [(&str, Option<&str>, &str); 24] = [
    ("/spec/completionsMode", Some(r#""Indexed""#), "spec.completionsMode: there is no such field"),
    (
        "/spec/template/spec/containers/0/env/1",
        Some(r#"{"name":"A","value":3}"#),
        "env[1].value: it must be text",
    ),
    (
        "/spec/template/spec/restartPolicy",
        Some(r#""Always""#),
        "restartPolicy: a Job's pods cannot have Always",
    ),
    ("/spec/template/spec/restartPolicy", None, "restartPolicy: it is missing"),
    (
        "/spec/template/spec/restartPolicy",
        Some(r#""OnFailure""#),
        "spec.podFailurePolicy: it works with restartPolicy: Never only",
    ),
    (
        "/spec/template/spec/containers/0/resources/requests/nvidia.com~1gpu",
        Some(r#""2""#),
        "GPUs cannot be shared: the request is 2, the limit is 4",
    ),
    ("/metadata/name", Some(r#""My_Job""#), "metadata.name: 'My_Job' is not a name"),
    ("/metadata/name", Some(r#""-a""#), "metadata.name: '-a' is not a name"),
    (
        "/spec/template/spec/containers/0/volumeMounts/0/name",
        Some(r#""nope""#),
        "volumeMounts[0].name: there is no volume 'nope'",
    ),
    (
        "/spec/completionMode",
        Some(r#""indexed""#),
        "spec.completionMode: \"indexed\" is not a completion mode",
    ),
    ("/spec/completions", None, "spec.completions: an Indexed Job needs the number of its pods"),
    ("/spec/completions", Some(r#""2""#), "spec.completions: it must be a number, and is text"),
    (
        "/spec/template/spec/containers/0/resources/limits/memory",
        Some(r#""24 gigs""#),
        "'24 gigs' is not an amount",
    ),
    ("/spec/template/spec/containers", None, "spec.template.spec.containers: it is missing"),
    ("/spec/template/spec/containers", Some("[]"), "spec.template.spec.containers: the list is empty"),
    (
        "/spec/template/spec/containers/0/resources/limits/alpha.kubernetes.io~1nvidia-gpu",
        Some("1"),
        "no node has had this resource since Kubernetes 1.11",
    ),
    (
        "/spec/podReplacementPolicy",
        Some(r#""Always""#),
        "spec.podReplacementPolicy: \"Always\" is not a replacement policy",
    ),
    (
        "/spec/podFailurePolicy/rules/0/onExitCodes/containerName",
        Some(r#""other""#),
        "there is no container 'other'",
    ),
    ("/spec/backoffLimit", Some("-1"), "spec.backoffLimit: it is negative"),
    ("/spec/template/spec/hostNetwork", Some("true"), "the pod shares the node's network"),
    (
        "/spec/template/spec/containers/0/command/0",
        Some(r#""bin/bash""#),
        "'bin/bash' depends on the directory it is started in",
    ),
    ("/spec/template/spec/containers/0/ports/0/hostPort", Some("30001"), "only one pod per node can use it"),
    ("/apiVersion", Some(r#""extensions/v1beta1""#), "there is no Job in 'extensions/v1beta1'"),
    ("/kind", Some(r#""Jobs""#), "kind: there is no kind 'Jobs'"),
];

#[test]
fn objects_that_an_api_server_refuses_are_refused() {
    let good = training(&rendered());
    lint(&good).expect_code(0);
    let mut wrong = Vec::new();
    for (pointer, value, expected) in BROKEN {
        let mut object = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let key = key.replace("~1", "/");
        let parent = object.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        let value: Option<Value> = value.map(|text| serde_json::from_str(text).unwrap());
        match (parent, value) {
            (Value::Array(list), Some(value)) => list[key.parse::<usize>().unwrap()] = value,
            (Value::Object(map), Some(value)) => drop(map.insert(key, value)),
            (Value::Object(map), None) => drop(map.remove(&key)),
            _ => panic!("{pointer}"),
        }
        let run = lint(&object);
        if run.code != 2 || !run.stdout.contains(expected) {
            wrong.push(format!("{pointer}: exit {:?}, not '{expected}' but\n{}", run.code, run.stdout));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_counted_with_their_index() {
    let mut object = training(&rendered());
    object["metadata"]["name"] = json!("a".repeat(64));
    let run = lint(&object).expect_code(2);
    assert!(run.stdout.contains("it has 64 characters, 63 are allowed"), "{}", run.stdout);
    object["metadata"]["name"] = json!("a".repeat(62));
    let run = lint(&object).expect_code(2);
    assert!(run.stdout.contains("-1': 64 characters, 63 are allowed"), "{}", run.stdout);
    object["spec"]["completionMode"] = json!("NonIndexed");
    object["spec"]["successPolicy"] = json!({"rules": [{"succeededIndexes": "0"}]});
    let run = lint(&object).expect_code(2);
    assert!(run.stdout.contains("spec.successPolicy: it needs an Indexed Job"), "{}", run.stdout);
}

/// A file that was meant for another command.
#[test]
fn a_document_that_is_no_object_is_reported() {
    for document in [json!(["a"]), json!({"name": "train", "framework": "pytorch"})] {
        let run = lint(&document).expect_code(2);
        assert!(
            run.stdout.contains("document 1: kind: it is missing: this is not a Kubernetes object"),
            "{}",
            run.stdout
        );
    }
    let run = Workspace::new().infra(["job", "fetch", "train", "--path", "../other"]).expect_code(2);
    assert!(run.stderr.contains("it is outside of the job's directory"), "{}", run.stderr);
}

/// A variable that refers to one further below reaches the program as it is written.
#[test]
fn variables_are_defined_before_they_are_used() {
    let mut object = training(&rendered());
    let environment =
        object.pointer_mut("/spec/template/spec/containers/0/env").unwrap().as_array_mut().unwrap();
    let index = environment.remove(0);
    environment.push(index);
    let run = lint(&object).expect_code(2);
    assert!(run.stdout.contains("$(JOB_COMPLETION_INDEX) is defined further below"), "{}", run.stdout);
    object.pointer_mut("/spec/template/spec/containers/0/env").unwrap().as_array_mut().unwrap().pop();
    let run = lint(&object).expect_code(2);
    assert!(run.stdout.contains("$(JOB_COMPLETION_INDEX) is not known yet here"), "{}", run.stdout);
}

/// Jobs as the first walkthroughs had them: an API server takes them, and they do not work.
#[test]
fn jobs_of_the_first_walkthroughs_are_explained() {
    let old = "\
apiVersion: batch/v1
kind: Job
metadata: {name: old}
spec:
  parallelism: 3
  completions: 3
  template:
    spec:
      restartPolicy: Never
      volumes:
      - {name: files, hostPath: {path: /home/admin/efs}}
      containers:
      - name: trainer
        image: example/paddle:1
        command: [bin/bash, -c, /root/start.sh]
        env:
        - {name: CONF_PADDLE_GRADIENT_NUM, value: \"4\"}
        volumeMounts: [{name: files, mountPath: /home/jobpath}]
        ports: [{name: jobport, containerPort: 30001, hostPort: 30001}]
---
apiVersion: batch/v1
kind: Job
metadata: {name: data}
spec:
  template:
    spec:
      hostNetwork: true
      restartPolicy: Never
      volumes:
      - {name: files, persistentVolumeClaim: {claimName: mfs}}
      containers:
      - name: data
        image: example/data:1
        env: [{name: OUT_DIR, value: /home/work/mfs/job}]
        volumeMounts: [{name: files, mountPath: /mnt}]
";
    let workspace = Workspace::new();
    workspace.write("old.yaml", old);
    let path = workspace.path("old.yaml").display().to_string();
    let run = workspace.infra(["job", "lint", &path]).expect_code(2);
    for part in [
        "Job old: spec.completionMode: its pods have no numbers",
        "hostPath: what is written there stays on one node",
        "hostPort: only one pod per node can use it",
        "TRAINER_COUNT is missing",
        "CONF_PADDLE_GRADIENT_NUM must be the number of trainers, 3",
        "Job data: spec.template.spec.hostNetwork",
        "OUT_DIR is /home/work/mfs/job, which is on no volume",
    ] {
        assert!(run.stdout.contains(part), "no '{part}' in:\n{}", run.stdout);
    }
}
