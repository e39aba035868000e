"""etcd members as they live: configs applied, booted, lost and replaced, with Debian's etcd in the image's place.

Debian's etcd is older than the one that nodes run. Settings that it does not know are warnings to it; whether the newer one
knows them is asked of its list of flags.
"""

import hashlib
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from boots import Boot  # noqa: E402
from golden import configs  # noqa: E402
from machine import wait_for, why_not  # noqa: E402

FLAGS = pathlib.Path(__file__).parent / "flags/etcd-3.6.txt"
CHAIN = ["claim-volume.service", "var-lib-etcd.mount", "prepare-etcd.service", "etcd.service", "signal-etcd.service"]

IMPOSSIBLE = why_not()
if IMPOSSIBLE:
    print(f"\nNO ETCD MEMBER IS BOOTED: {IMPOSSIBLE}\n", file=sys.stderr)


class Settings(unittest.TestCase):
    def test_every_setting_is_a_flag_of_the_version_that_nodes_run(self):
        flags = set(FLAGS.read_text().split())
        members = [config for config in configs() if config.kind == "etcd"]
        self.assertGreaterEqual(len(members), 10)
        for config in members:
            with self.subTest(str(config)):
                self.assertRegex(config.text("/etc/infra/etcd-image.env"), r"/etcd:3\.6\.")
                names = [line.split("=")[0] for line in config.text("/etc/etcd/etcd.env").splitlines()]
                self.assertGreater(len(names), 20)
                for name in names:
                    self.assertRegex(name, "^ETCD_[A-Z_]+$")
                    self.assertIn("--" + name.removeprefix("ETCD_").lower().replace("_", "-"), flags)

    def test_a_member_compares_its_data_and_reports_progress_as_kubeadms_does(self):
        for config in configs():
            if config.kind == "etcd":
                lines = config.text("/etc/etcd/etcd.env").splitlines()
                self.assertIn("ETCD_FEATURE_GATES=InitialCorruptCheck=true", lines, str(config))
                self.assertIn("ETCD_WATCH_PROGRESS_NOTIFY_INTERVAL=5s", lines, str(config))


class MemberBoot(Boot):
    """Boots of etcd members."""

    def start(self, member, disk):
        """A new machine, which has signalled success."""
        machine = self.site.machine(member, disk)
        machine.wait_for_signal()
        self.check(machine)
        return machine

    def check(self, machine):
        signal = {"LogicalResourceId": f"EtcdMember{machine.member}", "UniqueId": machine.instance, "Status": "SUCCESS"}
        self.assertEqual(machine.aws.signals, [{"StackName": "test-control-plane", **signal}])
        self.assertEqual(machine.aws.faults, [], "AWS would have refused these")
        wait_for("the end of the boot", lambda: machine.unit(CHAIN[-1], "SubState") == ("exited",))
        self.assertEqual(machine.failed_units(), "")
        self.assertEqual(machine.unit("etcd.service", "SubState", "NRestarts"), ("running", "0"))


