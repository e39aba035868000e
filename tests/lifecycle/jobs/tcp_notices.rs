//! `submit` says that the machines of a job use TCP although they could have EFA, and what to change.

use super::{JobWorld, TRAIN};

const POOLS: &str = "\
- {name: l40s, instanceType: g6e.24xlarge, count: 4, image: deep-learning, efa: true}
- {name: off, instanceType: g6e.24xlarge, count: 4, image: deep-learning}
- {name: flatcar, instanceType: g6e.24xlarge, count: 4}
- {name: mixed, instanceType: g6e.24xlarge, instanceTypes: [g6e.12xlarge], count: 4, image: deep-learning}
- {name: volta, instanceType: p3dn.24xlarge, count: 4}
- {name: small, instanceType: g6e.xlarge, count: 4}
";

/// A job of so many replicas with so many GPUs, on a pool if one is named.
fn job(replicas: u32, gpus: u32, pool: Option<&str>) -> String {
    let pool = pool.map(|pool| format!("pool: {pool}\n")).unwrap_or_default();
    let text = TRAIN.replace("replicas: 2", &format!("replicas: {replicas}"));
    format!("{}{pool}", text.replace("gpus: 1", &format!("gpus: {gpus}")))
}

/// Submits a job, for which there are no machines; all that it prints about TCP is this line.
#[track_caller]
fn expect_notice(world: &JobWorld, job: &str, notice: Option<&str>) {
    world.write_job(job);
    let outcome = world.run(["submit", "--dry-run"]).expect_code(1);
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.contains("TCP")).collect();
    assert_eq!(lines, notice.into_iter().collect::<Vec<_>>(), "{job}");
}

#[test]
fn machines_that_could_have_efa_are_named_with_what_they_need() {
    let world = JobWorld::with_pools(POOLS, TRAIN);
    let off = "jobs on pool off use TCP, but g6e.24xlarge has EFA: set `efa: true` on the pool";
    let flatcar = "jobs on pool flatcar use TCP, but g6e.24xlarge has EFA: set `efa: true` on the pool";
    let with_image = format!("{flatcar}, with `image: deep-learning`");
    let too_few = "the job uses TCP on pool l40s: each machine has 2 EFA adapters for 4 GPUs, and replicas cannot share one: \
                   request gpus: 2 per replica";
    for (replicas, gpus, pool, notice) in [
        (2, 4, "off", Some(off)),
        (2, 4, "flatcar", Some(with_image.as_str())),
        (8, 1, "l40s", Some(too_few)),
        (4, 2, "l40s", None),
        // All on one machine, or alone.
        (4, 1, "off", None),
        (1, 4, "off", None),
        // Types with other network cards, an image that does not work, machines without EFA.
        (2, 4, "mixed", None),
        (2, 8, "volta", None),
        (2, 1, "small", None),
    ] {
        expect_notice(&world, &job(replicas, gpus, Some(pool)), notice);
    }
    world.workspace.edit(|text| {
        text.replace("network: {topology: private}\n", "")
            .replace(", efa: true", "")
            .replace("[us-west-2a]", "[us-west-2a, us-west-2b]")
    });
    let all = format!("{flatcar}, with `image: deep-learning`, private topology and one availability zone");
    expect_notice(&world, &job(2, 4, Some("flatcar")), Some(&all));
    let but_image = format!("{off}, with private topology and one availability zone");
    expect_notice(&world, &job(2, 4, Some("off")), Some(&but_image));
}

#[test]
fn a_job_that_may_run_with_and_without_efa_is_to_name_its_pool() {
    let world = JobWorld::with_pools(POOLS, TRAIN);
    let notice = "the job may run on pool off, where a replica has no EFA adapter, and uses TCP: set `pool: l40s` in the job file";
    for (replicas, gpus, notice) in [
        (2, 4, Some(notice)),
        (4, 2, Some(notice)),
        // Nowhere an adapter for each, too many for one pool, a pod alone.
        (4, 1, None),
        (5, 4, None),
        (1, 4, None),
    ] {
        expect_notice(&world, &job(replicas, gpus, None), notice);
    }
}
