"""The scripts that decide whether an etcd member has data, and that restore a snapshot if it has none."""

import hashlib
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from etcd_case import Etcd  # noqa: E402


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
        # The reason is on the console, for users who cannot log in.
        self.assertTrue(any(line.startswith("infra: restore-etcd failed: ") and expected[0] in line for line in self.console_lines()), words)
        self.assertNotIn("starting empty", words)
        self.assertEqual(self.signals(), ["FAILURE"])
        self.assert_untouched()

    def test_an_unreadable_snapshot_is_not_an_empty_start(self):
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


if __name__ == "__main__":
    unittest.main()
