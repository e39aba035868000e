"""The scripts that make a machine a node: its environment, its signal, the file system, spot notices and add-ons."""

import pathlib
import sys
import time
import unittest

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import INSTANCE, Node  # noqa: E402


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


class ApplyAddons(Node):
    # Its own Node, and no other: a worker's kubelet may write anything about its Node.
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


if __name__ == "__main__":
    unittest.main()
