"""The scripts of the Deep Learning image that look at its driver, its drives and its firewall, with stubs for what the image brings."""

import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import Node  # noqa: E402

DRIVER = "580.126.09"
UNIT = "nvidia-fabricmanager.service"


class CheckDriver(Node):
    def setUp(self):
        super().setUp()
        self.environment["INFRA_DEADLINE_SECONDS"] = "0"
        self.stub("nvidia-smi", f"echo {DRIVER}")
        self.stub("systemctl")

    def settings(self, **settings):
        self.write("etc/infra/gpu.env", "".join(f"{name}={value}\n" for name, value in settings.items()))

    def fabric_manager(self, version=DRIVER):
        self.settings(INFRA_FABRIC_MANAGER="yes", INFRA_EFA_ADAPTERS=0)
        self.stub("nv-fabricmanager", f"echo 'Fabric Manager version is : {version}'")

    def attach(self, name, driver):
        """A device with RDMA, as the kernel shows it: by links into the tree of devices."""
        place = f"0000:00:{len(list((self.root / 'sys/devices').glob('*'))):02x}.0"
        device = self.root / "sys/devices" / place
        (device / "infiniband" / name).mkdir(parents=True)
        (device / "infiniband" / name / "device").symlink_to("../..")
        drivers = self.root / "sys/bus/pci/drivers" / driver
        drivers.mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(f"../../bus/pci/drivers/{driver}")
        shown = self.root / "sys/class/infiniband"
        shown.mkdir(parents=True, exist_ok=True)
        (shown / name).symlink_to(f"../../devices/{place}/infiniband/{name}")
        self.assertTrue((shown / name / "device/driver").samefile(drivers))

    def refuse(self, reason, **environment):
        self.run_script("check-driver", expect=1, **environment)
        self.assertRegex(self.console_lines()[-2], f"^infra: check-driver failed: {reason}$")
        self.assertEqual(self.signals(), ["FAILURE"])

    def accept(self, *lines, **environment):
        self.run_script("check-driver", **environment)
        self.assertEqual(self.console_lines(), [f"infra: {line}" for line in lines])
        self.assertEqual(self.signals(), [])

    def test_a_driver_alone(self):
        self.settings(INFRA_FABRIC_MANAGER="no", INFRA_EFA_ADAPTERS=0)
        self.accept(f"NVIDIA driver {DRIVER}")
        self.assertEqual(self.arguments_of("systemctl"), [])

    def test_a_driver_that_is_late_is_waited_for(self):
        self.settings(INFRA_FABRIC_MANAGER="no", INFRA_EFA_ADAPTERS=0)
        words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
        self.stub("nvidia-smi", f'(($(wc -l <{self.folder}/nvidia-smi.calls) > 1)) || {{ echo "{words}"; exit 9; }}\necho {DRIVER}')
        self.accept(f"waiting for the NVIDIA driver: nvidia-smi: {words}", f"NVIDIA driver {DRIVER}", INFRA_DEADLINE_SECONDS="60")
        self.stub("nvidia-smi", f'echo "{words}"; exit 9')
        self.refuse(f"the NVIDIA driver: not within 0 s; last: nvidia-smi: {words}")

    def test_a_fabric_manager_of_the_same_version_is_started(self):
        self.fabric_manager()
        # It does not run before it is started, and not at the first attempt.
        self.stub("systemctl", f"[[ $1 != is-active ]] || (($(grep -c '^start ' {self.folder}/systemctl.calls) > 1)) || exit 3\n[[ $1 != show ]] || echo exit-code")
        self.accept(f"NVIDIA driver {DRIVER}", f"waiting for the fabric manager: {UNIT}: exit-code; its journal says why",
                    f"fabric manager {DRIVER} runs", INFRA_DEADLINE_SECONDS="60")
        start, ask, why = ["start", UNIT], ["is-active", "--quiet", UNIT], ["show", "--property=Result", "--value", UNIT]
        self.assertEqual(self.arguments_of("systemctl"), [start, ask, why, start, ask])

    def test_a_fabric_manager_that_does_not_run_is_a_reason(self):
        self.fabric_manager()
        self.stub("systemctl", "[[ $1 == show ]] || exit 3\necho exit-code")
        self.refuse(f"the fabric manager: not within 0 s; last: {UNIT}: exit-code; its journal says why")

    def test_another_version_of_the_fabric_manager_is_not_started(self):
        self.fabric_manager("580.95.05")
        self.refuse(f"the fabric manager has version 580.95.05, but the driver has version {DRIVER}: .*; use another image")
        self.assertEqual(self.arguments_of("systemctl"), [])

    def test_a_fabric_manager_without_a_version_is_a_reason(self):
        self.fabric_manager("unknown")
        self.refuse("the version of the fabric manager is not known: Fabric Manager version is : unknown")

    def test_a_fabric_manager_that_is_missing_is_a_reason(self):
        self.settings(INFRA_FABRIC_MANAGER="yes", INFRA_EFA_ADAPTERS=0)
        self.refuse("the fabric manager is missing: .*nv-fabricmanager: command not found")

    def test_adapters_are_counted_by_their_driver(self):
        for name, driver in (("rdmap16s27", "efa"), ("mlx5_0", "mlx5_core"), ("rdmap32s27", "efa"), ("other", "not-efa")):
            self.attach(name, driver)
        for needed in (1, 2):
            with self.subTest(needed=needed):
                self.console.write_text("")
                self.settings(INFRA_FABRIC_MANAGER="no", INFRA_EFA_ADAPTERS=needed)
                self.accept(f"NVIDIA driver {DRIVER}", f"{needed} EFA adapters")
        self.settings(INFRA_FABRIC_MANAGER="no", INFRA_EFA_ADAPTERS=3)
        self.refuse("EFA: not within 0 s; last: 2 of 3 EFA adapters found; the kernel's log says why: .*")

    def test_a_machine_without_any_adapter(self):
        self.settings(INFRA_FABRIC_MANAGER="no", INFRA_EFA_ADAPTERS=4)
        self.refuse("EFA: not within 0 s; last: 0 of 4 EFA adapters found; .*")

    def test_fabric_manager_and_adapters(self):
        self.fabric_manager()
        self.settings(INFRA_FABRIC_MANAGER="yes", INFRA_EFA_ADAPTERS=1)
        self.attach("rdmap16s27", "efa")
        self.accept(f"NVIDIA driver {DRIVER}", f"fabric manager {DRIVER} runs", "1 EFA adapters")


