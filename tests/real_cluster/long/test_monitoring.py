"""Monitoring: every target answers, every rule finds what it names, and each alert that can be caused here is caused once."""

import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from real_cluster import ROOT  # noqa: E402
import modules  # noqa: E402
from chapters import Chapters, in_order, say  # noqa: E402
from container import run  # noqa: E402
from images import JOB_IMAGE  # noqa: E402
from prometheus import Prometheus, Receiver, dashboard  # noqa: E402
from short_certificates import issued_long_ago, shorten  # noqa: E402

CLUSTER = """
clusterName: watched
externalDNSName: watched.example.com
region: us-west-2
availabilityZones: [us-west-2a]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
etcd: {count: 3}
controllers: {count: 1}
pools:
- {name: cpu, instanceType: m5.large, count: 2}
- {name: gpu, instanceType: g5.12xlarge}
storage: {efs: {}}
addons: {clusterAutoscaler: false, monitoring: true}
"""
GPUS, NODES = 4, 4
MEMBERS = ("etcd-0", "etcd-1", "etcd-2")
# The alerts of this cluster wait for minutes, and look back for half an hour. From `test_the_waits_of_alerts_are_shortened` on they are the
# product's own template with these changes, and nothing else; `for` is what an alert waits for.
SHORTER = [(r"\bfor: \d+m\b", "for: 20s"), (r"\[5m\]", "[1m]"), (r"\[30m\]\)\) < 1", "[1m])) < 1"), (r"offset 30m", "offset 1m")]
MORE_OFTEN = [(r"_interval: 30s", "_interval: 10s")]
TEMPLATES = {"manifests/55-prometheus.yaml.tera": MORE_OFTEN, "manifests/56-alerts.yaml.tera": SHORTER}
UTILIZATION = "/var/lib/kubelet/pod-resources/pretend-utilization"
SERVING_CERTIFICATE = "/var/lib/kubelet/pki/kubelet-server-current.pem"
RECEIVER = "metrics.example.com"
SOON_DAYS = 20
JOB = f"""
name: holder
framework: program
image: {JOB_IMAGE}
replicas: 1
gpus: 1
cpu: 100m
sharedMemory: 64Mi
command: [sleep, "7200"]
"""


def load_tests(_loader, _tests, _pattern):
    return in_order(Monitoring)


