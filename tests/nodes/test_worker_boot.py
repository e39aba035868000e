"""Workers as they live: what they do without their file system, when it appears, and after a reboot."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from boots import Boot  # noqa: E402
from machine import wait_for, why_not  # noqa: E402

IMPOSSIBLE = why_not()
REASON = "mount.nfs4: Failed to resolve server efs.research.infra.internal: Name or service not known"


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class FileSystem(Boot):
    cluster = "ha-gpu-efs"

    def assert_closed(self, machine):
        """No user can write to the root disk in the file system's place, not even root."""
        self.assertEqual(machine.run("stat", "--format=%a", "/mnt/efs"), "0\n")
        for words in (["touch", "/mnt/efs/lost"], ["mkdir", "/mnt/efs/lost"], ["chmod", "0777", "/mnt/efs"]):
            with self.assertRaisesRegex(AssertionError, "Operation not permitted"):
                machine.run(*words)

    def assert_joined(self, machine):
        machine.wait_for_signal()
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["SUCCESS"])
        self.assertEqual(machine.unit("kubelet.service", "SubState"), ("running",))
        self.assertEqual(machine.run("cat", "/mnt/efs/hello"), "from the server\n")
        machine.run("touch", "/mnt/efs/kept")
        self.assertEqual(machine.failed_units(), "")
        self.assertEqual(machine.aws.faults, [], "AWS would have refused these")

    def test_a_worker_joins_when_its_file_system_is_mounted(self):
        machine = self.site.worker("cpu")
        wait_for("the reason on the console", lambda: REASON in machine.console_text())
        attempts = lambda: machine.journal("mnt-efs.mount").count(REASON)
        # More than systemd's own limit of starts in ten seconds.
        wait_for("more attempts", lambda: attempts() > 5)
        self.assert_closed(machine)
        self.assertEqual(machine.unit("kubelet.service", "ActiveState"), ("inactive",))
        self.assertEqual(machine.unit("mount-file-system.service", "ActiveState"), ("activating",))
        self.assertEqual(machine.aws.signals, [])

        machine.server_starts()
        self.assert_joined(machine)

        machine.kill()
        (machine.root / "srv/server/hello").unlink()
        seen = machine.console_text().count(REASON)
        machine.boot()
        wait_for("the reason after a reboot", lambda: machine.console_text().count(REASON) > seen)
        self.assert_closed(machine)
        self.assertEqual(machine.unit("kubelet.service", "ActiveState"), ("inactive",))
        machine.server_starts()
        self.assert_joined(machine)
        self.assertTrue((machine.root / "srv/server/kept").exists())

        # Pods are stopped before what they write to is unmounted.
        order = machine.run("systemctl", "show", "kubelet.service", "--property=After,Requires")
        self.assertEqual(order.count("mount-file-system.service"), 2)
        self.assertIn("mnt-efs.mount", machine.unit("mount-file-system.service", "After")[0])


if __name__ == "__main__":
    unittest.main()
