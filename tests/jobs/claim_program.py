"""The program that reads and writes the claim, started as `infra` starts it and talked to over a pipe."""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from rendering import SCRIPTS

LENGTHS = struct.Struct(">II")
# In the order in which infra puts them together.
PARTS = ["claim_files", "fetch_objects", "write_files", "read_files", "move_files"]


class ClaimProgram(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.claim = self.directory / "claim"
        self.claim.mkdir()
        self.program = self.directory / "program.py"
        self.program.write_text("".join((SCRIPTS / f"{part}.py").read_text() for part in PARTS))
        self.process = None
        self.start()

    def start(self, **environment):
        self.stop()
        command = [sys.executable, self.program, self.claim, self.directory / "alive"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment})
        self.addCleanup(self.stop)
        self.assertEqual(self.receive(), ({"ready": True}, b""))

    def stop(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait(10)
            self.process.stdout.close()
            self.process = None

    def kill(self):
        self.process.kill()
        self.process.wait(10)
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None

    def send(self, content=b"", **request):
        text = json.dumps(request).encode()
        self.process.stdin.write(LENGTHS.pack(len(text), len(content)) + text + content)
        self.process.stdin.flush()

    def receive(self):
        text, content = LENGTHS.unpack(self.process.stdout.read(LENGTHS.size))
        return json.loads(self.process.stdout.read(text)), self.process.stdout.read(content)

    def ask(self, content=b"", **request):
        self.send(content, **request)
        return self.receive()[0]
