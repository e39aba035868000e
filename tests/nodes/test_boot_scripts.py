"""The scripts that run on the nodes, against a stand-in for AWS and stubs for what a test machine lacks."""

import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from stand_in import KEY, METADATA_TOKEN, REGION, SECRET, SESSION, StandIn, Volume  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "templates/files/opt/infra"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VOLUME = "vol-0123456789abcdef0"
DEVICE = "nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0"
INSTANCE = "i-0aaaaaaaaaaaaaaaa"
KMS_KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd"
MEBIBYTE = 1 << 20


class Node(unittest.TestCase):
    """A machine: a directory as its root, its own AWS, a curl that is watched."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-node-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "root"
        self.stubs = self.folder / "stubs"
        self.console = self.folder / "console"
        self.scratch = self.folder / "scratch"
        for path in (self.root, self.stubs, self.scratch):
            path.mkdir()
        self.console.touch()
        self.aws = StandIn()
        self.addCleanup(self.aws.close)
        self.stub("curl", f'exec {shutil.which("curl", path=SYSTEM_PATH)} "$@"')
        self.write(
            "etc/infra/stack.env",
            f"""\
            INFRA_CLUSTER=paddle
            INFRA_REGION={REGION}
            INFRA_DOMAIN=amazonaws.com
            INFRA_STACK=paddle-control-plane
            INFRA_RESOURCE=Etcd0
            INFRA_BUCKET=team-bucket
            INFRA_PREFIX=clusters/west
            INFRA_KMS_KEY={KMS_KEY}
            INFRA_VOLUME_ID={VOLUME}
            """,
        )
        self.environment = {
            "PATH": f"{self.stubs}:{SYSTEM_PATH}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.scratch),
            "INFRA_ROOT": str(self.root),
            "INFRA_CONSOLE": str(self.console),
            "INFRA_BACKOFF_MILLISECONDS": "20",
            "INFRA_SETTLE_SECONDS": "0.2",
            "INFRA_CALL_DEADLINE_SECONDS": "10",
            "INFRA_ETCD_USER": f"{os.getuid()}:{os.getgid()}",
            **self.aws.environment(),
        }

    def tearDown(self):
        self.assertEqual(self.aws.faults, [], "AWS would have refused these")
        seen = self.arguments_of("curl")
        for hidden in (KEY, SECRET, SESSION, METADATA_TOKEN):
            self.assertNotIn(hidden, "\n".join(" ".join(call) for call in seen), "a credential in a process's arguments")
        self.assertEqual(list(self.scratch.iterdir()), [], "temporary files left behind")

    def write(self, path, text, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            target.write_bytes(text)
        else:
            target.write_text(textwrap.dedent(text))
        target.chmod(mode)
        return target

    def read(self, path):
        return (self.root / path).read_text()

    def stub(self, name, body="", folder=None):
        """A command that writes its arguments down and then does `body`."""
        target = (folder or self.stubs) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        record = shlex.quote(str(self.folder / f"{name}.calls"))
        target.write_text(f"#!/bin/bash\nprintf -v line '%q ' \"$@\"; echo \"$line\" >>{record}\n{textwrap.dedent(body)}\n")
        target.chmod(0o755)

    def arguments_of(self, name):
        record = self.folder / f"{name}.calls"
        return [shlex.split(line) for line in record.read_text().splitlines()] if record.exists() else []

    def start(self, script, *arguments, **environment):
        return subprocess.Popen(
            [str(SCRIPTS / "bin" / script), *arguments],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_script(self, script, *arguments, expect=0, **environment):
        process = self.start(script, *arguments, **environment)
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            self.fail(f"{script} hangs:\n{output}{errors}")
        self.assertEqual(process.returncode, expect, f"{script}:\n{output}{errors}")
        return output + errors

    def run_bash(self, program, **environment):
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail; . {SCRIPTS}/lib/aws.sh; {program}"],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def signals(self):
        return [entry["Status"] for entry in self.aws.signals]

    def console_lines(self):
        return self.console.read_text().splitlines()


class Library(Node):
    def test_a_reason_is_one_line_on_the_console(self):
        code, _, errors = self.run_bash("say $'two\\nlines'")
        self.assertEqual((code, errors), (0, "infra: two lines\n"))
        self.assertEqual(self.console_lines(), ["infra: two lines"])

    def test_a_console_that_cannot_be_written_is_no_failure(self):
        code, _, errors = self.run_bash("say hello", INFRA_CONSOLE=str(self.folder / "none/console"))
        self.assertEqual((code, errors), (0, "infra: hello\n"))

    def test_settings_are_read_and_not_run(self):
        self.write("settings", f"A_ONE=$(touch {self.folder}/run)\nA_TWO=x y=z\n# B=1\nnot a setting\nPATH=/nowhere\nA_LAST=end")
        show = 'printf "%s|" "$A_ONE" "$A_TWO" "$A_LAST" "${B-unset}"; ls /dev/null'
        code, output, errors = self.run_bash(f'read_settings "$INFRA_ROOT/settings"; {show}')
        self.assertEqual(code, 0, errors)
        self.assertEqual(output, f"$(touch {self.folder}/run)|x y=z|end|unset|/dev/null\n")
        self.assertFalse((self.folder / "run").exists())

    def test_waiting_has_an_end_and_a_reason(self):
        code, output, errors = self.run_bash('no() { reason="still no"; return 1; }; retry_until 1 "the moon" no || echo "$? $reason"')
        self.assertEqual((code, output), (0, "1 the moon: not within 1 s; last: still no\n"))
        self.assertEqual(errors.count("waiting for the moon: still no"), 1, "the same reason is said once")

    def test_hopeless_ends_at_once(self):
        never = "tries=0; no() { tries=$((tries + 1)); reason=never; return 3; }"
        code, output, _ = self.run_bash(f'{never}; retry_until 60 x no || echo "$? $reason $tries"')
        self.assertEqual((code, output), (0, "3 never 1\n"))

    def test_pauses_grow_and_have_a_limit(self):
        self.stub("sleep", 'exec /bin/sleep 0')
        program = 'tries=0; no() { tries=$((tries + 1)); reason=$tries; ((tries == 9)); }; retry_until 600 x no'
        self.assertEqual(self.run_bash(program, INFRA_BACKOFF_MILLISECONDS="1000")[0], 0)
        pauses = [float(call[0]) for call in self.arguments_of("sleep")]
        for pause, longest in zip(pauses, [1, 2, 4, 8, 15, 15, 15, 15], strict=True):
            self.assertTrue(longest / 2 <= pause <= longest, pauses)
        self.assertGreater(len(set(pauses[4:])), 1, "machines that started together must not ask together")

    def test_metadata_that_is_late_is_waited_for(self):
        self.aws.script("imds:meta-data/instance-id", "error", "missing", "ok")
        self.assertEqual(self.run_bash("imds_value meta-data/instance-id")[:2], (0, INSTANCE))

    def test_real_hosts_of_both_partitions(self):
        program = 'for e in ec2 cloudformation s3; do ${e}_endpoint; echo; done'
        bare = {name: "" for name in self.aws.environment()}
        hosts = lambda **more: self.run_bash(program, **bare, **more)[1].split()  # noqa: E731
        self.assertEqual(
            hosts(),
            [f"https://{name}.us-west-2.amazonaws.com" for name in ("ec2", "cloudformation", "team-bucket.s3")],
        )
        self.assertEqual(
            hosts(INFRA_REGION="cn-north-1", INFRA_DOMAIN="amazonaws.com.cn", INFRA_BUCKET="a.b")[1:],
            ["https://cloudformation.cn-north-1.amazonaws.com.cn", "https://s3.cn-north-1.amazonaws.com.cn/a.b"],
        )

    def test_words_are_encoded_and_decoded(self):
        self.assertEqual(self.run_bash("url_encode 'a/b c+ü'")[1], "a%2Fb%20c%2B%C3%BC")
        self.assertEqual(self.run_bash("xml_value M '<R><M>a &lt;b&gt; &amp; &quot;c&quot; &amp;lt;</M><M>2</M></R>'")[1], 'a <b> & "c" &lt;')


class Signal(Node):
    EXPECTED = {"StackName": "paddle-control-plane", "LogicalResourceId": "Etcd0", "UniqueId": INSTANCE, "Status": "SUCCESS"}

    def test_success(self):
        self.run_script("signal-stack", "SUCCESS")
        self.assertEqual(self.aws.signals, [self.EXPECTED])

    def test_failure_keeps_the_reason_on_the_console(self):
        self.run_script("signal-stack", "FAILURE", "the disk is gone")
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assertIn("the disk is gone", self.console_lines()[-1])

    def test_outside_an_operation_is_success(self):
        for text in ("is in CREATE_COMPLETE state and cannot be signaled", "is in UPDATE_COMPLETE state and can not be signaled"):
            self.aws.script("cloudformation:SignalResource", (400, "ValidationError", f"Stack arn:aws:…:stack/paddle {text}"))
            self.assertIn("in no operation", self.run_script("signal-stack", "SUCCESS"))
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 2)

    def test_another_validation_error_is_not(self):
        self.aws.script("cloudformation:SignalResource", (400, "ValidationError", "Stack paddle does not exist"))
        self.assertIn("ValidationError: Stack paddle does not exist", self.run_script("signal-stack", "SUCCESS", expect=1))

    def test_trouble_that_passes(self):
        self.aws.script("cloudformation:SignalResource", "throttle", "error", "cut", "throttle")
        self.run_script("signal-stack", "SUCCESS")
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 5)
        self.assertEqual(self.aws.signals[-1], self.EXPECTED)

    def test_an_answer_that_never_comes_is_not_waited_for(self):
        self.aws.script("cloudformation:SignalResource", "hang")
        self.run_script("signal-stack", "SUCCESS", INFRA_CALL_SECONDS="1")
        self.assertEqual(self.signals(), ["SUCCESS"])

    def test_refused_at_once(self):
        for answer in ("denied", (403, "ExpiredToken", "The security token included in the request is expired")):
            self.aws.script("cloudformation:SignalResource", answer)
            words = self.run_script("signal-stack", "SUCCESS", expect=1)
            self.assertRegex(words, "cloudformation:SignalResource: (AccessDenied|ExpiredToken): ")
        self.assertEqual(self.aws.count("cloudformation:SignalResource"), 2)

    def test_wrong_arguments(self):
        self.run_script("signal-stack", "PERHAPS", expect=2)
        self.assertEqual(self.aws.calls, [])

    def test_a_missing_setting_is_named(self):
        self.write("etc/infra/stack.env", "INFRA_REGION=us-west-2\nINFRA_DOMAIN=amazonaws.com\nINFRA_STACK=x\n")
        self.assertIn("INFRA_RESOURCE is not set", self.run_script("signal-stack", "SUCCESS", expect=1))

    def test_the_watch_on_arguments_sees_curl(self):
        self.run_script("signal-stack", "SUCCESS")
        self.assertTrue(any("--aws-sigv4" in call for call in self.arguments_of("curl")))


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


class Etcd(Node):
    """What runs beside the member; docker is a stub."""

    def setUp(self):
        super().setUp()
        self.write("etc/infra/etcd-image.env", "INFRA_ETCD_IMAGE=registry.k8s.io/etcd:3.6.8-0\n")
        self.write(
            "etc/etcd/etcd.env",
            """\
            ETCD_NAME=etcd-1
            ETCD_INITIAL_CLUSTER=etcd-0=https://etcd-0.paddle.infra.internal:2380,etcd-1=https://etcd-1.paddle.infra.internal:2380
            ETCD_INITIAL_CLUSTER_TOKEN=paddle
            ETCD_INITIAL_ADVERTISE_PEER_URLS=https://etcd-1.paddle.infra.internal:2380
            ETCD_TRUSTED_CA_FILE=/etc/etcd/pki/ca.pem
            ETCD_CERT_FILE=/etc/etcd/pki/member.pem
            ETCD_KEY_FILE=/etc/etcd/pki/member-key.pem
            """,
        )
        self.data = self.root / "var/lib/etcd"
        (self.data / "lost+found").mkdir(parents=True)
        self.stub("docker", "exit 98")

    def set_state(self, state):
        self.write("run/infra/etcd-state", f"{state}\n")


class EtcdState(Etcd):
    def state(self):
        self.run_script("etcd-state")
        return self.read("run/infra/etcd-state")

    def test_a_formatted_volume_is_blank(self):
        self.assertEqual(self.state(), "blank\n")

    def test_a_start_that_broke_off_is_blank(self):
        (self.data / "member/snap").mkdir(parents=True)
        (self.data / "member/wal").mkdir()
        self.write("var/lib/etcd/member/snap/db", "x")
        self.assertEqual(self.state(), "blank\n")

    def test_a_log_is_data(self):
        self.write("var/lib/etcd/member/wal/0000000000000000-0000000000000000.wal", "x")
        self.assertEqual(self.state(), "data\n")

    def test_no_directory_is_no_verdict(self):
        shutil.rmtree(self.data)
        self.run_script("etcd-state", expect=1)
        self.assertFalse((self.root / "run/infra/etcd-state").exists())


class RestoreEtcd(Etcd):
    PREFIX = "clusters/west/paddle/snapshots/"
    # Does what etcdutl does: a member directory made from the snapshot.
    ETCDUTL = """\
        [[ $1 == image ]] && exit 0
        while (($#)); do
          case $1 in
          --volume) host=${2%%:*}; shift ;;
          restore) snapshot=$2; shift ;;
          --data-dir) data=$2; shift ;;
          esac
          shift
        done
        mkdir -p "$host${data#/restore}/member/wal"
        cp "$host${snapshot#/restore}" "$host${data#/restore}/member/wal/0.wal"
        """

    def setUp(self):
        super().setUp()
        self.set_state("blank")
        self.stub("docker", self.ETCDUTL)
        self.aws.objects[self.PREFIX + "etcd-0-20300101T000000Z.db"] = b"snapshot bytes"

    def restores(self):
        return [call for call in self.arguments_of("docker") if call[0] == "run"]

    def name(self, snapshot, digest=None, version=None):
        """As cluster.yaml or an operator does it; with the digest of what the bucket holds now."""
        content = self.aws.objects.get(self.PREFIX + snapshot, b"")
        digest = hashlib.sha256(content).hexdigest() if digest is None else digest
        named = "" if version is None else f"INFRA_RESTORE_VERSION={version}\n"
        self.write("etc/infra/restore.env", f"INFRA_RESTORE_SNAPSHOT={snapshot}\n{named}INFRA_RESTORE_SHA256={digest}\n")

    def assert_untouched(self):
        self.assertEqual(self.arguments_of("docker"), [])
        self.assertEqual([path.name for path in self.data.iterdir()], ["lost+found"])

    def test_the_named_snapshot(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.run_script("restore-etcd")
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "snapshot bytes")
        self.assertEqual(sorted(path.name for path in self.data.iterdir()), ["lost+found", "member"])
        (call,) = self.restores()
        self.assertEqual(call[call.index("registry.k8s.io/etcd:3.6.8-0") + 1 :][:3], ["etcdutl", "snapshot", "restore"])
        for flag, value in {
            "--name": "etcd-1",
            "--initial-cluster": "etcd-0=https://etcd-0.paddle.infra.internal:2380,etcd-1=https://etcd-1.paddle.infra.internal:2380",
            "--initial-cluster-token": "paddle",
            "--initial-advertise-peer-urls": "https://etcd-1.paddle.infra.internal:2380",
            "--network": "none",
            "--bump-revision": "1000000000",
        }.items():
            self.assertEqual(call[call.index(flag) + 1], value)
        self.run_script("etcd-state")
        self.assertEqual(self.read("run/infra/etcd-state"), "data\n")

    def test_no_name_is_an_empty_start_whatever_s3_would_say(self):
        for operation in ("s3:GetObject", "s3:ListBucket", "s3:GetBucketVersioning"):
            self.aws.script(operation, "denied")
        self.assertIn("starting empty", self.run_script("restore-etcd"))
        self.assert_untouched()
        self.assertEqual(self.aws.signals, [])
        self.assertEqual([call for call in self.aws.calls if call.startswith("s3:")], [], "a new cluster must not depend on an answer of S3")

    def test_nothing_in_the_bucket_chooses_the_data(self):
        self.aws.objects[self.PREFIX + "restore"] = b"etcd-0-20300101T000000Z.db\n"
        self.assertIn("starting empty", self.run_script("restore-etcd"))
        self.assert_untouched()
        self.assertEqual(self.aws.count("s3:GetObject"), 0)

    def test_a_snapshot_that_was_replaced_is_refused(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.aws.objects[self.PREFIX + "etcd-0-20300101T000000Z.db"] = b"planted bytes."
        self.assertIn("is not the snapshot that was named: its SHA-256 is", self.run_script("restore-etcd", expect=1))
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assert_untouched()

    def test_an_empty_prefix(self):
        self.name("a.db", hashlib.sha256(b"bytes").hexdigest())
        self.aws.objects = {"paddle/snapshots/a.db": b"bytes"}
        self.run_script("restore-etcd", INFRA_PREFIX="")
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "bytes")

    def test_data_wins_over_the_name(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.set_state("data")
        self.run_script("restore-etcd")
        self.assert_untouched()
        self.assertEqual(self.aws.count("s3:GetObject"), 0)

    def test_no_verdict_no_restore(self):
        (self.root / "run/infra/etcd-state").unlink()
        self.name("etcd-0-20300101T000000Z.db")
        self.run_script("restore-etcd", expect=1)
        self.assert_untouched()

    def test_bad_names_and_digests_are_refused(self):
        good = "0" * 64
        for name, digest in (("../../other/secret.db", good), ("", good), ("-x", good), ("a b.db", good), ("a.db", ""), ("a.db", good[1:]),
                             ("a.db", good.replace("0", "G"))):
            with self.subTest(name=name, digest=digest):
                self.aws.signals.clear()
                self.name(name, digest)
                self.assertRegex(self.run_script("restore-etcd", expect=1), "INFRA_RESTORE_(SNAPSHOT|SHA256) in /etc/infra/restore.env must be")
                self.assertEqual(self.signals(), ["FAILURE"])
                self.assert_untouched()

    def refuse(self, *expected):
        """Runs the script, which gives up with these words and starts nothing."""
        words = self.run_script("restore-etcd", expect=1)
        for text in expected:
            self.assertIn(text, words)
        # The reason is where those look who cannot log in.
        self.assertTrue(any(line.startswith("infra: restore-etcd failed: ") and expected[0] in line for line in self.console_lines()), words)
        self.assertNotIn("starting empty", words)
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assert_untouched()

    def test_a_snapshot_nobody_may_read_is_not_an_empty_start(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.aws.script("s3:GetObject", "denied")
        key = self.PREFIX + "etcd-0-20300101T000000Z.db"
        self.refuse(f"{key} exists but cannot be read: s3:GetObject {key}: AccessDenied")

    def test_a_missing_snapshot_is_called_missing_whatever_s3_answers(self):
        for answer in ("ok", "denied"):
            with self.subTest(answer):
                self.aws.signals.clear()
                self.name("gone.db")
                # An object that only begins with the name is another one.
                self.aws.objects[self.PREFIX + "gone.db.old"] = b"x"
                self.aws.script("s3:GetObject", answer)
                self.refuse(f"bucket team-bucket has no {self.PREFIX}gone.db (s3:GetObject {self.PREFIX}gone.db: ")

    def test_a_list_that_is_refused_is_said(self):
        self.name("gone.db")
        self.aws.script("s3:GetObject", "denied")
        self.aws.script("s3:ListBucket", "denied")
        self.refuse("whether it exists is not known either", f"s3:GetObject {self.PREFIX}gone.db: AccessDenied",
                    f"s3:ListBucket {self.PREFIX}gone.db: AccessDenied")

    def test_a_version_that_is_not_the_newest(self):
        key, old = self.PREFIX + "etcd.db", "3HL4+kqt/J~x="
        self.aws.versions = {(key, old): b"old bytes", (key, "v2"): b"new bytes"}
        self.aws.objects[key] = b"new bytes"
        self.name("etcd.db", hashlib.sha256(b"old bytes").hexdigest(), old)
        self.assertIn(f"restoring etcd from etcd.db, version {old}", self.run_script("restore-etcd"))
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "old bytes")

    def test_a_version_that_is_gone(self):
        self.aws.objects[self.PREFIX + "etcd.db"] = b"new bytes"
        self.name("etcd.db", version="v1")
        self.refuse("etcd.db exists but cannot be read", "NoSuchVersion")

    def test_the_object_that_changes_every_hour_needs_its_version(self):
        self.aws.objects[self.PREFIX + "etcd.db"] = b"bytes"
        self.name("etcd.db")
        self.refuse("etcd.db is written every hour, so its version must be named, too")
        self.assertEqual(self.aws.count("s3:GetObject"), 0)

    def test_a_bad_version_is_refused(self):
        self.name("etcd.db", version="v1&x=y")
        self.refuse("INFRA_RESTORE_VERSION in /etc/infra/restore.env must be a version of etcd.db")

    def test_a_transfer_that_breaks_is_begun_again(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.aws.script("s3:GetObject", "throttle", "cut", "error")
        self.run_script("restore-etcd")
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "snapshot bytes")

    def test_a_registry_that_does_not_answer_is_asked_again(self):
        self.name("etcd-0-20300101T000000Z.db")
        missing = f"""\
        [[ $1 != image ]] || exit 1
        if [[ $1 == pull ]]; then
          (($(grep -c ^pull {self.folder}/docker.calls) > 2)) && exit 0
          echo "registry: timeout" >&2
          exit 1
        fi
        """
        self.stub("docker", missing + self.ETCDUTL)
        self.assertIn("registry: timeout", self.run_script("restore-etcd"))
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "snapshot bytes")

    def test_a_damaged_snapshot_leaves_no_member(self):
        self.name("etcd-0-20300101T000000Z.db")
        self.stub("docker", self.ETCDUTL + "\nexit 1")
        self.assertIn("could not restore", self.run_script("restore-etcd", expect=1))
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assertFalse((self.data / "member").exists())

    def test_rests_of_a_broken_start_are_kept_aside(self):
        self.write("var/lib/etcd/member/snap/db", "old")
        self.name("etcd-0-20300101T000000Z.db")
        self.run_script("restore-etcd")
        self.assertEqual(self.read("var/lib/etcd/member/wal/0.wal"), "snapshot bytes")
        (aside,) = self.data.glob("member.before-restore-*")
        self.assertEqual((aside / "snap/db").read_text(), "old")


class RunEtcd(Etcd):
    def test_the_container(self):
        self.set_state("blank")
        self.stub("docker", '[[ $1 == rm ]] && exit 1; echo "pid $$"')
        process = self.start("run-etcd")
        output, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(output, f"pid {process.pid}\n", "docker takes the script's place, so that systemd's signals reach it")
        remove, run = self.arguments_of("docker")
        self.assertEqual(remove, ["rm", "--force", "etcd"])
        self.assertEqual(run[0], "run")
        self.assertEqual(run[-2:], ["registry.k8s.io/etcd:3.6.8-0", "etcd"])
        pairs = set(zip(run, run[1:]))
        for pair in [
            ("--name", "etcd"),
            ("--network", "host"),
            ("--user", self.environment["INFRA_ETCD_USER"]),
            ("--env-file", f"{self.root}/etc/etcd/etcd.env"),
            ("--volume", f"{self.data}:/var/lib/etcd"),
            ("--volume", f"{self.root}/etc/etcd/pki:/etc/etcd/pki:ro"),
        ]:
            self.assertIn(pair, pairs)
        self.assertIn("--rm", run)
        self.assertNotIn("--init", run)
        self.assertEqual(self.data.stat().st_mode & 0o777, 0o700)

    def test_not_on_a_volume_nobody_looked_at(self):
        self.run_script("run-etcd", expect=1)
        self.assertEqual(self.arguments_of("docker"), [])


class SignalEtcd(Etcd):
    def test_blank_signals_when_peers_can_connect(self):
        self.set_state("blank")
        with socket.socket() as peers:
            peers.bind(("127.0.0.1", 0))
            port = str(peers.getsockname()[1])
            process = self.start("signal-etcd", INFRA_PEER_PORT=port)
            time.sleep(0.4)
            self.assertIsNone(process.poll(), "signalled before the port was open")
            self.assertEqual(self.aws.signals, [])
            peers.listen()
            _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.signals(), ["SUCCESS"])
        self.assertEqual(self.arguments_of("docker"), [], "no quorum can be asked for")

    def test_a_port_that_closes_again_is_not_a_member(self):
        self.set_state("blank")
        with socket.socket() as peers:
            peers.bind(("127.0.0.1", 0))
            peers.listen()
            port = str(peers.getsockname()[1])
            # The pause after the port was seen lasts until it is closed.
            seen, closed = self.folder / "seen", self.folder / "closed"
            self.stub("sleep", f"""
                [[ $1 == 777 ]] || exec /bin/sleep "$1"
                touch {seen}
                until [[ -e {closed} ]]; do /bin/sleep 0.02; done
                """)
            process = self.start("signal-etcd", INFRA_PEER_PORT=port, INFRA_SETTLE_SECONDS="777", INFRA_DEADLINE_SECONDS="2")
            end = time.monotonic() + 120
            while not seen.exists():
                self.assertLess(time.monotonic(), end, "the port was not seen")
                time.sleep(0.02)
        closed.touch()
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn("was open and is closed again", errors)
        self.assertEqual(self.signals(), ["FAILURE"])

    def test_a_connection_is_not_a_listener(self):
        self.set_state("blank")
        with socket.create_server(("127.0.0.1", 0)) as other, socket.create_connection(other.getsockname()) as connection:
            port = str(connection.getsockname()[1])
            words = self.run_script("signal-etcd", expect=1, INFRA_PEER_PORT=port, INFRA_DEADLINE_SECONDS="0")
        self.assertIn(f"nothing listens on port {port}", words)
        self.assertEqual(self.signals(), ["FAILURE"])

    def test_data_signals_after_a_linearizable_read(self):
        self.set_state("data")
        self.stub("docker", f'[[ $(wc -l <{self.folder}/docker.calls) -ge 3 ]] || {{ echo "context deadline exceeded" >&2; exit 1; }}')
        words = self.run_script("signal-etcd")
        self.assertIn("linearizable read: context deadline exceeded", words)
        calls = self.arguments_of("docker")
        self.assertEqual(len(calls), 3)
        self.assertEqual(calls[0][:3], ["exec", "etcd", "etcdctl"])
        self.assertLessEqual(
            {"get", "--consistency=l", "--endpoints=https://127.0.0.1:2379", "--cacert=/etc/etcd/pki/ca.pem", "--cert=/etc/etcd/pki/member.pem"},
            set(calls[0]),
        )
        self.assertEqual(self.signals(), ["SUCCESS"])

    def test_an_open_port_is_not_enough_for_data(self):
        self.set_state("data")
        self.stub("docker", "echo no leader >&2; exit 1")
        with socket.socket() as peers:
            peers.bind(("127.0.0.1", 0))
            peers.listen()
            words = self.run_script("signal-etcd", expect=1, INFRA_PEER_PORT=str(peers.getsockname()[1]), INFRA_DEADLINE_SECONDS="0")
        self.assertIn("not within 0 s; last: linearizable read: no leader", words)
        self.assertEqual(self.signals(), ["FAILURE"])

    def test_no_verdict_no_signal(self):
        self.run_script("signal-etcd", expect=1)
        self.assertEqual(self.aws.signals, [])


class SnapshotEtcd(Etcd):
    DOCKER = """\
        file=$INFRA_ROOT${!#}
        case "$*" in
        *"etcdctl "*"snapshot save"*) printf 'bytes of %s' "${!#}" >"$file" ;;
        *"etcdutl snapshot status"*) [[ -s $file && ! -e $INFRA_ROOT/damaged ]] ;;
        *) exit 97 ;;
        esac
        """
    NAME = re.compile(r"etcd-1-\d{8}T\d{6}Z\.db")
    FOLDER = "clusters/west/paddle/snapshots/"

    def setUp(self):
        super().setUp()
        self.stub("docker", self.DOCKER)
        self.local = self.data / "snapshots"
        self.lead()

    def lead(self, has_leader=1, is_leader=1):
        """What the member says of itself."""
        self.write("metrics", f"# TYPE etcd_server_is_leader gauge\netcd_server_is_leader {is_leader}\netcd_server_has_leader {has_leader}\n")
        self.environment["INFRA_ETCD_METRICS"] = (self.root / "metrics").as_uri()

    def old(self, count):
        names = [f"etcd-1-2020010{day}T000000Z.db" for day in range(1, count + 1)]
        for name in names:
            self.write(f"var/lib/etcd/snapshots/{name}", "old")
        return names

    def test_on_the_volume_and_in_the_bucket(self):
        words = self.run_script("snapshot-etcd")
        ((key, headers),) = self.aws.uploads
        (file,) = self.local.iterdir()
        self.assertRegex(file.name, self.NAME)
        # Without versions a second upload would replace the first: each has a name of its own.
        name = file.name.replace("etcd-1-", "etcd-")
        self.assertEqual(key, self.FOLDER + name)
        self.assertEqual(self.aws.objects[key], file.read_bytes())
        self.assertEqual(headers["x-amz-server-side-encryption"], "aws:kms")
        self.assertEqual(headers["x-amz-server-side-encryption-aws-kms-key-id"], KMS_KEY)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        self.assertEqual(headers["x-amz-content-sha256"], digest)
        self.assertIn(f"snapshot {file.name} ({file.stat().st_size} bytes) is in the bucket as {name}; its SHA-256 is {digest}", words)

    def test_a_bucket_with_versions_has_one_key(self):
        self.aws.versioning = "Enabled"
        lines = [self.run_script("snapshot-etcd") for _ in range(2)]
        self.assertEqual([key for key, _ in self.aws.uploads], [f"{self.FOLDER}etcd.db"] * 2)
        self.assertEqual(len(self.aws.versions), 2)
        for words, ((_, version), content) in zip(lines, self.aws.versions.items()):
            self.assertIn(f"in the bucket as etcd.db, version {version}; its SHA-256 is {hashlib.sha256(content).hexdigest()}", words)

    def test_what_would_be_replaced_is_never_written_again(self):
        # Versions that are suspended do not keep what is overwritten, and without an answer nobody knows.
        for versioning, behaviour in (("Suspended", "ok"), ("Enabled", "denied")):
            with self.subTest(versioning=versioning, behaviour=behaviour):
                self.aws.uploads.clear()
                self.aws.versioning = versioning
                self.aws.script("s3:GetBucketVersioning", behaviour)
                words = self.run_script("snapshot-etcd")
                ((key, _),) = self.aws.uploads
                self.assertRegex(key, rf"^{self.FOLDER}etcd-\d{{8}}T\d{{6}}Z\.db$")
                self.assertEqual(behaviour == "denied", "s3:GetBucketVersioning: AccessDenied" in words, words)

    def test_only_the_leader_uploads(self):
        self.lead(is_leader=0)
        words = self.run_script("snapshot-etcd")
        self.assertEqual(len(list(self.local.iterdir())), 1, "each member has snapshots of its own")
        self.assertRegex(words, r"(?m)^infra: snapshot etcd-1-\S+ is on the volume; this member is not the leader, which uploads its own$")
        self.assertEqual([call for call in self.aws.calls if call.startswith("s3:")], [])
        self.assertEqual(self.console_lines(), [], "the lines of the leader are not pushed out of the console")

    def test_a_cluster_without_a_leader_is_a_failure(self):
        self.lead(has_leader=0, is_leader=0)
        self.assertIn("is on the volume only: etcd has no leader", self.run_script("snapshot-etcd", expect=1))
        (self.root / "metrics").unlink()
        self.assertIn("is on the volume only: etcd does not say who leads", self.run_script("snapshot-etcd", expect=1))
        self.assertEqual(self.aws.uploads, [])

    def test_the_newest_two_stay(self):
        names = self.old(7)
        self.write("var/lib/etcd/snapshots/by-hand.db", "mine")
        self.run_script("snapshot-etcd")
        left = sorted(path.name for path in self.local.iterdir())
        self.assertEqual(left[:-1], ["by-hand.db", names[-1]])
        self.assertRegex(left[-1], self.NAME)

    def test_a_damaged_snapshot_replaces_nothing(self):
        names = self.old(2)
        self.write("damaged", "")
        self.assertIn("corrupt", self.run_script("snapshot-etcd", expect=1))
        self.assertEqual(sorted(path.name for path in self.local.iterdir()), names)
        self.assertEqual(self.aws.uploads, [])

    def test_a_volume_that_is_nearly_full(self):
        names = self.old(2)
        (self.data / "member/snap").mkdir(parents=True)
        with (self.data / "member/snap/db").open("wb") as file:
            file.truncate(1 << 43)
        self.assertIn("no space for a snapshot", self.run_script("snapshot-etcd", expect=1))
        self.assertEqual(sorted(path.name for path in self.local.iterdir()), names)
        self.assertEqual(self.aws.uploads, [])

    def test_a_member_that_does_not_answer(self):
        names = self.old(2)
        self.stub("docker", "exit 1")
        self.run_script("snapshot-etcd", expect=1)
        self.assertEqual(sorted(path.name for path in self.local.iterdir()), names)

    def test_a_bucket_that_refuses_does_not_fill_the_volume(self):
        self.old(7)
        self.aws.script("s3:PutObject", "denied")
        words = self.run_script("snapshot-etcd", expect=1)
        self.assertRegex(words, r"is on the volume only: s3:PutObject \S+: AccessDenied")
        self.assertEqual(len(list(self.local.iterdir())), 2)
        self.assertEqual(self.aws.count("s3:PutObject"), 1)

    def test_an_upload_that_breaks_is_begun_again(self):
        self.aws.script("s3:PutObject", "throttle", "error")
        self.run_script("snapshot-etcd")
        self.assertEqual(len(self.aws.uploads), 1)


class DefragEtcd(Etcd):
    CLUSTER = ",".join(f"etcd-{n}=https://etcd-{n}.paddle.infra.internal:2380" for n in range(3))

    def defragment(self, connected, **environment):
        """Runs the script on one of three members that is connected to this many others."""
        peers = "".join(f'etcd_network_active_peers{{Local="a",Remote="{n}"}} {int(n < connected)}\n' for n in range(2))
        self.write("metrics", f"# HELP etcd_network_active_peers ...\netcd_server_has_leader 1\n{peers}")
        metrics = (self.root / "metrics").as_uri()
        return self.run_script("defrag-etcd", INFRA_ETCD_METRICS=metrics, ETCD_INITIAL_CLUSTER=self.CLUSTER, **environment)

    def test_healthy(self):
        self.stub("docker")
        self.stub("sleep")
        self.defragment(2)
        self.assertEqual(self.arguments_of("sleep"), [["600"]], "member 1 comes ten minutes after member 0")
        verbs = [[word for word in call[3:] if not word.startswith("--") or word == "--cluster"] for call in self.arguments_of("docker")]
        self.assertEqual(verbs, [["endpoint", "health"], ["defrag"], ["endpoint", "health"]])
        self.assertIn("--endpoints=https://127.0.0.1:2379", self.arguments_of("docker")[1])

    def test_not_while_a_member_is_down(self):
        self.stub("docker")
        self.assertIn("connected to 1 of 2 other members", self.defragment(1, INFRA_SPREAD_SECONDS="0"))
        self.assertEqual(self.arguments_of("docker"), [])

    def test_not_while_this_member_is_ill(self):
        self.stub("docker", '[[ "$*" == *health* ]] && { echo "etcd-1 is unhealthy" >&2; exit 1; }; exit 0')
        self.assertIn("etcd-1 is unhealthy", self.defragment(2, INFRA_SPREAD_SECONDS="0"))
        self.assertFalse(any("defrag" in call for call in self.arguments_of("docker")))


class NodeEnvironment(Node):
    def describe(self, cores, kibibytes):
        self.stub("nproc", f"echo {cores}")
        self.write("proc/meminfo", f"MemTotal:       {kibibytes} kB\nMemFree:          1 kB\n")
        self.run_script("node-environment")
        [written] = (self.root / "run/infra/kubelet.conf.d").iterdir()
        self.assertEqual((written.suffix, written.stat().st_mode & 0o133), (".conf", 0))
        return yaml.safe_load(written.read_text())

    def test_who_it_is(self):
        self.aws.metadata["meta-data/local-hostname"] = "ip-10-0-1-23.corp.example us-west-2.compute.internal"
        self.describe(2, 4 << 20)
        self.assertEqual(
            self.read("run/infra/node.env"),
            f"NODE_NAME=ip-10-0-1-23.corp.example\nNODE_IP=10.0.1.23\nPROVIDER_ID=aws:///us-west-2b/{INSTANCE}\n",
        )

    def test_what_it_keeps_for_itself(self):
        gibibyte = 1 << 20
        for cores, memory, cpu, kept in [
            (1, gibibyte // 2, "60m", "255Mi"),
            (2, 4 * gibibyte, "70m", "1024Mi"),
            (4, 16 * gibibyte, "80m", "2662Mi"),
            (5, 8 * gibibyte, "83m", "1843Mi"),
            (96, 384 * gibibyte, "310m", "14786Mi"),
        ]:
            with self.subTest(cores=cores):
                settings = self.describe(cores, memory)
                self.assertEqual(settings.pop("apiVersion"), "kubelet.config.k8s.io/v1beta1")
                self.assertEqual(settings, {"kind": "KubeletConfiguration", "kubeReserved": {"cpu": cpu, "memory": kept}})


class SignalNode(Node):
    def setUp(self):
        super().setUp()
        self.write("run/infra/node.env", "NODE_NAME=ip-10-0-1-23.us-west-2.compute.internal\nNODE_IP=10.0.1.23\n")

    def kubectl(self, body):
        self.stub("kubectl", body, folder=self.root / "opt/bin")

    def test_ready(self):
        self.kubectl(
            f"""\
            case $(wc -l <{self.folder}/kubectl.calls) in
            1) echo 'nodes "ip" not found' >&2; exit 1 ;;
            2) printf 'False KubeletNotReady: cni plugin not initialized' ;;
            *) printf 'True KubeletReady: kubelet is posting ready status' ;;
            esac
            """
        )
        words = self.run_script("signal-node")
        self.assertIn("cni plugin not initialized", words)
        calls = self.arguments_of("kubectl")
        self.assertEqual(len(calls), 3)
        self.assertEqual(calls[0][:2], ["--kubeconfig", f"{self.root}/var/lib/kubelet/kubeconfig"])
        self.assertEqual(calls[0][2:5], ["get", "node", "ip-10-0-1-23.us-west-2.compute.internal"])
        self.assertEqual(self.signals(), ["SUCCESS"])

    def test_a_machine_without_a_certificate_says_who_approves_it(self):
        self.kubectl("echo 'error: unable to read client-cert' >&2; exit 1")
        said = "last: no certificate yet; a controller's approve-nodes approves it, and its journal says what it waits for"
        self.assertIn(said, self.run_script("signal-node", expect=1, INFRA_DEADLINE_SECONDS="0"))
        self.write("var/lib/kubelet/pki/kubelet-client-current.pem", "")
        self.assertIn("last: error: unable to read", self.run_script("signal-node", expect=1, INFRA_DEADLINE_SECONDS="0"))

    def test_not_before_the_shared_file_system_is_mounted(self):
        self.kubectl("printf 'True KubeletReady: kubelet is posting ready status'")
        self.write("etc/infra/file-system.env", "INFRA_MOUNT_PATH=/mnt/efs\n")
        self.stub("findmnt", "exit 1")
        words = self.run_script("signal-node", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn("last: the shared file system is not mounted on /mnt/efs; the journal of mount-file-system says why", words)
        self.assertEqual(self.signals(), ["FAILURE"])
        self.stub("findmnt")
        self.run_script("signal-node")
        self.assertEqual(self.signals(), ["FAILURE", "SUCCESS"])
        self.assertEqual(self.arguments_of("findmnt")[-1], ["--mountpoint", f"{self.root}/mnt/efs"])

    def test_never_ready(self):
        self.kubectl("printf 'False KubeletNotReady: cni plugin not initialized'")
        words = self.run_script("signal-node", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn("last: Ready is False KubeletNotReady: cni plugin not initialized", words)
        self.assertEqual(self.signals(), ["FAILURE"])


class MountFileSystem(Node):
    """systemctl and findmnt are stubs: the mount succeeds when the file `there` exists."""

    def setUp(self):
        super().setUp()
        self.path = self.root / "srv/shared-data"
        self.path.mkdir(parents=True)
        self.write("etc/infra/file-system.env", "INFRA_MOUNT_PATH=/srv/shared-data\n")
        mounted = f"{self.folder}/mounted"
        self.stub("findmnt", f"[[ -e {mounted} ]]")
        self.stub("systemctl", f"""\
            case $1 in
            start) [[ -e {self.folder}/there ]] || exit 1; touch {mounted} ;;
            show) printf 'InvocationID=0123abcd\\nResult=exit-code\\n' ;;
            esac
            """)
        self.stub("journalctl", """\
            [[ $* == *_SYSTEMD_INVOCATION_ID=0123abcd* ]] || exit 0
            printf '%s\\n' 'mount.nfs4: Failed to resolve server fs: Name or service not known' 'dmesg(1) may have more information'
            """)
        self.stub("chattr")

    def mode(self):
        return self.path.stat().st_mode & 0o7777

    def succeed(self):
        (self.folder / "there").touch()

    def test_the_directory_is_closed_before_the_first_attempt(self):
        self.succeed()
        self.run_script("mount-file-system")
        self.assertEqual(self.mode(), 0)
        self.assertEqual(self.arguments_of("chattr"), [["+i", str(self.path)]])
        self.assertEqual(self.arguments_of("systemctl"), [["start", r"srv-shared\x2ddata.mount"]])
        self.assertEqual(self.console_lines()[-1], "infra: the shared file system is mounted on /srv/shared-data")
        self.assertEqual(self.signals(), [])

    def test_it_is_mounted_as_often_as_it_takes(self):
        process = self.start("mount-file-system")
        line = "infra: waiting for the shared file system on /srv/shared-data: mount.nfs4: Failed to resolve server fs: Name or service not known"
        while line not in self.console_lines():
            self.assertIsNone(process.poll(), self.console.read_text())
            time.sleep(0.02)
        self.succeed()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertGreater(sum(call[0] == "start" for call in self.arguments_of("systemctl")), 1)
        self.assertEqual(self.signals(), [])

    def test_a_failure_is_signalled_once_and_is_not_the_end(self):
        process = self.start("mount-file-system", INFRA_DEADLINE_SECONDS="0")
        said = "Name or service not known; the kubelet waits for it"
        while sum(said in line for line in self.console_lines()) < 3:
            self.assertIsNone(process.poll(), self.console.read_text())
            time.sleep(0.02)
        self.assertEqual(self.signals(), ["FAILURE"])
        self.succeed()
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.signals(), ["FAILURE"])

    def test_what_is_mounted_is_left_alone(self):
        (self.folder / "mounted").touch()
        self.run_script("mount-file-system")
        self.assertNotEqual(self.mode(), 0)
        self.assertEqual((self.arguments_of("chattr"), self.arguments_of("systemctl")), ([], []))

    def test_after_a_reboot_the_mode_is_not_set_again(self):
        self.path.chmod(0)
        self.stub("chmod", "exit 1")
        self.succeed()
        self.run_script("mount-file-system")
        self.assertEqual(self.arguments_of("chmod"), [])

    def test_a_directory_with_files_of_its_own_keeps_its_mode(self):
        (self.path / "core").mkdir()
        before = self.mode()
        self.succeed()
        self.run_script("mount-file-system")
        self.assertEqual(self.mode(), before)
        self.assertEqual(self.arguments_of("chattr"), [["+i", str(self.path)]])

    def test_a_root_disk_without_the_flag_is_said_and_no_failure(self):
        self.stub("chattr", "exit 1")
        self.succeed()
        self.assertIn("/srv/shared-data cannot be made immutable", self.run_script("mount-file-system"))


class WatchSpot(Node):
    NOTICE = '{"action": "terminate", "time": "2030-01-01T00:02:00Z"}'

    def setUp(self):
        super().setUp()
        self.environment["INFRA_POLL_SECONDS"] = "0.05"

    def asked(self):
        return self.aws.count("imds:meta-data/spot/instance-action")

    def test_a_notice_shuts_down_once(self):
        self.stub("systemctl")
        self.aws.script("imds:meta-data/spot/instance-action", "missing", "error", "missing")
        process = self.start("watch-spot")
        end = time.monotonic() + 120
        while self.asked() < 5 and time.monotonic() < end:
            time.sleep(0.02)
        self.assertIsNone(process.poll())
        self.assertEqual(self.arguments_of("systemctl"), [])
        self.aws.metadata["meta-data/spot/instance-action"] = self.NOTICE
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.arguments_of("systemctl"), [["poweroff"]])
        self.assertIn("infra: spot interruption: terminate at 2030-01-01T00:02:00Z; shutting down", self.console_lines())

    def test_a_shutdown_that_fails_is_a_failure(self):
        self.stub("systemctl", "exit 1")
        self.aws.metadata["meta-data/spot/instance-action"] = self.NOTICE
        self.run_script("watch-spot", expect=1)


class UnpackPlugins(Node):
    def pack(self, **files):
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w:gz") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(f"./{name}")
                member.size, member.mode = len(content), 0o755
                tar.addfile(member, io.BytesIO(content))
        self.write("opt/infra/archives/cni-plugins.tgz", archive.getvalue())

    def plugins(self):
        return {path.name: path.read_bytes() for path in (self.root / "opt/cni/bin").iterdir()}

    def test_twice(self):
        self.pack(bridge=b"one", loopback=b"two")
        self.run_script("unpack-cni")
        self.assertEqual(self.plugins(), {"bridge": b"one", "loopback": b"two"})
        self.assertTrue(os.access(self.root / "opt/cni/bin/bridge", os.X_OK))
        self.write("opt/cni/bin/flannel", "theirs")
        self.write("opt/cni/bin/bridge", "broken")
        self.write("opt/cni/unpacking/half", "of a run that was killed")
        self.run_script("unpack-cni")
        self.assertEqual(self.plugins(), {"bridge": b"one", "loopback": b"two", "flannel": b"theirs"})
        self.assertEqual([path.name for path in (self.root / "opt/cni").iterdir()], ["bin"])

    def test_a_broken_archive_changes_nothing(self):
        self.pack(bridge=b"one")
        self.run_script("unpack-cni")
        whole = (self.root / "opt/infra/archives/cni-plugins.tgz").read_bytes()
        self.write("opt/infra/archives/cni-plugins.tgz", whole[: len(whole) // 2])
        self.run_script("unpack-cni", expect=1)
        self.assertEqual(self.plugins(), {"bridge": b"one"})
        self.assertEqual([path.name for path in (self.root / "opt/cni").iterdir()], ["bin"])


class ApplyAddons(Node):
    # Its own Node, and no other: a worker's kubelet may say of its Node whatever it likes.
    LABEL = ["label", "node", "me", "node-role.kubernetes.io/control-plane=", "--overwrite"]

    def setUp(self):
        super().setUp()
        for name in ("20-flannel.yaml", "10-rbac.yaml", "9-last.yaml", "15-proxy.yaml"):
            self.write(f"etc/kubernetes/addons/{name}", "kind: List\n")
        self.write("run/infra/node.env", "NODE_NAME=me\n")
        self.ordered = ["10-rbac.yaml", "15-proxy.yaml", "20-flannel.yaml", "9-last.yaml"]
        self.kubectl()

    def kubectl(self, body=""):
        self.stub("kubectl", body, folder=self.root / "opt/bin")

    def all_calls(self):
        calls = self.arguments_of("kubectl")
        for call in calls:
            self.assertEqual(call[:2], ["--kubeconfig", f"{self.root}/etc/kubernetes/admin.conf"])
        return [call[2:] for call in calls]

    def calls(self):
        """Those but the label's, which is set in parallel."""
        return [call for call in self.all_calls() if call[0] != "label"]

    def labels(self):
        return [call for call in self.all_calls() if call[0] == "label"]

    def applied(self):
        return [pathlib.Path(call[-1]).name for call in self.calls() if call[0] == "apply"]

    def test_in_the_order_of_names_and_again(self):
        self.run_script("apply-addons")
        first = self.calls()
        self.assertEqual(first[0], ["get", "--raw", "/readyz"])
        self.assertEqual(self.applied(), self.ordered)
        self.assertEqual(first[1][:-1], ["apply", "--server-side", "--force-conflicts", "--field-manager=infra", "-f"])
        self.assertEqual(self.labels(), [self.LABEL])
        self.run_script("apply-addons")
        self.assertEqual(self.calls(), first * 2)
        self.assertEqual(self.labels(), [self.LABEL] * 2)

    def test_waits_for_the_api_server_and_tries_again(self):
        self.kubectl(
            f"""\
            count() {{ grep -c -- "$1" {self.folder}/kubectl.calls; }}
            case "$*" in
            *readyz*) (($(count readyz) > 2)) || {{ echo "connection refused" >&2; exit 1; }} ;;
            *15-proxy*) (($(count 15-proxy) > 3)) || {{ echo "no matches for kind" >&2; exit 1; }} ;;
            esac
            """
        )
        words = self.run_script("apply-addons")
        self.assertIn("waiting for the API server: connection refused", words)
        self.assertIn("waiting for add-on 15-proxy.yaml: no matches for kind", words)
        self.assertEqual(self.applied(), ["10-rbac.yaml", *["15-proxy.yaml"] * 4, "20-flannel.yaml", "9-last.yaml"])

    def test_names_the_failing_checks_of_the_api_server(self):
        # kubectl quotes the answer: its line breaks are a backslash and an n.
        passing = "".join(rf"[+]poststarthook/start-some-controller-{number} ok\n" for number in range(40))
        failing = r"[-]etcd failed: reason withheld\n" + passing + r"[-]poststarthook/rbac/bootstrap-roles failed: not finished\n"
        answer = rf'an error on the server ("[+]ping ok\n{failing}{passing}readyz check failed") has prevented the request from succeeding'
        self.write("answer", f"Error from server (InternalError): {answer}\n")
        self.kubectl(
            f"""\
            [[ "$*" != *readyz* ]] || (($(grep -c readyz {self.folder}/kubectl.calls) > 1)) || {{ cat {self.root}/answer >&2; exit 1; }}
            """
        )
        self.run_script("apply-addons")
        line = "infra: waiting for the API server: failing checks: etcd, poststarthook/rbac/bootstrap-roles"
        self.assertIn(line, self.console_lines())

    def test_a_long_reason_is_cut(self):
        self.kubectl(f"""[[ "$*" != *15-proxy* ]] || {{ printf '%s' {'x' * 3000} >&2; exit 1; }}""")
        self.run_script("apply-addons", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertLess(max(map(len, self.console_lines())), 500)
        self.assertIn("x" * 400, "".join(self.console_lines()))

    def test_one_broken_add_on_does_not_cost_the_others(self):
        self.kubectl('[[ "$*" != *15-proxy* ]] || { echo "bad manifest" >&2; exit 1; }')
        words = self.run_script("apply-addons", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn("not applied: 15-proxy.yaml", words)
        self.assertLessEqual(set(self.ordered), set(self.applied()))
        self.assertEqual(self.labels(), [self.LABEL])

    def test_a_broken_add_on_does_not_delay_the_label(self):
        # The cloud controller manager waits for the label, and every node for that.
        self.kubectl(
            f"""\
            case "$*" in
            *15-proxy*) grep -q " label " {self.folder}/kubectl.calls || {{ echo "no label yet" >&2; exit 1; }} ;;
            *label*) (($(grep -c " label " {self.folder}/kubectl.calls) > 2)) || {{ echo 'nodes "me" not found' >&2; exit 1; }} ;;
            esac
            """
        )
        words = self.run_script("apply-addons")
        self.assertIn('waiting for Node me: nodes "me" not found', words)
        self.assertEqual(self.labels(), [self.LABEL] * 3)
        self.assertEqual(set(self.applied()), set(self.ordered))

    def test_a_node_that_never_registers(self):
        self.kubectl("""[[ "$*" != *label* ]] || { echo 'nodes "me" not found' >&2; exit 1; }""")
        words = self.run_script("apply-addons", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn('Node me: not within 0 s; last: nodes "me" not found', words)
        self.assertIn("not applied: label", words)
        self.assertEqual(self.applied(), self.ordered)

    def test_no_api_server(self):
        self.kubectl("echo connection refused >&2; exit 1")
        words = self.run_script("apply-addons", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn("the API server: not within 0 s; last: connection refused", words)
        self.assertEqual(self.applied(), [])

    def test_the_api_of_metrics_server_waits_for_the_pod_of_this_machine(self):
        self.write("etc/kubernetes/addons/52-metrics-api.yaml", "kind: APIService\n")
        self.kubectl(
            f"""\
            [[ "$*" != *" wait "* ]] || (($(grep -c -- " wait " {self.folder}/kubectl.calls) > 2)) || {{ echo "no matching resources found"; exit 1; }}
            """
        )
        words = self.run_script("apply-addons")
        self.assertIn("waiting for metrics-server on this machine: no matching resources found", words)
        self.assertEqual(self.applied(), [*self.ordered, "52-metrics-api.yaml"])
        *before, last = self.calls()[-4:]
        self.assertEqual([call[:2] for call in before], [["wait", "pod"]] * 3)
        self.assertIn("--field-selector=spec.nodeName=me", before[0])
        self.assertLess(self.all_calls().index(self.LABEL), self.all_calls().index(before[0]), "its pod waits for the label")
        self.assertEqual(last[0], "apply")

    def test_without_metrics_server_its_api_is_not_registered(self):
        self.write("etc/kubernetes/addons/52-metrics-api.yaml", "kind: APIService\n")
        self.kubectl('[[ "$*" != *" wait "* ]] || { echo "timed out waiting for the condition" >&2; exit 1; }')
        words = self.run_script("apply-addons", expect=1, INFRA_DEADLINE_SECONDS="0")
        self.assertIn("metrics-server on this machine: not within 0 s; last: timed out waiting for the condition", words)
        self.assertIn("not applied: 52-metrics-api.yaml", words)
        self.assertEqual(self.applied(), self.ordered)


class FetchRuntime(Node):
    FILE = "nvidia-runtime-v1.18.1-x86-64.raw"
    IMAGE = b"an extension image"

    def setUp(self):
        super().setUp()
        self.stub("systemctl")
        self.stub("systemd-sysext")
        self.stub("systemd-tmpfiles", 'echo "$(wc -l <"${0%/*}/../systemd-sysext.calls")" >>"${0%/*}/../refreshed"')
        self.environment["INFRA_DOWNLOAD_PROTOCOLS"] = "=http"
        self.sum = hashlib.sha256(self.IMAGE).hexdigest()
        self.aws.files[self.FILE] = self.IMAGE
        self.aws.files["SHA256SUMS"] = f"{'0' * 64}  {self.FILE}.old\n{self.sum}  {self.FILE}\n".encode()
        self.settings()

    def settings(self, more=""):
        self.write(
            "etc/infra/nvidia.env",
            f"""\
            NVIDIA_RUNTIME_URL={self.aws.url}/files/{self.FILE}
            NVIDIA_RUNTIME_SUMS_URL={self.aws.url}/files/SHA256SUMS
            NVIDIA_RUNTIME_FILE={self.FILE}
            {more}
            """,
        )

    def assert_in_place(self):
        link = self.root / "etc/extensions/nvidia-runtime.raw"
        self.assertEqual(link.resolve(), self.root / "opt/extensions/nvidia-runtime" / self.FILE)
        self.assertEqual(link.read_bytes(), self.IMAGE)

    def assert_refused(self, words, needle):
        self.assertIn(needle, words)
        self.assertFalse((self.root / "etc/extensions/nvidia-runtime.raw").is_symlink())
        self.assertEqual(list((self.root / "opt/extensions/nvidia-runtime").glob("*.raw*")), [])
        self.assertEqual(self.arguments_of("systemd-sysext"), [])

    def test_by_the_list_of_sums_and_again(self):
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.assertEqual(self.aws.count(f"files:{self.FILE}"), 1, "fetched once")
        self.assertEqual(self.arguments_of("systemd-sysext"), [["refresh"]] * 2)

    def test_the_first_boot_makes_the_files_that_the_second_would(self):
        self.run_script("fetch-nvidia-runtime")
        self.assertEqual(self.arguments_of("systemd-tmpfiles"), [["--create", "--exclude-prefix=/dev"]])
        self.assertEqual((self.folder / "refreshed").read_text(), "1\n", "not before the extension is there")
        self.stub("systemd-tmpfiles", "exit 73")
        self.assertIn("systemd-tmpfiles failed", self.run_script("fetch-nvidia-runtime"))
        self.assert_in_place()

    def test_a_pinned_sum_needs_no_list(self):
        self.settings(f"NVIDIA_RUNTIME_SHA256={self.sum}")
        self.run_script("fetch-nvidia-runtime")
        self.assert_in_place()
        self.assertEqual(self.aws.count("files:SHA256SUMS"), 0)

    def test_another_image_is_refused(self):
        self.aws.files[self.FILE] = b"another"
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "does not have the sha256")

    def test_a_pinned_sum_wins_over_the_list(self):
        self.settings(f"NVIDIA_RUNTIME_SHA256={'1' * 64}")
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "does not have the sha256")

    def test_a_list_without_it(self):
        self.aws.files["SHA256SUMS"] = f"{self.sum}  other.raw\n".encode()
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1), "no sha256")

    def test_nothing_but_tls(self):
        del self.environment["INFRA_DOWNLOAD_PROTOCOLS"]
        self.assert_refused(self.run_script("fetch-nvidia-runtime", expect=1, INFRA_DEADLINE_SECONDS="0"), "not supported")
        self.assertEqual(self.aws.calls, [])


if __name__ == "__main__":
    unittest.main()
