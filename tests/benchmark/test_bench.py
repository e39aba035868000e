"""Whether scripts/bench would notice what it is there to notice. Its figures do not matter here: the machine is busy with tests."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / "scripts/benchmark"))

from growth import Growth
from listing import Listed, measure_list
from lives import live
from offline import POOLS, Measured
from processes import Cost, UnexpectedEnd, measure
from report import growth_table, list_table, lives_table, offline_table

INFRA = ROOT / "target/debug/infra"


def growth(cost_of):
    return Growth("it", "ms", POOLS, tuple(cost_of(pools) for pools in POOLS))


class Growths(unittest.TestCase):
    def test_linear_is_fine_whatever_the_beginning_costs(self):
        for beginning in (0, 5, 500):
            self.assertFalse(growth(lambda pools: beginning + 2 * pools).is_worse_than_linear(), beginning)

    def test_constant_is_fine_although_the_machine_is_noisy(self):
        self.assertFalse(growth({1: 20, 10: 19, 80: 22}.get).is_worse_than_linear())

    def test_quadratic_is_not(self):
        for beginning in (0, 20):
            worse = growth(lambda pools: beginning + pools ** 2 / 10)
            self.assertTrue(worse.is_worse_than_linear(), beginning)
            self.assertIn("WORSE", growth_table([worse]))


class Limits(unittest.TestCase):
    def test_too_slow_or_too_large_is_seen(self):
        fine = Measured("it", Cost(cpu=0.009, wall=9, memory=29), 10, 30)
        slow = Measured("it", Cost(cpu=0.011, wall=0, memory=29), 10, 30)
        large = Measured("it", Cost(cpu=0.009, wall=0, memory=31), 10, 30)
        free = Measured("it", Cost(cpu=100, wall=0, memory=1000))
        self.assertEqual([False, True, True, False], [row.is_over() for row in (fine, slow, large, free)])
        self.assertEqual(2, offline_table([fine, slow, large, free]).count("OVER"))

    def test_what_fails_has_no_figures(self):
        with self.assertRaisesRegex(UnexpectedEnd, "ended with 2:\nerror: cluster.yaml does not exist"):
            measure([INFRA, "validate"], "/")


class Lives(unittest.TestCase):
    def test_a_life_is_seen_by_the_stand_in(self):
        up, again, destroy = live(INFRA, 1)
        for passage in (up, again, destroy):
            self.assertEqual(4, passage.stacks)
            self.assertGreater(passage.calls, passage.stacks)
            self.assertGreater(passage.cost.cpu, 0)
        # Each resource takes 0.1 s, and nothing has to be done twice.
        for passage in (up, destroy):
            self.assertGreater(passage.in_stacks, 1)
            self.assertLess(passage.in_stacks, passage.cost.wall)
        self.assertEqual(0, again.in_stacks)
        self.assertLess(again.calls, up.calls)
        self.assertEqual(5, len(lives_table([up, again, destroy]).splitlines()))


class Lists(unittest.TestCase):
    def test_calls_do_not_grow_with_clusters(self):
        few, more = measure_list(INFRA, 2), measure_list(INFRA, 12)
        self.assertEqual((3, 3), (few.calls, more.calls))
        self.assertEqual((36, 60), (more.stacks, more.groups))

    def test_too_slow_is_seen(self):
        fine, slow = (Listed(1, 3, 5, 3, Cost(cpu=1, wall=wall, memory=30), 10) for wall in (9, 11))
        self.assertEqual([False, True], [row.is_over() for row in (fine, slow)])
        self.assertEqual(1, list_table([fine, slow]).count("OVER"))


class Script(unittest.TestCase):
    def test_explains_itself(self):
        run = subprocess.run([ROOT / "scripts/bench", "--help"], capture_output=True, text=True, check=True,
                             env={"PATH": "/usr/bin:/bin", "INFRA_BINARY": INFRA})
        self.assertIn("--without-peers", run.stdout)


if __name__ == "__main__":
    unittest.main()
