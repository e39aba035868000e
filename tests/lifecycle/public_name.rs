//! The public name of the API: in which hosted zone its record is created, when the record is foreign, and what is printed without one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::preflight::{changing_calls, expect};
use crate::support::element;
use crate::support::fault_proxy::{Fault, Times};
use crate::support::outcome::Outcome;
use crate::support::wait_until;
use crate::support::world::World;

const CHANGE: &str = "route53:ChangeResourceRecordSets";

/// The records of the cluster's name in a hosted zone, as Route 53 shows them.
pub fn records(world: &World, zone: &str) -> Vec<String> {
    let name = format!("<Name>{}.</Name>", world.workspace.setting("externalDNSName"));
    let all = world.records(zone);
    let records = all.split("<ResourceRecordSet>").skip(1).filter(|record| record.contains(&name));
    let records = records.map(|record| record.split("</ResourceRecordSet>").next().unwrap().to_owned());
    records.filter(|record| !record.contains("<Type>NS<") && !record.contains("<Type>SOA<")).collect()
}

/// What the only record of the cluster's name points at as an alias.
#[track_caller]
fn alias(world: &World, zone: &str) -> String {
    let records = records(world, zone);
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(element(record, "Type"), Some("A"));
    let name = element(record, "DNSName").unwrap_or_else(|| panic!("no alias: {record}"));
    name.trim_end_matches('.').to_owned()
}

fn change(world: &World, zone: &str, action: &str, record: &str) {
    let body = format!(
        "<ChangeResourceRecordSetsRequest xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes><Change>\
         <Action>{action}</Action><ResourceRecordSet>{record}</ResourceRecordSet></Change></Changes></ChangeBatch>\
         </ChangeResourceRecordSetsRequest>"
    );
    let aws = world.aws();
    let path = format!("/2013-04-01/hostedzone/{zone}/rrset");
    let answer = aws.send("route53", &aws.region, "POST", &path, &body);
    assert_eq!(answer.status(), 200, "{}", answer.text());
}

fn delete_records(world: &World, zone: &str) {
    for record in records(world, zone) {
        change(world, zone, "DELETE", &record);
    }
}

/// The record in `status`; without one that points at the cluster the cluster is not healthy.
#[track_caller]
fn expect_status(world: &World, record: &str) -> Value {
    let healthy = matches!(record, "ours" | "unmanaged");
    let status = world.run(["status", "--output", "json"]).expect_code(if healthy { 0 } else { 3 });
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["dns"]["record"], record, "{status:#}");
    status
}

#[test]
fn the_record_is_created_once_and_waited_for() {
    let world = World::alone("minimal");
    world.control(json!({"dns_pending": 3}));
    let private = world.make_zone("example.com", true);
    let public = world.make_zone("example.com", false);
    let up = world.up_invocation([]).at_real_tempo().run().expect_code(0);
    let target = alias(&world, &public);
    let said = format!("record minimal.example.com points at {target}: ");
    up.expect_stderr(&format!("{said}created")).expect_stderr(&format!("{said}in-sync"));
    // Pauses grow: half a second, then half as long again.
    let calls = world.proxy.calls().into_iter().filter(|call| call.operation == "route53:GetChange");
    let looks: Vec<Instant> = calls.map(|call| call.at).collect();
    assert!(looks.len() > 1, "{looks:?}");
    let mut least = Duration::from_millis(500);
    for pair in looks.windows(2) {
        assert!(pair[1] - pair[0] >= least, "{looks:?}");
        least = least * 3 / 2;
    }
    assert_eq!(records(&world, &private), [""; 0]);
    expect_status(&world, "ours");

    world.proxy.clear();
    world.up([]).expect_code(0).expect_stderr(&format!("{said}unchanged"));
    assert_eq!(changing_calls(&world), [""; 0]);
    assert_eq!(world.proxy.count("route53:GetChange"), 0);

    delete_records(&world, &public);
    expect_status(&world, "missing");
    world.control(json!({}));
    world.proxy.fault(CHANGE, Fault::Throttled, Times::First(2));
    world.up([]).expect_code(0).expect_stderr(&format!("{said}created"));
    assert_eq!((world.proxy.count(CHANGE), alias(&world, &public)), (3, target.clone()));

    delete_records(&world, &public);
    world.control(json!({"dns_pending": 10_000}));
    let left = world.up(["--timeout", "1s"]).expect_code(5);
    left.expect_stderr("the change of the public record");
    assert_eq!(alias(&world, &public), target);
    world.up([]).expect_code(0).expect_stderr(&format!("{said}unchanged"));
}

