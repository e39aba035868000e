"""A PyTorch job of three pods on four spot machines that are taken back, drained and lose their power: nothing counts, nothing is lost."""

import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import real_cluster  # noqa: E402, F401 - first: it says where everything else is
from chapters import in_order, say  # noqa: E402
from training import MACHINES, REPLICAS, TrainingChapters  # noqa: E402

DISTURBANCES = 10
POWER_CUTS = 3


def load_tests(_loader, _tests, _pattern):
    return in_order(LostMachines)


class LostMachines(TrainingChapters):
    environments = ["pytorch"]

    def test_notices_and_drains_cost_no_retry(self):
        self.submit("ddp", retries=1)
        lost = []
        for number in range(DISTURBANCES):
            self.wait_for_machines()
            self.wait_for_progress("ddp")
            lost.append(self.disturb("ddp", self.take_back if number % 2 == 0 else self.drain))
            self.assertEqual(self.restarts("ddp"), (number + 1, 0))
        say(f"notices: {sorted(map(round, lost[::2]))} s; drains: {sorted(map(round, lost[1::2]))} s; median {statistics.median(lost):.0f} s")
        self.end_well("ddp")

    def test_power_cuts_cost_no_retry(self):
        self.submit("power", retries=1)
        lost = []
        for number in range(POWER_CUTS):
            self.wait_for_machines()
            self.wait_for_progress("power")
            lost.append(self.disturb("power", self.cut_power))
            self.assertEqual(self.restarts("power"), (number + 1, 0))
        say(f"power cuts: {sorted(map(round, lost))} s")
        self.end_well("power")

    def test_without_the_hold_a_power_cut_is_counted(self):
        """Shows that the chapter before could fail: peers fail before Kubernetes has noticed that a machine is gone."""
        self.submit("unheld", variables=", INFRA_HOLD: \"0\"")
        for _ in range(POWER_CUTS):
            self.wait_for_machines()
            self.wait_for_progress("unheld")
            self.disturb("unheld", self.cut_power)
            if self.restarts("unheld")[1]:
                break
        self.assertGreater(self.restarts("unheld")[1], 0)
        self.delete("unheld")

    def end_well(self, name):
        self.wait_for_machines()
        self.assertEqual(len(self.of_role("pool-train")), MACHINES)
        self.finish(name)
        self.assert_same_losses(name)
        results = self.results(name)
        self.assertEqual([result["world"] for result in results], [REPLICAS] * REPLICAS)
        self.assertEqual(len({tuple(result["weights"]) for result in results}), 1)
        losses = [entry["loss"] for entry in self.steps(name)]
        say(f"{name}: {self.highest(name) + 1} steps, loss {losses[0]:.3f} to {losses[-1]:.4f}, restarts {self.restarts(name)}")
        self.delete(name)
