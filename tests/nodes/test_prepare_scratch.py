"""The script that puts images and pods on a machine's own drives: loop devices in a mount namespace of their own, and a /sys that says
which of them is what. Not every kernel has md: mdadm is a stub that takes a device of its own for the array.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import SCRIPTS, Node  # noqa: E402

DRIVE = "Amazon EC2 NVMe Instance Storage        "
VOLUME = "Amazon Elastic Block Store              "
SIZE = 64 << 20
WORDS = b"what the team has on its volume"


def why_not():
    if os.geteuid() != 0:
        return "mounting needs the superuser"
    for program in ("losetup", "mkfs.ext4", "wipefs", "findmnt", "unshare"):
        if not shutil.which(program):
            return f"{program} is missing"
    for probe in (["losetup", "--find"], ["unshare", "--mount", "true"]):
        done = subprocess.run(probe, capture_output=True, text=True)
        if done.returncode:
            return f"loop devices and mounts are needed: {done.stderr.strip()}"
    return None


IMPOSSIBLE = why_not()


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class PrepareScratch(Node):
    def setUp(self):
        super().setUp()
        self.devices = self.folder / "dev"
        self.devices.mkdir()
        self.environment["INFRA_DEVICE_DIRECTORY"] = str(self.devices)
        self.stub("udevadm")
        # The first attempt to stop an array fails: the system still looks at it.
        self.stub("mdadm", f"""\
            case $1:$(grep -c -e --stop {self.folder}/mdadm.calls) in
            --create:*) cp -a {self.devices}/spare "$2" ;;
            --stop:1) echo "mdadm: Cannot get exclusive access to $2" >&2; exit 1 ;;
            esac
            """)

    def attach(self, name, model):
        """A device with a model, as the kernel shows both."""
        image = self.folder / f"{name}.image"
        with image.open("wb") as file:
            file.truncate(SIZE)
        loop = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True, check=True).stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "--detach", loop], check=True)
        os.mknod(self.devices / name, 0o600 | stat.S_IFBLK, os.stat(loop).st_rdev)
        if model:
            self.write(f"sys/block/{name}/device/model", f"{model}\n")
        return image

    def hold(self, drive, holder, *members):
        """The kernel's word for it that an array has members."""
        (self.root / f"sys/block/{drive}/holders").mkdir(parents=True, exist_ok=True)
        (self.root / f"sys/block/{drive}/holders/{holder}").touch()
        for member in members:
            self.write(f"sys/block/{holder}/slaves/{member}", "")

    def boot(self, before="", after="", expect=0, **environment):
        """The script in a mount namespace that ends with the boot, and what `after` prints."""
        # Mounts are shared among themselves, as systemd has it, and with nobody else.
        program = f"mount --make-rshared /\n{before}\n{SCRIPTS}/bin/prepare-scratch || exit 9\n{after}"
        done = subprocess.run(
            ["unshare", "--mount", "--propagation=private", "bash", "-euc", program],
            env={**self.environment, "R": str(self.root), "D": str(self.devices), **environment},
            capture_output=True, text=True, timeout=120,
        )
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done.stdout

    def refuse(self, reason, before="", **environment):
        self.boot(before, expect=9, **environment)
        self.assertEqual(self.console_lines()[-2], f"infra: prepare-scratch failed: {reason}")
        self.assertEqual(self.signals(), ["FAILURE"])

    def test_images_and_pods_are_on_the_drive_and_certificates_on_the_root_disk(self):
        volume = self.attach("nvme0n1", VOLUME)
        volume.write_bytes(WORDS.ljust(SIZE, b"\0"))
        self.attach("nvme1n1", DRIVE)
        self.write("var/lib/cni/networks/cbr0/10.2.1.7", "a pod that is gone")
        sources = "for path in containerd kubelet kubelet/pki; do stat --format=%d $R/var/lib/$path; done; stat --format=%d $R"
        write = "echo of-the-kubelet >$R/var/lib/kubelet/kubeconfig; echo key >$R/var/lib/kubelet/pki/key"
        mounts = "findmnt --noheadings --output=TARGET --list --source $D/nvme1n1; findmnt --output=OPTIONS -n $R/var/lib/kubelet"
        modes = "stat --format=%a $R/var/lib/{containerd,kubelet,kubelet/pki}"
        *devices, first, second, options, one, two, three = self.boot(after=f"{sources}; {write}; {mounts}; {modes}").split()
        images, pods, certificates, disk = devices
        self.assertEqual((images, certificates), (pods, disk))
        self.assertNotEqual(images, disk)
        # Nowhere else: a mount of a pod would be seen twice.
        self.assertEqual((first, second), (f"{self.root}/var/lib/containerd", f"{self.root}/var/lib/kubelet"))
        self.assertIn("noatime", options.split(","))
        self.assertEqual((one, two, three), ("711", "750", "700"))
        self.assertEqual(self.read("var/lib/infra/kubelet/kubeconfig"), "of-the-kubelet\n")
        self.assertEqual(self.read("var/lib/infra/kubelet/key"), "key\n")
        self.assertFalse((self.root / "var/lib/cni").exists())
        self.assertEqual(volume.read_bytes().rstrip(b"\0"), WORDS)
        self.assertEqual(self.console_lines()[-1], "infra: images and pods are on the machine's own drives: nvme1n1")
        self.assertEqual((self.arguments_of("mdadm"), self.signals()), ([], []))

    def test_it_is_made_anew_at_each_boot_and_once_in_a_boot(self):
        self.attach("nvme1n1", DRIVE)
        leave = "touch $R/var/lib/kubelet/old $R/var/lib/kubelet/pki/certificate"
        again = f"{SCRIPTS}/bin/prepare-scratch; ls $R/var/lib/kubelet"
        self.assertEqual(self.boot(after=f"{leave}; {again}").split(), ["kubeconfig", "old", "pki"])
        self.assertEqual(self.console_lines()[-1], "infra: images and pods are on the machine's own drives already")
        self.assertEqual(self.boot(after="ls $R/var/lib/kubelet $R/var/lib/kubelet/pki").split(),
                         [f"{self.root}/var/lib/kubelet:", "kubeconfig", "pki", f"{self.root}/var/lib/kubelet/pki:", "certificate"])

    def test_several_drives_are_one(self):
        self.attach("nvme0n1", VOLUME)
        for name in ("nvme1n1", "nvme2n1"):
            self.attach(name, DRIVE)
        # A path to a drive, not a drive.
        self.write("sys/block/nvme2c2n1/device/model", f"{DRIVE}\n")
        self.attach("spare", None)
        array, members = f"{self.devices}/md0", [f"{self.devices}/nvme1n1", f"{self.devices}/nvme2n1"]
        create = ["--create", array, "--run", "--level=0", "--raid-devices=2", *members]
        self.assertEqual(self.boot(after="findmnt --noheadings --output=SOURCE --target $R/var/lib/kubelet").strip(), f"{array}[/kubelet]")
        self.assertEqual(self.arguments_of("mdadm"), [create])
        self.assertEqual(self.console_lines()[-1], "infra: images and pods are on the machine's own drives: nvme1n1 nvme2n1")
        # After a reboot the system has assembled the array, under any name.
        for drive in ("nvme1n1", "nvme2n1"):
            self.hold(drive, "md127", "nvme1n1", "nvme2n1")
        self.boot()
        stop = ["--stop", f"{self.devices}/md127"]
        # The second one: the stub's /sys does not change, so that the array is there for both drives.
        self.assertEqual(self.arguments_of("mdadm")[1:], [stop, stop, stop, create])
        waiting = f"infra: waiting for the machine's own drives: mdadm: Cannot get exclusive access to {self.devices}/md127"
        self.assertIn(waiting, self.console_lines())

    def test_a_machine_without_drives(self):
        self.attach("nvme0n1", VOLUME)
        self.boot()
        self.assertEqual(self.console_lines()[-1], "infra: the machine has no drives of its own: images and pods stay on the root disk")
        self.assertFalse((self.root / "var/lib/infra").exists())
        self.refuse("the machine has no Amazon EC2 NVMe Instance Storage, but its type should", INFRA_EVERY_TYPE_HAS_DRIVES="yes")

    def test_a_drive_with_partitions_is_left_alone(self):
        self.attach("nvme1n1", DRIVE)
        (self.root / "sys/block/nvme1n1/nvme1n1p1").mkdir()
        self.refuse("nvme1n1 has partitions; nothing was written")

    def test_a_drive_of_a_foreign_array_is_left_alone(self):
        self.attach("nvme0n1", VOLUME)
        self.attach("nvme1n1", DRIVE)
        self.hold("nvme1n1", "md127", "nvme0n1", "nvme1n1")
        self.refuse("nvme1n1 is used by md127, which is no array of the machine's own drives alone; nothing was written")
        self.assertEqual(self.arguments_of("mdadm"), [])

    def test_a_drive_that_is_mounted_is_left_alone(self):
        self.attach("nvme1n1", DRIVE)
        mount = "mkfs.ext4 -q $D/nvme1n1; mkdir $R/mine; mount $D/nvme1n1 $R/mine"
        self.refuse("nvme1n1 is mounted; nothing was written", before=mount)

    def test_what_fails_says_why(self):
        self.attach("nvme1n1", DRIVE)
        self.stub("mkfs.ext4", "echo 'No space for tables' >&2; exit 1")
        self.boot(expect=9)
        self.assertRegex(self.console_lines()[-2], "^infra: prepare-scratch failed: mkfs.ext4 .*/nvme1n1: No space for tables$")
        self.assertEqual(self.signals(), ["FAILURE"])


if __name__ == "__main__":
    unittest.main()