class Monitoring(Chapters):
    text = CLUSTER
    more_images = "monitoring"

    def controller(self):
        [machine] = self.of_role("controller")
        return machine

    def member(self, name):
        [machine] = self.of_role(name)
        return machine

    def prometheus(self):
        """Where it listens: it is there while the API is not."""
        return Prometheus(self.controller().namespace)

    def waits_for_alert(self, name, seconds=240, **labels):
        """Waits until the alert fires for exactly what has these labels, and says how long that took."""
        began = time.monotonic()

        self.wait_for(f"{name} {labels} fires", lambda: self.firing(name, **labels), seconds)
        say(f"{name} fires: {time.monotonic() - began:.0f} s")

    def firing(self, name, **labels):
        """The labels of each; none while Prometheus does not answer."""
        try:
            return [found for found in self.prometheus().firing() if found["alertname"] == name and labels.items() <= found.items()]
        except OSError:
            return []

    def waits_for_end(self, name, seconds=240, **labels):
        began = time.monotonic()
        self.wait_for(f"{name} ends", lambda: self.prometheus().rules() and not self.firing(name, **labels), seconds)
        say(f"{name} ends: {time.monotonic() - began:.0f} s")

    # --- What is there -------------------------------------------------------------------------------------------------------

    def test_every_pod_runs_and_none_was_restarted(self):
        self.assertEqual(self.cluster.failures(), [])
        self.wait_for_all_pods()
        expected = {"prometheus": 1, "kube-state-metrics": 1, "node-exporter": NODES, "dcgm-exporter": 1}
        pods = {name: self.get("pods", "--namespace=kube-system", f"--selector=k8s-app={name}")["items"] for name in expected}
        self.assertEqual({name: len(found) for name, found in pods.items()}, expected)
        restarts = {pod["metadata"]["name"]: status["restartCount"] for pod in self.pods()
                    for status in pod["status"]["containerStatuses"] if status["restartCount"]}
        self.assertEqual(restarts, {})
        [gpu] = self.of_role("pool-gpu")
        self.assertEqual(pods["dcgm-exporter"][0]["spec"]["nodeName"], gpu.facts["name"])

    def test_every_target_answers(self):
        nodes = sorted(self.nodes())
        expected = {("etcd", member) for member in MEMBERS}
        expected |= {(name, "") for name in ("prometheus", "kube-state-metrics", "kube-proxy", "kube-apiserver", "kube-controller-manager",
                                             "cloud-controller-manager", "kube-scheduler")}
        expected |= {(name, node) for name in ("kubelet", "pods-by-kubelet", "node-exporter") for node in nodes}
        [gpu] = self.of_role("pool-gpu")
        expected.add(("dcgm-exporter", gpu.facts["name"]))
        dns = self.get("pods", "--namespace=kube-system", "--selector=k8s-app=kube-dns")["items"]
        expected |= {("kube-dns", pod["spec"]["nodeName"]) for pod in dns}
        with dashboard(self.cluster) as prometheus:
            def all_answer():
                return all(target["health"] == "up" for target in prometheus.targets())

            try:
                self.wait_for("every target answers", all_answer, 120)
            except AssertionError:
                self.fail("\n".join(f"{target['labels']} {target['health']}: {target['lastError']}" for target in prometheus.targets()))
            targets = prometheus.targets()
            found = {(target["labels"]["job"], target["labels"].get("member") or target["labels"].get("node", "")) for target in targets}
            self.assertEqual(found, expected)
            say(f"{len(targets)} targets answer; series: {prometheus.query('prometheus_tsdb_head_series')[0][1]:.0f}")
            longest = max(targets, key=lambda target: target["lastScrapeDuration"])
            say(f"the longest scrape: {longest['labels']['job']}, {longest['lastScrapeDuration']:.2f} s")
            pools = {target["labels"]["node"]: target["labels"].get("pool") for target in targets if target["labels"]["job"] == "kubelet"}
            self.assertEqual(sorted(pools.values(), key=str), [None, "cpu", "cpu", "gpu"])

    def test_every_rule_is_evaluated_as_it_was_rendered(self):
        text = (self.cluster.directory / "manifests/56-alerts.yaml").read_text()
        named = re.findall(r"^ +- (?:alert|record): (\S+)$", text, re.MULTILINE)
        with dashboard(self.cluster) as prometheus:
            self.wait_for("every rule was evaluated", lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), 120)
            rules = prometheus.rules()
            self.assertEqual(sorted(rule["name"] for rule in rules), sorted(named))
            self.assertEqual([(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"], [])

    def test_rules_and_the_runbook_name_nothing_that_does_not_exist(self):
        (self.cluster.directory / "holder.yaml").write_text(JOB)
        self.cluster.infra("job", "submit", "--file", "holder.yaml", "--detach")
        page = (ROOT / "docs/runbooks/watch-a-cluster.md").read_text()
        queries = re.findall(r"^\| .* \| `(.+)` \|$", page, re.MULTILINE)
        self.assertEqual(len(queries), 6)
        with dashboard(self.cluster) as prometheus:
            expressions = {rule["query"] for rule in prometheus.rules() if rule["type"] == "alerting"}
            selectors = {found for text in expressions for found in prometheus.selectors(text)}
            self.assertGreater(len(selectors), 15)

            def absent():
                return [selector for selector in sorted(selectors) if not prometheus.query(selector)]

            self.wait_for("the job's pod holds a GPU", lambda: prometheus.query('DCGM_FI_DEV_GPU_UTIL{pod!=""}'), 180)
            self.assertEqual(absent(), [])
            for query in queries:
                with self.subTest(query):
                    self.assertTrue(prometheus.query(query))
            held = prometheus.query('DCGM_FI_DEV_GPU_UTIL{pod!=""}')
            self.assertEqual([(labels["namespace"], labels["pod"].startswith("holder")) for labels, _ in held], [("default", True)])
            self.assertEqual(len(prometheus.query("DCGM_FI_DEV_GPU_UTIL")), GPUS)
            networks = {labels["node"] for labels, _ in prometheus.query('rate(container_network_receive_bytes_total{id="/"}[5m]) > 0')}
            self.assertEqual(networks, set(self.nodes()))

    def test_monitoring_has_the_rights_that_it_uses_and_no_key(self):
        controller = self.controller()
        names = {f"system:serviceaccount:kube-system:{name}" for name in ("prometheus", "kube-state-metrics", "cloud-controller-manager")}
        events = [json.loads(line) for line in controller.run("cat", "/var/log/kubernetes/audit.log").splitlines()]
        ours = [event for event in events if event["user"].get("username") in names]
        self.assertGreater(len(ours), 10)
        self.assertEqual([f"{event['user']['username']} {event['verb']} {event['requestURI']}" for event in ours
                          if event.get("responseStatus", {}).get("code") in (401, 403)], [])
        # What Prometheus' process can see: its root has no private key, and those of the machine are not its.
        [process] = controller.run("pgrep", "--full", "^/bin/prometheus ").split()
        places = [f"/proc/{process}/root/{name}" for name in ("etc", "prometheus", "var", "run")]
        found = controller.run("sh", "-c", f"grep --recursive --text --files-with-matches 'PRIVATE KEY' {' '.join(places)} || true")
        self.assertEqual(found, "")
        self.assertIn(f"/proc/{process}/root/var/run/secrets", controller.run("sh", "-c", f"find {places[2]}/ {places[3]}/ -name 'secrets'"))
        status = controller.run("cat", f"/proc/{process}/status")
        self.assertRegex(status, r"(?m)^Uid:\t65534\t65534\t")
        self.assertRegex(status, r"(?m)^CapEff:\t0+$")
        # The port of etcd that is open to it has numbers and no keys.
        for path, code in ("metrics", "200"), ("v3/kv/range", "404"), ("v2/keys", "404"):
            answer = controller.run("curl", "--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "10",
                                    f"http://etcd-0.watched.infra.internal:2381/{path}")
            self.assertEqual(answer, code, path)

    # --- What alerts tell ----------------------------------------------------------------------------------------------------

    def test_the_waits_of_alerts_are_shortened(self):
        for name, changes in TEMPLATES.items():
            text = (ROOT / "templates" / name).read_text()
            for pattern, replacement in changes:
                text, count = re.subn(pattern, replacement, text)
                self.assertGreater(count, 0, pattern)
            file = self.cluster.directory / "templates" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.cluster.infra("render")
        # What `infra up` does with a new controller, without one: data and the machines that a test looks at stay.
        for name in TEMPLATES:
            file = self.cluster.directory / name.removesuffix(".tera")
            self.cluster.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=infra", f"--filename={file}")
        self.cluster.kubectl("delete", "pods", "--namespace=kube-system", "--selector=k8s-app=prometheus")
        self.cluster.kubectl("rollout", "status", "daemonset/prometheus", "--namespace=kube-system", "--timeout=120s", timeout=150)
        self.wait_for("the shorter rules", lambda: self.prometheus().rules(), 60)
        waits = {rule["duration"] for rule in self.prometheus().rules() if rule["type"] == "alerting"}
        self.assertEqual(waits, {0, 20})

    def test_an_etcd_member_is_missing(self):
        member = self.member("etcd-2")
        member.run("systemctl", "stop", "etcd")
        self.addCleanup(member.run, "systemctl", "start", "etcd")
        self.waits_for_alert("EtcdMemberMissing", member="etcd-2")
        self.assertEqual(len(self.firing("EtcdMemberMissing")), 1)
        member.run("systemctl", "start", "etcd")
        self.waits_for_end("EtcdMemberMissing")

    def test_etcd_has_no_leader(self):
        stopped = [self.member(name) for name in MEMBERS[1:]]
        for member in stopped:
            self.addCleanup(member.run, "systemctl", "start", "etcd")
            member.run("systemctl", "stop", "etcd")
        # The API is away, and Prometheus sees it.
        self.waits_for_alert("EtcdWithoutLeader", member="etcd-0")
        for member in stopped:
            member.run("systemctl", "start", "etcd")
        self.waits_for_end("EtcdWithoutLeader")
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)

    def test_a_disk_of_etcd_is_slow(self):
        """Its volume takes two writes a second, as one without credits does."""
        member = self.member("etcd-1")
        [device] = member.disks.values()
        numbers = run("stat", "--format=%Hr:%Lr", device).strip()
        [group] = [group for group in member.groups if (group / "blkio.throttle.write_iops_device").exists()] or [None]
        if not group:
            self.skipTest("the kernel's control groups limit no disk here")
        limit = group / "blkio.throttle.write_iops_device"
        limit.write_text(f"{numbers} 2\n")
        self.addCleanup(limit.write_text, f"{numbers} 0\n")
        self.waits_for_alert("EtcdSlow", member="etcd-1")
        self.assertEqual(len(self.firing("EtcdSlow")), 1)
        limit.write_text(f"{numbers} 0\n")
        self.waits_for_end("EtcdSlow")

    def test_etcd_changes_its_leader_again_and_again(self):
        for _ in range(12):
            leaders = self.wait_for("a leader", lambda: self.prometheus().query("etcd_server_is_leader == 1"))
            self.member(leaders[0][0]["member"]).run("systemctl", "restart", "etcd")
            # Until the next one was seen.
            time.sleep(11)
            if self.firing("EtcdUnstable"):
                break
        self.waits_for_alert("EtcdUnstable")
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)

    def test_etcd_has_little_space(self):
        """A member may have as much as it has nearly used."""
        member, settings = self.member("etcd-0"), "/etc/etcd/etcd.env"
        quota = re.search(r"^ETCD_QUOTA_BACKEND_BYTES=(\d+)$", member.run("cat", settings), re.MULTILINE).group(1)
        [(_, used)] = self.prometheus().query('etcd_mvcc_db_total_size_in_bytes{member="etcd-0"}')

        def allow(space):
            member.run("sh", "-c", f"sed -i 's/^ETCD_QUOTA_BACKEND_BYTES=.*/ETCD_QUOTA_BACKEND_BYTES={space}/' {settings} && systemctl restart etcd")

        self.addCleanup(allow, quota)
        allow(int(used / 0.83))
        self.waits_for_alert("EtcdSpaceLow", member="etcd-0")
        allow(quota)
        self.waits_for_end("EtcdSpaceLow")

    def test_a_node_is_not_ready_and_its_kubelet_does_not_answer(self):
        worker = self.of_role("pool-cpu")[0]
        worker.run("systemctl", "stop", "kubelet")
        self.addCleanup(worker.run, "systemctl", "start", "kubelet")
        node = worker.facts["name"]
        self.waits_for_alert("TargetDown", node=node, job="kubelet", pool="cpu")
        self.waits_for_alert("NodeNotReady", node=node)
        worker.run("systemctl", "start", "kubelet")
        self.waits_for_end("NodeNotReady")
        self.waits_for_end("TargetDown")

    def test_the_file_system_is_not_mounted(self):
        worker = self.of_role("pool-cpu")[0]
        self.addCleanup(worker.run, "systemctl", "start", "mnt-efs.mount")
        worker.run("systemctl", "stop", "mnt-efs.mount")
        self.waits_for_alert("FileSystemMountMissing", node=worker.facts["name"])
        self.assertEqual(len(self.firing("FileSystemMountMissing")), 1)
        worker.run("systemctl", "start", "mnt-efs.mount")
        self.waits_for_end("FileSystemMountMissing")

    def test_a_disk_fills(self):
        worker = self.of_role("pool-cpu")[0]
        size, free = map(int, worker.run("df", "--output=size,avail", "--block-size=1", "/").split()[-2:])
        self.addCleanup(worker.run, "rm", "--force", "/var/filler")
        # Less than a fifth is left, and more than what the kubelet deletes images for.
        worker.run("fallocate", "--length", str(free - int(size * 0.18)), "/var/filler")
        # Not of what stands for the shared file system: it is on the disk of the machine that all this runs on.
        self.waits_for_alert("DiskFilling", node=worker.facts["name"], mountpoint="/")
        self.assertEqual(len(self.firing("DiskFilling", mountpoint="/")), 1)
        worker.run("rm", "/var/filler")
        self.waits_for_end("DiskFilling", mountpoint="/")

    def test_gpus_are_idle_under_a_job(self):
        [machine] = self.of_role("pool-gpu")
        # The job holds one GPU, which is as idle as the other three.
        self.waits_for_alert("GpuIdle", node=machine.facts["name"], namespace="default")
        self.assertEqual(len(self.firing("GpuIdle")), 1)
        machine.run("sh", "-c", f"echo 90 > {UTILIZATION}")
        self.waits_for_end("GpuIdle")
        machine.run("sh", "-c", f"echo 0 > {UTILIZATION}")
        self.waits_for_alert("GpuIdle", node=machine.facts["name"])
        self.cluster.infra("job", "delete", "holder", "--yes")
        self.waits_for_end("GpuIdle")

    def test_a_kubelet_does_not_renew_its_certificate(self):
        """The one that it has was issued 84 days ago, and nobody approves its request."""
        worker, controller = self.of_role("pool-cpu")[1], self.controller()
        controller.run("systemctl", "stop", "approve-nodes")
        self.addCleanup(controller.run, "systemctl", "start", "approve-nodes")
        issued = issued_long_ago(self.cluster.scratch / "long-ago", self.cluster.directory / "credentials",
                                 worker.run("cat", SERVING_CERTIFICATE), age=84, left=6)
        # What kubelet-server-current.pem points at.
        worker.run("sh", "-c", f"cat > \"$(readlink --canonicalize {SERVING_CERTIFICATE})\" <<'END'\n{issued}END\nsystemctl restart kubelet")
        self.waits_for_alert("NodeCertificateNotRenewed", node=worker.facts["name"])
        self.assertEqual(len(self.firing("NodeCertificateNotRenewed")), 1)
        controller.run("systemctl", "start", "approve-nodes")
        self.waits_for_end("NodeCertificateNotRenewed")

    def dashboard_opens(self):
        try:
            with dashboard(self.cluster):
                return True
        except AssertionError:
            return False

    def test_data_outlive_a_power_cut(self):
        controller = self.controller()
        at = time.time()
        known = self.prometheus().query('up{job="etcd"}', at)
        self.assertEqual(len(known), len(MEMBERS))
        controller.cut_power()
        controller.switch_on()
        began = time.monotonic()
        self.wait_for("all nodes", lambda: self.all_nodes_are_ready(NODES), 300)
        self.wait_for_all_pods()
        # Nodes and pods are what they were before the cut until kubelets report.
        self.wait_for("the dashboard opens", self.dashboard_opens)
        with dashboard(self.cluster) as prometheus:
            self.wait_for("every target answers", lambda: all(target["health"] == "up" for target in prometheus.targets()))
            say(f"everything is measured after a power cut: {time.monotonic() - began:.0f} s")
            self.assertEqual(prometheus.query('up{job="etcd"}', at), known)

    # --- What other clusters have --------------------------------------------------------------------------------------------

    def test_measurements_are_sent_elsewhere_and_a_certificate_is_near_its_end(self):
        shorten(self.cluster.scratch / "soon", self.cluster.directory / "credentials", "front-proxy-client", "front-proxy-ca", SOON_DAYS)
        self.change("monitoring: true", f'monitoring: {{remoteWrite: "https://{RECEIVER}/api/v1/write"}}')
        network = self.cluster.network
        network.more_names[RECEIVER] = [network.operator_address]
        program = modules.directories("1.36")["prometheus"] / "prometheus"
        with Receiver(program, self.cluster.scratch, network.operator, network.operator_address, RECEIVER) as receiver:
            self.cluster.infra("up", "--yes")
            self.wait_for_all_pods()
            self.wait_for("what is sent", lambda: len(receiver.query('up{job="etcd"} == 1')) == len(MEMBERS), 180)
            for labels in receiver.query('up{job="etcd"}'):
                self.assertEqual((labels["cluster"], labels["__replica__"]), ("watched", self.controller().facts["name"]))
            self.waits_for_alert("CertificateExpiresSoon", certificate="front-proxy-client")
            self.assertEqual(len(self.firing("CertificateExpiresSoon")), 1)
            self.wait_for("the alert is sent as well", lambda: receiver.query('ALERTS{alertname="CertificateExpiresSoon",alertstate="firing"}'))
            [annotations] = [alert["annotations"] for alert in self.prometheus().ask("alerts")["alerts"]
                             if alert["labels"]["alertname"] == "CertificateExpiresSoon"]
            self.assertRegex(annotations["summary"], rf"certificate front-proxy-client expires in {SOON_DAYS - 1}d 23h")

    def test_destroy(self):
        self.cluster.infra("destroy", "--yes")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])
