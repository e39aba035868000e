"""The launchers of parameter servers and their workers, with stub programs."""

import unittest

from pods import Pods, in_each_shell
from rendering import parse_json

FOREVER = "/nowhere"
LONG = "100"


class Servers(unittest.TestCase):
    @in_each_shell
    def test_servers_serve_until_they_are_terminated(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        servers = [pods.start(index, "ps", STUB_UNTIL=FOREVER) for index in range(2)]
        for worker in [pods.start(index, "worker") for index in range(4)]:
            worker.ends_with(0)
        for index, server in enumerate(servers):
            server.goes_on(0.3)
            # As JobSet does when the workers have succeeded.
            server.ask_to_end()
            server.ends_with(143)
            self.assertTrue((pods.records / f"ps.{index}.ended").exists(), "it was not asked to end")
            self.assertEqual(server.others_alive(), [])
        self.assertEqual(pods.record("ps.1")["environment"]["POD_NAME"], "ps-1-dcnn")
        self.assertEqual(pods.record("worker.3")["environment"]["POD_NAME"], "worker-3-dcnn")
        self.assertEqual(pods.record("worker.3")["arguments"][1:], ["worker.py"])
        self.assertIn("ps 0 begins", pods.log(0, "ps").read_text())

    @in_each_shell
    def test_a_server_that_returns_is_a_mistake_in_the_program(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        text = pods.start(0, "ps", INFRA_HOLD=LONG).ends_with(64, within=20)
        self.assertIn("a program must serve when its task is ps: it returned", text)

    @in_each_shell
    def test_a_program_that_ended_just_before_has_succeeded_unless_it_had_to_serve(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        # The launcher does not look again before it is told to end, as in a shell whose naps end late.
        for script in pods.scripts.iterdir():
            script.write_text(script.read_text().replace("trap : CHLD\n", "\n"))
        ended = [pods.start(0, role, INFRA_PAUSE="60") for role in ("ps", "worker")]
        for role, pod in zip(("ps", "worker"), ended):
            pods.await_file(pods.records / f"{role}.0.json")
            pod.goes_on(1)
            pod.ask_to_end()
            pod.ends_with(0, within=20)
        self.assertEqual({name for name in pods.mark_names if name.startswith("done")}, {"done.worker.0"})

    @in_each_shell
    def test_a_server_that_fails_fails_with_its_own_status(self, shell):
        pods = Pods(self, "tensorflow-seed", shell)
        server = pods.start(0, "ps", STUB_EXIT="11", INFRA_HOLD="1")
        self.assertIn("the parameter server exited with 11; this pod waits up to 1 s", server.ends_with(11))
        self.assertIn("failed.0.ps.0", pods.mark_names)

    @in_each_shell
    def test_a_worker_that_fails_beside_servers_is_not_held_if_all_are_there(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        server = pods.start(0, "ps", STUB_UNTIL=FOREVER)
        others = [pods.start(index, "worker", STUB_UNTIL=FOREVER) for index in (0, 2)]
        failed = pods.start(1, "worker", STUB_EXIT="7", INFRA_HOLD=LONG)
        failed.ends_with(7, within=30)
        for pod in [server, *others]:
            pod.goes_on(0.1)
        server.kill()
        pods.attempt = 1
        trains = pods.start(0, "worker", STUB_UNTIL=FOREVER)
        failed = [pods.start(index, "worker", STUB_EXIT="7", INFRA_HOLD=LONG) for index in (1, 2)]
        pods.mark("alive.1.worker.0")
        for pod in failed:
            pod.says("this pod waits up to")
            pod.goes_on(0.5)
        trains.goes_on(0.1)

    @in_each_shell
    def test_workers_that_have_succeeded_are_not_trained_again_for_a_lost_server(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        for index in (1, 2, 0):
            pods.start(index, "worker").ends_with(0)
            (pods.records / f"worker.{index}.json").unlink()
        pods.attempt = 1
        pods.start(0, "ps", STUB_UNTIL=FOREVER)
        pods.await_file(pods.records / "ps.0.json")
        for index in range(3):
            pods.start(index, "worker").ends_with(0)
        self.assertEqual([path.name for path in pods.records.glob("*.json")], ["ps.0.json"])

    @in_each_shell
    def test_the_first_worker_is_the_chief(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        chief = pods.start(0, "worker", STUB_UNTIL=FOREVER)
        others = [pods.start(index, "worker", STUB_UNTIL=FOREVER) for index in (1, 2)]
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
        for pod in [chief, *others]:
            pod.ask_to_end()
            pod.ends_with(143)

    @in_each_shell
    def test_a_chief_waits_less_long_for_workers_that_may_never_end(self, shell):
        pods = Pods(self, "tensorflow-servers", shell)
        chief = pods.start(0, "worker", INFRA_LAST_WAIT="")
        chief.says("waiting up to 60 s for worker 1 2")
        plain = Pods(self, "tensorflow", shell).start(0, INFRA_LAST_WAIT="")
        plain.says("waiting up to 300 s for worker 1")


if __name__ == "__main__":
    unittest.main()
