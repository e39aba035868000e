"""Machines on the Deep Learning image: what they boot with beside the same pool on Flatcar, and their life from the script on."""

import base64
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from boots import Boot  # noqa: E402
from cloud_machine import CloudWorker  # noqa: E402
import deep_learning_image  # noqa: E402
from golden import CLUSTERS, TOOLS, Config  # noqa: E402
from key_search import assert_no_key, holds_key, pieces_of_key  # noqa: E402
from machine import why_not  # noqa: E402
from node_archive import NodeArchive  # noqa: E402

IMPOSSIBLE = why_not() or deep_learning_image.why_not()
CLUSTER = "deep-learning"
UNITS = "/etc/systemd/system/"
BOOTSTRAP = "/etc/kubernetes/bootstrap.conf"
HUGE_PAGES = "/etc/sysctl.d/91-huge-pages.conf"
# What only one of the images has.
FLATCAR_FILES = {
    "/etc/flatcar/update.conf", "/etc/flatcar/enabled-sysext.conf", "/etc/infra/nvidia.env", "/etc/containerd/config-nvidia.toml",
    "/opt/infra/bin/fetch-nvidia-runtime",
}
UBUNTU_FILES = {
    "/etc/infra/downloads", "/etc/infra/units", "/etc/infra/gpu.env", HUGE_PAGES, "/etc/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf",
    *(f"/opt/infra/bin/{name}" for name in ("apply-node", "check-driver", "check-shutdown", "release-drives", "reset-firewall")),
}


