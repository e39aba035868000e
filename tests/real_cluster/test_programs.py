"""The builder and the packer themselves: what they keep, what they make again, and what is a reason to skip and what a failure."""

import contextlib
import fcntl
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import unittest.mock

import image_layer
import images

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "programs"))

import build  # noqa: E402
import modules  # noqa: E402
import toolchain  # noqa: E402

BASE = modules.TOOLS / "machine-base"
MINOR = modules.minors()[-1]


def build_quietly(*arguments, **named):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        build.build(*arguments, **named)
    return printed.getvalue()


class GoTest(unittest.TestCase):
    def setUp(self):
        try:
            toolchain.find_go()
        except toolchain.Unavailable as reason:
            self.skipTest(str(reason))
        self.scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.target = self.scratch / "programs"


class BuildTest(GoTest):
    """With modules of our own that need nothing from anywhere."""

    def setUp(self):
        super().setUp()
        self.modules = self.scratch / "modules"
        shutil.copytree(modules.HERE / "shared/pause", self.modules / "shared/pause")
        self.enterContext(unittest.mock.patch.object(modules, "HERE", self.modules))

    def test_what_is_built_is_kept_until_its_sources_change(self):
        self.assertIn("pause/pause", build_quietly(MINOR, self.target, ["pause"]))
        program = self.target / "pause/pause"
        first = program.stat().st_ino
        self.assertEqual("", build_quietly(MINOR, self.target, ["pause"]))
        self.assertEqual(first, program.stat().st_ino)
        source = self.modules / "shared/pause/main.go"
        source.write_text(source.read_text() + "\n// Another comment.\n")
        self.assertIn("pause/pause", build_quietly(MINOR, self.target, ["pause"]))
        self.assertNotEqual(first, program.stat().st_ino)
        self.assertEqual(["pause"], [path.name for path in self.target.iterdir() if path.name != ".lock"])

    def test_what_is_built_does_not_wait_for_another_build(self):
        build_quietly(MINOR, self.target, ["pause"])
        with open(self.target / ".lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            again = threading.Thread(target=build.build, args=(MINOR, self.target, ["pause"]), daemon=True)
            again.start()
            again.join(30)
            self.assertFalse(again.is_alive())

    def test_a_program_that_does_not_build_is_a_failure_and_leaves_nothing(self):
        (self.modules / "shared/pause/main.go").write_text("package main\n\nfunc main() { undefined() }\n")
        with self.assertRaisesRegex(build.Failed, "pause of pause .*does not build:(.|\n)*undefined: undefined"):
            build_quietly(MINOR, self.target, ["pause"])
        self.assertEqual([".lock"], [path.name for path in self.target.iterdir()])

    def test_a_module_of_a_minor_goes_before_the_shared_one(self):
        own = self.modules / MINOR / "pause"
        shutil.copytree(self.modules / "shared/pause", own)
        self.assertEqual(own, modules.source(modules.module_named("pause"), MINOR))

    def test_pause_ends_when_it_is_told_to(self):
        build_quietly(MINOR, self.target, ["pause"])
        with subprocess.Popen([self.target / "pause/pause"]) as process:
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(0.5)
            process.terminate()
            self.assertEqual(0, process.wait(5))


class ReasonTest(GoTest):
    def call(self, *arguments, **variables):
        # A module cache of its own: what this machine has fetched before must not help. It is read-only by default.
        environment = {**os.environ, "GOMODCACHE": str(self.scratch / "cache"), "GOFLAGS": "-modcacherw", **variables}
        command = [sys.executable, modules.HERE / "build.py", "--target", self.target, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    def test_a_proxy_that_does_not_answer_is_a_reason_to_skip(self):
        answer = self.call("--why-not", GOPROXY="http://127.0.0.1:9")
        self.assertEqual(3, answer.returncode, answer.stderr)
        self.assertRegex(answer.stdout, "^Go cannot fetch what runc is built from: .*connection refused")
        answer = self.call("--only", "etcd", GOPROXY="http://127.0.0.1:9")
        self.assertEqual(3, answer.returncode, answer.stderr)
        self.assertRegex(answer.stderr, "^skipped: Go cannot fetch what etcd is built from: .*connection refused")

    def test_a_proxy_without_the_modules_is_a_reason_to_skip(self):
        (self.scratch / "empty").mkdir()
        answer = self.call("--why-not", GOPROXY=f"file://{self.scratch}/empty")
        self.assertEqual(3, answer.returncode, answer.stdout + answer.stderr)
        answer = self.call("--why-not", GOPROXY="off")
        self.assertEqual(3, answer.returncode, answer.stdout + answer.stderr)


class VersionInGoModTest(unittest.TestCase):
    def test_requirements_and_replacements_are_read(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "go.mod"
            path.write_text(
                "module example.com/a\n\ngo 1.26.0\n\nreplace (\n\texample.com/c => example.com/c v0.3.0\n)\n\n"
                "require example.com/b v1.2.3\n\nrequire (\n\texample.com/c v0.0.0 // indirect\n\texample.com/d/v2 v2.0.1\n)\n"
            )
            expected = {"example.com/b": "v1.2.3", "example.com/c": "v0.3.0", "example.com/d/v2": "v2.0.1"}
            self.assertEqual(expected, modules.required_versions(path))


@unittest.skipUnless(os.geteuid() == 0 and BASE.exists(), "images need the superuser and target/test-tools/machine-base")
class PackTest(GoTest):
    """Of the smallest images: those whose programs are our own."""

    names = ("pause", "flannel-cni-plugin", "nvidia-device-plugin", "job")

    def setUp(self):
        super().setUp()
        try:
            build_quietly(MINOR, only=["pause", "flannel-cni-plugin", "pretend-gpus"])
        except toolchain.Unavailable as reason:
            self.skipTest(str(reason))
        every = images.images_of
        chosen = lambda minor: [image for image in every(minor) if image.name in self.names]  # noqa: E731
        self.enterContext(unittest.mock.patch.object(images, "images_of", chosen))

    def pack(self, name="images", **more):
        return images.pack(MINOR, modules.PROGRAMS, BASE, self.scratch / name, **more)

    def test_the_same_content_is_the_same_archive_and_is_kept(self):
        first = self.pack()
        inodes = [path.stat().st_ino for path in first]
        (self.scratch / "images/gone.tar").touch()
        self.assertEqual(inodes, [path.stat().st_ino for path in self.pack()])
        self.assertFalse((self.scratch / "images/gone.tar").exists())
        for one, other in zip(first, self.pack("again")):
            self.assertEqual(one.name, other.name)
            self.assertEqual(one.read_bytes(), other.read_bytes(), one.name)

    def test_an_authority_is_trusted_besides_the_usual_ones(self):
        authority = self.scratch / "authority.pem"
        authority.write_text("-----BEGIN CERTIFICATE-----\nours\n-----END CERTIFICATE-----\n")
        self.pack()
        for path in self.pack(authority=authority):
            with layer_of(path) as layer:
                text = layer.extractfile(images.CERTIFICATES).read().decode()
            self.assertTrue(text.endswith(authority.read_text()), path)
            self.assertGreater(text.count("BEGIN CERTIFICATE"), 100)

    def test_programs_of_an_image_run_in_it(self):
        job, plugin = (next(path for path in self.pack() if path.stem == name) for name in ("job", "flannel-cni-plugin"))
        root = self.unpack(job)
        script = "import ctypes, hashlib, http.server, json, lzma, socket, ssl, tarfile; print('complete')"
        self.assertEqual("complete\n", run_in(root, "python3", "-c", script))
        self.assertEqual("jobs\n", run_in(root, "sh", "-c", "echo Jobs | tr J j"))
        root = self.unpack(plugin)
        (root / "copy").mkdir()
        run_in(root, "cp", "-f", "/flannel", "/copy/flannel")
        self.assertEqual((root / "flannel").read_bytes(), (root / "copy/flannel").read_bytes())

    def unpack(self, path):
        root = self.scratch / f"root-{path.stem}"
        with layer_of(path) as layer:
            layer.extractall(root, filter="tar") if hasattr(tarfile, "tar_filter") else layer.extractall(root)
        return root


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need the superuser")
class FlannelPluginTest(GoTest):
    """Our stand-in for flannel's CNI plugin, with the real plugins that it calls."""

    def setUp(self):
        super().setUp()
        try:
            build_quietly(MINOR, only=["flannel-cni-plugin", "cni-plugins"])
        except toolchain.Unavailable as reason:
            self.skipTest(str(reason))
        self.machine, self.pod = (f"{kind}-{os.getpid()}" for kind in ("machine", "pod"))
        for name in (self.machine, self.pod):
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", name], check=True)
        self.name = f"test-{os.getpid()}"
        # Where the plugin for addresses keeps those that it has given.
        self.addCleanup(shutil.rmtree, f"/var/lib/cni/networks/{self.name}", ignore_errors=True)
        lease = {"FLANNEL_NETWORK": "10.2.0.0/16", "FLANNEL_SUBNET": "10.2.7.1/24", "FLANNEL_MTU": "1450", "FLANNEL_IPMASQ": "true"}
        (self.scratch / "subnet.env").write_text("".join(f"{name}={value}\n" for name, value in lease.items()))

    def call(self, command):
        directories = modules.directories(MINOR)
        configuration = {
            # As rendered, but for files that are elsewhere here.
            **{"cniVersion": "1.0.0", "name": self.name, "type": "flannel"},
            "delegate": {"hairpinMode": True, "isDefaultGateway": True},
            **{"subnetFile": str(self.scratch / "subnet.env"), "dataDir": str(self.scratch / "data")},
        }
        environment = {
            **os.environ,
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": "abc",
            "CNI_NETNS": f"/run/netns/{self.pod}",
            "CNI_IFNAME": "eth0",
            "CNI_PATH": f"{directories['cni-plugins']}:{directories['flannel-cni-plugin']}",
        }
        plugin = directories["flannel-cni-plugin"] / "flannel"
        answer = subprocess.run(
            ["ip", "netns", "exec", self.machine, plugin], input=json.dumps(configuration), env=environment, capture_output=True, text=True
        )
        self.assertEqual(0, answer.returncode, answer.stdout + answer.stderr)
        return answer.stdout

    def show(self, namespace, *words):
        return json.loads(subprocess.run(["ip", "-n", namespace, "-j", *words], capture_output=True, text=True, check=True).stdout)

    def test_a_pod_is_connected_to_the_leased_subnet_and_disconnected(self):
        result = json.loads(self.call("ADD"))
        self.assertRegex(result["ips"][0]["address"], r"^10\.2\.7\.\d+/24$")
        [interface] = self.show(self.pod, "addr", "show", "eth0")
        self.assertEqual(1450, interface["mtu"])
        routes = {route["dst"]: route.get("gateway") for route in self.show(self.pod, "route")}
        self.assertEqual({"default": "10.2.7.1", "10.2.0.0/16": "10.2.7.1", "10.2.7.0/24": None}, routes)
        self.call("DEL")
        self.assertEqual(["lo"], [link["ifname"] for link in self.show(self.pod, "link")])
        self.assertEqual([], list((self.scratch / "data").iterdir()))
        # Kubernetes deletes again until it succeeds.
        self.call("DEL")


class CapabilityTest(unittest.TestCase):
    def test_a_file_capability_is_the_one_that_setcap_writes(self):
        with tempfile.TemporaryDirectory() as scratch:
            program = pathlib.Path(scratch) / "program"
            program.write_bytes(b"program")
            layer = image_layer.Layer(pathlib.Path(scratch))
            layer.file("/program", program, capability=image_layer.NET_BIND_SERVICE)
            content = io.BytesIO()
            layer.write(content)
            archive = pathlib.Path(scratch) / "layer.tar"
            archive.write_bytes(content.getvalue())
            root = pathlib.Path(scratch) / "root"
            root.mkdir()
            if os.geteuid() != 0:
                self.skipTest("only the superuser can set file capabilities")
            subprocess.run(["tar", "-x", "--xattrs", "--xattrs-include=security.*", "-f", archive, "-C", root], check=True)
            self.assertEqual(image_layer.NET_BIND_SERVICE, os.getxattr(root / "program", "security.capability"))


@contextlib.contextmanager
def layer_of(path):
    with tarfile.open(path) as archive:
        name = next(name for name in archive.getnames() if name.endswith("/layer.tar"))
        with tarfile.open(fileobj=archive.extractfile(name)) as layer:
            yield layer


def run_in(root, *command):
    return subprocess.run(["chroot", root, *command], capture_output=True, text=True, check=True, env={"PATH": images.PATH}).stdout


if __name__ == "__main__":
    unittest.main()
