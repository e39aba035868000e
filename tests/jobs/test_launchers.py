"""What every launcher does, run for real in the shells that images have: logs, signals, the deadline, success and failure in a group."""

import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

from pods import Pods, applets, in_each_shell

FOREVER = "/nowhere"
LONG = "100"


def in_seconds(seconds):
    return str(int(time.time()) + seconds)


class Logs(unittest.TestCase):
    @in_each_shell
    def test_what_a_program_prints_is_in_the_pods_log_and_on_the_claim(self, shell):
        pods = Pods(self, "tensorflow", shell)
        told = pods.start(1).ends_with(0)
        kept = pods.log(1).read_text().splitlines()
        self.assertRegex(kept[0], r"^infra: run first, attempt 0, worker 1, 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        for text in ("worker 1 begins", "worker 1 warns"):
            self.assertIn(text, told)
            self.assertIn(text, kept)

    @in_each_shell
    def test_each_attempt_has_a_log_of_its_own_and_a_resumed_one_continues_it(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1, STUB_EXIT="7").ends_with(7)
        pods.start(1, STUB_EXIT="7", STUB_PRINT="once more").ends_with(7)
        first = pods.log(1).read_text()
        self.assertEqual((first.count("attempt 0"), first.count("worker 1 begins"), first.count("once more")), (2, 1, 1))
        self.assertIn("the program exited with 7", first, "why an attempt ended is on the claim too: its pods are gone")
        pods.attempt = 1
        pods.start(1).ends_with(0)
        self.assertIn("attempt 1", pods.log(1).read_text().splitlines()[0])
        self.assertEqual(first, (pods.run / "logs/attempt-0/worker-1/output.log").read_text())

    @in_each_shell
    def test_a_log_that_is_too_large_begins_anew(self, shell):
        pods = Pods(self, "tensorflow", shell)
        program = (
            "printf 'line %s of many that fill a disk\\n' $(seq 0 199);"
            'log=$INFRA_LOG_DIR/attempt-0/worker-1/output.log; until [ -e "$log.1" ] && ! grep -q "line 0 of" "$log"; do sleep 0.1; done; echo the end'
        )
        pods.start(1, program=["sh", "-c", program], INFRA_LOG_LIMIT="2000").ends_with(0)
        kept = pods.log(1).read_text()
        self.assertIn("line 0 of", pods.log(1).with_name("output.log.1").read_text())
        self.assertRegex(kept, r"^infra: run first, attempt 0, worker 1, ")
        self.assertIn("the end\n", kept)
        self.assertNotIn("line 0 of", kept)

    @in_each_shell
    def test_a_claim_that_cannot_be_written_to_does_not_end_training(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for folder in (pods.run / "logs", pods.marks):
            folder.rmdir()
            folder.touch()
        text = pods.start(1).ends_with(0)
        self.assertEqual(text.count(f"cannot write to {pods.log(1)}"), 1)
        self.assertEqual(text.count(f"cannot write to {pods.marks}"), 1)
        self.assertIn("worker 1 begins", text)
        self.assertIn("worker 1 warns", text)

    @in_each_shell
    def test_a_process_that_is_left_behind_does_not_keep_the_pod(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, program=["sh", "-c", "sleep 1000 & echo started"])
        pod.ends_with(0, within=30)
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_nothing_is_left_in_memory(self, shell):
        pods = Pods(self, "tensorflow", shell)
        # A process with the same number may have been killed, and have left its own.
        before = set(pathlib.Path("/dev/shm").iterdir())
        pod = pods.start(1, STUB_UNTIL=FOREVER)
        pods.await_file(pods.records / "worker.1.json")
        held = [path for path in pathlib.Path("/dev/shm").glob(f"infra.{pod.process.pid}.*") if path not in before]
        self.assertEqual(len(held), 1)
        pod.ask_to_end()
        pod.ends_with(143)
        self.assertFalse(held[0].exists())

    @unittest.skipUnless(os.geteuid() == 0, "NOT CHECKED: images without root need the superuser")
    @in_each_shell
    def test_an_image_without_root_can_write(self, shell):
        pods = Pods(self, "tensorflow", shell)
        shutil.rmtree(pods.root)
        pods.start(1, prepare=True).ends_with(0)
        program = ["sh", "-c", 'id -u; echo weights >"$INFRA_OUTPUT_DIR/model"']
        text = pods.start(1, user=12345, program=program).ends_with(0)
        self.assertEqual((pods.output / "model").read_text(), "weights\n")
        self.assertNotIn("cannot", text)
        self.assertIn("12345\n", pods.log(1).read_text())
        self.assertIn("done.worker.1", pods.mark_names)


class Signals(unittest.TestCase):
    @in_each_shell
    def test_being_terminated_reaches_the_program(self, shell):
        for number in (signal.SIGTERM, signal.SIGINT):
            pods = Pods(self, "tensorflow", shell)
            pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_TIDY_SECONDS="0.5")
            pods.await_file(pods.records / "worker.1.json")
            pod.ask_to_end(number)
            pod.ends_with(143)
            self.assertTrue((pods.records / "worker.1.ended").exists())
            self.assertEqual(pod.others_alive(), [])
            self.assertEqual(pods.mark_names, set())

    @in_each_shell
    def test_it_reaches_what_a_script_started_and_waits_for_it(self, shell):
        pods = Pods(self, "tensorflow", shell)
        # The script itself ends at once, and nothing holds the log open.
        pod = pods.start(1, program=["sh", "-c", "python train.py >/dev/null 2>&1; exit 9"], STUB_UNTIL=FOREVER, STUB_TIDY_SECONDS="1")
        pods.await_file(pods.records / "worker.1.json")
        pod.ask_to_end()
        pod.ends_with(143)
        self.assertTrue((pods.records / "worker.1.ended").exists(), "it had no time to save")

    @in_each_shell
    def test_a_program_that_handles_the_signal_gives_the_status(self, shell):
        for told, status in (("7", 7), ("64", 64), ("0", 143)):
            pods = Pods(self, "tensorflow", shell)
            pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_TERM_EXIT=told)
            pods.await_file(pods.records / "worker.1.json")
            pod.ask_to_end()
            pod.ends_with(status)
            self.assertEqual(pods.mark_names, set(), "a program that was asked to end has neither succeeded nor failed")

    @in_each_shell
    def test_a_deaf_program_is_killed(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_DEAF="", INFRA_GRACE="7")
        pods.await_file(pods.records / "worker.1.json")
        asked = time.monotonic()
        pod.ask_to_end()
        self.assertIn("did not end within 2 s and is killed", pod.ends_with(143))
        self.assertLess(time.monotonic() - asked, 6, "it takes more than the grace period")
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_a_pod_that_waits_ends_at_once(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        pod = pods.start(1, INFRA_PAUSE="60")
        pod.says("waiting for the name")
        pod.ask_to_end()
        pod.ends_with(143, within=20)

    @in_each_shell
    def test_a_program_that_is_not_there_is_not_retried(self, shell):
        pods = Pods(self, "tensorflow", shell)
        self.assertIn("there is no program '/no/such'", pods.start(1, program=["/no/such"], INFRA_HOLD=LONG).ends_with(64))


class Deadline(unittest.TestCase):
    @in_each_shell
    def test_it_ends_the_program_and_the_job(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_TERM_EXIT="0", INFRA_DEADLINE=in_seconds(3), INFRA_HOLD=LONG)
        pods.await_file(pods.records / "worker.1.json")
        self.assertIn("the deadline has passed\n", pod.ends_with(64))
        self.assertTrue((pods.records / "worker.1.ended").exists())
        self.assertEqual(pods.mark_names, set())

    @in_each_shell
    def test_it_ends_a_deaf_program_too(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_DEAF="", INFRA_DEADLINE=in_seconds(2), INFRA_GRACE="1")
        self.assertIn("is killed", pod.ends_with(64))
        self.assertEqual(pod.others_alive(), [])

    @in_each_shell
    def test_a_program_is_not_started_after_it(self, shell):
        pods = Pods(self, "tensorflow", shell)
        self.assertIn("the deadline has passed", pods.start(1, INFRA_DEADLINE=in_seconds(-1)).ends_with(64))
        self.assertEqual(list(pods.records.iterdir()), [])

    @in_each_shell
    def test_it_ends_waiting_for_peers(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        text = pods.start(1, INFRA_DEADLINE=in_seconds(2)).ends_with(64)
        self.assertIn("the deadline has passed while waiting for the name", text)

    @in_each_shell
    def test_waiting_for_peers_ends_when_the_user_says_so(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.hosts.touch()
        text = pods.start(1, INFRA_PEER_TIMEOUT="1").ends_with(1)
        self.assertRegex(text, r"gave up waiting for the name ddp-\S+ after 1 s")


class Success(unittest.TestCase):
    @in_each_shell
    def test_a_group_that_has_succeeded_is_not_trained_again(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for index in (1, 0):
            pods.start(index).ends_with(0)
        self.assertLessEqual({"done.worker.0", "done.worker.1"}, pods.mark_names)
        for index in range(2):
            (pods.records / f"worker.{index}.json").unlink()
        pods.attempt = 1
        for index in range(2):
            self.assertIn("nothing is left to do", pods.start(index, INFRA_DEADLINE=in_seconds(-1)).ends_with(0))
        self.assertEqual(list(pods.records.glob("*.json")), [])

    @in_each_shell
    def test_it_is_trained_again_if_one_has_not(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(0).ends_with(0)
        pods.start(1, STUB_EXIT="7").ends_with(7)
        (pods.records / "worker.0.json").unlink()
        pods.attempt = 1
        pods.start(0).ends_with(0)
        self.assertTrue((pods.records / "worker.0.json").exists())

    @in_each_shell
    def test_marks_of_another_submission_do_not_count(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for index in (1, 0):
            pods.start(index).ends_with(0)
            (pods.records / f"worker.{index}.json").unlink()
        pods.uid = "another"
        pods.marks.mkdir()
        pods.start(1).ends_with(0)
        self.assertTrue((pods.records / "worker.1.json").exists())

    @in_each_shell
    def test_the_first_waits_for_the_others(self, shell):
        pods = Pods(self, "tensorflow", shell)
        release = pods.folder / "release"
        first, other = pods.start(0, INFRA_LAST_WAIT=LONG), pods.start(1, STUB_UNTIL=str(release))
        first.says(f"waiting up to {LONG} s for worker 1")
        first.goes_on()
        release.touch()
        other.ends_with(0)
        first.ends_with(0, within=20)

    @in_each_shell
    def test_it_does_not_wait_for_ever(self, shell):
        pods = Pods(self, "tensorflow", shell)
        text = pods.start(0, INFRA_LAST_WAIT="1").ends_with(0)
        self.assertIn("the job is complete without waiting longer for worker 1", text)

    @in_each_shell
    def test_it_waits_for_this_attempt(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1).ends_with(0)
        pods.attempt = 1
        first = pods.start(0, INFRA_LAST_WAIT=LONG)
        first.says("waiting up to")
        first.goes_on()
        # It has succeeded, whatever happens to its machine.
        first.ask_to_end()
        first.ends_with(0)

    @in_each_shell
    def test_one_that_fails_at_the_end_does_not_fail_the_job(self, shell):
        pods = Pods(self, "tensorflow", shell)
        fail = pods.folder / "fail"
        first = pods.start(0, INFRA_LAST_WAIT=LONG)
        other = pods.start(1, STUB_UNTIL=str(fail), STUB_EXIT="7", INFRA_HOLD=LONG)
        first.says("waiting up to")
        fail.touch()
        first.ends_with(0, within=20)
        other.says("this pod waits up to")
        # Kubernetes sees the success first, and terminates the others.
        other.goes_on(1)

    @in_each_shell
    def test_where_all_count_nobody_waits(self, shell):
        pods = Pods(self, "paddle-processors", shell)
        pods.start(0, INFRA_LAST_WAIT=LONG).ends_with(0, within=20)


class Failure(unittest.TestCase):
    @in_each_shell
    def test_a_failed_pod_is_held(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, STUB_EXIT="7", INFRA_HOLD="2")
        pod.says("the program exited with 7; this pod waits up to 2 s, so that a lost machine is not counted as a failure of the program")
        pods.mark("failed.0.worker.1")
        said = time.monotonic()
        pod.ends_with(7)
        self.assertGreater(time.monotonic() - said, 0.5)
        self.assertNotIn("done.worker.1", pods.mark_names)

    @in_each_shell
    def test_the_first_that_failed_ends_first(self, shell):
        """Kubernetes then terminates the others, which failed because of it, and names it."""
        pods = Pods(self, "tensorflow", shell)
        first = pods.start(1, STUB_EXIT="8", INFRA_HOLD=LONG)
        pods.mark("failed.0.worker.1")
        first.goes_on()
        other = pods.start(0, STUB_EXIT="7", INFRA_HOLD=LONG)
        first.ends_with(8, within=30)
        other.goes_on(1)
        other.ask_to_end()
        other.ends_with(7)

    @in_each_shell
    def test_it_is_not_held_when_the_others_are_there(self, shell):
        pods = Pods(self, "pytorch-program", shell)
        trains = pods.start(0, program=["python"], STUB_UNTIL=FOREVER)
        pods.hosts.touch()
        waits = pods.start(2, program=["python"])
        waits.says("waiting for the name")
        failed = pods.start(1, program=["python"], STUB_EXIT="7", INFRA_HOLD=LONG, PET_MASTER_ADDR="127.0.0.1")
        failed.ends_with(7, within=30)
        trains.goes_on(0.1)
        waits.goes_on(0.1)

    @in_each_shell
    def test_it_is_held_when_a_machine_is_lost(self, shell):
        pods = Pods(self, "pytorch-program", shell)
        trains, lost = (pods.start(index, program=["python"], STUB_UNTIL=FOREVER) for index in (0, 2))
        pods.await_file(pods.records / "worker.2.json")
        lost.kill()
        failed = pods.start(1, program=["python"], STUB_EXIT="7", INFRA_HOLD=LONG)
        pods.mark("alive.0.worker.0")
        failed.goes_on(1)
        # Kubernetes restarts the group.
        failed.ask_to_end()
        failed.ends_with(7, within=20)
        trains.goes_on(0.1)

    @in_each_shell
    def test_a_machine_that_is_being_drained_counts_as_lost(self, shell):
        pods = Pods(self, "tensorflow", shell)
        drained = pods.start(0, STUB_UNTIL=FOREVER, STUB_TIDY_SECONDS="3")
        pods.await_file(pods.records / "worker.0.json")
        drained.ask_to_end()
        drained.says("this pod is being terminated")
        failed = pods.start(1, STUB_EXIT="7", INFRA_HOLD=LONG)
        drained.ends_with(143)
        failed.says("this pod waits up to")
        failed.goes_on(1)

    @in_each_shell
    def test_what_happened_in_another_attempt_does_not_count(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for index in range(2):
            pods.start(index, STUB_EXIT="7").ends_with(7, within=30)
        pods.attempt = 1
        failed = pods.start(1, STUB_EXIT="7", INFRA_HOLD=LONG)
        pods.mark("failed.1.worker.1")
        failed.goes_on(1)

    @in_each_shell
    def test_a_group_that_comes_back_takes_its_own_marks_back(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for name in ("failed.0.worker.1", "alive.0.worker.1", "done.worker.1"):
            (pods.marks / name).write_text("0\n")
        pods.start(1, STUB_UNTIL=FOREVER)
        pods.await_file(pods.records / "worker.1.json")
        self.assertEqual(pods.mark_names, set())

    @in_each_shell
    def test_the_deadline_ends_the_hold(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1, STUB_EXIT="7", INFRA_HOLD=LONG, INFRA_DEADLINE=in_seconds(4)).ends_with(7, within=30)

    @in_each_shell
    def test_a_pod_of_its_own_is_not_held(self, shell):
        pods = Pods(self, "tensorflow-single", shell)
        text = pods.start(0, STUB_EXIT="23", INFRA_HOLD=LONG).ends_with(23, within=20)
        self.assertIn("the program exited with 23\n", text)

    @in_each_shell
    def test_what_a_retry_cannot_fix_is_not_held(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1, STUB_EXIT="64", INFRA_HOLD=LONG).ends_with(64, within=20)
        self.assertEqual(pods.mark_names, set())


class Prepare(unittest.TestCase):
    @in_each_shell
    def test_every_user_may_write_to_the_directories_of_the_run(self, shell):
        pods = Pods(self, "pytorch", shell)
        shutil.rmtree(pods.root)
        for _ in range(2):
            pods.start(0, prepare=True).ends_with(0)
        for folder in (pods.run, pods.output, pods.run / "logs", pods.run / "logs/attempt-0", pods.run / ".infra", pods.marks):
            self.assertEqual(stat.S_IMODE(folder.stat().st_mode), 0o777, folder)
        self.assertEqual(stat.S_IMODE(pods.root.stat().st_mode) & 0o022, 0, "the rest of the claim is not opened to every user")

    @in_each_shell
    def test_directories_that_a_program_expects_elsewhere_are_there(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.start(0, prepare=True, INFRA_MOUNTS="models tables/small").ends_with(0)
        for folder in ("models", "tables/small"):
            self.assertEqual(stat.S_IMODE((pods.run / folder).stat().st_mode), 0o777, folder)

    @in_each_shell
    def test_a_run_begins_once_and_is_resumed_only_if_it_exists(self, shell):
        pods = Pods(self, "pytorch", shell)
        shutil.rmtree(pods.run)
        text = pods.start(0, prepare=True, INFRA_RESUMED="yes").ends_with(64)
        self.assertIn(f"there is no run first to resume: {pods.run} holds none", text)
        self.assertFalse(pods.run.exists())
        # Both pods of the group, and again in its next attempt.
        for index, attempt in ((0, "0"), (1, "0"), (0, "1")):
            pods.start(index, prepare=True, INFRA_ATTEMPT=attempt).ends_with(0)
        later = {"INFRA_MARK_DIR": str(pods.run / ".infra/later")}
        self.assertIn("there is a run first already", pods.start(0, prepare=True, **later).ends_with(64))
        for index in (0, 1):
            pods.start(index, prepare=True, INFRA_RESUMED="yes", **later).ends_with(0)

    @in_each_shell
    def test_a_directory_that_cannot_be_created_is_not_retried(self, shell):
        pods = Pods(self, "pytorch", shell)
        shutil.rmtree(pods.run)
        pods.run.touch()
        self.assertIn(f"cannot create {pods.run}: the claim is read-only or full", pods.start(0, prepare=True).ends_with(64))

    @in_each_shell
    def test_a_tree_that_a_seed_image_does_not_read_is_refused(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.write(f"{pods.root.name}/data/0/train.txt")
        text = pods.start(0, prepare=True, INFRA_SEED_IMAGE="yes").ends_with(64)
        self.assertIn(f"a seed image reads {pods.root}/0/data, and the data is in {pods.root}/data/0: rename the directories", text)
        # Others may have whatever they like there.
        pods.start(0, prepare=True).ends_with(0)
        pods.write(f"{pods.root.name}/0/data/train.txt")
        pods.start(0, prepare=True, INFRA_SEED_IMAGE="yes").ends_with(0)

    @in_each_shell
    def test_it_waits_for_the_data(self, shell):
        pods = Pods(self, "paddle", shell)
        stamp = pods.claim / pods.contract.roles["worker"].stamp.removeprefix("/mnt/training/")
        pod = pods.start(0, prepare=True)
        pod.says("waiting for the data")
        pod.goes_on(0.3)
        self.assertIn(str(stamp), pod.text)
        stamp.parent.mkdir(exist_ok=True)
        stamp.touch()
        pod.ends_with(0)

    @in_each_shell
    def test_it_does_not_wait_for_ever(self, shell):
        pods = Pods(self, "paddle", shell)
        self.assertIn("gave up waiting for the data", pods.start(0, prepare=True, INFRA_DATA_TIMEOUT="1").ends_with(1))
        late = pods.start(0, prepare=True, INFRA_DEADLINE=in_seconds(-1))
        self.assertIn("the deadline has passed while waiting for the data", late.ends_with(64))

    @in_each_shell
    def test_being_terminated_is_heard(self, shell):
        pods = Pods(self, "paddle", shell)
        pod = pods.start(0, prepare=True)
        pod.says("waiting for the data")
        pod.ask_to_end()
        pod.ends_with(143)


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

    def test_an_image_that_cannot_resolve_names_does_not_wait(self):
        pods = Pods(self, "pytorch", "busybox")
        pods.hosts.touch()
        for index in range(2):
            pods.start(index, program=["true"], path=str(applets())).ends_with(0, within=20)


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


class Status(unittest.TestCase):
    @in_each_shell
    def test_a_programs_status_is_the_pods(self, shell):
        for name, index in (("paddle", 1), ("pytorch", 1), ("pytorch-single", 0), ("tensorflow", 1)):
            pods = Pods(self, name, shell)
            pods.start(index, STUB_EXIT="23").ends_with(23)

    @in_each_shell
    def test_255_is_left_to_machines(self, shell):
        pods = Pods(self, "tensorflow", shell)
        self.assertIn("the program exited with 255", pods.start(1, STUB_EXIT="255").ends_with(1))

    @in_each_shell
    def test_the_end_of_a_program_is_seen_at_once(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1, INFRA_PAUSE="60").ends_with(0, within=30)

    @in_each_shell
    def test_a_program_has_a_process_group_of_its_own(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1).ends_with(0)
        process, group = pods.record("worker.1")["group"]
        self.assertEqual(process, group)


if __name__ == "__main__":
    unittest.main()
