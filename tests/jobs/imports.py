"""The program that imports data, run on a directory that stands for the claim."""

import hashlib
import io
import itertools
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

from rendering import SCRIPTS, container_of, environment_of, moved, render

MISCONFIGURED = 64
NUMBERS = itertools.count()
LINES = [f"line {number}\n".encode() for number in range(31)]
FILES = {
    "train.txt": b"".join(LINES),
    "train_labels.txt": b"".join(f"{number % 2}\n".encode() for number in range(31)),
    "dictionary.txt": b"a b c\n",
    "recommendation/trainer_config.py": b"settings()\n",
    "recommendation/words/list.txt": b"w\n",
}


def tar(files, compression="gz"):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=f"w:{compression}") as archive:
        for name, contents in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents)
            archive.addfile(entry, io.BytesIO(contents))
    return stream.getvalue()


def zipped(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, contents in files.items():
            archive.writestr(name, contents)
    return stream.getvalue()


class Imports(unittest.TestCase):
    def setUp(self):
        self.claim = pathlib.Path(tempfile.mkdtemp(prefix="infra-data-"))
        self.addCleanup(shutil.rmtree, self.claim)
        self.root = self.claim / "paddle-cluster-job"
        self.archive = self.claim / "import/preprocessed_data.tar.gz"
        self.archive.parent.mkdir()
        # As the rendered Job tells it, with the claim elsewhere.
        told = environment_of(container_of(render("paddle-v0").data), 0)
        told.pop("JOB_COMPLETION_INDEX")
        self.environment = moved(told, {"/home/jobpath": self.claim})
        self.assertEqual(self.environment["DATA_SOURCE"], str(self.archive))

    options = ()

    def command(self):
        return [sys.executable, "-EsB", "-u", *self.options, SCRIPTS / "import_data.py"]

    def run_import(self, status=0, **more):
        # Each run is another Job, unless a test says otherwise.
        environment = {**self.environment, "INFRA_JOB_UID": f"uid-of-{next(NUMBERS)}", **more}
        done = subprocess.run(self.command(), env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(pathlib.Path(environment["DATA_STAMP"]).exists(), status == 0)
        if status == 0:
            left = {path.name for path in (self.root / ".infra").iterdir()}
            self.assertEqual(left, {pathlib.Path(environment["DATA_STAMP"]).name, "imported.json"}, "something is left beside the stamp")
        else:
            self.assertNotIn("Traceback", done.stderr)
            self.assertEqual(list(self.root.glob(".infra/*.part")), [], "something of a refused archive is left")
        return done.stdout + done.stderr

    def tree(self):
        """Every file of the job's directory, by what is in it, without our own."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_file() and not name.startswith(".infra"):
                found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found
