//! The stand-ins themselves: with a fault that never happens, or without authentication, other tests would prove nothing.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::api_connections::ask_server;
use crate::support::fault_proxy::{CallOutcome, Fault, FaultProxy, Times};
use crate::support::http::{Message, ask, exchange};
use crate::support::invocation::Invocation;
use crate::support::kubernetes::KubernetesApi;
use crate::support::ministack::MiniStack;
use crate::support::workspace::Workspace;
use crate::support::{authorization, element};

const FORM: &str = "application/x-www-form-urlencoded";

/// A signed request in the form of its service.
fn request(service: &str, method: &str, target: &str, header: (&str, &str), body: &str) -> Message {
    let who = authorization("111122223333", "us-west-2", service);
    Message::request(method, target, &[("Authorization", &who), header], body.as_bytes())
}

fn who_am_i() -> Message {
    request("sts", "POST", "/", ("Content-Type", FORM), "Action=GetCallerIdentity&Version=2011-06-15")
}

fn proxy() -> FaultProxy {
    FaultProxy::start(MiniStack::shared().url())
}

#[test]
fn the_proxy_forwards_and_counts() {
    let proxy = proxy();
    let host = proxy.url().replace("http://", "");
    let stream = TcpStream::connect(&host).unwrap();
    for _ in 0..2 {
        // The same connection serves both.
        let mut request = who_am_i();
        request.set_header("Host", &host);
        let answer = exchange(&stream, &request).unwrap();
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert_eq!(element(&answer.text(), "Account"), Some("111122223333"));
    }
    let form = "Action=DescribeStacks&Version=2010-05-15&StackName=a%2Db";
    ask(&proxy.url(), request("cloudformation", "POST", "/", ("Content-Type", FORM), form)).unwrap();
    assert_eq!(proxy.count("sts:GetCallerIdentity"), 2);
    assert_eq!(proxy.operations(), ["sts:GetCallerIdentity", "cloudformation:DescribeStacks"]);
    assert_eq!(proxy.calls()[2].target.as_deref(), Some("a-b"));
    assert!(proxy.calls().iter().all(|call| call.outcome == CallOutcome::Passed));
    proxy.clear();
    assert_eq!(proxy.count("*"), 0);
}

#[test]
fn the_proxy_passes_chunks_on_untouched() {
    let workspace = Workspace::of_golden("minimal");
    let proxy = proxy();
    let aws = workspace.aws(&proxy.url());
    aws.create_bucket("chunks");
    let who = authorization(workspace.account(), "us-west-2", "s3");
    let mut upload = Message::request("PUT", "/chunks/a/b", &[("Authorization", &who)], b"");
    upload.remove_header("content-length");
    upload.set_header("Transfer-Encoding", "chunked");
    upload.wire = b"5\r\nhello\r\n7;name=value\r\n, world\r\n0\r\n\r\n".to_vec();
    assert_eq!(ask(&proxy.url(), upload).unwrap().status(), 200);
    assert_eq!(aws.send("s3", "us-west-2", "GET", "/chunks/a/b", "").text(), "hello, world");
    assert_eq!(aws.send("s3", "us-west-2", "HEAD", "/chunks/a/b", "").status(), 200);
    aws.send("s3", "us-west-2", "GET", "/chunks?list-type=2&prefix=a", "");
    aws.send("s3", "us-west-2", "PUT", "/chunks?versioning", "");
    let expected =
        ["CreateBucket", "PutObject", "GetObject", "HeadObject", "ListObjectsV2", "PutBucketVersioning"];
    assert_eq!(proxy.operations(), expected.map(|name| format!("s3:{name}")));
    assert_eq!(proxy.calls()[1].target.as_deref(), Some("chunks/a/b"));
}

