"""The judge of scripts/frameworks: it must see when processes trained alone, or not at all."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "frameworks"))
from drive import faults_of, on_loopback  # noqa: E402
from contract import contract  # noqa: E402
from rendering import parse_json  # noqa: E402

GOOD = [{"rank": rank, "world": 2, "first": 6.0, "last": 0.001, "weights": [2.98, 1.01]} for rank in range(2)]


class Judge(unittest.TestCase):
    def test_good_results_pass(self):
        self.assertEqual(faults_of(GOOD), [])

    def test_every_fault_is_seen(self):
        first, second = GOOD
        for results, fault in (
            ([first, {**second, "world": 1}], "a world of 1, not of 2"),
            ([first], "the ranks are [0]"),
            ([], "the ranks are []"),
            ([first, first], "the ranks are [0, 0]"),
            ([{**first, "last": 5.0}, second], "learned nothing"),
            ([first, {**second, "weights": [2.97, 1.01]}], "did not train together"),
            ([{**result, "weights": [0.0, 0.0]} for result in GOOD], "not 3 and 1"),
            ([{**result, "last": float("nan")} for result in GOOD], "learned nothing"),
        ):
            self.assertIn(fault, "; ".join(faults_of(results)))

    def test_names_become_loopback_addresses_with_ports_of_their_own(self):
        (pods,) = contract("tensorflow").roles.values()
        told = on_loopback(pods.environment(1), pods.hosts, ["127.9.9.1", "127.9.9.2"])
        workers = parse_json(told["TF_CONFIG"])["cluster"]["worker"]
        self.assertEqual([worker.split(":")[0] for worker in workers], ["127.9.9.1", "127.9.9.2"])
        self.assertEqual(len({worker.split(":")[1] for worker in workers}), 2)


if __name__ == "__main__":
    unittest.main()
