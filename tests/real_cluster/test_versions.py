"""The versions in every go.mod are those of the release table, so that neither is changed without the other.

What cannot be built at the table's version is in programs/differences.json with both versions and the reason; an entry that is no
longer true fails as well.
"""

import base64
import json
import pathlib
import re
import subprocess
import sys
import unittest

import image_digests
import images

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "programs"))

import modules  # noqa: E402
import toolchain  # noqa: E402


def tag(reference: str) -> str:
    return reference.rsplit(":", 1)[1]


def compared_versions(minor: str) -> dict[str, tuple[str, str | None]]:
    """Everything that a minor consists of: the version in the table, and the one that is built here."""
    release = images.read_release(minor)

    def ours(module: str, required: str | None = None) -> str:
        found = modules.module_named(module)
        return modules.required_versions(modules.source(found, minor) / "go.mod")[required or found.requires]

    etcd = "v" + tag(release.images["etcd"]).split("-")[0]
    versions = {
        "kubernetes": (release.versions[-1], ours("kubernetes")),
        "etcd": (etcd, ours("etcd")),
        "etcdctl": (etcd, ours("etcd", f"{modules.ETCD}/etcdctl/v3")),
        "etcdutl": (etcd, ours("etcd", f"{modules.ETCD}/etcdutl/v3")),
        "cniPlugins": (release.cni_plugins, ours("cni-plugins")),
        "ecrCredentialProvider": (release.ecr_credential_provider, ours("cloud-provider-aws")),
    }
    built = {
        "coredns": "coredns",
        "cloud_controller_manager": "cloud-provider-aws",
        "flannel": "flannel",
        "jobset": "jobset",
        "kube_state_metrics": "kube-state-metrics",
        "node_exporter": "node-exporter",
        "metrics_server": "metrics-server",
    }
    for name, reference in release.images.items():
        if name != "etcd":
            versions[name] = (tag(reference), ours(built[name]) if name in built else None)
    # Prometheus' module is v0.313.1 for v3.13.1.
    versions["prometheus"] = (versions["prometheus"][0], re.sub(r"^v0\.(\d)(\d\d)\.", r"v\1.\2.", ours("prometheus")))
    go_mod = (HERE / minor / "kubernetes/go.mod").read_text()
    staging = ours("kubernetes").replace("v1.", "v0.", 1)
    for name, version in re.findall(r"^\t(k8s\.io/\S+) => \S+ (\S+)$", go_mod, re.MULTILINE):
        versions[name] = (staging, version)
    return versions


HERE = pathlib.Path(modules.__file__).parent


