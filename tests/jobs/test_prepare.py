"""What happens before the program of a pod is started: directories of the run, waiting for the data."""

import shutil
import stat
import unittest

from pods import Pods, in_each_shell, in_seconds


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
    def test_nothing_begins_without_its_code(self, shell):
        pods = Pods(self, "pytorch", shell)
        code = pods.claim / "code/0123"
        text = pods.start(0, prepare=True, INFRA_CODE_ON_CLAIM=str(code)).ends_with(64)
        self.assertIn(f"the code of this job is not on the claim: there is no {code}; `infra job submit --replace` uploads it again", text)
        code.mkdir(parents=True)
        pods.start(0, prepare=True, INFRA_CODE_ON_CLAIM=str(code)).ends_with(0)

    @in_each_shell
    def test_a_group_is_not_restarted_for_ever(self, shell):
        pods = Pods(self, "pytorch", shell)
        pods.start(0, prepare=True, INFRA_ATTEMPT="500").ends_with(0)
        text = pods.start(0, prepare=True, INFRA_ATTEMPT="501").ends_with(64)
        self.assertIn("the group was restarted 501 times, at most 500 are allowed", text)
        text = pods.start(0, prepare=True, INFRA_ATTEMPT="3", INFRA_MOST_RESTARTS="2").ends_with(64)
        self.assertIn("restarted 3 times, at most 2 are allowed", text)

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


if __name__ == "__main__":
    unittest.main()
