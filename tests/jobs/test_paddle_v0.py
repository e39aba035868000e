"""The launcher of paddle-v0, run for real: trainers and parameter servers on loopback, in the shells that images have."""

import unittest

from pods import Pods, in_each_shell

LINES = [f"line {number}\n" for number in range(6)]


class Trainers(unittest.TestCase):
    def pods(self, shell, name="paddle-v0", *arguments):
        """Three trainers' data and configuration, as the import leaves them."""
        pods = Pods(self, name, shell, *arguments)
        for index in range(3):
            pods.write(f"{pods.root.name}/{index}/data/train.txt", "".join(LINES[2 * index:2 * index + 2]))
        pods.write(f"{pods.root.name}/recommendation/trainer_config.py", "settings()\n")
        pods.write(f"{pods.root.name}/recommendation/words/dictionary.txt", "a\n")
        return pods

    @in_each_shell
    def test_each_has_its_number_its_part_and_the_same_peers(self, shell):
        pods = self.pods(shell)
        for pod in [pods.start(index) for index in range(3)]:
            pod.ends_with(0)
        peers = ",".join(pods.address(index) for index in range(3))
        for index in range(3):
            record = pods.record(f"train.{index}")
            self.assertEqual(record["flags"]["trainer_id"], str(index))
            self.assertEqual(record["flags"]["pservers"], peers)
            self.assertEqual(record["flags"]["num_gradient_servers"], "3")
            self.assertEqual(record["flags"]["use_gpu"], "1")
            self.assertEqual(record["flags"]["config"], "trainer_config.py")
            self.assertEqual(record["flags"]["save_dir"], str(pods.root / "output"))
            self.assertEqual(record["environment"]["PADDLE_INIT_TRAINER_ID"], str(index))
            self.assertEqual(record["environment"]["PADDLE_INIT_PSERVERS"], peers)
            self.assertEqual(record["files"]["data/train.txt"], "".join(LINES[2 * index:2 * index + 2]))
            self.assertEqual(record["files"]["trainer_config.py"], "settings()\n")
            self.assertEqual(record["files"]["words/dictionary.txt"], "a\n")
            logs = pods.root / f"output/node_{index}"
            self.assertEqual((logs / "train.log").read_text(), f"trainer {index} begins\ntrainer {index} ends\n")
            self.assertEqual((logs / "server.log").read_text(), "listening\n")
            self.assertIn(f"trainer {index} ends", pods.running[index].text, "the pod's own log has it too")

    @in_each_shell
    def test_nobody_begins_before_the_last_is_there(self, shell):
        pods = self.pods(shell)
        early = [pods.start(0), pods.start(2, STUB_SERVER_LATE="0.5")]
        for pod in early:
            pod.says("waiting for the parameter servers of all 3 trainers")
            pod.goes_on(0.3)
        self.assertEqual(list(pods.records.glob("train.*")), [])
        for pod in [*early, pods.start(1)]:
            pod.ends_with(0)

    @in_each_shell
    def test_nobody_leaves_before_the_slowest_is_done(self, shell):
        pods = self.pods(shell)
        release = pods.folder / "release"
        slow = pods.start(2, STUB_UNTIL=str(release))
        quick = [pods.start(0), pods.start(1)]
        for index, pod in enumerate(quick):
            pods.mark(f"done.{index}")
            pod.goes_on(0.3)
        release.touch()
        # It looks for every parameter server once more when it ends.
        slow.ends_with(0)
        for pod in quick:
            pod.ends_with(0)
            self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_a_failed_trainer_keeps_its_status_and_the_others_do_not_succeed(self, shell):
        pods = self.pods(shell)
        fail, end = pods.folder / "fail", pods.folder / "end"
        done, training = pods.start(0), pods.start(2, STUB_UNTIL=str(end))
        failing = pods.start(1, STUB_TRAIN_EXIT="3", STUB_UNTIL=str(fail))
        marks = pods.mark("done.0").parent
        for pod, index in ((training, 2), (failing, 1)):
            pod.says(f"trainer {index} begins")
        fail.touch()
        self.assertIn("trainer 1 exited with 3", failing.ends_with(3))
        self.assertEqual(failing.others_alive(), [], "its parameter server is left")
        end.touch()
        # It was still training, and misses the parameter server of the failed one.
        training.ends_with(98)
        done.goes_on(0.3)
        self.assertEqual({path.name for path in marks.glob("done.*")}, {"done.0"})

    @in_each_shell
    def test_a_second_attempt_trains_with_the_others(self, shell):
        pods = self.pods(shell)
        fail = pods.folder / "fail"
        waiting = pods.start(0), pods.start(2)
        failing = pods.start(1, STUB_TRAIN_EXIT="3", STUB_UNTIL=str(fail))
        for mark in ("done.0", "done.2"):
            pods.mark(mark)
        fail.touch()
        failing.ends_with(3)
        for pod in [pods.start(1), *waiting]:
            pod.ends_with(0)

    @in_each_shell
    def test_marks_of_lost_pods_are_not_believed(self, shell):
        pods = self.pods(shell)
        for pod in [pods.start(index, STUB_UNTIL="/nowhere") for index in range(3)]:
            pods.await_file(pods.records / f"train.{pods.running.index(pod)}.json")
        for index, pod in enumerate(pods.running):
            # Machines are lost: nobody takes a mark away.
            pod.kill()
            (pods.records / f"train.{index}.json").unlink()
        pods.move()
        first = pods.start(0)
        first.says("waiting for the parameter servers")
        first.goes_on()
        self.assertFalse((pods.records / "train.0.json").exists(), "it believed marks of pods that are gone")
        for pod in [first, pods.start(1), pods.start(2)]:
            pod.ends_with(0)

    @in_each_shell
    def test_a_pod_that_comes_again_takes_its_own_marks_back(self, shell):
        pods = self.pods(shell)
        first = [pods.start(0), pods.start(1), pods.start(2, STUB_UNTIL="/nowhere")]
        marks = [pods.mark("done.0"), pods.mark("done.1")]
        for pod in first:
            pod.kill()
        # The second trainer comes back first. Were the mark of its last attempt still there, its peers would leave it alone.
        pods.move()
        back = pods.start(1)
        back.says("waiting for the parameter servers")
        self.assertEqual([mark.exists() for mark in marks], [True, False])
        for pod in [back, pods.start(0), pods.start(2)]:
            pod.ends_with(0)

    @in_each_shell
    def test_a_second_run_into_the_same_directory_works(self, shell):
        pods = self.pods(shell)
        for run in ("first", "second"):
            pods.take("paddle-v0", "--run", run)
            for pod in [pods.start(index) for index in range(3)]:
                pod.ends_with(0)
        self.assertEqual(sorted(path.name for path in (pods.root / ".infra").iterdir()), ["r-first", "r-second"])
        log = (pods.root / "output/node_0/train.log").read_text()
        self.assertEqual(log.count("trainer 0 ends"), 2, "the first run's log is kept")

    @in_each_shell
    def test_the_same_run_again_is_not_confused_by_its_old_marks(self, shell):
        pods = self.pods(shell)
        for pod in [pods.start(index) for index in range(3)]:
            pod.ends_with(0)
        for index in range(3):
            (pods.records / f"train.{index}.json").unlink()
        release = pods.folder / "release"
        early = pods.start(0)
        early.says("waiting for the parameter servers")
        early.goes_on(0.3)
        again = [early, pods.start(1), pods.start(2, STUB_UNTIL=str(release))]
        pods.await_file(pods.records / "train.2.json")
        for pod in again:
            pod.goes_on(0.2)
        release.touch()
        for pod in again:
            pod.ends_with(0)

    @in_each_shell
    def test_a_parameter_server_that_cannot_start_says_why(self, shell):
        pods = self.pods(shell)
        text = pods.start(0, STUB_SERVER_EXIT="5").ends_with(5)
        self.assertIn("the parameter server exited with 5", text)
        self.assertIn("no such device", text)

    @in_each_shell
    def test_peers_that_never_come_are_given_up(self, shell):
        pods = self.pods(shell)
        pod = pods.start(0, INFRA_PEER_TIMEOUT="4")
        self.assertRegex(pod.ends_with(1), "gave up waiting for the parameter servers? of .* after 4 s")
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_names_may_come_late(self, shell):
        pods = self.pods(shell)
        pods.hosts.touch()
        trainers = [pods.start(index) for index in range(3)]
        trainers[0].says("waiting for the parameter servers")
        trainers[0].goes_on()
        self.assertEqual(list(pods.records.glob("train.*")), [])
        name = "paddle-cluster-job-{}.paddle-cluster-job.default.svc.cluster.local"
        pods.hosts.write_text("".join(f"{pods.address(index)} {name.format(index)}\n" for index in range(3)))
        for pod in trainers:
            pod.ends_with(0)

    @in_each_shell
    def test_being_asked_to_end_ends_all(self, shell):
        pods = self.pods(shell)
        trainers = [pods.start(index, STUB_UNTIL="/nowhere", STUB_TIDY_SECONDS="0.5") for index in range(3)]
        for index, pod in enumerate(trainers):
            # Before, it would miss the parameter server of a pod that has been asked already.
            pod.says(f"trainer {index} begins")
        for pod in trainers:
            pod.ask_to_end()
        for index, pod in enumerate(trainers):
            pod.ends_with(143)
            self.assertEqual(pod.others_alive(), [])
            for program in ("pserver", "train"):
                self.assertTrue((pods.records / f"{program}.{index}.ended").exists(), f"{program} had no time to tidy up")
        self.assertEqual(list(pods.root.glob(".infra/r-*/up.*")), [], "marks say that somebody is up")

    @in_each_shell
    def test_a_missing_configuration_is_not_tried_again(self, shell):
        pods = Pods(self, "paddle-v0", shell)
        text = pods.start(0).ends_with(64)
        self.assertIn(f"there is no directory {pods.root}/recommendation", text)
        self.assertEqual(list(pods.records.iterdir()), [])

    @in_each_shell
    def test_a_single_trainer_needs_nobody(self, shell):
        pods = Pods(self, "paddle-v0-single", shell)
        pods.write("quick-start/config/trainer_config.py")
        # Not 127.0.0.1, where the parameter server of a real pod does not listen either.
        pods.start(0, address=f"{pods.network}.7").ends_with(0)
        flags = pods.record("train.0")["flags"]
        self.assertEqual((flags["pservers"], flags["trainer_count"], flags["use_gpu"]), (f"{pods.network}.7", "1", "0"))

    @in_each_shell
    def test_a_program_of_the_users_own_runs_beside_the_servers(self, shell):
        pods = Pods(self, "paddle-v0-ports", shell)
        for pod in [pods.start(index) for index in range(2)]:
            pod.ends_with(0)
        for index in range(2):
            record = pods.record(f"worker.{index}")
            self.assertEqual(record["arguments"][1:], ["train.py", "--passes", "2"])
            environment = record["environment"]
            self.assertEqual(environment["PADDLE_INIT_PORT"], "7200")
            self.assertEqual(environment["PADDLE_INIT_PORTS_NUM"], "3")
            self.assertEqual(environment["PADDLE_INIT_TRAINER_COUNT"], "4")
            self.assertEqual(environment["PADDLE_INIT_NUM_GRADIENT_SERVERS"], "2")
        self.assertTrue((pods.claim / "ads/ctr/output/node_1/server.log").exists())


if __name__ == "__main__":
    unittest.main()