#[test]
fn the_nearest_hosted_zone_is_used_unless_another_is_given() {
    let world = World::of_golden("ha-gpu-efs");
    let far = world.make_zone("example.com", false);
    let near = world.make_zone("research.example.com", false);
    world.make_zone("search.example.com", false);
    world.up(["--wait", "stacks"]).expect_code(0);
    let target = alias(&world, &near);
    assert_eq!(records(&world, &far), [""; 0]);

    world.workspace.edit(|text| format!("{text}dns: {{hostedZoneId: {far}}}\n"));
    world.up(["--wait", "stacks"]).expect_code(0);
    assert_eq!(alias(&world, &far), target);
    expect_status(&world, "ours");
}

#[test]
fn a_hosted_zone_that_does_not_fit_the_name_is_refused_before_anything_is_created() {
    let world = World::of_golden("minimal");
    let other = world.make_zone("ample.com", false);
    let private = world.make_zone("example.com", true);
    let cases = [
        ("Z00000000000000", "there is no hosted zone Z00000000000000".to_owned()),
        (&other, format!("minimal.example.com is not below ample.com, the name of the hosted zone {other}")),
        (&private, format!("the hosted zone {private} (example.com) is private, but the API is public")),
    ];
    let before = world.workspace.read("cluster.yaml");
    for (zone, expected) in cases {
        world.workspace.edit(|_| format!("{before}dns: {{hostedZoneId: {zone}}}\n"));
        world.up([]).expect_code(1).expect_stderr(&format!("refused: hosted zone: {expected}"));
    }
    assert_eq!(changing_calls(&world), [""; 0]);
}

#[test]
fn without_a_public_hosted_zone_the_record_is_printed() {
    let world = World::of_golden("minimal");
    let up = world.up([]).expect_code(0);
    let status = expect_status(&world, "unmanaged");
    let target = status["api"]["loadBalancer"].as_str().unwrap_or_else(|| panic!("{status:#}"));
    let lines = [
        format!("  minimal.example.com.  300  IN  CNAME  {target}.\n"),
        format!("  in Route 53 better an alias A record of {target}, zone Z"),
        "  until then `infra kubeconfig --direct` prints a kubeconfig that needs no record\n".to_owned(),
    ];
    let expect_lines = |up: Outcome, reason: &str| {
        let up = up.expect_stderr(&format!("warning: {reason}: create this record yourself"));
        for line in &lines {
            up.clone().expect_stderr(line);
        }
    };
    expect_lines(up, "no hosted zone of this account could hold minimal.example.com");

    // A record in the private hosted zone would resolve inside the VPC only.
    let private = world.make_zone("example.com", true);
    let warned = format!(
        "warning: hosted zone: the only hosted zone for minimal.example.com is private: {private} (example.com)"
    );
    let up = world.up([]).expect_code(0).expect_stderr(&warned);
    expect_lines(up, "only the private hosted zone example.com could hold minimal.example.com");
    assert_eq!(records(&world, &private), [""; 0]);
    assert_eq!(world.proxy.count(CHANGE), 0);
    expect_status(&world, "unmanaged");
}

