"""The launcher of paddle-v0, run for real: trainers and parameter servers on loopback, in the shells that images have."""

import unittest

from pods import Pods, in_each_shell

LINES = [f"line {number}\n" for number in range(6)]
FOREVER = "/nowhere"
LONG = "100"


class Trainers(unittest.TestCase):
    def pods(self, shell):
        """Three trainers' data and configuration, as the import leaves them."""
        pods = Pods(self, "paddle-v0", shell)
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
            self.assertEqual(record["flags"]["save_dir"], str(pods.output))
            self.assertNotIn("start_pass", record["flags"])
            self.assertEqual(record["environment"]["PADDLE_INIT_TRAINER_ID"], str(index))
            self.assertEqual(record["environment"]["PADDLE_INIT_PSERVERS"], peers)
            self.assertEqual(record["files"]["data/train.txt"], "".join(LINES[2 * index:2 * index + 2]))
            self.assertEqual(record["files"]["trainer_config.py"], "settings()\n")
            self.assertEqual(record["files"]["words/dictionary.txt"], "a\n")
            self.assertIn(f"trainer {index} begins\ntrainer {index} ends\n", pods.log(index).read_text())
            self.assertEqual((pods.output / f"node_{index}/server.log").read_text(), "listening\n")
            self.assertIn(f"trainer {index} ends", pods.running[index].text, "the pod's own log has it too")
        self.assertLessEqual({f"done.trainer.{index}" for index in range(3)}, pods.mark_names)

    def in_data(self, shell, count=3):
        """The tree of the tutorials on AWS: the parts are below data/."""
        pods = Pods(self, "paddle-v0", shell)
        for index in range(count):
            pods.write(f"{pods.root.name}/data/{index}/train.txt", f"part {index}\n")
        pods.write(f"{pods.root.name}/recommendation/trainer_config.py", "settings()\n")
        return pods

    @in_each_shell
    def test_the_tree_of_the_tutorials_on_aws_is_read(self, shell):
        pods = self.in_data(shell)
        for pod in [pods.start(index) for index in range(3)]:
            pod.ends_with(0)
        for index in range(3):
            self.assertEqual(pods.record(f"train.{index}")["files"]["data/train.txt"], f"part {index}\n")

    @in_each_shell
    def test_data_that_is_divided_among_others_is_refused(self, shell):
        for make, fewer, more in ((self.in_data, "data/2", "data/3"), (self.numbered, "2/data", "3/data")):
            pods = make(shell, 2)
            text = pods.start(2).ends_with(64)
            self.assertIn(f"the data is divided among fewer than 3 trainers: there is no {pods.root}/{fewer}", text)
            pods = make(shell, 4)
            text = pods.start(0).ends_with(64)
            self.assertIn(f"the data is divided among more than 3 trainers: there is {pods.root}/{more}", text)
            self.assertEqual(list(pods.records.iterdir()), [])

    def numbered(self, shell, count):
        pods = Pods(self, "paddle-v0", shell)
        for index in range(count):
            pods.write(f"{pods.root.name}/{index}/data/train.txt")
        pods.write(f"{pods.root.name}/recommendation/trainer_config.py")
        return pods

    @in_each_shell
    def test_two_trees_of_data_are_refused(self, shell):
        pods = self.pods(shell)
        pods.write(f"{pods.root.name}/data/0/train.txt")
        self.assertIn(f"there are both {pods.root}/0/data and {pods.root}/data/0", pods.start(1).ends_with(64))

    @in_each_shell
    def test_a_job_without_data_says_so(self, shell):
        pods = Pods(self, "paddle-v0-single", shell)
        pods.write("quick-start/config/trainer_config.py")
        text = pods.start(0).ends_with(0)
        self.assertIn(f"/data: there is neither {pods.root}/0/data nor {pods.root}/data/0", text)

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
            pods.mark(f"done.trainer.{index}")
            pod.goes_on(0.3)
        release.touch()
        # It looks for every parameter server once more when it ends.
        slow.ends_with(0)
        for pod in quick:
            pod.ends_with(0)
            self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_one_that_is_done_and_terminated_has_not_succeeded(self, shell):
        pods = self.pods(shell)
        slow = [pods.start(index, STUB_UNTIL=FOREVER) for index in (1, 2)]
        done = pods.start(0)
        done.says("waiting for the other trainers")
        for index, pod in enumerate(slow, start=1):
            pod.says(f"trainer {index} begins")
        done.ask_to_end()
        # Its machine goes away, and with it a parameter server that the others need.
        done.ends_with(143)
        self.assertEqual(done.others_alive(), [])
        for pod in slow:
            pod.goes_on(0.1)

    @in_each_shell
    def test_a_failed_trainer_keeps_its_status_and_the_others_do_not_succeed(self, shell):
        pods = self.pods(shell)
        fail = pods.folder / "fail"
        done, training = pods.start(0), pods.start(2, STUB_UNTIL=FOREVER)
        failing = pods.start(1, STUB_TRAIN_EXIT="3", STUB_UNTIL=str(fail), INFRA_HOLD=LONG)
        pods.mark("done.trainer.0")
        for pod, index in ((training, 2), (failing, 1)):
            pod.says(f"trainer {index} begins")
        fail.touch()
        # All launchers are there, so no machine was lost.
        self.assertIn("trainer 1 exited with 3; this pod waits", failing.ends_with(3, within=30))
        self.assertEqual(failing.others_alive(), [], "its parameter server is left")
        done.goes_on(0.3)
        self.assertNotIn("done.trainer.1", pods.mark_names)

    @in_each_shell
    def test_a_restarted_group_trains_from_the_last_complete_pass(self, shell):
        pods = self.pods(shell)
        # The last one was not written to its end, and one is of the middle of a pass.
        for name in ("pass-00007", "pass-00008", "pass-00009-001"):
            (pods.output / name).mkdir()
        for name in ("pass-00007", "pass-00009-001"):
            (pods.output / name / "done").touch()
        pods.attempt = 1
        for pod in [pods.start(index) for index in range(3)]:
            self.assertIn("pass 7 is complete: training continues with pass 8 of 10", pod.ends_with(0))
        for index in range(3):
            flags = pods.record(f"train.{index}")["flags"]
            # Passes are counted from the first.
            self.assertEqual((flags["start_pass"], flags["num_passes"]), ("8", "2"))
            self.assertNotIn("init_model_path", flags)

    @in_each_shell
    def test_a_model_to_begin_with_is_not_loaded_again(self, shell):
        pods = Pods(self, "paddle-v0-single", shell)
        pods.write("quick-start/config/trainer_config.py")
        (pods.output / "pass-00000").mkdir()
        (pods.output / "pass-00000/done").touch()
        pods.start(0, TRAIN_ARGS="--config=a.py --init_model_path=/models/old").ends_with(0)
        flags = pods.record("train.0")["flags"]
        self.assertEqual((flags["start_pass"], flags["num_passes"], flags["init_model_path"]), ("1", "99", ""))

    @in_each_shell
    def test_a_start_that_the_user_named_is_kept(self, shell):
        pods = Pods(self, "paddle-v0-single", shell)
        pods.write("quick-start/config/trainer_config.py")
        (pods.output / "pass-00003").mkdir()
        (pods.output / "pass-00003/done").touch()
        pods.start(0, TRAIN_ARGS="--config=a.py --start_pass=1 --num_passes=5").ends_with(0)
        flags = pods.record("train.0")["flags"]
        self.assertEqual((flags["start_pass"], flags["num_passes"]), ("1", "5"))

    @in_each_shell
    def test_a_group_with_all_passes_has_nothing_left_to_train(self, shell):
        pods = self.pods(shell)
        (pods.output / "pass-00009").mkdir()
        (pods.output / "pass-00009/done").touch()
        self.assertIn("all 10 passes are complete", pods.start(0).ends_with(0))
        self.assertEqual(list(pods.records.iterdir()), [])
        self.assertIn("done.trainer.0", pods.mark_names)

    @in_each_shell
    def test_marks_of_another_attempt_are_not_believed(self, shell):
        pods = self.pods(shell)
        for pod in [pods.start(index, STUB_UNTIL=FOREVER if index == 2 else "/") for index in range(3)]:
            pods.await_file(pods.records / f"train.{pods.running.index(pod)}.json")
        pods.mark("done.trainer.0")
        pods.mark("done.trainer.1")
        for index, pod in enumerate(pods.running):
            # Machines are lost: nobody takes a mark away. The new pods may even have the old addresses.
            pod.kill()
            (pods.records / f"train.{index}.json").unlink()
        pods.attempt = 1
        release = pods.folder / "release"
        first = pods.start(0)
        first.says("waiting for the parameter servers")
        first.goes_on(0.5)
        self.assertFalse((pods.records / "train.0.json").exists(), "it believed marks of pods that are gone")
        others = [pods.start(1, STUB_UNTIL=str(release)), pods.start(2)]
        pods.await_file(pods.records / "train.1.json")
        for pod in (first, others[1]):
            pod.says("waiting for the other trainers")
            pod.goes_on(0.5)
        release.touch()
        for pod in [first, *others]:
            pod.ends_with(0)

    @in_each_shell
    def test_marks_of_replaced_pods_are_not_believed(self, shell):
        pods = self.pods(shell)
        for pod in [pods.start(index, STUB_UNTIL=FOREVER) for index in range(3)]:
            pods.await_file(pods.records / f"train.{pods.running.index(pod)}.json")
        for index, pod in enumerate(pods.running):
            pod.kill()
            (pods.records / f"train.{index}.json").unlink()
        # A group that was suspended comes back under the same attempt, with other addresses.
        pods.move()
        first = pods.start(0)
        first.says("waiting for the parameter servers")
        first.goes_on(0.5)
        self.assertFalse((pods.records / "train.0.json").exists(), "it believed marks of pods that are gone")
        for pod in [first, pods.start(1), pods.start(2)]:
            pod.ends_with(0)

    @in_each_shell
    def test_a_parameter_server_that_cannot_start_says_why(self, shell):
        pods = self.pods(shell)
        text = pods.start(0, STUB_SERVER_EXIT="5").ends_with(5)
        self.assertIn("the parameter server exited with 5", text)
        self.assertIn("no such device", text)
        self.assertIn("failed.0.trainer.0", pods.mark_names)

    @in_each_shell
    def test_a_parameter_server_that_ends_ends_its_trainer(self, shell):
        pods = self.pods(shell)
        release = pods.folder / "release"
        trainers = [pods.start(index, STUB_UNTIL=FOREVER, **({"STUB_SERVER_UNTIL": str(release)} if index == 1 else {})) for index in range(3)]
        for index, pod in enumerate(trainers):
            pod.says(f"trainer {index} begins")
        release.touch()
        self.assertIn("the parameter server exited with 6", trainers[1].ends_with(6))
        self.assertTrue((pods.records / "train.1.ended").exists(), "its trainer was not asked to end")
        self.assertEqual(trainers[1].others_alive(), [])

    @in_each_shell
    def test_peers_that_never_come_are_given_up_if_the_user_says_so(self, shell):
        pods = self.pods(shell)
        pod = pods.start(0, INFRA_PEER_TIMEOUT="3")
        self.assertRegex(pod.ends_with(1), "gave up waiting for the parameter servers? of .* after 3 s")
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_names_may_come_late(self, shell):
        pods = self.pods(shell)
        pods.hosts.touch()
        trainers = [pods.start(index) for index in range(3)]
        trainers[0].says("waiting for the parameter servers")
        trainers[0].goes_on()
        self.assertEqual(list(pods.records.glob("train.*")), [])
        names = pods.contract.roles["trainer"].hosts
        pods.hosts.write_text("".join(f"{pods.address(index)} {name}\n" for index, name in enumerate(names)))
        for pod in trainers:
            pod.ends_with(0)

    @in_each_shell
    def test_being_asked_to_end_ends_all(self, shell):
        pods = self.pods(shell)
        trainers = [pods.start(index, STUB_UNTIL=FOREVER, STUB_TIDY_SECONDS="0.5") for index in range(3)]
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

    @in_each_shell
    def test_code_takes_the_place_of_the_configuration_on_the_claim(self, shell):
        pods = self.pods(shell)
        code = pods.folder / "code"
        (code / "words").mkdir(parents=True)
        (code / "trainer_config.py").write_text("settings(2)\n")
        (code / "words/dictionary.txt").write_text("b\n")
        for pod in [pods.start(index, INFRA_CODE_DIR=str(code)) for index in range(3)]:
            pod.ends_with(0)
        for index in range(3):
            files = pods.record(f"train.{index}")["files"]
            self.assertEqual((files["trainer_config.py"], files["words/dictionary.txt"]), ("settings(2)\n", "b\n"))
            self.assertEqual(files["data/train.txt"], "".join(LINES[2 * index:2 * index + 2]))

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
        (pods.output / "pass-00007").mkdir()
        (pods.output / "pass-00007/done").touch()
        for pod in [pods.start(index) for index in range(2)]:
            pod.ends_with(0)
        for index in range(2):
            record = pods.record(f"trainer.{index}")
            self.assertEqual(record["arguments"][1:], ["train.py", "--passes", "2"])
            environment = record["environment"]
            self.assertEqual(environment["PADDLE_INIT_PORT"], "7200")
            self.assertEqual(environment["PADDLE_INIT_PORTS_NUM"], "3")
            self.assertEqual(environment["PADDLE_INIT_TRAINER_COUNT"], "4")
            self.assertEqual(environment["PADDLE_INIT_NUM_GRADIENT_SERVERS"], "2")
        self.assertTrue((pods.output / "node_1/server.log").exists())


if __name__ == "__main__":
    unittest.main()
