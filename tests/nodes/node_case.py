"""A machine for a boot script: a directory as its root, a stand-in for AWS, and stubs for what a test machine lacks."""

import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from signature import KEY, REGION, SECRET, SESSION  # noqa: E402
from stand_in import METADATA_TOKEN, StandIn  # noqa: E402

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "templates/files/opt/infra"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VOLUME = "vol-0123456789abcdef0"
INSTANCE = "i-0aaaaaaaaaaaaaaaa"
KMS_KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd"


class Node(unittest.TestCase):
    """A machine: a directory as its root, its own AWS, a curl that is watched."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-node-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.root = self.folder / "root"
        self.stubs = self.folder / "stubs"
        self.console = self.folder / "console"
        self.scratch = self.folder / "scratch"
        for path in (self.root, self.stubs, self.scratch):
            path.mkdir()
        self.console.touch()
        self.aws = StandIn()
        self.addCleanup(self.aws.close)
        self.stub("curl", f'exec {shutil.which("curl", path=SYSTEM_PATH)} "$@"')
        self.write(
            "etc/infra/stack.env",
            f"""\
            INFRA_CLUSTER=paddle
            INFRA_REGION={REGION}
            INFRA_DOMAIN=amazonaws.com
            INFRA_STACK=paddle-control-plane
            INFRA_RESOURCE=Etcd0
            INFRA_BUCKET=team-bucket
            INFRA_PREFIX=clusters/west
            INFRA_KMS_KEY={KMS_KEY}
            INFRA_VOLUME_ID={VOLUME}
            """,
        )
        self.environment = {
            "PATH": f"{self.stubs}:{SYSTEM_PATH}",
            "HOME": str(self.folder),
            "TMPDIR": str(self.scratch),
            "INFRA_ROOT": str(self.root),
            "INFRA_CONSOLE": str(self.console),
            "INFRA_BACKOFF_MILLISECONDS": "20",
            "INFRA_SETTLE_SECONDS": "0.2",
            "INFRA_CALL_DEADLINE_SECONDS": "10",
            "INFRA_ETCD_USER": f"{os.getuid()}:{os.getgid()}",
            **self.aws.environment(),
        }

    def tearDown(self):
        self.assertEqual(self.aws.faults, [], "AWS would have refused these")
        seen = self.arguments_of("curl")
        for hidden in (KEY, SECRET, SESSION, METADATA_TOKEN):
            self.assertNotIn(hidden, "\n".join(" ".join(call) for call in seen), "a credential in a process's arguments")
        self.assertEqual(list(self.scratch.iterdir()), [], "temporary files left behind")

    def write(self, path, text, mode=0o644):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            target.write_bytes(text)
        else:
            target.write_text(textwrap.dedent(text))
        target.chmod(mode)
        return target

    def read(self, path):
        return (self.root / path).read_text()

    def stub(self, name, body="", folder=None):
        """A command that writes its arguments down and then does `body`."""
        target = (folder or self.stubs) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        record = shlex.quote(str(self.folder / f"{name}.calls"))
        target.write_text(f"#!/bin/bash\nprintf -v line '%q ' \"$@\"; echo \"$line\" >>{record}\n{textwrap.dedent(body)}\n")
        target.chmod(0o755)

    def arguments_of(self, name):
        record = self.folder / f"{name}.calls"
        return [shlex.split(line) for line in record.read_text().splitlines()] if record.exists() else []

    def start(self, script, *arguments, **environment):
        return subprocess.Popen(
            [str(SCRIPTS / "bin" / script), *arguments],
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_script(self, script, *arguments, expect=0, **environment):
        process = self.start(script, *arguments, **environment)
        try:
            output, errors = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            self.fail(f"{script} hangs:\n{output}{errors}")
        self.assertEqual(process.returncode, expect, f"{script}:\n{output}{errors}")
        return output + errors

    def run_bash(self, program, **environment):
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail; . {SCRIPTS}/lib/aws.sh; {program}"],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout, done.stderr

    def signals(self):
        return [entry["Status"] for entry in self.aws.signals]

    def console_lines(self):
        return self.console.read_text().splitlines()
