//! What `job lint` says of programs and variables that work, and seldom as their author means it.

use crate::support::Workspace;

#[test]
fn programs_and_variables_that_surprise_are_warned_about() {
    let job = |more: &str| {
        let workspace = Workspace::new();
        let text = "name: train\nframework: pytorch\nimage: pytorch/pytorch:2.15.0\nreplicas: 2\ngpus: 2\ndeadline: 1h\n";
        workspace.write("job.yaml", format!("{text}{more}\n"));
        workspace.infra(["job", "lint"]).expect_code(0).stdout
    };
    let plain = "command: [python, train.py]\n";
    assert_eq!(job(plain), "");
    for (more, warning) in [
        (
            "command: [deepspeed, train.py]",
            "deepspeed starts processes by itself, and finds only its own pod",
        ),
        ("command: [accelerate, launch, train.py]", "accelerate starts processes by itself"),
        ("command: [bash, -c, python train.py]", "bash is started once in each pod, without torchrun"),
        (
            "command: [torchrun, --rdzv_endpoint=localhost:29500, a.py]",
            "torchrun would rendezvous at this pod only",
        ),
        ("command: [torchrun, --standalone, a.py]", "torchrun would rendezvous at this pod only"),
        ("command: [torchrun, --nnodes, '1', a.py]", "torchrun would rendezvous at this pod only"),
        (
            "command: [python, -m, torch.distributed.run, a.py]",
            "torch.distributed.run starts processes by itself, and the launcher of pytorch starts it once for each GPU",
        ),
        (
            "command: [python, -m, torch.distributed.launch, a.py]",
            "torch.distributed.launch starts processes by itself, and the launcher of pytorch starts it once for each GPU",
        ),
        (
            "command: [python, /opt/conda/bin/torchrun, a.py]",
            "torchrun starts processes by itself, and the launcher of pytorch starts it once for each GPU",
        ),
        (
            "command: [/opt/conda/bin/torchrun, --standalone, a.py]",
            "torchrun would rendezvous at this pod only",
        ),
        (
            "command: [bash, -lc, 'cd /code && torchrun --rdzv-endpoint localhost:1 a.py']",
            "torchrun would rendezvous at this pod only",
        ),
        (
            "command: [sh, -c, 'python -m torch.distributed.run --standalone a.py']",
            "torchrun would rendezvous at this pod only",
        ),
        (
            "command: [bash, -c, 'exec accelerate launch a.py']",
            "accelerate starts processes by itself, and finds only its own pod",
        ),
        ("command: [bash, train.sh]", "bash is started once in each pod, without torchrun"),
        (
            "command: [python3, -u, -m, accelerate.commands.launch, a.py]",
            "accelerate starts processes by itself",
        ),
        (&format!("{plain}env: {{WANDB_API_KEY: abc}}"), "WANDB_API_KEY looks like a secret"),
        (&format!("{plain}env: {{HF_TOKEN: abc}}"), "HF_TOKEN looks like a secret"),
    ] {
        let stdout = job(more);
        assert!(stdout.contains(&format!("warning: {warning}")), "{more}:\n{stdout}");
    }
    let help = "help: remove it from env, store it with `infra secret set wandb WANDB_API_KEY`, and write secrets: [wandb]";
    let said = job(&format!("{plain}env: {{WANDB_API_KEY: abc}}"));
    assert!(said.contains(help), "{said}");
    // What the documents offer is accepted.
    let settings =
        "{INFRA_PEER_TIMEOUT: '600', INFRA_HOLD: '30', INFRA_LAST_WAIT: '60', INFRA_MOST_RESTARTS: '9'}";
    for good in [
        format!("{plain}env: {settings}"),
        format!("{plain}grace: 30s"),
        "command: [python, -m, train]".into(),
        "command: [bash, -c, torchrun a.py --redis localhost:6379]".into(),
        "command: [torchrun, a.py, --standalone]".into(),
    ] {
        assert_eq!(job(&good), "", "{good}");
    }
}

#[test]
fn what_an_older_torchrun_does_with_the_grace_is_said() {
    let lint = |version: &str, grace: &str| {
        let workspace = Workspace::new();
        let text = "name: train\nframework: pytorch\nreplicas: 1\ncommand: [python, train.py]\n";
        workspace.write("job.yaml", format!("{text}image: pytorch/pytorch:{version}\n{grace}"));
        workspace.infra(["job", "lint"]).expect_code(0).stdout
    };
    let help = "help: save within 30s and write grace: 30s, or use an image with PyTorch 2.12 or newer";
    // The usual one, and one that is written.
    for (grace, seconds) in [("", 80), ("grace: 31s\n", 31)] {
        let said = lint("2.11.0", grace);
        let warning = format!(
            "warning: grace is {seconds}s, but torchrun of PyTorch 2.11 kills its processes after 30s"
        );
        assert!(said.contains(&warning) && said.contains(help), "{said}");
        assert_eq!(lint("2.12.0", grace), "");
    }
    assert_eq!(lint("2.11.0", "grace: 30s\n"), "");
}

#[test]
fn a_launcher_finds_all_of_a_single_pod() {
    let lint = |command: &str| {
        let workspace = Workspace::new();
        let text =
            "name: train\nframework: pytorch\nimage: pytorch/pytorch:2.15.0\nreplicas: 1\ngpus: 4\ncommand: ";
        workspace.write("job.yaml", format!("{text}{command}\n"));
        workspace.infra(["job", "lint"]).expect_code(0).stdout
    };
    for good in ["[torchrun, --standalone, a.py]", "[deepspeed, a.py]", "[bash, -c, accelerate launch a.py]"]
    {
        assert_eq!(lint(good), "", "{good}");
    }
    for bad in ["[python, -m, torch.distributed.run, a.py]", "[python, -m, accelerate.commands.launch, a.py]"]
    {
        assert!(lint(bad).contains("and the launcher of pytorch starts it once for each GPU"), "{bad}");
    }
}

#[test]
fn the_launcher_of_paddle_is_not_named_again() {
    let workspace = Workspace::new();
    let text =
        "name: train\nframework: paddle\nimage: paddlepaddle/paddle:3.3.1\nreplicas: 2\ndeadline: 1h\n";
    workspace
        .write("job.yaml", format!("{text}command: [python, -m, paddle.distributed.launch, train.py]\n"));
    let stdout = workspace.infra(["job", "lint"]).expect_code(0).stdout;
    let warning = "warning: paddle.distributed.launch starts processes by itself, and the launcher of paddle starts it once for each GPU";
    assert!(stdout.contains(warning), "{stdout}");
}