class ReleaseDrives(Node):
    """The image has a logical volume over the machine's own drives; its programs are stubs."""

    VOLUME = "/dev/mapper/vg.01-lv_ephemeral"

    def setUp(self):
        super().setUp()
        self.write("etc/systemd/system/scratch.service", "")
        self.path = f"{self.root}/opt/dlami/nvme"
        self.stub("findmnt", f"echo {self.VOLUME}")
        self.stub("umount")
        self.stub("lvs", "echo '  vg.01'")
        # A volume that is mounted is in use.
        self.stub("vgchange", f"[[ -e {self.folder}/umount.calls ]] || {{ echo 'Logical volume in use' >&2; exit 5; }}")

    def assert_untouched(self, *programs):
        self.assertEqual([program for program in programs if self.arguments_of(program)], [])

    def test_the_volume_is_unmounted_and_its_group_deactivated(self):
        self.run_script("release-drives")
        self.assertEqual(self.arguments_of("findmnt"), [["--noheadings", "--output", "SOURCE", "--mountpoint", self.path]])
        self.assertEqual(self.arguments_of("umount"), [[self.path]])
        self.assertEqual(self.arguments_of("lvs"), [["--noheadings", "--options", "vg_name", self.VOLUME]])
        self.assertEqual(self.arguments_of("vgchange"), [["--activate", "n", "vg.01"]])
        self.assertEqual(self.console_lines(), ["infra: released the machine's own drives, which the image had put together as vg.01"])

    def test_drives_that_no_scratch_uses_stay(self):
        (self.root / "etc/systemd/system/scratch.service").unlink()
        self.run_script("release-drives")
        self.assert_untouched("findmnt", "umount", "lvs", "vgchange")

    def test_a_machine_without_the_volume(self):
        self.stub("findmnt", "exit 1")
        self.run_script("release-drives")
        self.assert_untouched("umount", "lvs", "vgchange")
        self.assertEqual(self.console_lines(), [])

    def test_a_drive_without_a_group_is_unmounted(self):
        self.stub("findmnt", "echo /dev/nvme1n1")
        self.stub("lvs", "echo '  Failed to find logical volume \"/dev/nvme1n1\"' >&2; exit 5")
        self.run_script("release-drives")
        self.assertEqual(self.arguments_of("umount"), [[self.path]])
        self.assert_untouched("vgchange")

    def test_a_volume_in_use_is_a_reason(self):
        self.stub("umount", f"echo 'umount: {self.path}: target is busy.' >&2; exit 1")
        self.assertIn("target is busy", self.run_script("release-drives", expect=1))
        self.assert_untouched("lvs", "vgchange")
        self.assertEqual(self.console_lines(), [])

    def test_a_group_in_use_is_a_reason(self):
        self.stub("vgchange", "echo '  Logical volume vg.01/lv_ephemeral in use.' >&2; exit 1")
        self.assertIn("in use", self.run_script("release-drives", expect=1))
        self.assertEqual(self.console_lines(), [])