class VersionsTest(unittest.TestCase):
    maxDiff = None

    def test_every_minor_of_the_table_has_modules(self):
        self.assertEqual(sorted(path.stem for path in images.RELEASES.glob("*.yaml")), modules.minors())

    def test_versions_are_those_of_the_table(self):
        known = json.loads((HERE / "differences.json").read_text())
        expected = {(entry["minor"], entry["name"]): (entry["table"], entry["ours"]) for entry in known}
        found = {
            (minor, name): both
            for minor in modules.minors()
            for name, both in compared_versions(minor).items()
            if both[0] != both[1]
        }
        self.assertEqual(expected, found, "change go.mod to the table's version and run `go mod tidy` there, or name the difference")
        for entry in known:
            self.assertGreater(len(entry["reason"]), 20, entry)

    def test_a_cluster_can_name_the_kubernetes_that_is_built(self):
        for minor in modules.minors():
            self.assertIn(compared_versions(minor)["kubernetes"][1], images.read_release(minor).versions)

    def test_every_image_of_the_table_is_packed_or_said_to_be_absent(self):
        for minor in modules.minors():
            every = images.images_of(minor) + images.images_of_monitoring(minor)
            packed = {reference for image in every for reference in image.references}
            release = images.read_release(minor)
            for name, reference in release.images.items():
                self.assertNotEqual(reference in packed, name in images.ABSENT, name)

    def test_every_image_of_a_rendered_cluster_is_packed(self):
        """Of the smallest golden cluster: its manifests, its static pods, its pause image."""
        expected = images.ROOT / "tests/clusters/minimal/expected"
        texts = [path.read_text() for path in expected.glob("manifests/*.yaml")]
        for config in expected.glob("userdata/*.ign"):
            for file in json.loads(config.read_text())["storage"]["files"]:
                source = file["contents"]["source"]
                if source.startswith("data:;base64,"):
                    texts.append(base64.b64decode(source.removeprefix("data:;base64,")).decode(errors="replace"))
        text = "\n".join(texts)
        named = {
            f"{name}@{digest}" if digest else f"{name}:{version}"
            for name, version, digest in re.findall(
                r"\b((?:registry\.k8s\.io|ghcr\.io|nvcr\.io)/[a-z0-9./_-]+)(?::([\w.-]+))?(?:@(sha256:[0-9a-f]{64}))?", text)
            if version or digest
        }
        self.assertIn("kube-apiserver", " ".join(named))
        self.assertIn("pause", " ".join(named))
        minor = re.search(r"kube-apiserver:v(\d+\.\d+)\.", text).group(1)
        packed = {reference for image in images.images_of(minor) for reference in image.references}
        absent = {images.read_release(minor).images[name] for name in images.ABSENT}
        with_digest = image_digests.digest_names(minor)
        known = {with_digest.get(reference, reference) for reference in packed | absent}
        self.assertEqual(set(), named - known)

    def test_the_kueue_of_the_runbook_is_the_one_that_is_built(self):
        version = modules.version(modules.module_named("kueue"), modules.minors()[-1])
        for path in ("examples/two-teams/kueue/kustomization.yaml", "docs/runbooks/share-with-queues.md"):
            named = set(re.findall(r"v\d+\.\d+\.\d+", (images.ROOT / path).read_text()))
            self.assertEqual(named, {version}, path)

    def test_the_image_of_jobs_has_the_name_that_infra_uses(self):
        decide = (images.ROOT / "src/job/decide.rs").read_text()
        self.assertIn(f'HELPER_IMAGE: &str = "{images.HELPER_IMAGE}"', decide)

    def test_coredns_has_the_plugins_of_the_rendered_corefile(self):
        manifest = (images.ROOT / "templates/manifests/12-coredns.yaml.tera").read_text()
        corefile = re.search(r"^  Corefile: \|\n((?:    .*\n)+)", manifest, re.MULTILINE).group(1)
        # Options of a plugin are indented further.
        named = set(re.findall(r"^ {8}([a-z]+)", corefile, re.MULTILINE))
        self.assertIn("kubernetes", named)
        for minor in modules.minors():
            imported = set(re.findall(r'"github.com/coredns/coredns/plugin/(\w+)"', (HERE / minor / "coredns/main.go").read_text()))
            self.assertEqual({{"prometheus": "metrics"}.get(name, name) for name in named}, imported)

    def test_every_program_is_pinned(self):
        """Each module says by `tool` lines or imports what is built of it, or `go mod tidy` would drop it."""
        for minor in modules.minors():
            for module in modules.MODULES:
                go_mod = (modules.source(module, minor) / "go.mod").read_text()
                for package in module.programs.values():
                    if not package.startswith("."):
                        self.assertRegex(go_mod, rf"(?m)^(\t|tool ){re.escape(package)}$")
                if module.requires:
                    self.assertTrue((modules.source(module, minor) / "go.sum").stat().st_size)

    def test_nothing_else_is_beside_the_modules(self):
        """A module that modules.py does not know would never be built."""
        names = {module.name for module in modules.MODULES}
        for directory in [*modules.minors(), "shared"]:
            self.assertLessEqual({path.name for path in (HERE / directory).iterdir()}, names)

    def test_modules_are_formatted(self):
        ours = [str(path) for path in HERE.rglob("*.go")]
        self.assertGreater(len(ours), 3)
        try:
            go = toolchain.find_go()
        except toolchain.Unavailable as reason:
            self.skipTest(str(reason))
        formatter = pathlib.Path(subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True).stdout.strip()) / "bin/gofmt"
        self.assertEqual("", subprocess.run([formatter, "-l", *ours], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    unittest.main()