class Forms(unittest.TestCase):
    def setUp(self):
        self.flatcar = Config(CLUSTERS / CLUSTER / "expected/userdata/pool-flatcar.ign")
        self.ubuntu = NodeArchive(CLUSTER, "pool-ubuntu")

    def test_both_images_have_the_same_files(self):
        files = {path for path in self.ubuntu.paths() - set(self.ubuntu.downloads) if not path.startswith(UNITS) and self.ubuntu.entries[path][0].isfile()}
        embedded = {path for path, file in self.flatcar.files.items() if file.contents is not None}
        self.assertEqual(embedded - files, FLATCAR_FILES)
        self.assertEqual(files - embedded, UBUNTU_FILES)
        for path in sorted(files & embedded - {"/etc/containerd/config.toml"}):
            with self.subTest(path):
                entry, content = self.ubuntu.entries[path]
                file = self.flatcar.files[path]
                self.assertEqual((entry.mode, entry.uid, entry.gid), (file.mode, file.owner, file.owner))
                self.assertEqual(content, file.contents)
        # By name: these are what a job sees of a machine.
        self.assertTrue({"/etc/kubernetes/kubelet.yaml", "/etc/kubernetes/bootstrap.conf", "/opt/infra/bin/node-environment"} <= files & embedded)

    def test_both_images_download_the_same(self):
        downloads = {path: (file.hash.removeprefix("sha256-"), file.mode, file.source) for path, file in self.flatcar.files.items() if file.contents is None}
        self.assertGreaterEqual(len(downloads), 4)
        self.assertEqual(self.ubuntu.downloads, downloads)

    def test_containerd_differs_by_the_file_and_selinux_only(self):
        flatcar = self.flatcar.text("/etc/containerd/config-nvidia.toml").splitlines()
        ubuntu = self.ubuntu.text("/etc/containerd/config.toml").splitlines()
        self.assertEqual(
            [line for line in flatcar if line not in ubuntu],
            ["# The NVIDIA runtime extension starts containerd with a file of this name, whatever CONTAINERD_CONFIG says.",
             "[plugins.'io.containerd.cri.v1.runtime']", "# As in Flatcar's own configuration.", "enable_selinux = true"])
        self.assertEqual([line for line in ubuntu if line not in flatcar], [])

    def test_both_images_have_the_same_units(self):
        """Labels and all flags are part of the kubelet's unit, taints and reservations of files."""
        common = 0
        for name, unit in self.flatcar.units.items():
            with self.subTest(name):
                if "contents" not in unit or name == "nvidia-runtime.service":
                    continue
                expected = unit["contents"].replace(" nvidia-runtime.service nvidia.service", "").replace(" nvidia-runtime.service", "")
                own = self.ubuntu.text(UNITS + name)
                self.assertEqual(own.replace("infra.internal/pool=ubuntu", "infra.internal/pool=flatcar"), expected)
                self.assertEqual(name in self.ubuntu.units("start"), bool(unit.get("enabled")))
                common += 1
                for drop_in in unit.get("dropins", []):
                    self.assertEqual(self.ubuntu.text(f"{UNITS}{name}.d/{drop_in['name']}"), drop_in["contents"])
        self.assertGreaterEqual(common, 10)
        self.assertIn("containerd.service", self.ubuntu.units("start"))

    def test_machines_with_efa_have_locked_memory_and_huge_pages_and_know_their_adapters(self):
        for pool, adapters in (("pool-h100", 32), ("pool-a100", 4), ("pool-ubuntu", 0)):
            with self.subTest(pool):
                archive = NodeArchive(CLUSTER, pool)
                settings = archive.text("/etc/infra/gpu.env").splitlines()
                self.assertIn(f"INFRA_EFA_ADAPTERS={adapters}", settings)
                self.assertEqual(UNITS + "containerd.service.d/30-efa.conf" in archive.paths(), adapters > 0)
                # The image sets huge pages aside with and without adapters; what was set last before the kubelet counts.
                pages = 5128 if adapters else 0
                self.assertTrue(archive.text(HUGE_PAGES).endswith(f"\nvm.nr_hugepages = {pages}\n"))
                self.assertIn(f"\nExecStartPre=-/usr/lib/systemd/systemd-sysctl {HUGE_PAGES}\n", archive.text(UNITS + "kubelet.service.d/20-checks.conf"))
                labels = archive.text(UNITS + "kubelet.service")
                self.assertEqual(f"infra.internal/efa={adapters}" in labels, adapters > 0)
        archive = NodeArchive(CLUSTER, "pool-h100")
        self.assertIn("\nLimitMEMLOCK=infinity\n", archive.text(UNITS + "containerd.service.d/30-efa.conf"))

    def test_user_data_is_small_and_holds_no_key(self):
        self.assertLess(len(self.ubuntu.user_data), 4096)
        pieces = pieces_of_key(self.ubuntu.text(BOOTSTRAP))
        self.assertFalse(holds_key(self.ubuntu.user_data, pieces))
        for planted in (self.ubuntu.bytes.decode(errors="replace"), base64.b64encode(self.ubuntu.bytes).decode()):
            self.assertTrue(holds_key(f"{self.ubuntu.user_data}{planted}", pieces))
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write(self.ubuntu.user_data)
            file.flush()
            # The names that a loop sets are unknown to it.
            words = [TOOLS / "venv/bin/shellcheck", "--exclude=SC2154", file.name]
            run = subprocess.run(words, capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout)

    def test_scripts_are_clean(self):
        with tempfile.TemporaryDirectory() as directory:
            scripts = []
            for path in self.ubuntu.paths():
                if path.startswith("/opt/infra/bin/") or path.startswith("/opt/infra/lib/"):
                    target = pathlib.Path(directory + path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(self.ubuntu.text(path))
                    scripts.append(target)
            self.assertGreater(len(scripts), 8)
            run = subprocess.run([TOOLS / "venv/bin/shellcheck", "-x", *sorted(scripts)], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout)

    def test_what_would_change_the_machine_is_masked(self):
        for name in ("apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service", "docker.service", "dlami-nvme.service", "swap.target"):
            entry, _ = self.ubuntu.entries[UNITS + name]
            self.assertTrue(entry.issym() and entry.linkname == "/dev/null", name)


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class Life(Boot):
    cluster = CLUSTER

    def machine(self, change=lambda machine: None, drives=True):
        drives = [self.site.disk()] if drives else []
        return self.site.enter_context(CloudWorker(self.site, NodeArchive(CLUSTER, "pool-ubuntu"), self.site.number(), drives, change))

    def assert_joined(self, machine):
        try:
            machine.wait_for_signal()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{machine.console_text()}") from None
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["SUCCESS"], machine.console_text())
        self.assertEqual(machine.unit("kubelet.service", "SubState"), ("running",))
        self.assertEqual(machine.failed_units(), "")
        self.assertEqual(machine.aws.faults, [], "AWS would have refused these")

    def assert_stopped(self, machine, reason, seconds=180):
        machine.wait_for_signal(seconds)
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["FAILURE"], machine.console_text())
        self.assertEqual(machine.aws.signals[0]["UniqueId"], machine.instance)
        self.assertIn(reason, machine.console_text())
        self.assertEqual(machine.unit("kubelet.service", "ActiveState"), ("inactive",))
        self.assertFalse(holds_key(machine.console_text(), pieces_of_key(machine.archive.text(BOOTSTRAP))))

    def assert_forwards(self, machine):
        """Docker's stand-in has written down what it left."""
        left = (machine.root / deep_learning_image.DOCKER_LEFT.lstrip("/")).read_text()
        self.assertIn("-P FORWARD DROP\n", left)
        self.assertIn("-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\n", left)
        self.assertEqual(machine.run("iptables", "--list-rules", "FORWARD"), "-P FORWARD ACCEPT\n")
        self.assertNotIn("MASQUERADE", machine.run("iptables", "--table", "nat", "--list-rules"))
        self.assertNotIn("docker0", machine.run("ip", "link"))

    def assert_nothing_was_unpacked(self, machine):
        for path in ("etc/kubernetes", "opt/infra", "opt/bin"):
            self.assertFalse((machine.root / path).exists(), path)
        self.assertEqual(machine.run("ls", "-A", "/run/infra-boot", check=False), "")

    def test_a_worker_joins_and_comes_back_after_a_power_cut(self):
        machine = self.machine()
        machine.server_starts()
        self.assert_joined(machine)
        # unattended-upgrades of the image allows 30 s.
        self.assertTrue((machine.root / "usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf").exists())
        delay = ["busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec"]
        self.assertEqual(machine.run(*delay), "t 110000000\n")
        for unit in ("docker.service", "dlami-nvme.service", "unattended-upgrades.service", "apt-daily.timer"):
            self.assertEqual(machine.unit(unit, "LoadState", "ActiveState"), ("masked", "inactive"), unit)
        self.assert_forwards(machine)
        # cloud-init keeps copies of what passes through it, and logs.
        assert_no_key(self, machine, machine.archive.text(BOOTSTRAP))
        fetched = machine.aws.count("s3:GetObject")

        machine.kill()
        machine.boot()
        self.assert_joined(machine)
        self.assertEqual(machine.aws.count("s3:GetObject"), fetched, "the script ran again")
        self.assertEqual(machine.run(*delay), "t 110000000\n")

    def test_an_archive_with_another_digest_is_not_unpacked(self):
        def change(machine):
            machine.aws.objects[machine.object] += b"\0" * 512

        machine = self.machine(change)
        self.assert_stopped(machine, "does not have the sha512")
        self.assert_nothing_was_unpacked(machine)

    def test_a_missing_archive_stops_the_machine(self):
        def change(machine):
            machine.settings["INFRA_DEADLINE_SECONDS"] = "6"
            machine.aws.objects.pop(machine.object)

        machine = self.machine(change)
        self.assert_stopped(machine, "was not read within 6 s: the machine's role may not read it, or it is missing: ")
        self.assertIn("(AccessDenied)", machine.console_text())
        self.assert_nothing_was_unpacked(machine)

    def test_a_missing_archive_stops_a_machine_that_may_list_at_once(self):
        def change(machine):
            machine.aws.may_list = True
            machine.aws.objects.pop(machine.object)

        machine = self.machine(change)
        self.assert_stopped(machine, ".tar is missing: ")
        self.assertIn("(NoSuchKey)", machine.console_text())
        self.assert_nothing_was_unpacked(machine)

    def test_a_denied_key_stops_the_machine_when_its_rights_had_time_to_come(self):
        message = "User: arn:aws:sts::111122223333:assumed-role/node is not authorized to perform: kms:Decrypt"

        def change(machine):
            machine.settings["INFRA_DEADLINE_SECONDS"] = "6"
            machine.aws.script("s3:GetObject", *[(403, "AccessDenied", message)] * 50)

        machine = self.machine(change)
        self.assert_stopped(machine, "was not read within 6 s: ")
        self.assertIn(message, machine.console_text())
        self.assert_nothing_was_unpacked(machine)

    def test_a_program_with_another_hash_starts_no_kubelet(self):
        machine = self.machine(lambda machine: machine.aws.files.update({"opt/bin/kubelet": b"something else"}))
        self.assert_stopped(machine, "/opt/bin/kubelet does not have the sha256")
        self.assertEqual(machine.unit("kubelet.service", "UnitFileState"), ("disabled",))

    def test_a_machine_whose_kubelet_does_not_delay_a_shutdown_says_so(self):
        def change(machine):
            machine.settings["INFRA_DEADLINE_SECONDS"] = "5"
            machine.replace_program("/opt/bin/kubelet", b"#!/bin/sh\nexec sleep infinity\n")

        machine = self.machine(change)
        machine.server_starts()
        machine.wait_for_signal()
        self.assertEqual([signal["Status"] for signal in machine.aws.signals], ["FAILURE"], machine.console_text())
        self.assertIn("check-shutdown failed: the kubelet's delay of a shutdown: not within 5 s", machine.console_text())
        self.assertIn("the kubelet does not delay a shutdown; t 110000000", machine.console_text())

    def test_missing_adapters_are_a_reason(self):
        def change(machine):
            machine.settings["INFRA_DEADLINE_SECONDS"] = "5"
            machine.replace_file("/etc/infra/gpu.env", b"INFRA_FABRIC_MANAGER=no\nINFRA_EFA_ADAPTERS=32\n")

        machine = self.machine(change)
        machine.server_starts()
        self.assert_stopped(machine, "0 of 32 EFA adapters found")

    def test_another_version_of_the_fabric_manager_is_a_reason(self):
        def change(machine):
            machine.write("usr/bin/nv-fabricmanager", "#!/bin/sh\necho 'Fabric Manager version is : 580.95.05'\n", 0o755)
            machine.replace_file("/etc/infra/gpu.env", b"INFRA_FABRIC_MANAGER=yes\n")

        machine = self.machine(change)
        machine.server_starts()
        self.assert_stopped(machine, "the fabric manager has version 580.95.05, but the driver has version 580.126.09")


if __name__ == "__main__":
    unittest.main()
