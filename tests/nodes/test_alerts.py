"""Prometheus' configuration and alerts as they are rendered, judged by Prometheus' own promtool (Debian's)."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

from golden import CLUSTERS, ROOT, TOOLS
from test_manifests import documents

PROMTOOL = TOOLS / "prometheus/usr/bin/promtool"
CASES = pathlib.Path(__file__).parent / "alerts.yaml"
DAY = 86400


def config_map(name, cluster="adopted"):
    for path in (CLUSTERS / cluster / "expected/manifests").glob("*.yaml"):
        for document in documents(path.read_text()):
            if (document["kind"], document["metadata"]["name"]) == ("ConfigMap", name):
                return document["data"]
    raise AssertionError(f"there is no ConfigMap {name}")


def rules_of(text):
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


class Alerts(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.text = config_map("prometheus-alerts")["alerts.yaml"]
        self.alerts = {rule["alert"]: rule for rule in rules_of(self.text) if "alert" in rule}

    def promtool(self, *words):
        return subprocess.run([PROMTOOL, *words], cwd=self.directory, capture_output=True, text=True)

    def judge(self, rules, cases):
        (self.directory / "alerts.yaml").write_text(rules)
        (self.directory / "cases.yaml").write_text(cases)
        return self.promtool("test", "rules", "cases.yaml")

    def test_promtool_accepts_the_rules(self):
        (self.directory / "alerts.yaml").write_text(self.text)
        done = self.promtool("check", "rules", "alerts.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(rules_of(self.text))} rules found", done.stdout)

    def test_promtool_accepts_the_configuration(self):
        settings = yaml.safe_load(config_map("prometheus")["prometheus.yaml"])
        found = [job.pop("kubernetes_sd_configs", None) for job in settings["scrape_configs"]]
        # Debian's build does not know Kubernetes.
        self.assertEqual(sum(entry is not None for entry in found), 3)
        file = self.directory / "prometheus.yaml"
        file.write_text(yaml.safe_dump(settings))
        done = self.promtool("check", "config", "--syntax-only", "prometheus.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        file.write_text(yaml.safe_dump(settings | {"scrape_config": []}))
        self.assertNotEqual(self.promtool("check", "config", "--syntax-only", "prometheus.yaml").returncode, 0)

    def test_etcd_is_scraped_member_by_member_and_nothing_by_a_pod_address_that_is_written_down(self):
        jobs = {job["job_name"]: job for job in yaml.safe_load(config_map("prometheus")["prometheus.yaml"])["scrape_configs"]}
        self.assertEqual([entry["targets"] for entry in jobs["etcd"]["static_configs"]],
                         [[f"etcd-{member}.guest.infra.internal:2381"] for member in range(3)])
        for name, job in jobs.items():
            for entry in job.get("static_configs", []):
                if name != "etcd":
                    self.assertRegex(entry["targets"][0], r"^127\.0\.0\.1:\d+$")

    def test_each_alert_fires_when_it_should_and_not_otherwise(self):
        done = self.judge(self.text, CASES.read_text())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_certificates_are_told_a_month_before_they_expire(self):
        expiries = {rule["labels"]["certificate"]: int(re.fullmatch(r"vector\((\d+)\)", rule["expr"]).group(1))
                    for rule in rules_of(self.text) if rule.get("record") == "infra_certificate_expires_seconds"}
        self.assertIn("apiserver", expiries)
        self.assertIn("etcd-0", expiries)
        self.assertIn("ca", expiries)
        # promtool's clock begins in 1970, so the certificates are moved there.
        moved = yaml.safe_load(self.text)
        for group in moved["groups"]:
            for rule in group["rules"]:
                if "record" in rule:
                    days = 40 if rule["labels"]["certificate"] == "apiserver" else 4000
                    rule["expr"] = f"vector({days * DAY})"
        cases = {"rule_files": ["alerts.yaml"], "evaluation_interval": "1h", "tests": [{
            "interval": "1h", "input_series": [], "alert_rule_test": [
                {"alertname": "CertificateExpiresSoon", "eval_time": "9d", "exp_alerts": []},
                {"alertname": "CertificateExpiresSoon", "eval_time": "11d", "exp_alerts": [{
                    "exp_labels": {"severity": "critical", "certificate": "apiserver"},
                    "exp_annotations": {
                        "summary": "certificate apiserver expires in 29d 0h 0m 0s",
                        "description": "Renew it with `infra render credentials --renew`, then run `infra up`, which replaces every machine. "
                                       "An expired certificate stops the cluster.",
                        "runbook": "docs/runbooks/renew-certificates.md"}}]}]}]}
        done = self.judge(yaml.safe_dump(moved), yaml.safe_dump(cases))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_case_and_every_case_can_fail(self):
        cases = yaml.safe_load(CASES.read_text())
        fired = {test["alertname"] for case in cases["tests"] for test in case["alert_rule_test"] if test["exp_alerts"]}
        self.assertEqual(fired | {"CertificateExpiresSoon"}, set(self.alerts))
        quiet = {test["alertname"] for case in cases["tests"] for test in case["alert_rule_test"] if not test["exp_alerts"]}
        self.assertLessEqual(fired, quiet, "each has a moment at which it must not fire")
        silent = yaml.safe_load(self.text)
        for group in silent["groups"]:
            for rule in group["rules"]:
                rule["expr"] = "vector(0) > 1"
        done = self.judge(yaml.safe_dump(silent), CASES.read_text())
        failed = set(re.findall(r"alertname: (\w+), time", done.stdout + done.stderr))
        self.assertEqual(failed, fired)

    def test_every_alert_says_what_to_do_and_where_to_read(self):
        for name, rule in self.alerts.items():
            with self.subTest(name):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                notes = rule["annotations"]
                self.assertEqual(set(notes), {"summary", "description", "runbook"})
                page = (ROOT / notes["runbook"]).read_text()
                if notes["runbook"].endswith("watch-a-cluster.md"):
                    self.assertIn(name, page)
                self.assertGreater(len(notes["description"]), 60)

    def test_no_mount_is_missed_where_there_is_no_file_system(self):
        self.assertIn("FileSystemMountMissing", self.alerts)
        self.assertIn("/srv/shared-data", self.alerts["FileSystemMountMissing"]["expr"])


if __name__ == "__main__":
    unittest.main()
