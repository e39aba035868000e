"""scripts/dist: the same archive every time, with nothing of this machine in it, sums that are right, and every crate named."""

import hashlib
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATE = 1_700_000_000


class Distribution(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.place = pathlib.Path(directory.name)
        # The debug program itself would take a quarter of a minute to compress.
        program = cls.place / "program"
        program.write_text(f'#!/bin/sh\nexec "{ROOT}/target/debug/infra" "$@"\n')
        program.chmod(0o755)
        cls.seen = [cls.make(program, name) for name in ("first", "second")]

    @classmethod
    def make(cls, program, name):
        command = [ROOT / "scripts/dist", "--binary", program, "--output", cls.place / name]
        run = subprocess.run(command, env=os.environ | {"SOURCE_DATE_EPOCH": str(DATE)}, capture_output=True, text=True)
        if run.returncode:
            raise AssertionError(run.stdout + run.stderr)
        return run.stdout

    def made(self, name):
        archive, = (self.place / name).glob("infra-*.tar.gz")
        return archive, archive.with_name(archive.name.removesuffix(".tar.gz"))

    def test_same_archive_every_time(self):
        first, second = (self.made(name)[0].read_bytes() for name in ("first", "second"))
        self.assertEqual(hashlib.sha256(first).hexdigest(), hashlib.sha256(second).hexdigest())
        self.assertIn("start-up", self.seen[0])

    def test_nothing_of_this_machine(self):
        archive, directory = self.made("first")
        with tarfile.open(archive) as tar:
            entries = tar.getmembers()
        self.assertEqual([entry.name for entry in entries], sorted(entry.name for entry in entries))
        self.assertEqual({(entry.uid, entry.gid, entry.uname, entry.gname, entry.mtime) for entry in entries}, {(0, 0, "", "", DATE)})
        runnable = [entry.name for entry in entries if entry.isfile() and entry.mode & 0o111]
        self.assertEqual(runnable, [f"{directory.name}/infra"])

    def test_sums_and_parts(self):
        archive, directory = self.made("first")
        subprocess.run(["sha256sum", "--quiet", "-c", f"{archive.name}.sha256"], cwd=archive.parent, check=True)
        subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=directory, check=True)
        listed = {line.split("  ")[1] for line in (directory / "SHA256SUMS").read_text().splitlines()}
        there = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
        self.assertEqual(there - listed, {"SHA256SUMS"})
        wanted = {"infra", "LICENSE", "README.md", "completions/infra.bash", "completions/_infra", "completions/infra.fish",
                  "man/man1/infra.1", "man/man1/infra-up.1", "infra.cdx.json"}
        self.assertEqual(wanted - there, set())

    def test_bill_of_materials(self):
        bill = json.loads((self.made("first")[1] / "infra.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["metadata"]["timestamp"]), ("CycloneDX", "2023-11-14T22:13:20Z"))
        parts = {part["bom-ref"]: part for part in bill["components"]}
        names = {part["name"] for part in parts.values()}
        self.assertLessEqual({"tokio", "clap", "aws-sdk-ec2", "aws-lc-sys"}, names)
        self.assertNotIn("trycmd", names, "only tests use it")
        self.assertNotIn("infra", names)
        incomplete = [name for name, part in parts.items() if not part.get("licenses") or not part.get("hashes")]
        self.assertEqual(incomplete, [])
        self.assertFalse([part for part in parts.values() if "/" in part["licenses"][0].get("expression", "")])
        known = {*parts, bill["metadata"]["component"]["bom-ref"]}
        self.assertEqual({entry["ref"] for entry in bill["dependencies"]}, known)
        self.assertLessEqual({name for entry in bill["dependencies"] for name in entry["dependsOn"]}, known)


if __name__ == "__main__":
    unittest.main()
