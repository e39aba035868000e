"""What every launcher does, run for real in the shells that images have: logs, signals, the deadline, the exit status."""

import os
import pathlib
import shutil
import signal
import time
import unittest

from pods import Pods, in_each_shell, in_seconds

FOREVER = "/nowhere"
LONG = "100"


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
    def test_a_group_is_not_restarted_for_ever(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.attempt = 500
        self.assertIn("worker 1 begins", pods.start(1).ends_with(0))
        pods.attempt = 501
        why = "the group was restarted 501 times, at most 500 are allowed: its machines are lost, or its pods evicted, again and again"
        self.assertIn(why, pods.start(0).ends_with(64))
        pods.attempt = 3
        self.assertIn("restarted 3 times, at most 2 are allowed", pods.start(0, INFRA_MOST_RESTARTS="2").ends_with(64))

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
        # Once is enough: what else the machine does may delay any of them.
        self.assertTrue(any(self.seconds_to_kill(shell) < 6 for _ in range(3)), "it takes more than the grace period")

    def seconds_to_kill(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pod = pods.start(1, STUB_UNTIL=FOREVER, STUB_DEAF="", INFRA_GRACE="7")
        pods.await_file(pods.records / "worker.1.json")
        asked = time.monotonic()
        pod.ask_to_end()
        self.assertIn("did not end within 2 s and is killed", pod.ends_with(143))
        seconds = time.monotonic() - asked
        self.assertEqual(pod.others_alive(), [])
        return seconds

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


class Settings(unittest.TestCase):
    @in_each_shell
    def test_what_is_no_number_is_not_retried(self, shell):
        pods = Pods(self, "tensorflow", shell)
        for name, value in (("INFRA_HOLD", "3m"), ("INFRA_PEER_TIMEOUT", "08"), ("INFRA_LAST_WAIT", "-1"), ("INFRA_LOG_LIMIT", "64Mi"),
                            ("INFRA_MOST_RESTARTS", "1" * 16)):
            self.assertIn(f"{name} is '{value}', which is not a number", pods.start(1, **{name: value}).ends_with(64))
        self.assertEqual(list(pods.records.iterdir()), [])
        pods.start(1, INFRA_HOLD="0", INFRA_PEER_TIMEOUT="", INFRA_LAST_WAIT="1" * 15).ends_with(0)


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
        end = pods.folder / "end"
        pod = pods.start(1, INFRA_PAUSE="90", STUB_UNTIL=str(end))
        pod.says("worker 1 begins")
        # Until the launcher waits, which takes it milliseconds.
        pod.goes_on(2)
        end.touch()
        pod.ends_with(0, within=60)

    @in_each_shell
    def test_a_program_has_a_process_group_of_its_own(self, shell):
        pods = Pods(self, "tensorflow", shell)
        pods.start(1).ends_with(0)
        process, group = pods.record("worker.1")["group"]
        self.assertEqual(process, group)


if __name__ == "__main__":
    unittest.main()
