"""Rendered stacks, judged by checkov: what fails is known, and explained in docs/decisions.md."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHECKOV = ROOT / "target/test-tools/checkov/bin/checkov"

# Each with the resources it is about.
KNOWN = {
    "CKV_AWS_88": {"ControllerLaunchTemplate", "NodeLaunchTemplate"},
    "CKV_AWS_91": {"InternalLoadBalancer", "PublicLoadBalancer"},
    "CKV_AWS_111": {"ControllerRole", "EtcdRole0", "EtcdRole1", "EtcdRole2", "NodeRole"},
}


class Policy(unittest.TestCase):
    def test_what_fails_is_known_and_explained(self):
        with tempfile.TemporaryDirectory() as directory:
            for path in (ROOT / "tests/clusters").glob("*/expected/stacks"):
                shutil.copytree(path, pathlib.Path(directory) / path.parent.parent.name)
            command = [CHECKOV, "--directory", directory, "--framework", "cloudformation", "--skip-download", "--output", "json", "--compact"]
            # Nothing of it needs the network, and nothing of ours is to reach one.
            environment = {**os.environ, "BC_API_KEY": "", "LOG_LEVEL": "ERROR"}
            run = subprocess.run(command, capture_output=True, text=True, env=environment)
        results = json.loads(run.stdout)["results"]
        self.assertGreater(len(results["passed_checks"]), 500)
        failed = {}
        for check in results["failed_checks"]:
            failed.setdefault(check["check_id"], set()).add(check["resource"].split(".")[-1])
        self.assertEqual(failed, KNOWN)
        decisions = (ROOT / "docs/decisions.md").read_text()
        for check in KNOWN:
            self.assertIn(check, decisions)


if __name__ == "__main__":
    unittest.main()
