"""The launchers of parameter servers and workers, of paddle.distributed.launch and of torchrun, with stub programs."""

import unittest

from pods import Pods, in_each_shell
from rendering import parse_json


class Servers(unittest.TestCase):
    def start_all(self, pods, **more):
        servers = [pods.start(index, "ps", STUB_UNTIL="/nowhere") for index in range(2)]
        workers = [pods.start(index, "worker", **more) for index in range(4)]
        return servers, workers

    def marks(self, pods):
        return {path.name for path in pods.root.glob(".infra/r-*/done.*")}

    @in_each_shell
    def test_servers_leave_when_the_last_worker_is_done_and_not_before(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        servers = [pods.start(index, "ps", STUB_UNTIL="/nowhere") for index in range(2)]
        release = pods.folder / "release"
        slow = pods.start(2, "worker", STUB_UNTIL=str(release))
        for worker in [pods.start(index, "worker") for index in (0, 1, 3)]:
            worker.ends_with(0)
        for server in servers:
            server.goes_on(0.3)
        release.touch()
        slow.ends_with(0)
        for index, server in enumerate(servers):
            self.assertIn("all 4 workers are done", server.ends_with(0))
            self.assertTrue((pods.records / f"ps.{index}.ended").exists(), "it was not asked to end")
            self.assertEqual(server.others_alive(), [])
        self.assertEqual(pods.record("ps.1")["environment"]["POD_NAME"], "ps-1-dcnn")
        self.assertEqual(pods.record("worker.3")["environment"]["POD_NAME"], "worker-3-dcnn")
        self.assertEqual(pods.record("worker.3")["arguments"][1:], ["worker.py"])

    @in_each_shell
    def test_a_failed_worker_leaves_no_mark_and_comes_again(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        servers, workers = self.start_all(pods)
        for worker in workers:
            worker.ends_with(0)
        for server in servers:
            server.ends_with(0)
        pods.take("tensorflow-seed", "--run", "other")
        for path in pods.root.glob(".infra/r-*"):
            self.assertNotEqual(path.name, "r-other")
        # Another run: the marks above are not its own.
        servers = [pods.start(index, "ps", STUB_UNTIL="/nowhere") for index in range(2)]
        workers = [pods.start(index, "worker", STUB_EXIT="7" if index == 1 else "0") for index in range(4)]
        self.assertEqual([worker.process.wait(20) for worker in workers], [0, 7, 0, 0])
        for server in servers:
            server.goes_on(0.4)
        self.assertEqual({path.name for path in pods.root.glob(".infra/r-other/done.*")}, {"done.0", "done.2", "done.3"})
        self.assertEqual(list(pods.root.glob(".infra/r-other/failed.*")), [], "the Job starts it again")
        pods.start(1, "worker").ends_with(0)
        for server in servers:
            server.ends_with(0)

    @in_each_shell
    def test_servers_end_when_workers_have_failed_for_good(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        # Each failure counts for all: the second is one too many.
        pods.start(1, "worker", STUB_EXIT="7", INFRA_FAILURES_ALLOWED="1").ends_with(7)
        server.goes_on()
        pods.start(3, "worker", STUB_EXIT="7", INFRA_FAILURES_ALLOWED="1").ends_with(7)
        self.assertIn("the worker pods of this job have failed for good", server.ends_with(64))
        self.assertEqual(server.others_alive(), [])
        # One whose machine was lost meanwhile comes again, and is not left alone either.
        pods.start(1, "ps", STUB_UNTIL="/nowhere").ends_with(64)

    @in_each_shell
    def test_a_failure_that_is_not_tried_again_ends_the_servers_at_once(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        pods.start(2, "worker", STUB_EXIT="64").ends_with(64)
        server.ends_with(64)

    @in_each_shell
    def test_workers_end_when_servers_have_failed_for_good(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        worker = pods.start(0, "worker", STUB_UNTIL="/nowhere")
        pods.start(1, "ps", STUB_EXIT="11", INFRA_FAILURES_ALLOWED="0").ends_with(11)
        self.assertIn("the ps pods of this job have failed for good", worker.ends_with(64))
        self.assertEqual(self.marks(pods), set())

    @in_each_shell
    def test_the_same_run_once_more_begins_without_its_failures(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        pods.start(0, "worker", STUB_EXIT="7", INFRA_FAILURES_ALLOWED="0").ends_with(7)
        server.ends_with(64)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere", INFRA_JOB_UID="uid-2")
        server.goes_on()
        for worker in [pods.start(index, "worker", INFRA_JOB_UID="uid-3") for index in range(3)]:
            worker.ends_with(0)
        server.ends_with(0)

    @in_each_shell
    def test_pods_delete_the_same_markers_at_the_same_moment(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        pods.start(0, "worker").ends_with(0)
        [run] = pods.root.glob(".infra/r-*")
        for number in range(2000):
            (run / f"failure.worker.0.{number}").touch()
        for worker in [pods.start(index, "worker", INFRA_JOB_UID="uid-2") for index in range(3)]:
            worker.ends_with(0)
        self.assertEqual(list(run.glob("failure.*")), [])

    @in_each_shell
    def test_the_first_worker_is_the_chief_and_its_end_the_jobs(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        release = pods.folder / "release"
        chief = pods.start(0, "worker", STUB_UNTIL=str(release))
        others = [pods.start(index, "worker", STUB_UNTIL="/nowhere", INFRA_CHIEF_GRACE="1") for index in (1, 2)]
        for index in range(3):
            pods.await_file(pods.records / f"worker.{index}.json")
        told = [parse_json(pods.record(f"worker.{index}")["environment"]["TF_CONFIG"]) for index in range(3)]
        tasks = [{"type": "chief", "index": 0}, {"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
        self.assertEqual([config["task"] for config in told], tasks)
        for config in told:
            self.assertEqual(config["cluster"], told[0]["cluster"])
            self.assertEqual({role: len(hosts) for role, hosts in config["cluster"].items()}, {"chief": 1, "ps": 1, "worker": 2})
        own = [config["cluster"][config["task"]["type"]][config["task"]["index"]] for config in told]
        self.assertEqual(own, [f"{pods.address(index)}:2222" for index in range(3)])
        chief.goes_on(0.3)
        release.touch()
        chief.ends_with(0)
        for pod in [*others, server]:
            pod.ends_with(0)

    @in_each_shell
    def test_the_same_run_again_is_not_confused_by_its_old_marks(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        for time in range(2):
            server = pods.start(0, "ps", STUB_UNTIL="/nowhere", INFRA_JOB_UID=f"ps-{time}")
            server.goes_on()
            workers = [pods.start(index, "worker", INFRA_JOB_UID=f"worker-{time}") for index in range(3)]
            for pod in [*workers, server]:
                pod.ends_with(0)

    @in_each_shell
    def test_a_server_that_comes_again_believes_the_marks_of_its_run(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        lost = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        pods.start(0, "worker").ends_with(0)
        lost.kill()
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        for index in (1, 2):
            pods.start(index, "worker").ends_with(0)
        server.ends_with(0)

    @in_each_shell
    def test_a_worker_that_comes_again_takes_its_mark_back(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        pods.start(1, "worker").ends_with(0)
        self.assertEqual(self.marks(pods), {"done.1"})
        pods.start(1, "worker", STUB_EXIT="9").ends_with(9)
        self.assertEqual(self.marks(pods), set())

    @in_each_shell
    def test_marks_count_by_number(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere")
        pods.start(3, "worker").ends_with(0)
        (marks,) = pods.root.glob(".infra/r-*")
        # Of a run that once had more workers.
        for index in (7, 8, 9):
            (marks / f"done.{index}").touch()
        server.goes_on()

    @in_each_shell
    def test_a_server_that_fails_fails_with_its_own_status(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        text = pods.start(0, "ps", STUB_EXIT="11").ends_with(11)
        self.assertIn("the parameter server exited with 11 before the workers were done", text)

    @in_each_shell
    def test_being_asked_to_end_ends_the_programs(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        running = [pods.start(0, "ps", STUB_UNTIL="/nowhere"), pods.start(2, "worker", STUB_UNTIL="/nowhere")]
        for pod, name in zip(running, ("ps.0", "worker.2")):
            pods.await_file(pods.records / f"{name}.json")
            pod.goes_on(0.1)
            pod.ask_to_end()
        for pod, name in zip(running, ("ps.0", "worker.2")):
            pod.ends_with(143)
            self.assertEqual(pod.others_alive(), [])
            self.assertTrue((pods.records / f"{name}.ended").exists())
        self.assertEqual(self.marks(pods), set())

    @in_each_shell
    def test_a_deaf_server_does_not_keep_the_job_from_ending(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        server = pods.start(0, "ps", STUB_UNTIL="/nowhere", STUB_DEAF="", INFRA_GRACE="1")
        pods.await_file(pods.records / "ps.0.json")
        for index in range(3):
            pods.start(index, "worker").ends_with(0)
        self.assertIn("did not stop when told to", server.ends_with(0))
        self.assertEqual(server.others_alive(), [])


class Launchers(unittest.TestCase):
    @in_each_shell
    def test_paddle_is_given_the_address_of_the_first(self, shell):
        pods = Pods(self, "paddle", shell)
        pods.hosts.touch()
        nodes = [pods.start(index) for index in range(2)]
        nodes[1].says("waiting for the name resnet-0.resnet.default.svc.cluster.local")
        nodes[1].goes_on(0.3)
        pods.hosts.write_text(f"{pods.address(0)} resnet-0.resnet.default.svc.cluster.local\n")
        for index, node in enumerate(nodes):
            node.ends_with(0)
            record = pods.record(f"worker.{index}")
            launch = ["-u", "-m", "paddle.distributed.launch", "/workspace/train.py", "--epochs", "3"]
            self.assertEqual(record["arguments"][1:], launch)
            environment = record["environment"]
            self.assertEqual(environment["PADDLE_MASTER"], f"{pods.address(0)}:36767")
            self.assertEqual(environment["PADDLE_TRAINER_ID"], str(index))
            self.assertEqual(environment["POD_IP"], pods.address(index), "the launcher compares it with the master's")
            self.assertTrue((pods.root / f"output/node_{index}").is_dir())

    @in_each_shell
    def test_a_programs_status_is_the_pods(self, shell):
        for name, index in (("paddle", 1), ("pytorch", 1), ("pytorch-single", 0), ("tensorflow", 1)):
            pods = Pods(self, name, shell)
            pods.start(index, STUB_EXIT="23").ends_with(23)

    @in_each_shell
    def test_every_program_finds_the_directory_of_its_output(self, shell):
        for name in ("paddle", "pytorch", "pytorch-single", "tensorflow"):
            pods = Pods(self, name, shell)
            pods.start(0).ends_with(0)
            output = pods.record("worker.0")["environment"]["INFRA_OUTPUT_DIR"]
            self.assertEqual(output, str(pods.root / "output"))
            self.assertTrue((pods.root / "output").is_dir(), name)

    @in_each_shell
    def test_paddle_without_gpus_is_given_no_options(self, shell):
        pods = Pods(self, "paddle-processors", shell)
        pods.start(0).ends_with(0)
        # Today's launcher knows no --backend and takes what follows for the program; see scripts/frameworks.
        launch = ["-u", "-m", "paddle.distributed.launch", "/workspace/train.py"]
        self.assertEqual(pods.record("worker.0")["arguments"][1:], launch)

    @in_each_shell
    def test_torchrun_waits_for_the_name_of_the_first(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        node = pods.start(1)
        node.says("waiting for the name ddp-0.ddp.default.svc.cluster.local")
        node.goes_on(0.3)
        pods.hosts.write_text(f"{pods.address(0)} ddp-0.ddp.default.svc.cluster.local\n")
        node.ends_with(0)
        record = pods.record("worker.1")
        self.assertEqual(record["arguments"], [str(pods.stubs / "torchrun"), str(pods.claim / "ddp/code/train.py")])
        self.assertEqual(record["environment"]["PET_NODE_RANK"], "1")
        self.assertEqual(record["environment"]["PET_NNODES"], "2")
        self.assertTrue((pods.root / "output").is_dir())

    @in_each_shell
    def test_a_name_that_never_comes_is_given_up(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        text = pods.start(1, INFRA_PEER_TIMEOUT="1").ends_with(1)
        self.assertIn("gave up waiting for the name ddp-0.ddp.default.svc.cluster.local after 1 s", text)

    @in_each_shell
    def test_being_asked_to_end_reaches_the_program(self, shell):
        pods = Pods(self, "pytorch", shell)
        node = pods.start(0, STUB_UNTIL="/nowhere")
        pods.await_file(pods.records / "worker.0.json")
        node.ask_to_end()
        node.ends_with(143)
        self.assertTrue((pods.records / "worker.0.ended").exists())


if __name__ == "__main__":
    unittest.main()