class ResetFirewall(Node):
    POLICY = ["--wait", "--policy", "FORWARD", "ACCEPT"]
    RULES = ["--wait", "--table", "nat", "--list-rules", "POSTROUTING"]
    SHOW = ["link", "show", "dev", "docker0"]
    OWN = "-A POSTROUTING -s 10.2.0.0/16 -m comment --comment docker0s -j FLANNEL"

    def setUp(self):
        super().setUp()
        self.answer(f"-P POSTROUTING ACCEPT\n-A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE\n{self.OWN}\n")
        self.stub("ip")

    def answer(self, rules):
        self.write("rules", rules)
        self.stub("iptables", f"[[ $* != *--list-rules* ]] || cat {self.root}/rules")

    def test_what_docker_has_left_is_undone(self):
        self.run_script("reset-firewall")
        masquerade = ["POSTROUTING", "-s", "172.17.0.0/16", "!", "-o", "docker0", "-j", "MASQUERADE"]
        self.assertEqual(self.arguments_of("iptables"), [self.POLICY, self.RULES, ["--wait", "--table", "nat", "--delete", *masquerade]])
        self.assertEqual(self.arguments_of("ip"), [self.SHOW, ["link", "delete", "docker0"]])

    def test_other_rules_and_bridges_stay(self):
        self.answer(f"-P POSTROUTING ACCEPT\n{self.OWN}\n")
        self.stub("ip", "echo 'Device \"docker0\" does not exist.' >&2; exit 1")
        self.run_script("reset-firewall")
        self.assertEqual(self.arguments_of("iptables"), [self.POLICY, self.RULES])
        self.assertEqual(self.arguments_of("ip"), [self.SHOW])

    def test_a_bridge_that_stays_is_a_reason(self):
        self.stub("ip", "[[ $2 == show ]] || { echo 'RTNETLINK answers: Device or resource busy' >&2; exit 2; }")
        self.assertIn("resource busy", self.run_script("reset-firewall", expect=2))

    def test_a_firewall_that_cannot_be_changed_is_a_reason(self):
        self.stub("iptables", "echo 'iptables: Permission denied (you must be root)' >&2; exit 4")
        self.assertIn("Permission denied", self.run_script("reset-firewall", expect=4))
        self.assertEqual(self.arguments_of("ip"), [])

    def test_a_machine_without_iptables(self):
        (self.stubs / "iptables").unlink()
        for name in ("bash", "dirname", "readlink"):
            (self.stubs / name).symlink_to(shutil.which(name))
        self.run_script("reset-firewall", PATH=str(self.stubs))
        self.assertEqual(self.arguments_of("ip"), [])


if __name__ == "__main__":
    unittest.main()
