"""Rendered Ignition configs, judged by Ignition itself and by systemd."""

import copy
import hashlib
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import unittest

from golden import TOOLS, configs

ENGINE = TOOLS / "ignition/usr/lib/dracut/modules.d/30ignition/ignition"
VALIDATE = TOOLS / "ignition/usr/bin/ignition-validate"
STUB = b"#!/bin/sh\nexit 0\n"

# Units that are part of Flatcar.
FLATCAR_UNITS = ["amazon-ssm-agent", "containerd", "docker", "locksmithd", "nvidia", "rpc-statd"]


class StubServer:
    """Serves one executable under every name, on a free port of the loopback."""

    def __enter__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(STUB)))
                self.end_headers()
                self.wfile.write(STUB)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def swap(self, document):
        """The same config with remote sources and their hashes, and nothing else, changed to this server."""
        swapped = copy.deepcopy(document)
        for file in swapped["storage"]["files"]:
            contents = file["contents"]
            if contents["source"].startswith("https://"):
                contents["source"] = f"http://127.0.0.1:{self.server.server_port}/{file['path'].lstrip('/')}"
                contents["verification"]["hash"] = "sha256-" + hashlib.sha256(STUB).hexdigest()
        return swapped


def apply(config, root, server, scratch):
    """Applies a config into a root with Debian's ignition engine."""
    link = scratch / "ignition-apply"
    if not link.exists():
        link.symlink_to(ENGINE)
    swapped = server.swap(config.document)
    path = scratch / f"{config.role}.ign"
    path.write_text(json.dumps(swapped))
    run = subprocess.run(
        [link, f"--root={root}", path], env={**os.environ, "container": "1"}, capture_output=True, text=True
    )
    return swapped, run