#[test]
fn every_service_refuses_in_its_own_words() {
    let proxy = proxy();
    let xml = ("Content-Type", "application/xml");
    let requests = [
        ("sts:GetCallerIdentity", who_am_i()),
        ("ec2:DescribeVpcs", request("ec2", "POST", "/", ("Content-Type", FORM), "Action=DescribeVpcs")),
        ("s3:GetBucketLocation", request("s3", "GET", "/bucket?location", xml, "")),
        ("s3:HeadBucket", request("s3", "HEAD", "/bucket/", xml, "")),
        (
            "route53:ChangeResourceRecordSets",
            request("route53", "POST", "/2013-04-01/hostedzone/Z1/rrset/", xml, ""),
        ),
        ("kms:DescribeKey", request("kms", "POST", "/", ("X-Amz-Target", "TrentService.DescribeKey"), "{}")),
        (
            "elasticfilesystem:DescribeMountTargets",
            request("elasticfilesystem", "GET", "/2015-02-01/mount-targets?FileSystemId=fs-1", xml, ""),
        ),
    ];
    // In the order of the requests; a response to a HEAD request has no body.
    let cases = [
        (
            Fault::Throttled,
            "400 Throttling, 503 RequestLimitExceeded, 503 SlowDown, 503 , 400 Throttling, \
             400 ThrottlingException, 429 ThrottlingException",
        ),
        (
            Fault::ServerError,
            "503 ServiceUnavailable, 503 Unavailable, 503 ServiceUnavailable, 503 , 503 ServiceUnavailable, \
             503 ServiceUnavailableException, 503 ServiceUnavailableException",
        ),
        (
            Fault::InternalError,
            "500 InternalFailure, 500 InternalError, 500 InternalError, 500 , 500 InternalFailure, \
             500 InternalFailure, 500 InternalFailure",
        ),
        (
            Fault::ExpiredToken,
            "403 ExpiredToken, 400 RequestExpired, 400 ExpiredToken, 400 , 403 ExpiredToken, \
             400 ExpiredTokenException, 400 ExpiredTokenException",
        ),
        (
            Fault::AccessDenied,
            "403 AccessDenied, 403 UnauthorizedOperation, 403 AccessDenied, 403 , 403 AccessDenied, \
             400 AccessDeniedException, 400 AccessDeniedException",
        ),
    ];
    for (fault, expected) in cases {
        let mut answers = Vec::new();
        for (operation, request) in &requests {
            proxy.fault(operation, fault, Times::First(1));
            let answer = ask(&proxy.url(), request.clone()).unwrap();
            let text = answer.text();
            let json: Value = serde_json::from_str(&text).unwrap_or_default();
            let said = json["__type"].as_str().or_else(|| element(&text, "Code")).unwrap_or_default();
            answers.push(format!("{} {said}", answer.status()));
            assert_eq!(answer.header("x-amzn-errortype"), json["__type"].as_str());
            let denied = format!("user/ada is not authorized to perform: {operation}");
            assert_eq!(text.contains(&denied), fault == Fault::AccessDenied && !said.is_empty(), "{text}");
        }
        assert_eq!(answers.join(", "), expected, "{fault:?}");
    }
    assert!(proxy.calls().iter().all(|call| call.outcome == CallOutcome::Faulted));
    assert_eq!(proxy.operations(), requests.map(|(operation, _)| operation.to_owned()));
}

