//! Costs without a network, by the prices in infra.lock: sums, what has no price, prices that are old, budgets.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{MINIMAL, Workspace};

/// One etcd member, one controller, and a pool that may grow to four machines.
const POOL: &str = "etcd: {count: 1}\ncontrollers: {count: 1}\npools: [{name: gpu, instanceType: g5.xlarge, instanceTypes: [g5.2xlarge], \
                    count: 2, maxCount: 4, spot: true, availabilityZones: [us-west-2a]}]\n";

/// Each price is a round number, so that sums can be read off.
fn lock(date: &str) -> String {
    format!(
        "cluster: paddle
region: us-west-2
image: {{id: ami-1, name: Flatcar-stable-4459.2.1-hvm}}
prices:
  date: {date}
  currency: USD
  machines: {{t3.medium: \"0.05\", g5.xlarge: \"1\", g5.2xlarge: \"2\"}}
  spot:
    g5.xlarge: {{us-west-2a: \"0.4\", us-west-2b: \"0.9\"}}
    g5.2xlarge: {{us-west-2a: \"0.6\"}}
  units:
    networkLoadBalancerHour: \"0.02\"
    networkLoadBalancerCapacityUnitHour: \"0.006\"
    publicIPv4AddressHour: \"0.005\"
    diskGiBMonth: \"0.073\"
    hostedZoneMonth: \"0.73\"
    bucketGBMonth: \"0.023\"
    keyMonth: \"1\"
"
    )
}

/// The day of today, in UTC, some days ago. Only what is older than 90 days is marked, so that midnight does not matter.
fn days_ago(days: u32) -> String {
    let run = Command::new("date")
        .args(["--utc", "--date", &format!("{days} days ago"), "+%Y-%m-%d"])
        .output()
        .unwrap();
    String::from_utf8(run.stdout).unwrap().trim().to_owned()
}

fn workspace(more: &str, lock: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("cluster.yaml", format!("{MINIMAL}{more}"));
    workspace.write("infra.lock", lock);
    workspace
}

fn document(workspace: &Workspace) -> Value {
    serde_json::from_str(&workspace.infra(["cost", "--output", "json"]).expect_code(0).stdout).unwrap()
}

#[test]
fn an_hour_and_a_month_are_summed_exactly_and_use_is_not() {
    let day = days_ago(2);
    let workspace = workspace(POOL, &lock(&day));
    let before = fs::read(workspace.path("infra.lock")).unwrap();
    let run = workspace.infra(["cost"]).expect_code(0);
    assert_eq!(run.stderr, "");
    let words: Vec<String> =
        run.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    // Two spot machines of the dearer type in their one availability zone; an address for each machine, and three for the public load balancer.
    for line in [
        "STACK COUNT WHAT PER HOUR PER MONTH NOTE",
        "paddle-pool-gpu 2 machine $1.20 $876.00 g5.xlarge, spot, 2 to 4 with the autoscaler",
        "paddle-pool-gpu 2 disk $0.02 $14.60 100 GiB gp3",
        "paddle-control-plane 1 machine $0.05 $36.50 t3.medium, etcd",
        "paddle-control-plane 5 public IPv4 address $0.025 $18.25",
        "paddle-network 1 private hosted zone $0.001 $0.73",
        "capacity units (LCU) of load balancers $0.006 per unit and hour",
        "assets and snapshots in S3 $0.023 per GB and month",
        "KMS key $1.00 per month",
    ] {
        assert!(words.iter().any(|found| found == line), "{line}\n{}", run.stdout);
    }
    // 1.2 + 0.02 + 0.05 + 0.05 + 0.04 + 0.025 + 0.01 + 0.001, and 0.008 for the 80 GiB of the control plane.
    let total = format!("total: $1.40/h, $1,024.92 a month of 730 hours (prices of {day})");
    assert!(run.stdout.contains(&total), "{total}\n{}", run.stdout);
    let document = document(&workspace);
    assert_eq!(document["total"]["perMonth"], "1024.92");
    assert_eq!(document["total"]["perHour"], "1.404");
    assert_eq!((&document["total"]["currency"], &document["total"]["stale"]), (&"USD".into(), &false.into()));
    let machine =
        document["items"].as_array().unwrap().iter().find(|item| item["stack"] == "paddle-pool-gpu").unwrap();
    assert_eq!((&machine["perHour"], &machine["perMonth"]), (&"1.2".into(), &"876".into()));
    assert_eq!(fs::read(workspace.path("infra.lock")).unwrap(), before, "nothing is written");
}

#[test]
fn what_has_no_price_is_named_and_not_in_the_sum() {
    let text = lock(&days_ago(0)).replace("g5.2xlarge: {us-west-2a: \"0.6\"}", "m5.large: {}");
    let text =
        text.replace("    diskGiBMonth: \"0.073\"\n", "").replace("    bucketGBMonth: \"0.023\"\n", "");
    let workspace = workspace(POOL, &text);
    let run = workspace.infra(["cost"]).expect_code(0);
    assert!(run.stdout.contains("total: at least $0.18/h"), "{}", run.stdout);
    assert!(run.stdout.contains("no price: g5.2xlarge spot, gp3 disk)"), "{}", run.stdout);
    assert!(run.stdout.contains("no price is known"), "{}", run.stdout);
    let document = document(&workspace);
    assert_eq!(document["total"]["missing"], serde_json::json!(["g5.2xlarge spot", "gp3 disk"]));
    let of_pool =
        document["items"].as_array().unwrap().iter().find(|item| item["stack"] == "paddle-pool-gpu").unwrap();
    assert_eq!(of_pool["perHour"], Value::Null);
}

#[test]
fn prices_of_more_than_90_days_ago_are_marked() {
    for (days, is_marked) in [(60, false), (89, false), (92, true), (2000, true)] {
        let workspace = workspace(POOL, &lock(&days_ago(days)));
        let run = workspace.infra(["cost"]).expect_code(0);
        assert_eq!(run.stdout.contains("more than 90 days old"), is_marked, "{days}: {}", run.stdout);
        assert_eq!(
            run.stderr.contains("`infra cost --online` looks them up again"),
            is_marked,
            "{days}: {}",
            run.stderr
        );
        assert_eq!(document(&workspace)["total"]["stale"], is_marked);
        workspace.infra(["report", "--to", "report.html"]).expect_code(0);
        let page = workspace.read("report.html");
        assert!(page.contains(&format!("(prices of {}", days_ago(days))), "{page}");
        assert_eq!(page.contains("more than 90 days old"), is_marked, "{days}: {page}");
    }
}

#[test]
fn a_lock_without_prices_is_as_good_as_before_and_a_broken_one_is_refused() {
    let text = lock(&days_ago(0));
    let old = text.split("prices:").next().unwrap();
    for lock in [Some(old), None] {
        let workspace = workspace(POOL, old);
        if lock.is_none() {
            fs::remove_file(workspace.path("infra.lock")).unwrap();
        }
        let run = workspace.infra(["cost"]).expect_code(0);
        assert!(
            run.stderr
                .contains("infra.lock has no prices; `infra lock` and `infra cost --online` look them up"),
            "{}",
            run.stderr
        );
        assert!(!run.stdout.contains("total") && run.stdout.contains("g5.xlarge, spot"), "{}", run.stdout);
        assert_eq!(document(&workspace)["total"], Value::Null);
    }
    for (good, bad, expected) in [
        ("\"0.4\"", "cheap", "infra.lock:9:29: 'cheap' is not an amount like 0.0416 or 60"),
        ("\"0.4\"", "0.4", "infra.lock:9:29: us-west-2a must be text, not a number"),
        ("USD", "EUR", "infra.lock:6:13: 'EUR' is not a value of currency"),
        ("  units:", "  unit:", "infra.lock:11:3: unknown key 'unit'"),
    ] {
        let workspace = workspace(POOL, &text.replace(good, bad));
        let run = workspace.infra(["cost"]).expect_code(2);
        assert!(run.stderr.contains(expected), "{bad}: {}", run.stderr);
        // Whoever does not need prices is not stopped.
        let run = workspace.infra(["validate"]).expect_code(0);
        assert!(run.stderr.contains("costs are not known"), "{bad}: {}", run.stderr);
    }
}

#[test]
fn a_budget_is_compared_with_what_pools_may_grow_to_on_demand() {
    // Four machines of the dearer type at 2, and 0.234 for the rest. What is over the budget is shown as more, however little it is.
    for (limit, is_over) in [("8.2", true), ("8.23", true), ("8.24", false), ("60", false)] {
        let workspace = workspace(&format!("{POOL}budget: {{perHour: {limit}}}\n"), &lock(&days_ago(0)));
        let run = workspace.infra(["validate"]).expect_code(0);
        assert_eq!(
            run.stderr.contains("the cluster may grow to $8.24/h, and budget.perHour is $8.2"),
            is_over,
            "{limit}: {}",
            run.stderr
        );
        if is_over {
            assert!(run.stderr.contains("paddle-pool-gpu 4 × g5.xlarge $8.00"), "{}", run.stderr);
        }
        let run = workspace.infra(["validate", "--output", "json"]).expect_code(0);
        let document: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(document["budget"].is_string(), is_over, "{document}");
    }
    let text = lock(&days_ago(0));
    let missing = workspace(
        &format!("{POOL}budget: {{perHour: 60}}\n"),
        &text.replace("g5.2xlarge: \"2\"", "m5.large: \"2\""),
    );
    let run = missing.infra(["validate"]).expect_code(0);
    assert!(
        run.stderr.contains(
            "budget.perHour is $60.00, and infra.lock has no price for g5.2xlarge; `infra lock` and `infra cost --online` look them up; \
             if AWS lists none, choose another type, or apply it without a check by `--over-budget`"
        ),
        "{}",
        run.stderr
    );
    missing.write("infra.lock", missing.read("infra.lock").replace(&days_ago(0), &days_ago(100)));
    let run = missing.infra(["validate"]).expect_code(0);
    let old = format!("no price for g5.2xlarge (prices of {}, more than 90 days old); ", days_ago(100));
    assert!(run.stderr.contains(&old), "{old}\n{}", run.stderr);
    let day = days_ago(100);
    for (limit, expected) in [
        (
            "8.2",
            format!(
                " (prices of {day}, more than 90 days old); `infra lock` and `infra cost --online` look them up again; if it is still too much, lower maxCount"
            ),
        ),
        (
            "60",
            format!(
                "budget.perHour is compared with prices of {day}, more than 90 days old; `infra lock` and `infra cost --online` look them up again"
            ),
        ),
    ] {
        let old = workspace(&format!("{POOL}budget: {{perHour: {limit}}}\n"), &lock(&day));
        let run = old.infra(["validate"]).expect_code(0);
        assert!(run.stderr.contains(&expected), "{expected}\n{}", run.stderr);
    }
    let none = workspace(&format!("{POOL}budget: {{perHour: 60}}\n"), text.split("prices:").next().unwrap());
    assert_eq!(none.infra(["validate"]).expect_code(0).stderr, "cluster.yaml is valid\n");
}

#[test]
fn a_page_without_aws_has_both_images_and_who_boots_them() {
    let day = days_ago(43).replace('-', "");
    let deep_learning = format!(
        "deepLearning: {{id: ami-2, name: \"Deep Learning Base OSS Nvidia Driver GPU AMI (Ubuntu 24.04) {day}\", rootDevice: /dev/sda1, \
         smallestGiB: 75}}\nprices:"
    );
    let pools = "pools: [{name: cpu, instanceType: m5.large}, {name: gpu, instanceType: g5.xlarge, image: deep-learning}]\n";
    let whole = workspace(pools, &lock(&days_ago(0)).replace("prices:", &deep_learning));
    let page = |workspace: &Workspace| {
        workspace.infra(["report", "--to", "report.html"]).expect_code(0);
        workspace.read("report.html")
    };
    let text = page(&whole);
    for part in [
        "<th scope=\"row\">Flatcar-stable-4459.2.1-hvm</th><td><code>ami-1</code></td><td>etcd members, controllers, pool cpu</td><td>–</td>",
        "</th><td><code>ami-2</code></td><td>pool gpu</td><td>43 days, by its name</td>",
    ] {
        // Midnight may pass.
        assert!(text.contains(part) || text.contains(&part.replace("43", "44")), "{part}\n{text}");
    }
    let old = workspace(pools, &lock(&days_ago(0)));
    let text = page(&old);
    assert!(text.contains("infra.lock does not name the Deep Learning image yet"), "{text}");
}

#[test]
fn machines_of_a_capacity_block_are_paid_in_advance_everywhere() {
    let id = "cr-0123456789abcdef0";
    let pool = format!(
        "etcd: {{count: 1}}\ncontrollers: {{count: 1}}\npools: [{{name: gpu, instanceType: g5.xlarge, image: deep-learning, count: 2, \
         maxCount: 4, availabilityZones: [us-west-2a], capacityReservationId: {id}}}]\nbudget: {{perHour: 0.5}}\n"
    );
    let block = format!(
        "capacityBlocks:\n- id: {id}\n  begins: 2026-11-18T11:30:00Z\n  ends: 2026-11-20T11:30:00Z\nprices:"
    );
    let (today, ordinary) = (days_ago(0), lock(&days_ago(0)));
    let total = |workspace: &Workspace| document(workspace)["total"].clone();

    // Whether it is a capacity block is not known yet: as AWS would charge it on demand.
    let unread = workspace(&pool, &ordinary);
    assert_eq!(total(&unread)["prepaidMachines"], 0);
    unread
        .infra(["cost"])
        .expect_code(0)
        .expect_stdout("g5.xlarge, on demand, unless the reservation is a capacity block, 2 to 4");
    let run = unread.infra(["validate"]).expect_code(0);
    let run = run.expect_stderr("paddle-pool-gpu 4 × g5.xlarge $4.00");
    run.expect_stderr(&format!(
        "if {id} is a capacity block, `infra lock` writes that down, and it is not counted; otherwise lower maxCount"
    ));

    let known = workspace(&pool, &ordinary.replace("prices:", &block));
    let sum = total(&known);
    assert_eq!((&sum["prepaidMachines"], &sum["missing"]), (&2.into(), &serde_json::json!([])));
    let month = |total: &Value| total["perMonth"].as_str().unwrap().parse::<f64>().unwrap();
    let less = month(&total(&unread)) - month(&sum);
    assert!((less - 2.0 * 730.0).abs() < 0.001, "two machines at 1 less: {less}");
    let machine = document(&known)["items"].as_array().unwrap().clone();
    let machine = machine.iter().find(|item| item["stack"] == "paddle-pool-gpu").unwrap();
    assert_eq!(machine["perHour"], Value::Null);
    let basis = format!("(prices of {today}; not counted: 2 machines in a capacity block, paid in advance)");
    let run = known.infra(["cost"]).expect_code(0).expect_stdout(&basis);
    run.expect_stdout("g5.xlarge, capacity block, paid in advance, 2 to 4 with the autoscaler");
    known.infra(["report", "--to", "report.html"]).expect_code(0);
    let page = known.read("report.html");
    assert!(page.contains(&basis) && page.contains("g5.xlarge, capacity block, paid in advance"), "{page}");

    // The budget is for what is charged by the hour; a refusal says what it leaves out.
    assert_eq!(known.infra(["validate"]).expect_code(0).stderr, "cluster.yaml is valid\n");
    known.write("cluster.yaml", known.read("cluster.yaml").replace("perHour: 0.5", "perHour: 0.2"));
    let run = known.infra(["validate"]).expect_code(0);
    run.expect_stderr(" (not counted: 4 machines in a capacity block, paid in advance); lower maxCount");
}
