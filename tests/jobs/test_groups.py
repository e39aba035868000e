"""How launchers of one group succeed and fail together, run for real in the shells that images have."""

import time
import unittest

from pods import Pods, in_each_shell, in_seconds

FOREVER = "/nowhere"
LONG = "100"


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
        # A delay of this process makes the time longer, and never shorter. Launchers count whole seconds, and so hold up to one less.
        began = time.monotonic()
        pod = pods.start(1, STUB_EXIT="7", INFRA_HOLD="3")
        pod.says("the program exited with 7; this pod waits up to 3 s, so that a lost machine is not counted as a failure of the program")
        pods.mark("failed.0.worker.1")
        pod.ends_with(7)
        self.assertGreaterEqual(time.monotonic() - began, 2)
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


if __name__ == "__main__":
    unittest.main()
