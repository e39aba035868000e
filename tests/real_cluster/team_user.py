"""A user of a team: another account of this machine, in a directory with nothing but a kubeconfig, without AWS and without the cluster's keys."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from real_cluster import ROOT

ACCOUNT = 12345
# The interpreter of the tests may be in a directory that other accounts cannot read.
PYTHON = "/usr/bin/python3"
TERMINAL = ROOT / "tests/lifecycle/support/terminal.py"


class TeamUser:
    """Ends with its directory. Everything that its commands print is kept in `printed`."""

    def __init__(self, cluster):
        self.cluster, self.printed = cluster, []
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="infra-user-"))
        self.directory = self.home / "work"
        self.directory.mkdir()
        self.binary = shutil.copy(cluster.binary, self.home)
        shutil.copy(TERMINAL, self.home)
        self.own()

    def own(self):
        """All that is in the directory belongs to the user."""
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, ACCOUNT, ACCOUNT, follow_symlinks=False)

    def take_kubeconfig(self, path):
        """As if the administrator had handed it over: it is nowhere else."""
        shutil.move(path, self.home / "kubeconfig")
        self.own()

    def write(self, name, content):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        self.own()
        return path

    def command(self, *words):
        account = ["setpriv", f"--reuid={ACCOUNT}", f"--regid={ACCOUNT}", "--clear-groups", "--"]
        return self.cluster.operators_command(*account, *words)

    @property
    def environment(self):
        return {"PATH": "/usr/sbin:/usr/bin:/bin", "HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig"), "NO_COLOR": "1",
                "INFRA_TEST_TEMPO": "0.1"}

    def run(self, *words, input=None, timeout=300):
        """Any program, as this user."""
        stdin = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        done = subprocess.run(self.command(*words), cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=timeout,
                              **stdin)
        self.printed += [done.stdout, done.stderr]
        return done

    def infra(self, *words, expected=0, input=None, verbose=True):
        """With everything that it can say, unless a test compares what is printed."""
        done = self.run(self.binary, *(["-vv"] if verbose else []), *words, input=input)
        if done.returncode != expected:
            raise AssertionError(f"infra {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def answer(self, *words, question, answer):
        """A command at a terminal that asks something. Returns its exit code and what the terminal showed."""
        process = subprocess.Popen(self.command(PYTHON, self.home / TERMINAL.name, self.binary, *words), cwd=self.directory,
                                   env=self.environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        shown = ""
        try:
            while question not in shown and (more := process.stdout.read(1)):
                shown += more
            rest, _ = process.communicate(json.dumps({"type": answer + "\r"}) + "\n", timeout=60)
        finally:
            process.kill()
            process.wait()
        self.printed.append(shown + rest)
        return process.returncode, shown + rest

    def start(self, *words, **pipes):
        """A command that runs beside the test."""
        return subprocess.Popen(self.command(self.binary, *words), cwd=self.directory, env=self.environment, text=True, **pipes)

    def kubectl(self, *words, input=None):
        """Not a tool of users: it tries what infra never would."""
        return self.run(self.cluster.parts.kubectl, "--kubeconfig", self.home / "kubeconfig", *words, input=input)

    def close(self):
        shutil.rmtree(self.home)