class Userdata(unittest.TestCase):
    def test_ignition_validate_has_nothing_to_say(self):
        for config in configs():
            with self.subTest(str(config)):
                run = subprocess.run([VALIDATE, config.path], capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def test_the_judge_can_refuse(self):
        broken = copy.deepcopy(configs()[0].document)
        broken["storage"]["files"][0]["path"] = "relative"
        with tempfile.NamedTemporaryFile("w", suffix=".ign") as file:
            json.dump(broken, file)
            file.flush()
            self.assertNotEqual(subprocess.run([VALIDATE, file.name], capture_output=True).returncode, 0)

    def test_there_are_no_nulls_and_no_downloads_without_a_hash(self):
        for config in configs():
            with self.subTest(str(config)):
                self.assertNotIn("null", re.findall(r":\s*(null)", config.path.read_text()))
                for file in config.files.values():
                    if file.contents is None:
                        self.assertRegex(file.source, "^https://")
                        self.assertRegex(file.hash, "^sha256-[0-9a-f]{64}$")

    def test_swapping_changes_remote_sources_only(self):
        with StubServer() as server:
            for config in configs():
                swapped = server.swap(config.document)
                for file, other in zip(config.document["storage"]["files"], swapped["storage"]["files"]):
                    if file["contents"]["source"].startswith("data:"):
                        self.assertEqual(file, other)
                    else:
                        other["contents"] = file["contents"]
                self.assertEqual(swapped, config.document)

    @unittest.skipUnless(os.geteuid() == 0, "applying a config sets owners: it needs the superuser")
    def test_the_real_engine_applies_every_config(self):
        for config in configs():
            with self.subTest(str(config)), tempfile.TemporaryDirectory() as directory, StubServer() as server:
                scratch = pathlib.Path(directory)
                root = scratch / "root"
                root.mkdir()
                _, run = apply(config, root, server, scratch)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.check_applied(config, root)

    def check_applied(self, config, root):
        for path, file in config.files.items():
            status = (root / path.lstrip("/")).stat()
            self.assertEqual((oct(status.st_mode & 0o7777), status.st_uid), (oct(file.mode), file.owner), path)
            if file.contents is not None:
                self.assertEqual((root / path.lstrip("/")).read_bytes(), file.contents, path)
            if b"PRIVATE KEY" in (file.contents or b""):
                self.assertEqual(oct(file.mode), "0o600", path)
        for path, directory in config.directories.items():
            status = (root / path.lstrip("/")).stat()
            owner = directory.get("user", {}).get("id", 0)
            self.assertEqual((oct(status.st_mode & 0o7777), status.st_uid), (oct(directory["mode"]), owner), path)
        units = root / "etc/systemd/system"
        presets = (root / "etc/systemd/system-preset/20-ignition.preset").read_text()
        for name, unit in config.units.items():
            if "contents" in unit:
                self.assertEqual((units / name).read_text(), unit["contents"])
            if unit.get("mask"):
                self.assertEqual(os.readlink(units / name), "/dev/null")
            if unit.get("enabled"):
                self.assertIn(f"enable {name}\n", presets)
            for drop_in in unit.get("dropins", []):
                self.assertEqual((units / f"{name}.d" / drop_in["name"]).read_text(), drop_in["contents"])

    @unittest.skipUnless(os.geteuid() == 0, "a root to verify units in needs the superuser")
    def test_systemd_has_nothing_to_say_about_any_unit(self):
        for config in configs():
            with self.subTest(str(config)), tempfile.TemporaryDirectory() as directory, StubServer() as server:
                scratch = pathlib.Path(directory)
                with overlay(scratch) as root:
                    _, run = apply(config, root, server, scratch)
                    self.assertEqual(run.returncode, 0, run.stderr)
                    add_flatcar(root)
                    names = [name for name, unit in config.units.items() if "contents" in unit]
                    verify = ["systemd-analyze", "verify", f"--root={root}", "--man=no", "--generators=no", *names]
                    run = subprocess.run(verify, capture_output=True, text=True)
                    self.assertEqual((run.returncode, run.stdout + run.stderr), (0, ""))

    def test_scripts_are_clean(self):
        scripts = {}
        for config in configs():
            for path, file in config.files.items():
                if path.startswith("/opt/infra/bin/") or path.startswith("/opt/infra/lib/"):
                    scripts[path] = file.contents
        self.assertGreater(len(scripts), 15)
        with tempfile.TemporaryDirectory() as directory:
            for path, contents in scripts.items():
                target = pathlib.Path(directory) / path.lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(contents)
            files = sorted(str(file) for file in pathlib.Path(directory).rglob("*") if file.is_file())
            run = subprocess.run([TOOLS / "venv/bin/shellcheck", "-x", *files], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stdout)

    def test_the_file_system_is_mounted_once_its_name_can_be_resolved(self):
        units = [unit["contents"] for config in configs() for name, unit in config.units.items() if name.endswith("efs.mount")]
        self.assertGreaterEqual(len(units), 5)
        for contents in units:
            [order] = [line for line in contents.splitlines() if line.startswith("After=")]
            self.assertIn("nss-lookup.target", order.removeprefix("After=").split())

    def test_the_kubelet_waits_for_the_file_system_where_there_is_one(self):
        waiting = 0
        for config in configs():
            with self.subTest(str(config)):
                [mount] = [name for name, unit in config.units.items() if "Type=nfs4" in unit.get("contents", "")] or [None]
                if "kubelet.service" not in config.units:
                    self.assertIsNone(mount)
                    continue
                order = {line.split("=")[0]: line.split("=")[1].split() for line in config.units["kubelet.service"]["contents"].splitlines()
                         if line.startswith(("Requires=", "After="))}
                for words in order.values():
                    self.assertEqual("mount-file-system.service" in words, mount is not None)
                if mount:
                    waiting += 1
                    # systemd itself would try once.
                    self.assertFalse(config.units[mount].get("enabled"))
                    service = config.units["mount-file-system.service"]
                    self.assertTrue(service["enabled"])
                    self.assertRegex(service["contents"], f"(?m)^After=.* {re.escape(mount)}$")
                    path = re.search("(?m)^Where=(.*)$", config.units[mount]["contents"])[1]
                    self.assertEqual(config.text("/etc/infra/file-system.env"), f"INFRA_MOUNT_PATH={path}\n")
                    self.assertIn(path, config.directories)
        self.assertGreaterEqual(waiting, 6)

    def test_machines_do_not_update_or_reboot_by_themselves(self):
        for config in configs():
            self.assertIn("SERVER=disabled", config.text("/etc/flatcar/update.conf"))
            self.assertTrue(config.units["locksmithd.service"]["mask"])
            self.assertTrue(config.units["amazon-ssm-agent.service"]["enabled"])


class overlay:
    """The base system with a layer of its own on top, gone afterwards."""

    def __init__(self, scratch, base=TOOLS / "base"):
        self.scratch, self.base = scratch, base
        self.root = scratch / "root"

    def __enter__(self):
        for name in ["upper", "work", "root"]:
            (self.scratch / name).mkdir()
        layers = f"lowerdir={self.base},upperdir={self.scratch / 'upper'},workdir={self.scratch / 'work'}"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, self.root], check=True)
        return self.root

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.root], check=True)


def add_flatcar(root):
    """What our units expect of the operating system: units and programs that Debian's base lacks."""
    for name in FLATCAR_UNITS:
        unit = root / f"usr/lib/systemd/system/{name}.service"
        if not unit.exists():
            unit.write_text(f"[Unit]\nDescription={name}\n[Service]\nExecStart=/usr/bin/true\n")
    for program in ["usr/bin/docker"]:
        (root / program).write_bytes(STUB)
        (root / program).chmod(0o755)


if __name__ == "__main__":
    unittest.main()
