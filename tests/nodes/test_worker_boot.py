"""Workers as they live: what they do without their file system, when it appears, and after a reboot; and on drives of their own."""

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


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class OwnDrives(Boot):
    cluster = "ha-gpu-efs"
    bootstrap = "etc/kubernetes/bootstrap.conf"
    certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"

    def assert_joined(self, machine):
        machine.wait_for_signal()
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["SUCCESS"], machine.console_text())
        self.assertEqual(machine.unit("kubelet.service", "SubState"), ("running",))
        self.assertEqual(machine.failed_units(), "")
        for path in ("/var/lib/containerd", "/var/lib/kubelet"):
            self.assertEqual(machine.run("findmnt", "-n", "--output=FSTYPE", "--mountpoint", path), "ext4\n")

    def test_a_worker_joins_with_images_and_pods_on_its_drive(self):
        machine = self.site.worker("gpu", [self.site.disk()])
        machine.server_starts()
        self.assert_joined(machine)
        self.assertTrue((machine.root / self.bootstrap).exists())
        # As the kubelet does when it has its first certificate.
        machine.run("sh", "-c", f"echo mine >{self.certificate}; echo to-the-api >/var/lib/kubelet/kubeconfig; touch /var/lib/kubelet/old")
        wait_for("the end of the key that it joined with", lambda: not (machine.root / self.bootstrap).exists())

        machine.kill()
        machine.boot()
        self.assert_joined(machine)
        self.assertEqual(machine.run("cat", self.certificate, "/var/lib/kubelet/kubeconfig"), "mine\nto-the-api\n")
        self.assertEqual(machine.run("ls", "/var/lib/kubelet").split(), ["kubeconfig", "pki", "volumeplugins"])

        # Pods are stopped before what they write to is unmounted.
        self.assertIn("scratch.service", machine.unit("containerd.service", "Requires")[0])
        self.assertIn("scratch.service", machine.unit("containerd.service", "After")[0])
        self.assertIn("containerd.service", machine.unit("kubelet.service", "After")[0])
        self.assertIn("var-lib-kubelet.mount", machine.unit("scratch.service", "After")[0])

    def test_a_worker_whose_drives_are_missing_says_so_and_does_not_join(self):
        machine = self.site.worker("gpu")
        machine.server_starts()
        machine.wait_for_signal()
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["FAILURE"])
        reason = "prepare-scratch failed: the machine has no Amazon EC2 NVMe Instance Storage, but its type should"
        self.assertIn(reason, machine.console_text())
        for unit in ("containerd.service", "kubelet.service"):
            self.assertEqual(machine.unit(unit, "ActiveState"), ("inactive",), unit)


if __name__ == "__main__":
    unittest.main()
