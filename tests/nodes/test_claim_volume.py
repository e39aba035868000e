"""The script that attaches and formats the volume of an etcd member, and never touches one with data."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from ec2_resources import Volume  # noqa: E402
from node_case import INSTANCE, SYSTEM_PATH, VOLUME, Node  # noqa: E402

DEVICE = "nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0"
MEBIBYTE = 1 << 20


class ClaimVolume(Node):
    def setUp(self):
        super().setUp()
        self.devices = self.folder / "by-id"
        self.devices.mkdir()
        self.environment["INFRA_DEVICE_DIRECTORY"] = str(self.devices)
        self.disk = self.folder / "disk"
        with open(self.disk, "wb") as disk:
            disk.truncate(32 * MEBIBYTE)
        self.aws.volumes[VOLUME] = Volume()
        self.aws.on_attach = lambda _: self.plug_in()
        # Nothing but this test's own disk is ever formatted, whatever the script asks for.
        self.stub(
            "mkfs.ext4",
            f'[[ ${{!#}} == {self.devices}/* ]] || exit 99\nexec {shutil.which("mkfs.ext4", path=SYSTEM_PATH)} "$@"',
        )

    def plug_in(self):
        (self.devices / DEVICE).symlink_to(self.disk)

    def format(self, kind):
        subprocess.run(["/sbin/mke2fs", "-q", "-F", "-t", kind, str(self.disk)], check=True, stdin=subprocess.DEVNULL)

    def disk_hash(self):
        return hashlib.sha256(self.disk.read_bytes()).hexdigest()

    def label(self):
        found = subprocess.run(["/sbin/blkid", "-p", "-o", "export", str(self.disk)], capture_output=True, text=True).stdout
        return sorted(re.findall(r"^(?:TYPE|LABEL)=.*", found, re.MULTILINE))

    def assert_claimed(self, verdict):
        self.assertEqual(self.read("run/infra/volume-state"), f"{verdict}\n")
        self.assertEqual((self.root / "run/infra/etcd-volume").resolve(), self.disk)
        self.assertEqual(self.aws.signals, [])

    def assert_refused(self, words, *needles):
        for needle in needles:
            self.assertIn(needle, words)
            self.assertTrue(any(needle in line for line in self.console_lines()), "not on the console")
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assertFalse((self.root / "run/infra/volume-state").exists())
        self.assertFalse((self.root / "run/infra/etcd-volume").is_symlink())

    def test_first_boot_formats_a_blank_volume(self):
        self.run_script("claim-volume")
        self.assert_claimed("blank")
        self.assertEqual(self.label(), ["LABEL=etcd", "TYPE=ext4"])
        self.assertEqual(self.aws.volumes[VOLUME].look(), ("in-use", INSTANCE, "attached"))

    def test_second_boot_finds_what_the_first_formatted(self):
        self.run_script("claim-volume")
        before = self.disk_hash()
        self.run_script("claim-volume")
        self.assert_claimed("data")
        self.assertEqual(self.disk_hash(), before)
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 1)

    def test_data_of_a_replaced_member_stays(self):
        self.format("ext4")
        before = self.disk_hash()
        self.run_script("claim-volume")
        self.assert_claimed("data")
        self.assertEqual(self.disk_hash(), before)
        self.assertEqual(self.arguments_of("mkfs.ext4"), [])

    def test_waits_for_the_machine_before_it(self):
        old = "i-0bbbbbbbbbbbbbbbb"
        attached, detaching = ("in-use", old, "attached"), ("in-use", old, "detaching")
        self.aws.volumes[VOLUME] = Volume(attached, attached, detaching, ("available", None, None))
        words = self.run_script("claim-volume")
        self.assertIn(f"{VOLUME} is attached to {old} (attached)", words)
        self.assertIn(f"{VOLUME} is attached to {old} (detaching)", words)
        self.assertEqual(self.aws.count("ec2:DescribeVolumes"), 4)
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 1)
        self.assert_claimed("blank")

    def test_does_not_wait_for_ever(self):
        self.aws.volumes[VOLUME] = Volume(("in-use", "i-0bbbbbbbbbbbbbbbb", "attached"))
        words = self.run_script("claim-volume", expect=1, INFRA_DEADLINE_SECONDS="1")
        self.assert_refused(words, "not within 1 s", "i-0bbbbbbbbbbbbbbbb")
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 0)

    def test_attached_to_us_already(self):
        self.aws.volumes[VOLUME] = Volume(("in-use", INSTANCE, "attached"))
        self.plug_in()
        self.run_script("claim-volume")
        self.assert_claimed("blank")
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 0)

    def test_a_reboot_needs_no_answer_from_ec2(self):
        self.run_script("claim-volume")
        self.aws.script("ec2:DescribeVolumes", *["error"] * 50)
        words = self.run_script("claim-volume", INFRA_CALL_DEADLINE_SECONDS="1")
        self.assertIn(f"{VOLUME} is attached, but EC2 does not answer", words)
        self.assert_claimed("data")

    def test_a_volume_that_is_being_made_is_waited_for(self):
        self.aws.volumes[VOLUME] = Volume(("creating", None, None), ("available", None, None))
        self.run_script("claim-volume")
        self.assert_claimed("blank")

    def test_a_broken_volume_is_not(self):
        self.aws.volumes[VOLUME] = Volume(("error", None, None))
        self.assert_refused(self.run_script("claim-volume", expect=1), f"{VOLUME} is in state error")

    def test_a_missing_volume_is_not(self):
        self.aws.volumes.clear()
        self.assert_refused(self.run_script("claim-volume", expect=1), "ec2:DescribeVolumes: InvalidVolume.NotFound")
        self.assertEqual(self.aws.count("ec2:DescribeVolumes"), 1)

    def test_throttled_three_times(self):
        self.aws.script("ec2:DescribeVolumes", "throttle", "throttle", "throttle")
        self.aws.script("ec2:AttachVolume", "throttle", "error", "throttle")
        self.run_script("claim-volume")
        self.assert_claimed("blank")
        self.assertEqual(self.aws.count("ec2:DescribeVolumes"), 4)
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 4)

    def test_an_attachment_whose_answer_was_lost(self):
        self.aws.script("ec2:AttachVolume", "cut")
        self.run_script("claim-volume")
        self.assert_claimed("blank")
        self.assertEqual(self.aws.count("ec2:DescribeVolumes"), 2)

    def test_a_machine_that_still_counts_as_starting(self):
        self.aws.script("ec2:AttachVolume", (400, "IncorrectState", f"Instance '{INSTANCE}' is not 'running'."))
        self.run_script("claim-volume")
        self.assert_claimed("blank")

    def test_denied_names_the_action_in_one_line(self):
        self.aws.script("ec2:AttachVolume", "denied")
        words = self.run_script("claim-volume", expect=1)
        self.assert_refused(words, "ec2:AttachVolume: UnauthorizedOperation: User: arn:aws:sts")
        self.assertEqual(self.aws.count("ec2:AttachVolume"), 1)
        self.assertEqual(sum("UnauthorizedOperation" in line and "claim-volume failed" in line for line in words.splitlines()), 1)

    def test_attached_but_no_device(self):
        self.aws.on_attach = lambda _: None
        self.assert_refused(self.run_script("claim-volume", expect=1, INFRA_DEADLINE_SECONDS="0"), DEVICE, "grants")

    def refuse_and_keep(self, *needles):
        before = self.disk_hash()
        words = self.run_script("claim-volume", expect=1)
        self.assert_refused(words, "nothing was written", *needles)
        self.assertEqual(self.disk_hash(), before)
        self.assertEqual(self.arguments_of("mkfs.ext4"), [])

    def test_bytes_without_a_file_system_are_kept(self):
        with open(self.disk, "r+b") as disk:
            disk.seek(700_000)
            disk.write(b"something")
        self.refuse_and_keep("no known file system but is not empty")

    def test_zeros_with_a_signature_are_kept(self):
        with open(self.disk, "r+b") as disk:
            disk.seek(-1024, os.SEEK_END)
            disk.write(b"Intel Raid ISM Cfg Sig. 1.0.00")
        self.refuse_and_keep("begins with zeros but blkid finds isw_raid_member")

    def test_another_file_system_is_kept(self):
        self.format("ext2")
        self.refuse_and_keep("holds ext2, not ext4")

    def test_a_partition_table_is_kept(self):
        with open(self.disk, "r+b") as disk:
            entry = bytes([0x80, 0, 2, 0, 0x83, 0, 2, 0]) + (2048).to_bytes(4, "little") + (4096).to_bytes(4, "little")
            disk.seek(446)
            disk.write(entry + bytes(48) + b"\x55\xaa")
        self.refuse_and_keep("holds a partition table, not ext4")

    def test_a_disk_that_is_too_small_to_judge_is_kept(self):
        with open(self.disk, "r+b") as disk:
            disk.truncate(MEBIBYTE // 2)
        self.refuse_and_keep("the first MiB cannot be read")

    def test_a_blkid_that_is_not_sure_is_not_believed(self):
        for code in (4, 8):
            self.aws.signals.clear()
            self.stub("blkid", f"exit {code}")
            self.aws.volumes[VOLUME] = Volume()
            (self.devices / DEVICE).unlink(missing_ok=True)
            self.refuse_and_keep(f"exit {code}")


if __name__ == "__main__":
    unittest.main()
