//! Prices from AWS: looked up, kept in infra.lock, used without a network by every other command; refused, missing, in other partitions.

use std::fs;

use serde_json::{Value, json};

use crate::support::fault_proxy::{Fault, Times};
use crate::support::world::World;

const LIST: &str = "pricing:GetProducts";
const SPOT: &str = "ec2:DescribeSpotPriceHistory";

/// The lock without its prices, the date of which is not the same before and after midnight.
fn without_prices(lock: &str) -> &str {
    lock.split("# What AWS charged").next().unwrap()
}

fn total(world: &World, arguments: &[&str]) -> Value {
    let arguments = arguments.iter().copied().chain(["--output", "json"]);
    let document: Value = serde_json::from_str(&world.run(arguments).expect_code(0).stdout).unwrap();
    document["total"].clone()
}

#[test]
fn prices_are_looked_up_once_and_used_without_aws() {
    let world = World::of_golden("ha-gpu-efs");
    world.run(["lock"]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    for line in [
        "  currency: USD\n",
        "    m5.large: \"0.096\"\n",
        "    t3.medium: \"0.0416\"\n",
        "  spot:\n    g5.2xlarge:\n      us-west-2a: \"0.4848\"\n    g5.xlarge:\n      us-west-2a: \"0.4024\"\n",
        "    diskGiBMonth: \"0.08\"\n",
        "    fileSystemGiBMonth: \"0.3\"\n",
        "    fileSystemReadGiB: \"0.03\"\n",
        "    fileSystemWriteGiB: \"0.06\"\n",
        "    hostedZoneMonth: \"0.5\"\n",
        "    keyMonth: \"1\"\n",
        "    networkLoadBalancerHour: \"0.0225\"\n",
        "    publicIPv4AddressHour: \"0.005\"\n",
    ] {
        assert!(lock.contains(line), "{line} is not in\n{lock}");
    }
    // Without a NAT gateway its price is not asked for.
    assert!(!lock.contains("natGateway"), "{lock}");
    // Four types, and the disks, balancers, addresses, file system, zone, bucket and key; EFS has six products in pages of three.
    assert_eq!(world.proxy.count(LIST), 4 + 7 + 1);
    world.proxy.clear();
    let offline = total(&world, &["cost"]);
    assert_eq!(world.proxy.count("*"), 0);
    // By the hour 5 × 0.0416, 2 × 0.096, 3 × 0.4848, 2 × 0.0225, 13 × 0.005; by the month 710 GiB × 0.08 and 0.5.
    assert_eq!((&offline["perMonth"], &offline["missing"]), (&"1491.312".into(), &json!([])));
    assert_eq!(offline["perHour"], "2.042893");
    // The day may be another one by now.
    let mut again = total(&world, &["cost", "--online"]);
    again["pricesOf"] = offline["pricesOf"].clone();
    assert_eq!(again, offline);
    assert_eq!(without_prices(&world.workspace.read("infra.lock")), without_prices(&lock));
}

#[test]
fn without_a_lock_prices_are_shown_and_not_kept() {
    let world = World::of_golden("minimal");
    let run = world.run(["cost", "--online"]).expect_code(0);
    run.expect_stdout("total: $0.26/h, $193.17 a month of 730 hours")
        .expect_stderr("`infra lock` writes it with them");
    assert!(!world.workspace.path("infra.lock").exists());
}

#[test]
fn plan_up_status_and_list_show_costs_and_write_no_prices() {
    let world = World::of_golden("minimal");
    let plan = world.run(["plan", "--s3-uri", &format!("s3://{}/clusters", world.bucket())]).expect_code(0);
    assert!(!plan.stdout.contains("Cost"), "{}", plan.stdout);
    plan.expect_stderr("infra.lock has no prices; `infra lock` and `infra cost --online` look them up");
    world.run(["lock"]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    world.proxy.clear();
    world.up([]).expect_code(0).expect_stderr("Cost: +$0.26/h; cluster $0.00 → $0.26/h (prices of ");
    let status = world.run(["status"]).expect_code(0);
    assert!(
        status.stdout.lines().any(|line| line.starts_with("cost ") && line.contains("$0.26/h")),
        "{}",
        status.stdout
    );
    let list = world.run(["list", "--region", "us-west-2"]).expect_code(0);
    // Two t3.medium and an m5.large.
    assert!(list.stdout.contains("$0.18/h") && list.stdout.contains("MACHINES"), "{}", list.stdout);
    world.run(["plan"]).expect_code(0).expect_stdout("Cost: $0.26/h, unchanged (prices of ");
    let page = world.run(["plan", "--output", "html"]).expect_code(0);
    page.expect_stdout("<p>Cost: $0.26/h, unchanged (prices of ");
    let day = lock.lines().find(|line| line.starts_with("  date: ")).unwrap();
    let old = lock.replace(day, "  date: 2020-02-01").replace("    m5.large: \"0.096\"\n", "");
    world.workspace.write("infra.lock", old);
    let list = world.run(["list", "--region", "us-west-2"]).expect_code(0);
    list.expect_stdout("MACHINES: what the machines alone cost, by prices of 2020-02-01, more than 90 days old; no price: m5.large");
    world.workspace.write("infra.lock", &lock);

    world.workspace.edit(|text| text.replace("instanceType: m5.large}", "instanceType: m5.large, count: 3}"));
    let plan = world.run(["plan"]).expect_code(0);
    plan.expect_stdout("Cost: +$0.23/h; cluster $0.26 → $0.49/h (prices of ");
    let page = world.run(["plan", "--output", "html"]).expect_code(0);
    page.expect_stdout("<p>Cost: +$0.23/h; cluster $0.26 → $0.49/h (prices of ");
    let markdown = world.run(["plan", "--output", "markdown"]).expect_code(0);
    markdown.expect_stdout("\n\nCost: +$0.23/h; cluster $0.26 → $0.49/h (prices of ");
    let document: Value =
        serde_json::from_str(&world.run(["plan", "--output", "json"]).expect_code(0).stdout).unwrap();
    let (before, after) = (&document["cost"]["before"], &document["cost"]["after"]);
    assert_eq!((&before["perHour"], &after["perHour"]), (&"0.264611".into(), &"0.488529".into()));
    // The month is exact: two machines, two disks of 100 GiB, two addresses.
    assert_eq!((&before["perMonth"], &after["perMonth"]), (&"193.166".into(), &"356.626".into()));

    // What runs is what counts, not what cluster.yaml says.
    let status = world.run(["status", "--output", "json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["cost"]["perHour"], "0.264611");
    world.workspace.edit(|text| text.replace(" count: 3", " count: 0, minCount: 0, maxCount: 3"));
    world.run(["plan"]).expect_code(0).expect_stdout("Cost: -$0.11/h; cluster $0.26 → $0.15/h");
    assert_eq!(world.workspace.read("infra.lock"), lock);
    assert_eq!((world.proxy.count(LIST), world.proxy.count(SPOT)), (0, 0));
}

#[test]
fn a_pool_that_is_removed_is_no_longer_paid_and_one_without_a_price_is_named() {
    let world = World::of_golden("minimal");
    world.control(json!({"unpriced": ["g5.12xlarge"]}));
    world.run(["lock"]).expect_code(0);
    world.up([]).expect_code(0);
    let pools = "- {name: gpu, instanceType: g5.12xlarge, count: 2}\n";
    world.workspace.edit(|text| format!("{}{pools}", text.split("- {name: cpu").next().unwrap()));
    world.run(["lock"]).expect_code(0);
    let plan = world.run(["plan"]).expect_code(0);
    // Disks and addresses of the new machines have a price, the machines have none.
    plan.expect_stdout("Cost: cluster $0.26/h → at least $0.18/h (prices of ")
        .expect_stdout("; no price: g5.12xlarge)");
}

#[test]
fn a_budget_is_kept_by_up_unless_told_otherwise() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| format!("{text}budget: {{perHour: 0.25}}\n"));
    let run = world.up([]).expect_code(1);
    let run = run.expect_stderr("budget.perHour is $0.25, and infra.lock has no prices to compare with");
    run.expect_stderr(
        "`infra lock` and `infra cost --online` look them up; `--over-budget` applies it without",
    );
    world.run(["lock"]).expect_code(0);
    world.proxy.clear();
    let run = world.up([]).expect_code(1);
    let run = run.expect_stderr(
        "the cluster may grow to $0.27/h, and budget.perHour is $0.25: minimal-pool-cpu 1 × m5.large $0.10",
    );
    run.expect_stderr("lower maxCount of a pool or raise budget.perHour in cluster.yaml; `--over-budget` applies it all the same");
    assert_eq!(world.proxy.count("*"), 0, "before anything is asked of AWS");
    let place = format!("s3://{}/clusters", world.bucket());
    world.run(["plan", "--s3-uri", &place]).expect_code(0).expect_stderr("the cluster may grow to $0.27/h");
    world.up(["--over-budget"]).expect_code(0).expect_stderr("--over-budget applies it all the same");
    world.workspace.edit(|text| text.replace("0.25", "0.27"));
    world.up([]).expect_code(0);
}

#[test]
fn denied_prices_cost_nothing_but_the_prices() {
    let world = World::of_golden("ha-gpu-efs");
    world.proxy.fault(LIST, Fault::AccessDenied, Times::Always);
    world.proxy.fault(SPOT, Fault::AccessDenied, Times::Always);
    let run = world.run(["lock"]).expect_code(0).expect_stdout("Flatcar-stable-4459.2.1-hvm");
    let run =
        run.expect_stderr("AWS's price list could not be read: pricing:GetProducts").expect_stderr(SPOT);
    run.expect_stderr("; allow pricing:GetProducts\n")
        .expect_stderr("; allow ec2:DescribeSpotPriceHistory\n");
    let bare = world.workspace.read("infra.lock");
    assert!(!bare.contains("prices:"), "{bare}");
    let run = world.run(["cost", "--online"]).expect_code(0);
    run.expect_stdout("g5.xlarge, spot, 0 to 8 with the autoscaler").expect_stderr("pricing:GetProducts");
    assert_eq!(world.workspace.read("infra.lock"), bare);

    world.proxy.heal();
    world.proxy.fault(SPOT, Fault::AccessDenied, Times::Always);
    world
        .run(["cost", "--online"])
        .expect_code(0)
        .expect_stdout("no price: g5.2xlarge spot, g5.xlarge spot)");
    world.proxy.heal();
    world.run(["lock"]).expect_code(0);
    let whole = world.workspace.read("infra.lock");
    // Prices that were there stay, with their date, also if only a part of them cannot be read again.
    let day = whole.lines().find(|line| line.starts_with("  date: ")).unwrap();
    let older = whole.replace(day, "  date: 2026-01-15");
    world.workspace.write("infra.lock", &older);
    let (denied, failing) = (Fault::AccessDenied, Fault::InternalError);
    let faults: [&[(&str, Fault, Times)]; 4] = [
        &[(LIST, denied, Times::Always), (SPOT, denied, Times::Always)],
        &[(LIST, denied, Times::Always)],
        // It may be over in a minute.
        &[(SPOT, failing, Times::Always)],
        &[(LIST, denied, Times::Nth(3))],
    ];
    for faults in faults {
        world.proxy.heal();
        for (call, fault, times) in faults {
            world.proxy.fault(call, *fault, *times);
        }
        world
            .run(["lock"])
            .expect_code(0)
            .expect_stderr("could not be read")
            .expect_stderr("infra.lock keeps its prices of 2026-01-15, since some could not be read again");
        assert_eq!(world.workspace.read("infra.lock"), older, "{faults:?}");
    }
    world.proxy.heal();
    world.proxy.fault(SPOT, failing, Times::Always);
    let run = world.run(["cost", "--online"]).expect_code(0).expect_stdout("more than 90 days old");
    assert!(!run.stderr.contains("looks them up again"), "it was just run: {}", run.stderr);
    // Who may not read spot prices still gets the others as they are today, and learns what is missing.
    world.proxy.heal();
    world.proxy.fault(SPOT, denied, Times::Always);
    let run = world.run(["lock"]).expect_code(0);
    let run = run
        .expect_stderr("spot prices could not be read, so that spot machines have no price of today: ")
        .expect_stderr("; allow ec2:DescribeSpotPriceHistory");
    assert!(!run.stderr.contains("infra.lock keeps its prices"), "{}", run.stderr);
    let on_demand = world.workspace.read("infra.lock");
    assert!(!on_demand.contains("2026-01-15") && !on_demand.contains("  spot:"), "{on_demand}");
    assert!(on_demand.contains("    g5.xlarge: \"1.006\"\n"), "{on_demand}");
    world.proxy.heal();
    world.run(["lock"]).expect_code(0);
    assert!(!world.workspace.read("infra.lock").contains("2026-01-15"), "the prices are not those of today");
    world.workspace.write("infra.lock", &whole);
    world.proxy.fault(LIST, Fault::AccessDenied, Times::Always);
    world.proxy.fault(SPOT, Fault::AccessDenied, Times::Always);
    world.run(["lock", "--upgrade-os"]).expect_code(0);
    assert_eq!(world.workspace.read("infra.lock"), whole);
    let run = world.run(["cost", "--online"]).expect_code(0);
    run.expect_stdout("total: $2.04/h").expect_stderr("pricing:GetProducts");
}

#[test]
fn machines_of_capacity_blocks_are_no_machines_on_demand() {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| {
        let pools = "instanceType: p5.48xlarge, image: deep-learning}\n- {name: other, instanceType: p5e.48xlarge, image: deep-learning}";
        text.replace("instanceType: m5.large}", pools)
    });
    world.run(["lock"]).expect_code(0);
    let lock = world.workspace.read("infra.lock");
    assert!(lock.contains("    p5.48xlarge: \"55.04\"\n") && !lock.contains("p5e"), "{lock}");
    assert_eq!(total(&world, &["cost"])["missing"], json!(["p5e.48xlarge"]));
}

/// A cluster in another partition, of which nothing exists.
fn elsewhere(region: &str, partition: &str) -> World {
    let world = World::of_golden("minimal");
    world.workspace.edit(|text| {
        let text = text.replace("us-west-2", region).replace("arn:aws:", &format!("arn:{partition}:"));
        format!("{text}os: {{imageOwner: \"111122223333\"}}\n").replace("m5.large}", "m5.large, spot: true}")
    });
    world
}

#[test]
fn china_has_a_price_list_and_a_currency_of_its_own() {
    let world = elsewhere("cn-north-1", "aws-cn");
    let run = world.run(["cost", "--online"]).expect_code(0).expect_stdout("total: ¥");
    run.expect_stdout("¥0.006 per unit and hour");
    let document = total(&world, &["cost", "--online"]);
    assert_eq!((&document["currency"], &document["missing"]), (&"CNY".into(), &json!([])));
}

#[test]
fn govcloud_has_no_price_list_and_says_so() {
    let world = elsewhere("us-gov-west-1", "aws-us-gov");
    let run = world.run(["cost", "--online"]).expect_code(0);
    let run = run.expect_stderr("AWS's price list does not answer in GovCloud");
    run.expect_stdout(
        "no price: gp3 disk, hosted zone, network load balancer, public IPv4 address, t3.medium)",
    );
    assert_eq!((world.proxy.count(LIST), world.proxy.count(SPOT)), (0, 1));
}

#[test]
fn expired_credentials_end_the_lookup() {
    let world = World::of_golden("minimal");
    world.run(["lock"]).expect_code(0);
    let lock = fs::read(world.workspace.path("infra.lock")).unwrap();
    world.proxy.fault(LIST, Fault::ExpiredToken, Times::Always);
    world.run(["cost", "--online"]).expect_code(4).expect_stderr("renew them");
    assert_eq!(fs::read(world.workspace.path("infra.lock")).unwrap(), lock);
}
