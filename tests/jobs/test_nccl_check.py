"""The program of `infra job nccl-check`, with loopback addresses as machines: what it measures, and what it says of machines that fail.

PyTorch is a stub; INFRA_PYTORCH names a Python that has the real one (scripts/frameworks)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "templates/jobs/nccl_check.py"
REAL = os.environ.get("INFRA_PYTORCH")
# Of this process: the port is always the same.
NAMES = [f"127.{os.getpid() >> 8 & 127 | 128}.{os.getpid() & 255}.{number}" for number in (1, 2, 3)]
# How long a conductor may take; only a test that fails waits so long.
PATIENCE_SECONDS = 120
PAIRS = [[[0, 1]], [[0, 2]], [[1, 2]]]
NCCL_SAYS = """a:1:2 [0] NCCL INFO Bootstrap : Using eth0:10.2.1.7<0>
a:1:2 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 4 nics)
a:1:2 [0] NCCL INFO Using network Libfabric
a:1:2 [0] NCCL INFO Channel 00/02 : 0 1
a:1:2 [0] NCCL INFO Using network Libfabric
"""


@unittest.skipUnless(sys.platform == "linux", "every address of 127.0.0.0/8 is loopback on Linux")
class NcclCheck(unittest.TestCase):
    def setUp(self):
        self.logs = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.machines = {}

    def environment(self, **more):
        own = {"PATH": "/usr/bin:/bin", "INFRA_BACKEND": "gloo", "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
               "TMPDIR": str(self.logs)}
        if REAL:
            own["LD_LIBRARY_PATH"] = str(pathlib.Path(REAL).parents[1] / "lib")
        else:
            own["PYTHONPATH"] = str(HERE / "stubs/pytorch")
        return own | more

    def start(self, name, processes=1, **more):
        environment = self.environment(INFRA_ADDRESS=name, INFRA_PROCESSES=str(processes), **more)
        self.machines[name] = subprocess.Popen([REAL or sys.executable, "-u", PROGRAM, "machine"], env=environment, start_new_session=True,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop, name)

    def stop(self, name):
        """As a container ends: with all its processes."""
        try:
            os.killpg(self.machines[name].pid, 9)
        except ProcessLookupError:
            pass
        self.machines[name].wait()

    def conduct(self, roles=None, rounds=(*PAIRS, [[0, 1, 2]]), limit=20, processes=1, without=(), lose=None):
        """What is said from the first line to the last; a machine may be lost when the first round begins."""
        for name in NAMES:
            if name not in self.machines:
                more = {"STUB_ROLES": json.dumps(roles or {})} | ({"PYTHONPATH": ""} if name in without else {})
                self.start(name, processes, **more)
        plan = {"machines": [{"address": name, "processes": processes} for name in NAMES], "rounds": rounds, "bytes": 4 << 20, "limit": limit}
        said = []
        with subprocess.Popen([sys.executable, "-u", PROGRAM, "conduct"], env=self.environment(INFRA_PLAN=json.dumps(plan)),
                              stdout=subprocess.PIPE, text=True) as conductor:
            timer = threading.Timer(PATIENCE_SECONDS, conductor.kill)
            timer.start()
            self.addCleanup(timer.cancel)
            for line in conductor.stdout:
                said.append(json.loads(line))
                if lose and said[-1].get("round") == 1:
                    self.stop(lose)
        self.assertTrue(said, f"it says nothing and exits with {conductor.returncode}")
        self.assertEqual((conductor.returncode, said[-1]), (0, {"end": True}))
        return said

    def groups(self, said):
        """By their machines, and all together by its name."""
        lines = [line for line in said if "group" in line]
        groups = {tuple(line["group"]): line for line in lines[:3]}
        return groups | {"all": line for line in lines[3:]}

    def test_every_pair_and_all_together_are_measured(self):
        groups = self.groups(self.conduct())
        self.assertEqual(list(groups), [(0, 1), (0, 2), (1, 2), "all"])
        self.assertEqual([line["ranks"] for line in groups.values()], [2, 2, 2, 3])
        for line in groups.values():
            self.assertGreater(line["seconds"], 0)

    def test_a_machine_has_a_process_for_each_gpu(self):
        groups = self.groups(self.conduct(processes=2))
        self.assertEqual([line.get("ranks") for line in groups.values()], [4, 4, 4, 6])

    def test_a_machine_that_is_lost_is_named_in_each_of_its_groups(self):
        groups = self.groups(self.conduct(lose=NAMES[2], limit=5))
        self.assertEqual([list(line.get("errors", {})) for line in groups.values()], [[], ["0", "2"], ["2"], []])
        self.assertRegex(groups[(1, 2)]["errors"]["2"], "its pod (ended|does not answer)")
        # All together are those that are left.
        self.assertEqual(groups["all"]["group"], [0, 1])

    @unittest.skipIf(REAL, "the stub is told to")
    def test_a_pair_is_as_slow_as_its_slower_machine(self):
        groups = self.groups(self.conduct({NAMES[1]: {"seconds": 0.1}}))
        seconds = {group: line["seconds"] for group, line in groups.items()}
        self.assertLess(seconds[(0, 2)], 0.08)
        for group in (0, 1), (1, 2), "all":
            self.assertGreaterEqual(seconds[group], 0.1)

    @unittest.skipIf(REAL, "the stub is told to")
    def test_a_machine_that_hangs_costs_the_limit_and_no_more(self):
        began = time.monotonic()
        groups = self.groups(self.conduct({NAMES[1]: {"hangs": True}}, limit=5))
        self.assertLess(time.monotonic() - began, 60)
        self.assertEqual(groups[(0, 1)]["errors"]["1"], "no answer in time")
        self.assertIn("1", groups[(1, 2)]["errors"])
        self.assertIn("seconds", groups[(0, 2)])
        self.assertEqual(groups["all"]["group"], [0, 2])

    @unittest.skipIf(REAL, "the stub is told to")
    def test_a_wrong_sum_is_an_error(self):
        groups = self.groups(self.conduct({NAMES[0]: {"adds": 1}}, limit=5))
        self.assertEqual(groups[(0, 1)]["errors"]["0"], "ArithmeticError: the sum is wrong: data was changed on its way")
        self.assertIn("seconds", groups[(1, 2)])

    @unittest.skipIf(REAL, "the stub can be left out")
    def test_a_machine_without_pytorch_says_so(self):
        said = self.conduct(without=[NAMES[0]])
        self.assertEqual(said[0], {"machine": 0, "error": "ModuleNotFoundError: No module named 'torch'"})
        self.assertIn("seconds", self.groups(said)[(1, 2)])

    @unittest.skipIf(REAL, "gloo says nothing")
    def test_what_nccl_says_of_its_network_is_passed_on_and_nothing_else(self):
        said = self.conduct({NAMES[0]: {"says": NCCL_SAYS}}, rounds=[[[0, 1]]])
        network = {line["machine"]: line["network"] for line in said if "network" in line}
        found = ["NET/OFI Selected provider is efa, fabric is efa (found 4 nics)", "Using network Libfabric"]
        self.assertEqual(network, {0: found, 1: [], 2: []})


if __name__ == "__main__":
    unittest.main()
