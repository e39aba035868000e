"""The server that hands out results: what comes out of its archive is what went in."""

import hashlib
import http.client
import io
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

from rendering import SCRIPTS

MEBIBYTE = 1 << 20
TOKEN = "a-token-of-this-run"
# Nothing is closed to root, so the system's answer is put in.
WITH_A_CLOSED_DIRECTORY = """
import os, runpy, sys
open_directory = os.scandir
def scandir(path):
    if str(path).endswith("/closed"):
        raise PermissionError(13, "Permission denied", path)
    return open_directory(path)
os.scandir = scandir
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class Archive(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="infra-archive-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)

    def write(self, name, contents):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)

    def serve(self, root=None, options=(), claim=None):
        """Starts the server on a port that was free a moment ago."""
        for _ in range(5):
            with socket.socket() as listener:
                listener.bind(("127.0.0.1", 0))
                self.port = listener.getsockname()[1]
            environment = {
                "ARCHIVE_CLAIM": str(claim or root or self.root),
                "ARCHIVE_ROOT": str(root or self.root),
                "ARCHIVE_PORT": str(self.port),
                "ARCHIVE_TOKEN_SHA256": hashlib.sha256(TOKEN.encode()).hexdigest(),
            }
            command = [sys.executable, "-I", *options, SCRIPTS / "serve_archive.py"]
            process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            end = time.monotonic() + 60
            while process.poll() is None and time.monotonic() < end:
                try:
                    self.get("/")
                    return process
                except ConnectionError:
                    time.sleep(0.02)
        self.fail("the server does not start")

    def get(self, path, token=TOKEN):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", f"{path}?token={token}")
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def test_what_comes_out_is_what_went_in(self):
        files = {
            "pass-00000/weights": os.urandom(3 * MEBIBYTE + 17),
            "node_0/train.log": b"trainer 0 begins\n",
            "empty": b"",
            "a name with spaces and é": b"x",
            "deep/" + "/".join("directory" * 3 for _ in range(8)) + "/file": b"long path",
        }
        for name, contents in files.items():
            self.write(name, contents)
        (self.root / "nothing/in/here").mkdir(parents=True)
        (self.root / "latest").symlink_to("pass-00000")
        self.write(".infra/r-1/done.0", b"")
        self.write("node_0/.infra/mark", b"")
        self.serve()
        status, size = self.get("/ready")
        self.assertEqual((status, int(size)), (200, sum(len(contents) for contents in files.values())))
        status, body = self.get("/archive.tar")
        self.assertEqual(status, 200)
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            found = {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}
            self.assertEqual(found, files)
            self.assertTrue(archive.getmember("nothing/in/here").isdir())
            self.assertEqual(archive.getmember("latest").linkname, "pass-00000")
            self.assertEqual([name for name in archive.getnames() if ".infra" in name], [])
        self.assertEqual(self.get("/archive.tar")[1], body, "twice the same")

    def test_no_directory_and_no_such_page(self):
        self.serve(self.root / "gone")
        for path in ("/ready", "/archive.tar"):
            status, body = self.get(path)
            self.assertEqual((status, body.decode()), (404, f"there is no directory {self.root}/gone\n"))
        (self.root / "gone").mkdir()
        self.assertEqual(self.get("/ready"), (200, b"0\n"))
        self.assertEqual(self.get("/other")[0], 404)

    def test_only_who_knows_the_token_is_answered(self):
        self.write("weights", b"secret")
        process = self.serve()
        for token in ("", "another", hashlib.sha256(TOKEN.encode()).hexdigest(), TOKEN + "x"):
            for path in ("/ready", "/archive.tar", "/"):
                self.assertEqual(self.get(path, token), (403, b"the token is not that of this run\n"))
        self.assertEqual(self.get("/ready"), (200, b"6\n"))
        process.kill()
        process.wait()
        log = process.stderr.read()
        self.assertIn("GET /ready 200", log)
        self.assertNotIn(TOKEN, log)

    def test_a_link_to_another_directory_is_not_followed(self):
        self.write("other/output/weights", b"of another job")
        self.write("train/output/weights", b"own")
        (self.root / "train/latest").symlink_to("../other/output")
        (self.root / "linked").symlink_to("other")
        for root in ("train/latest", "linked/output"):
            self.serve(self.root / root, claim=self.root)
            for path in ("/ready", "/archive.tar"):
                status, body = self.get(path)
                self.assertEqual(status, 403)
                self.assertIn("a link that leads to another directory", body.decode())
        # The claim itself may be below one.
        claim = self.root.parent / f"{self.root.name}-link"
        claim.symlink_to(self.root)
        self.addCleanup(claim.unlink)
        for root in ("train/output", "train/./output/"):
            self.serve(f"{claim}/{root}", claim=claim)
            self.assertEqual(self.get("/ready"), (200, b"3\n"))

    def test_a_directory_that_cannot_be_read_is_not_left_out_in_silence(self):
        self.write("open/weights", b"x")
        self.write("closed/weights", b"x")
        self.serve(options=["-c", WITH_A_CLOSED_DIRECTORY])
        status, body = self.get("/ready")
        self.assertEqual((status, body.decode()), (403, f"{self.root}/closed cannot be read: Permission denied\n"))
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            self.get("/archive.tar")

    def test_files_may_go_while_they_are_sent(self):
        big = os.urandom(32 * MEBIBYTE)
        self.write("a", big)
        self.write("b", b"an old checkpoint")
        self.write("c", b"last")
        self.serve()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/archive.tar?token={TOKEN}")
        answer = connection.getresponse()
        first = answer.read(MEBIBYTE)
        # The server is still at the first file: so much fits into no buffer between us.
        (self.root / "b").unlink()
        body = first + answer.read()
        connection.close()
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            self.assertEqual(archive.getnames(), ["a", "c"])
            self.assertEqual(archive.extractfile("a").read(), big)

    def test_an_archive_that_breaks_off_is_noticed(self):
        self.write("a", os.urandom(32 * MEBIBYTE))
        process = self.serve()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/archive.tar?token={TOKEN}")
        answer = connection.getresponse()
        answer.read(MEBIBYTE)
        process.kill()
        with self.assertRaises((http.client.HTTPException, ConnectionError)):
            answer.read()
        connection.close()


if __name__ == "__main__":
    unittest.main()