def may_resize():
    """Whether this process may resize file systems that are in use (CAP_SYS_RESOURCE), which machines that it starts may not either."""
    status = pathlib.Path("/proc/self/status").read_text()
    effective = next(line for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective.split()[1], 16) >> 24 & 1)


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class OneMember(MemberBoot):
    cluster = "minimal"

    def test_a_member_comes_up_by_itself(self):
        disk = self.site.disk()
        machine = self.start(0, disk)

        times = []
        for unit in CHAIN:
            active, since = machine.unit(unit, "ActiveState", "ActiveEnterTimestampMonotonic")
            self.assertEqual(active, "active", unit)
            times.append(int(since))
        self.assertEqual(times, sorted(times), "the units did not start one after the other")
        for timer in ("snapshot-etcd.timer", "defrag-etcd.timer"):
            self.assertEqual(machine.unit(timer, "ActiveState"), ("active",))

        self.assertEqual(machine.aws.count("ec2:AttachVolume"), 1)
        mount = machine.run("findmnt", "--noheadings", "--output=SOURCE,FSTYPE", "/var/lib/etcd").split()
        self.assertEqual(mount, ["/dev/nvme1n1", "ext4"])
        self.assertEqual(machine.run("stat", "--format=%u:%g %a", "/var/lib/etcd"), "232:232 700\n")

        machine.put("place", "here")
        self.assertEqual(machine.get("place"), "here")
        for identity, reason in [(None, "didn't provide a certificate"), ("worker", "unknown authority")]:
            self.assertEqual(machine.etcdctl("get", "place", identity=identity, seconds=1, check=False), "")
            self.assertRegex(machine.journal("etcd"), f"rejected connection .*{reason}")

    def test_a_larger_volume_is_used(self):
        machine = self.start(0, self.site.disk())
        size = lambda: int(machine.run("findmnt", "--noheadings", "--bytes", "--output=SIZE", "/var/lib/etcd"))
        before = size()
        machine.disk.enlarge()
        self.assertEqual(size(), before)
        machine.run("systemctl", "start", "snapshot-etcd.service")
        told = machine.journal("snapshot-etcd")
        if may_resize():
            self.assertGreater(size(), before * 3 // 2, told)
        else:
            # As far as it goes: the right file system was found, and the kernel was asked.
            self.assertIn("/run/infra/etcd-volume is mounted on /var/lib/etcd; on-line resizing required", told)
            self.assertIn("Permission denied to resize filesystem", told)

    def test_a_snapshot_is_restored_on_a_blank_volume_only(self):
        self.site.versioning = "Enabled"
        machine = self.start(0, self.site.disk())
        machine.put("place", "first")
        machine.run("systemctl", "start", "snapshot-etcd.service")
        key = "clusters/minimal/snapshots/etcd.db"
        [(_, version)] = self.site.versions
        first = self.site.versions[key, version]
        digest = hashlib.sha256(first).hexdigest()
        [name] = machine.run("ls", "/var/lib/etcd/snapshots").split()
        self.assertRegex(name, r"^etcd-0-[0-9TZ]+\.db$")
        told = f"snapshot {name} ({len(first)} bytes) is in the bucket as etcd.db, version {version}; its SHA-256 is {digest}"
        self.assertIn(told, machine.journal("snapshot-etcd"))
        machine.put("place", "after the snapshot")
        machine.run("systemctl", "start", "snapshot-etcd.service")
        self.assertEqual((list(self.site.objects), len(self.site.versions)), ([key], 2))
        machine.run("systemctl", "start", "defrag-etcd.service")
        self.assertIn("etcd-0 is defragmented", machine.journal("defrag-etcd"))
        self.check(machine)
        machine.discard()

        disk = self.site.disk()
        machine = self.start(0, disk)
        self.assertIn("no snapshot to restore: starting empty", machine.journal("prepare-etcd"))
        # As docs/runbooks/lose-an-etcd-member.md has it.
        machine.run("systemctl", "stop", "etcd")
        machine.run("mv", "/var/lib/etcd/member", "/var/lib/etcd/member.lost")
        machine.write(
            "etc/infra/restore.env",
            f"INFRA_RESTORE_SNAPSHOT=etcd.db\nINFRA_RESTORE_VERSION={version}\nINFRA_RESTORE_SHA256={digest}\n",
        )
        machine.run("systemctl", "restart", "prepare-etcd", "etcd")
        wait_for("the restored member", lambda: machine.etcdctl("get", "place", seconds=1, check=False))
        self.assertEqual(machine.get("place"), "first")
        self.assertNotIn("restore", machine.run("ls", "/var/lib/etcd").split())
        machine.put("place", "since the restore")
        machine.discard()

        machine = self.start(0, disk)
        self.assertEqual(machine.get("place"), "since the restore")
        self.assertEqual(machine.aws.count("s3:GetObject"), 0)
        self.assertIn("etcd has data: no restore", machine.journal("prepare-etcd"))


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class ThreeMembers(MemberBoot):
    cluster = "ha-gpu-efs"

    def test_a_lost_member_comes_back_as_itself(self):
        disks = [self.site.disk() for _ in range(3)]
        # As the stack makes them: the next one when the last one has signalled. The first two have no quorum to ask.
        machines = [self.start(member, disk) for member, disk in enumerate(disks)]
        members = machines[0].etcdctl("member", "list").splitlines()
        self.assertEqual(sorted(line.split(", ")[2] for line in members), ["etcd-0", "etcd-1", "etcd-2"])
        machines[0].put("place", "all")
        self.assertEqual(machines[2].get("place"), "all")

        states = [machine.status() for machine in machines]
        identifiers = [state["header"]["member_id"] for state in states]
        self.assertEqual(len(set(identifiers)), 3)
        lost = identifiers.index(states[0]["leader"])
        for machine in machines:
            machine.run("systemctl", "start", "snapshot-etcd.service")
            self.assertEqual(len(machine.run("ls", "/var/lib/etcd/snapshots").split()), 1, "each member keeps its own")
        self.assertEqual([len(machine.aws.uploads) for machine in machines], [int(machine.member == lost) for machine in machines])
        [key] = self.site.objects
        self.assertRegex(key, r"^clusters/research/snapshots/etcd-\d{8}T\d{6}Z\.db$")
        machines[lost].kill()
        others = [machine for machine in machines if machine.member != lost]
        write = ["put", "place", "two"]
        # The other two choose a new leader first.
        wait_for("a write without the lost member", lambda: "OK" in others[0].etcdctl(*write, seconds=1, check=False))
        self.assertEqual(others[1].get("place"), "two")

        machines[lost].discard()
        for machine in others:
            machine.kill()
        machine = machines[lost] = self.site.machine(lost, disks[lost])
        wait_for("the peer port", lambda: ":2380" in machine.run("ss", "--listening", "--tcp", "--numeric"))
        time.sleep(4)
        self.assertEqual(machine.aws.signals, [], "signalled without a quorum")
        self.assertEqual(machine.run("cat", "/run/infra/volume-state", "/run/infra/etcd-state"), "data\ndata\n")
        self.assertEqual(machine.unit("etcd.service", "SubState", "NRestarts"), ("running", "0"))
        self.assertEqual(machine.unit("signal-etcd.service", "SubState"), ("start",))

        for other in others:
            other.boot()
        for one in machines:
            one.wait_for_signal()
            self.check(one)
        self.assertEqual([one.status()["header"]["member_id"] for one in machines], identifiers)
        self.assertEqual(machine.get("place"), "two")
        machine.put("place", "three")
        self.assertEqual([one.get("place") for one in machines], ["three"] * 3)


if __name__ == "__main__":
    unittest.main()
