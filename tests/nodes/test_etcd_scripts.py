"""The scripts that run an etcd member, signal for it, save snapshots and defragment it."""

import hashlib
import pathlib
import re
import socket
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from etcd_case import Etcd  # noqa: E402
from node_case import KMS_KEY  # noqa: E402


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

    def test_not_on_a_volume_that_was_not_checked(self):
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
            # One look, however long it takes.
            process = self.start("signal-etcd", INFRA_PEER_PORT=port, INFRA_SETTLE_SECONDS="777", INFRA_DEADLINE_SECONDS="0")
            end = time.monotonic() + 120
            while not seen.exists():
                self.assertLess(time.monotonic(), end, "the port was not seen")
                time.sleep(0.02)
        closed.touch()
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1, errors)
        self.assertIn(f"etcd: not within 0 s; last: port {port} was open and is closed again", errors)
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
        # Suspended versioning does not keep what is overwritten, and without an answer it is not known.
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


if __name__ == "__main__":
    unittest.main()