#[test]
fn connections_break_where_a_test_wants_them_to() {
    let workspace = Workspace::of_golden("minimal");
    let proxy = proxy();
    let (behind, through) = (workspace.aws(MiniStack::shared().url()), workspace.aws(&proxy.url()));
    let who = authorization(workspace.account(), "us-west-2", "s3");
    behind.create_bucket("cut");
    let put = |key: &str| ask(&proxy.url(), Message::request("PUT", key, &[("Authorization", &who)], b"x"));
    let is_there = |key: &str| behind.send("s3", "us-west-2", "GET", key, "").status() == 200;

    proxy.fault("s3:PutObject", Fault::CutBeforeForwarding, Times::Nth(1));
    proxy.fault("s3:PutObject", Fault::CutAfterForwarding, Times::Nth(2));
    assert_eq!(put("/cut/before").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(put("/cut/after").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    proxy.fault("s3:PutObject", Fault::ResetBeforeForwarding, Times::First(1));
    assert_eq!(put("/cut/reset").unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(put("/cut/whole").unwrap().status(), 200);
    let keys = ["/cut/before", "/cut/after", "/cut/reset", "/cut/whole"];
    assert_eq!(keys.map(is_there), [false, true, false, true]);

    proxy.fault("*", Fault::TruncatedBody, Times::First(1));
    assert_eq!(ask(&proxy.url(), who_am_i()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);

    let took = |fault: Fault| {
        proxy.fault("sts:GetCallerIdentity", fault, Times::First(1));
        let started = Instant::now();
        (ask(&proxy.url(), who_am_i()).map(|answer| answer.status()), started.elapsed())
    };
    let (answer, time) = took(Fault::SlowBody(Duration::from_millis(300)));
    assert_eq!(answer.unwrap(), 200);
    assert!(time >= Duration::from_millis(300), "{time:?}");
    let (answer, time) = took(Fault::Hang(Duration::from_millis(300)));
    assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(time >= Duration::from_millis(300), "{time:?}");

    proxy.fault("*", Fault::Throttled, Times::Always);
    assert_eq!(through.stack_status("none"), None);
    proxy.heal();
    assert_eq!(ask(&proxy.url(), who_am_i()).unwrap().status(), 200);
    assert_eq!(proxy.count("s3:PutObject"), 4);
    proxy.wait_for("sts:GetCallerIdentity", 4);
}

/// A request to the API server, with or without the certificate of the cluster's administrator.
fn ask_cluster(
    api: &KubernetesApi,
    credentials: &Path,
    certified: bool,
    request: &Message,
) -> io::Result<Message> {
    ask_server(&api.address().to_string(), credentials, certified, request)
}

#[test]
fn the_api_server_knows_its_own() {
    let workspace = Workspace::of_golden("ha-gpu-efs");
    let api = KubernetesApi::start(&workspace.credentials());
    let get = |path: &str| Message::request("GET", path, &[], b"");
    let ask = |request: Message| ask_cluster(&api, &workspace.credentials(), true, &request);
    let refused = ask_cluster(&api, &workspace.credentials(), false, &get("/readyz")).unwrap_err();
    assert!(refused.to_string().contains("CertificateRequired"), "{refused}");
    assert!(api.requests().is_empty());

    assert_eq!(ask(get("/readyz")).unwrap().text(), "ok");
    api.set_ready(false);
    assert_eq!(ask(get("/readyz")).unwrap().status(), 500);
    assert_eq!(ask(get("/api/v1/secrets")).unwrap().status(), 404);
    api.refuse(Some(403));
    assert!(ask(get("/api/v1/nodes")).unwrap().text().contains("\"Forbidden\""));
    api.refuse(None);
    api.claim("efs", "Bound");
    let claim = ask(get("/api/v1/namespaces/default/persistentvolumeclaims/efs")).unwrap();
    assert!(claim.text().contains("\"Bound\""), "{}", claim.text());
    api.set_services(vec![json!({"metadata": {"name": "board", "namespace": "ada"}})]);
    assert!(ask(get("/api/v1/services?limit=500")).unwrap().text().contains("board"));
    let delete = Message::request("DELETE", "/api/v1/namespaces/ada/services/board", &[], b"");
    assert_eq!([delete.clone(), delete].map(|request| ask(request).unwrap().status()), [200, 404]);
    api.set_unreachable(true);
    assert!(ask(get("/readyz")).is_err());
    assert_eq!(api.requests()[..2], ["GET /readyz", "GET /readyz"]);
}

#[test]
fn pods_are_selected_and_evicted() {
    let workspace = Workspace::of_golden("ha-gpu-efs");
    let api = KubernetesApi::start(&workspace.credentials());
    let ask = |request: Message| ask_cluster(&api, &workspace.credentials(), true, &request).unwrap();
    let pod = |name: &str, node: &str, labels: Value| {
        let metadata = json!({"name": name, "namespace": "default", "labels": labels});
        json!({"metadata": metadata, "spec": {"nodeName": node}})
    };
    let job = json!({"batch.kubernetes.io/job-name": "train"});
    api.set_pods(vec![pod("a", "one", job.clone()), pod("b", "one", json!({})), pod("c", "two", job)]);
    let names = |query: &str| {
        let list: Value = serde_json::from_str(
            &ask(Message::request("GET", &format!("/api/v1/pods?{query}"), &[], b"")).text(),
        )
        .unwrap();
        let items = list["items"].as_array().unwrap().iter();
        items.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(""), ["a", "b", "c"]);
    assert_eq!(names("fieldSelector=spec.nodeName%3Done"), ["a", "b"]);
    let only_job = "labelSelector=batch.kubernetes.io%2Fjob-name";
    assert_eq!(names(&format!("fieldSelector=spec.nodeName=one&{only_job}")), ["a"]);
    let evict =
        || ask(Message::request("POST", "/api/v1/namespaces/default/pods/a/eviction", &[], b"{}")).status();
    api.block_evictions(1);
    assert_eq!([evict(), evict(), evict()], [429, 201, 404]);
    assert_eq!(names(only_job), ["c"]);
}

#[test]
fn machines_become_nodes_and_stay_cordoned() {
    let workspace = Workspace::of_golden("ha-gpu-efs");
    let url = MiniStack::shared().url();
    let api = KubernetesApi::start(&workspace.credentials());
    api.follow_machines(url, workspace.account(), "us-west-2", "research");
    api.gpus("gpu", 1);
    for (cluster, role) in [
        ("research", "pool-gpu"),
        ("research", "controller"),
        ("research", "etcd-0"),
        ("other", "controller"),
    ] {
        workspace.aws(url).post(
            "ec2",
            "us-west-2",
            &[
                ("Action", "RunInstances"),
                ("ImageId", "ami-1"),
                ("InstanceType", "g5.xlarge"),
                ("MinCount", "1"),
                ("MaxCount", "1"),
                ("TagSpecification.1.ResourceType", "instance"),
                ("TagSpecification.1.Tag.1.Key", "infra:cluster"),
                ("TagSpecification.1.Tag.1.Value", cluster),
                ("TagSpecification.1.Tag.2.Key", "infra:role"),
                ("TagSpecification.1.Tag.2.Value", role),
            ],
        );
    }
    let nodes = api.nodes();
    assert_eq!(nodes.len(), 2, "{nodes:#?}");
    let gpu = nodes.iter().find(|node| node["metadata"]["labels"]["infra.internal/pool"] == "gpu").unwrap();
    assert_eq!(gpu["status"]["allocatable"]["nvidia.com/gpu"], "1");
    assert!(gpu["spec"]["providerID"].as_str().unwrap().starts_with("aws:///us-west-2"));
    let controllers =
        nodes.iter().filter(|node| node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] == "");
    assert_eq!(controllers.count(), 1);

    let path = format!("/api/v1/nodes/{}", gpu["metadata"]["name"].as_str().unwrap());
    let kind = ("Content-Type", "application/strategic-merge-patch+json");
    let patch = Message::request("PATCH", &path, &[kind], br#"{"spec":{"unschedulable":true}}"#);
    let answer = ask_cluster(&api, &workspace.credentials(), true, &patch).unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(api.requests(), [format!("PATCH {path}")]);
    let cordoned = api.nodes().into_iter().filter(|node| node["spec"]["unschedulable"] == true);
    assert_eq!(cordoned.count(), 1);
}

#[test]
fn a_server_of_its_own_fails_on_demand_and_leaves_nothing() {
    let server = MiniStack::start();
    server.control(json!({"delay": 0.0}));
    assert_eq!(ask(server.url(), who_am_i()).unwrap().status(), 200, "{}", server.log());
    let (url, directory) = (server.url().to_owned(), server.directory().to_owned());
    drop(server);
    assert!(ask(&url, who_am_i()).is_err());
    assert!(!directory.exists());
}

#[test]
fn the_binary_runs_in_its_workspace() {
    let workspace = Workspace::of_golden("minimal");
    assert_ne!(workspace.account(), Workspace::of_golden("minimal").account());
    assert_eq!(workspace.account().len(), 12);
    workspace.infra(["certificates"]).run().expect_code(0).expect_stdout("admin");
    workspace.edit(|text| format!("{text}nonsense: true\n"));
    workspace.infra(["validate"]).run().expect_stdout("nonsense");
}

#[test]
fn a_run_is_captured_interrupted_and_limited() {
    let shell = |script: &str| {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Invocation::of(command)
    };
    // More than a pipe holds, on both.
    let outcome =
        shell("head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; exit 7").run().expect_code(7);
    assert_eq!((outcome.stdout.len(), outcome.stderr.len()), (300_000, 300_000));
    shell("read -r answer; echo \"$answer!\"").input("yes\n").run().expect_code(0).expect_stdout("yes!");

    // Not by an interruption: a shell that was started in the background may not hear those.
    let mut running = shell("trap 'exit 3' TERM; echo waiting >&2; while :; do sleep 0.05; done").spawn();
    running.wait_for_stderr("waiting");
    running.signal("TERM");
    running.wait().expect_code(3);

    // How long a shell takes to print depends on what else the machine does.
    let mut panics = [300, 3000, 30_000].into_iter().map(|limit| {
        let limited = shell("echo half done; exec sleep 60").time_limit(Duration::from_millis(limit));
        std::panic::catch_unwind(AssertUnwindSafe(|| limited.run())).unwrap_err()
    });
    assert!(panics.any(|panic| panic.downcast_ref::<String>().unwrap().contains("half done")));
}

/// The reader of a connection sees the end of it, and not half an answer.
#[test]
fn a_dropped_proxy_ends_its_connections() {
    let proxy = proxy();
    proxy.fault("*", Fault::Hang(Duration::from_secs(60)), Times::Always);
    let stream = TcpStream::connect(proxy.url().replace("http://", "")).unwrap();
    who_am_i().write(&stream).unwrap();
    proxy.wait_for("sts:GetCallerIdentity", 1);
    drop(proxy);
    assert!(Message::read_answer(&mut BufReader::new(&stream), "POST").is_err());
}
