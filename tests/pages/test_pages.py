"""Every page in a real browser: phone and desktop, light and dark, by keyboard, without network. Screenshots are in target/pages."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

from browser import DESKTOP, PHONE, Browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = ROOT / "target/debug/infra"
PAGES = ROOT / "target/pages"
GOLDEN = sorted(path.parent for path in (ROOT / "tests/clusters").glob("*/cluster.yaml"))
# Written by `cargo test --test lifecycle reports::`, against the stand-in for AWS.
PLANS = ["create", "change", "replace", "delete", "none"]
MANY_POOLS = """
clusterName: many
externalDNSName: a-rather-long-name-of-a-cluster.research.department.example.com
region: us-west-2
availabilityZones: [us-west-2a, us-west-2b, us-west-2c]
kmsKeyArn: arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab
api: {allowedCIDRs: [192.0.2.0/25, 192.0.2.128/25, 198.51.100.0/24, 203.0.113.0/24]}
sshAllowedCIDRs: [192.0.2.0/24, 198.51.100.0/24]
etcd: {count: 5}
controllers: {count: 5}
pools:
- {name: a-pool-with-a-name-of-31-letter, instanceType: m5.large, count: 40}
- {name: none-yet, instanceType: g5.xlarge, count: 0, minCount: 0, maxCount: 100, spot: true, instanceTypes: [g5.2xlarge, g5.4xlarge, g5.8xlarge]}
- {name: c, instanceType: m5.large, count: 2}
- {name: d, instanceType: m5.large, count: 3, availabilityZones: [us-west-2c]}
- {name: e, instanceType: m5.large, count: 4}
- {name: f, instanceType: m5.large, count: 9}
storage: {efs: {}}
"""


def make_report(cluster, directory, target):
    """The report of a cluster, by the real binary."""
    shutil.copy(cluster / "cluster.yaml", directory)
    if (cluster / "credentials").exists():
        shutil.copytree(cluster / "credentials", directory / "credentials")
    # Policies name a bucket.
    command = [BINARY, "-C", directory, "report", "--to", target, "--s3-uri", "s3://bucket/prefix"]
    subprocess.run(command, check=True, capture_output=True, text=True)


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        (PAGES / "screenshots").mkdir(parents=True, exist_ok=True)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def check(self, name, path, collapsible):
        opened = self.browser.open(path)
        try:
            for width, size in ((PHONE, "phone"), (DESKTOP, "desktop")):
                for scheme in ("light", "dark"):
                    opened.look(width, scheme)
                    opened.open_all()
                    self.assertLessEqual(opened.overflow(), 0, f"{name} scrolls sideways at {width} pixels")
                    self.assertEqual(opened.violations(), [], f"{name}, {size}, {scheme}")
                    opened.page.screenshot(path=PAGES / "screenshots" / f"{name}-{size}-{scheme}.png", full_page=True)
            if opened.page.query_selector("svg.picture"):
                self.assertEqual(opened.crowded(), [], name)
            self.assertEqual(opened.hidden_in_print(), [], f"{name}: parts that paper does not show")
            wanted, reached = opened.reach_by_keyboard()
            self.assertEqual(wanted, reached, f"{name}: parts that the keyboard does not open")
            self.assertGreaterEqual(wanted, collapsible, name)
            self.assertEqual(opened.complaints, [], name)
        finally:
            opened.close()

    def report(self, cluster, name):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "report.html"
            make_report(cluster, pathlib.Path(directory), path)
            self.check(f"report-{name}", path, collapsible=2)

    def test_reports_of_every_golden_cluster(self):
        self.assertGreaterEqual(len(GOLDEN), 6)
        for cluster in GOLDEN:
            with self.subTest(cluster=cluster.name):
                self.report(cluster, cluster.name)

    def test_a_cluster_with_many_pools_and_long_names(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "cluster.yaml").write_text(MANY_POOLS)
            self.report(pathlib.Path(directory), "many")

    def test_plans_and_the_report_of_a_running_cluster(self):
        for name in PLANS:
            with self.subTest(plan=name):
                path = PAGES / f"plan-{name}.html"
                self.assertTrue(path.exists(), "run `cargo test --test lifecycle reports::` first")
                self.check(f"plan-{name}", path, collapsible=0 if name == "none" else 1)
        self.check("report-online", PAGES / "report-online.html", collapsible=2)

    def test_what_is_wrong_is_noticed(self):
        """The checks themselves: a page with every mistake."""
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "wrong.html"
            path.write_text(
                "<!DOCTYPE html><html><body><table><tr><td><img src='https://example.com/x.png'>"
                "</table><div style='width: 2000px'>wide</div><details><summary tabindex='-1'>unreachable</summary><p>x</p></details>"
                "<svg class='picture' viewBox='0 0 10 10'><g data-band='x' class='group'><rect class='card' width='5' height='5'/>"
                "<rect class='card' x='2' width='50' height='5'/><text class='card-title'>far too long</text></g></svg>"
                "<script>console.error('x')</script></body></html>"
            )
            opened = self.browser.open(path)
            opened.look(PHONE, "light")
            found = " ".join(opened.violations())
            self.assertIn("image-alt", found)
            self.assertGreater(opened.overflow(), 1000)
            self.assertEqual(opened.hidden_in_print(), ["unreachable"])
            self.assertEqual(opened.reach_by_keyboard(limit=10), (1, 0))
            crowded = " ".join(opened.crowded())
            for part in ("leaves its box", ".card overlap", "outside of the picture"):
                self.assertIn(part, crowded)
            complaints = " ".join(opened.complaints)
            self.assertIn("console: error", complaints)
            self.assertIn("request: https://example.com", complaints)
            opened.close()
            path.write_text("<!DOCTYPE html><html><body><p style='color: #bbb; background: #fff'>very pale</p></body></html>")
            pale = self.browser.open(path)
            pale.look(PHONE, "light")
            self.assertIn("color-contrast", " ".join(pale.violations()))
            pale.close()


if __name__ == "__main__":
    unittest.main()