#[test]
fn a_record_that_points_elsewhere_is_replaced_only_with_the_flag() {
    let world = World::of_golden("minimal");
    let zone = world.make_zone("example.com", false);
    world.put_record(&zone, "minimal.example.com", "A", "192.0.2.1");
    let before = records(&world, &zone);
    let foreign = "hosted zone example.com already has a record minimal.example.com of type A: it points at 192.0.2.1, which is not this \
                   cluster";
    let refused = world.up([]).expect_code(1).expect_stderr(foreign);
    refused.expect_stderr("`--adopt-record` points it at this cluster");
    assert_eq!(records(&world, &zone), before);
    expect_status(&world, "foreign");
    world.up(["--adopt-record"]).expect_code(0).expect_stderr(": adopted");
    let target = alias(&world, &zone);
    expect_status(&world, "ours");

    // The console creates one for IPv6 too, and writes names its own way.
    let own = records(&world, &zone).remove(0);
    let dual = own.replace("<Type>A<", "<Type>AAAA<").replace(&target, &format!("dualstack.{target}"));
    change(&world, &zone, "CREATE", &dual);
    world.proxy.clear();
    world.up([]).expect_code(0).expect_stderr(": unchanged");
    assert_eq!(changing_calls(&world), [""; 0]);
    expect_status(&world, "ours");
    // Alone it excludes clients that have IPv4 only.
    change(&world, &zone, "DELETE", &own);
    world.up([]).expect_code(0);
    assert!(records(&world, &zone).contains(&own));

    // More than one plain record: their purpose would be lost.
    let name = "<Name>minimal.example.com</Name>";
    let value = |value: &str| {
        format!(
            "<TTL>60</TTL><ResourceRecords><ResourceRecord><Value>{value}</Value></ResourceRecord></ResourceRecords>"
        )
    };
    let address = value("192.0.2.1");
    for (kind, record) in [
        ("CNAME", format!("{name}<Type>CNAME</Type>{}", value("www.example.com."))),
        ("AAAA", format!("{name}<Type>AAAA</Type>{}", value("2001:db8::1"))),
        ("A", format!("{name}<Type>A</Type><SetIdentifier>east</SetIdentifier><Weight>1</Weight>{address}")),
    ] {
        delete_records(&world, &zone);
        change(&world, &zone, "CREATE", &record);
        let before = records(&world, &zone);
        for more in [&[][..], &["--adopt-record"]] {
            let refused = world.up(more.iter().copied()).expect_code(1);
            let help = format!("delete the {kind} record by hand, then run `infra up` again");
            refused
                .expect_stderr(&format!("already has a record minimal.example.com of type {kind}: "))
                .expect_stderr(&help);
        }
        assert_eq!(records(&world, &zone), before);
        expect_status(&world, "foreign");
    }
}

#[test]
fn the_record_follows_the_cluster_to_its_next_load_balancer() {
    let world = World::of_golden("minimal");
    let zone = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    let before = alias(&world, &zone);
    world.workspace.edit(|text| format!("{text}api: {{public: false}}\n"));
    let losses = ["--allow-replace", "PublicLoadBalancer", "--allow-replace", "PublicLoadBalancerGroup"];
    let up = world.up(losses.into_iter().chain(["--yes"])).expect_code(0);
    let after = alias(&world, &zone);
    assert_ne!(after, before);
    up.expect_stderr(&format!("record minimal.example.com points at {after}: "));
    expect_status(&world, "ours");
}

#[test]
fn a_destroy_deletes_a_record_as_the_console_writes_it() {
    let world = World::of_golden("minimal");
    let zone = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    let target = alias(&world, &zone);
    let own = records(&world, &zone).remove(0);
    delete_records(&world, &zone);
    let by_console = own
        .replace(&target, &format!("dualstack.{target}"))
        .replace("<EvaluateTargetHealth>false<", "<EvaluateTargetHealth>true<");
    assert_ne!(by_console, own);
    change(&world, &zone, "CREATE", &by_console);
    change(&world, &zone, "CREATE", &by_console.replace("<Type>A<", "<Type>AAAA<"));
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("deleted the record of minimal.example.com");
    assert_eq!(records(&world, &zone), [""; 0]);
}

