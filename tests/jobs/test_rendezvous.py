"""How the launchers of PyTorch and Paddle find their peers and start the user's program."""

import subprocess
import sys
import unittest

from pods import Pods, applets, in_each_shell, in_seconds


class Torchrun(unittest.TestCase):
    def name(self, pods, index):
        return pods.contract.roles["worker"].hosts[index]

    @in_each_shell
    def test_it_waits_for_the_name_of_the_first(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        node = pods.start(1)
        node.says(f"waiting for the name {self.name(pods, 0)}")
        node.goes_on(0.3)
        pods.hosts.write_text(f"{pods.address(0)} {self.name(pods, 0)}\n")
        node.ends_with(0)
        record = pods.record("worker.1")
        words = [str(pods.stubs / "python"), str(pods.scripts / "torchrun.py"), str(pods.claim / "ddp/code/train.py")]
        self.assertEqual(record["arguments"], words)
        self.assertEqual((record["environment"]["PET_NODE_RANK"], record["environment"]["PET_NNODES"]), ("1", "2"))

    @in_each_shell
    def test_the_first_waits_for_the_names_of_all(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.write_text(f"{pods.address(0)} {self.name(pods, 0)}\n")
        node = pods.start(0)
        node.says(f"waiting for the name {self.name(pods, 1)}")
        node.goes_on(0.3)
        with pods.hosts.open("a") as file:
            file.write(f"{pods.address(1)} {self.name(pods, 1)}\n")
        node.ends_with(0)

    @in_each_shell
    def test_it_does_not_give_up_before_the_deadline(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.start(1, INFRA_GRACE="80").ends_with(0)
        environment = pods.record("worker.1")["environment"]
        self.assertEqual(environment["PET_RDZV_CONF"], "timeout=604800")
        self.assertEqual(environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"], "72")
        (pods.marks / "done.worker.1").unlink()
        pods.start(1, INFRA_DEADLINE=in_seconds(5000), TORCH_ELASTIC_SHUTDOWN_TIMEOUT="9", PET_RDZV_CONF="read_timeout=5").ends_with(0)
        environment = pods.record("worker.1")["environment"]
        self.assertRegex(environment["PET_RDZV_CONF"], r"^read_timeout=5,timeout=(49\d\d|5000)$")
        self.assertEqual(environment["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"], "9")
        (pods.marks / "done.worker.1").unlink()
        pods.start(1, PET_RDZV_CONF="timeout=77").ends_with(0)
        self.assertEqual(pods.record("worker.1")["environment"]["PET_RDZV_CONF"], "timeout=77")

    @in_each_shell
    def test_a_pod_without_peers_has_the_same_time_to_save_and_waits_for_nobody(self, shell):
        pods = Pods(self, "pytorch-single", shell)
        pods.hosts.touch()
        text = pods.start(0, INFRA_GRACE="80").ends_with(0)
        self.assertNotIn("waiting", text)
        self.assertEqual(pods.record("worker.0")["environment"]["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"], "72")

    def test_an_image_that_cannot_resolve_names_does_not_wait(self):
        pods = Pods(self, "pytorch", "busybox")
        pods.hosts.touch()
        for index in range(2):
            pods.start(index, program=["true"], path=str(applets())).ends_with(0, within=20)


class Tensorflow(unittest.TestCase):
    @in_each_shell
    def test_every_worker_waits_for_the_names_of_all(self, shell):
        pods = Pods(self, "tensorflow", shell)
        first, second = pods.contract.roles["worker"].hosts[:2]
        for index, missing in ((0, second), (1, first)):
            pods.hosts.write_text("".join(f"{pods.address(number)} {name}\n" for number, name in enumerate((first, second)) if name != missing))
            worker = pods.start(index)
            worker.says(f"waiting for the name {missing}")
            worker.goes_on(0.3)
            self.assertFalse((pods.records / f"worker.{index}.json").exists())
            with pods.hosts.open("a") as file:
                file.write(f"{pods.address(1 - index)} {missing}\n")
            pods.await_file(pods.records / f"worker.{index}.json")
            worker.ask_to_end()
            worker.process.wait(60)
            (pods.marks / f"done.worker.{index}").unlink(missing_ok=True)

    @in_each_shell
    def test_servers_and_workers_wait_for_one_another(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        servers, workers = (pods.contract.roles[role].hosts for role in ("ps", "worker"))
        pods.hosts.write_text("".join(f"{pods.address(0)} {name}\n" for name in servers))
        pods.start(0, role="ps").says(f"waiting for the name {workers[0]}")
        pods.hosts.write_text("".join(f"{pods.address(0)} {name}\n" for name in workers))
        pods.start(0).says(f"waiting for the name {servers[0]}")

    @in_each_shell
    def test_a_peer_that_has_succeeded_needs_no_name(self, shell):
        pods = Pods(self, "tensorflow", shell)
        first, second = pods.contract.roles["worker"].hosts[:2]
        pods.hosts.write_text(f"{pods.address(0)} {first}\n")
        (pods.marks / "done.worker.1").write_text("0\n")
        pods.start(0).ends_with(0)
        self.assertTrue((pods.records / "worker.0.json").exists())


class Paddle(unittest.TestCase):
    @in_each_shell
    def test_it_is_given_the_address_of_the_first(self, shell):
        pods = Pods(self, "paddle", shell)
        first = pods.contract.roles["worker"].hosts[0]
        pods.hosts.touch()
        nodes = [pods.start(index) for index in range(2)]
        nodes[1].says(f"waiting for the name {first}")
        nodes[1].goes_on(0.3)
        pods.hosts.write_text(f"{pods.address(0)} {first}\n")
        for index, node in enumerate(nodes):
            node.ends_with(0)
            record = pods.record(f"worker.{index}")
            # Today's launcher knows no --backend and takes what follows for the program; see scripts/frameworks.
            self.assertEqual(record["arguments"][1:], ["-u", "-m", "paddle.distributed.launch", "/workspace/train.py", "--epochs", "3"])
            environment = record["environment"]
            self.assertEqual(environment["PADDLE_MASTER"], f"{pods.address(0)}:36767")
            self.assertEqual(environment["PADDLE_TRAINER_ID"], str(index))
            self.assertEqual(environment["POD_IP"], pods.address(index), "the launcher compares it with the master's")
            self.assertTrue((pods.output / f"node_{index}").is_dir())

    @in_each_shell
    def test_the_interpreter_is_the_one_that_was_named(self, shell):
        pods = Pods(self, "paddle-processors", shell)
        python = pods.folder / "venv/bin/python3.9"
        python.parent.mkdir(parents=True)
        pods.install(python, "program")
        pods.start(0, program=[str(python), "-u", "train.py"]).ends_with(0)
        self.assertEqual(pods.record("worker.0")["arguments"], [str(python), "-u", "-m", "paddle.distributed.launch", "train.py"])

    @in_each_shell
    def test_a_module_is_run_like_python_does(self, shell):
        pods = Pods(self, "paddle-processors", shell)
        release = pods.folder / "release"
        pod = pods.start(0, program=["python", "-m", "resnet.train", "--epochs", "3"], STUB_UNTIL=str(release))
        pods.await_file(pods.records / "worker.0.json")
        *_, launch, script, module, option, value = pods.record("worker.0")["arguments"]
        self.assertEqual((launch, module, option, value), ("paddle.distributed.launch", "resnet.train", "--epochs", "3"))
        self.assertTrue(script.endswith(".py"), "it runs any other file as a program")
        package = pods.folder / "code/resnet"
        package.mkdir(parents=True)
        (package / "layers.py").write_text("depth = 18\n")
        (package / "train.py").write_text(
            "import sys\nfrom resnet import layers\nfrom . import layers as same\n"
            "print(__name__, __package__, layers is same, sys.argv[1:], sys.argv[0] == __file__, sys.modules['__main__'].__spec__.name)\n"
        )
        done = subprocess.run([sys.executable, script, module, option, value], cwd=package.parent, capture_output=True, text=True)
        self.assertEqual(done.stdout, "__main__ resnet True ['--epochs', '3'] True resnet.train\n", done.stderr)
        release.touch()
        pod.ends_with(0)

    @in_each_shell
    def test_a_module_must_be_named(self, shell):
        pods = Pods(self, "paddle-processors", shell)
        self.assertIn("the command names no module after -m", pods.start(0, program=["python", "-m"]).ends_with(64))


if __name__ == "__main__":
    unittest.main()
