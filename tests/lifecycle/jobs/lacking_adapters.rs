//! `infra job nccl-check` and machines of which pods cannot have every EFA adapter.

use serde_json::json;

use super::nccl_checks::{expect_nothing_left, give_adapters, label, world};

#[test]
fn a_machine_that_lacks_adapters_is_named_and_the_others_are_measured() {
    let world = world("{\"group\": [0, 1], \"seconds\": 0.1, \"ranks\": 2}\n{\"end\": true}\n");
    for (node, given) in [("gpu-1", 4), ("gpu-2", 3), ("gpu-3", 4)] {
        label(&world, node, json!({"infra.internal/efa": "4"}));
        give_adapters(&world, node, given);
    }
    let lacking = "Kubernetes can give 3 EFA adapters to pods, the machine has 4\n";
    world
        .run(["nccl-check"])
        .expect_code(3)
        .expect_stdout(&format!("gpu-2    -          -          -      {lacking}"))
        .expect_stdout("gpu-1    10.7 GB/s  10.7 GB/s  gpu-3")
        .expect_stderr("starting a pod on each of 2 machines");
    expect_nothing_left(&world);
    // Of processors it is no fault.
    world
        .run(["nccl-check", "--pool", "gpu", "--backend", "gloo"])
        .expect_stderr("a pod on each of 3 machines");
    // The plugin of the machine says nothing at all.
    let nothing = json!({"status": {"allocatable": {"vpc.amazonaws.com/efa": null}}});
    world.cluster.change("nodes", "", "gpu-2", nothing);
    let none = "Kubernetes can give 0 EFA adapters to pods, the machine has 4\n";
    world.run(["nccl-check"]).expect_code(3).expect_stdout(none);
}