#[test]
fn a_destroy_finds_the_record_despite_a_nearer_foreign_hosted_zone() {
    let world = World::of_golden("minimal");
    let nearer = world.make_zone("minimal.example.com", true);
    world.put_record(&nearer, "minimal.example.com", "A", "10.9.0.7");
    let public = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    alias(&world, &public);
    world.run(["destroy", "--yes"]).expect_code(0).expect_stderr("deleted the record of minimal.example.com");
    assert_eq!(records(&world, &public), [""; 0]);
    assert_eq!(records(&world, &nearer).len(), 1);
    let outcome = world.run(["destroy", "--yes"]).expect_code(0);
    outcome.expect_stdout("points at 10.9.0.7, which is not this cluster");
}

#[test]
fn a_record_that_changes_during_a_destroy_is_kept_and_named() {
    let world = World::alone("minimal");
    let zone = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    world.control(json!({"hold": ["minimal-pool-cpu"]}));
    let mut running = world.infra(["destroy", "--yes"]).spawn();
    running.wait_for_stderr("deleting pools");
    delete_records(&world, &zone);
    world.put_record(&zone, "minimal.example.com", "A", "192.0.2.7");
    world.control(json!({}));
    let outcome = running.wait().expect_code(7);
    outcome.expect_stderr("left over: public record minimal.example.com of type A: it was changed meanwhile");
    assert_eq!(world.stacks().len(), 0);
    assert!(world.records(&zone).contains("192.0.2.7"));
}

#[test]
fn a_record_that_is_created_again_while_the_control_plane_is_deleted_is_deleted() {
    let world = World::alone("minimal");
    let zone = world.make_zone("example.com", false);
    world.up([]).expect_code(0);
    let own = records(&world, &zone).remove(0);
    world.control(json!({"hold": ["minimal-control-plane"]}));
    let destroy = world.infra(["destroy", "--yes"]).spawn();
    wait_until("the control plane is being deleted", || {
        world.stacks().get("minimal-control-plane").is_some_and(|status| status == "DELETE_IN_PROGRESS")
    });
    assert_eq!(records(&world, &zone), [""; 0]);
    change(&world, &zone, "CREATE", &own);
    world.control(json!({}));
    destroy.wait().expect_code(0).expect_stderr("is deleted");
    assert_eq!(records(&world, &zone), [""; 0]);
}

#[test]
fn a_private_api_has_its_record_in_a_private_hosted_zone() {
    let world = World::of_golden("private");
    let zone = world.make_zone("example.com", true);
    world.up([]).expect_code(0).expect_stderr("dns.manage is false: create this record yourself");
    assert_eq!(records(&world, &zone), [""; 0]);
    expect_status(&world, "unmanaged");

    world.workspace.edit(|text| text.replace("dns: {manage: false}", "dns: {manage: true}"));
    let account = world.workspace.account().to_owned();
    expect(
        &world,
        &[
            &format!(
                "warning: account: the key in kmsKeyArn belongs to account 111122223333, the caller to {account}"
            ),
            &format!("warning: bucket: the bucket {} does not block public access", world.bucket()),
        ],
    );
    world.up([]).expect_code(0).expect_stderr("record vault.example.com points at ");
    let status = expect_status(&world, "ours");
    assert_eq!(status["api"]["loadBalancer"], alias(&world, &zone));
}

#[test]
fn a_record_that_cannot_be_created_hides_no_other_failure() {
    let world = World::of_golden("minimal");
    world.make_zone("example.com", false);
    world.control(json!({"fail_create": {"NodeRole": "no role today"}}));
    world.proxy.fault(CHANGE, Fault::AccessDenied, Times::Always);
    world
        .up([])
        .expect_code(6)
        .expect_stderr("the public name may not point at the API yet: ")
        .expect_stderr("error: stack minimal-pool-cpu failed")
        .expect_stderr("no role today");
}
