"""What is seen of a rehearsal: headings, commands as they would be typed, the program's own output, a summary."""

import ctypes
import difflib
import os
import shlex
import signal
import subprocess
import sys
import time


def end_with_parent():
    """Killed, we could end nobody, and the program would go on asking a stand-in that is gone. Linux alone can do this for us."""
    if sys.platform == "linux":
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)


class UnexpectedEnd(Exception):
    """A command did not end as it should."""


class Stage:
    def __init__(self, binary, directory, home):
        self.directory = directory
        # How the program is called; a real network has more words in front.
        self.command = [binary]
        self.steps, self.left_out = [], []
        self.child = None
        # Nothing else of the caller's: no proxy, no profile, no credentials.
        kept = ("PATH", "TERM", "LANG", "LC_ALL", "COLUMNS", "NO_COLOR")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        # The stand-in throttles nobody: pauses between two looks are a tenth of those on AWS.
        self.environment |= {"HOME": str(home), "AWS_EC2_METADATA_DISABLED": "true", "INFRA_TEST_TEMPO": "0.1"}
        self.bold, self.plain = ("\033[1m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("", "")

    def say(self, text=""):
        print(text, flush=True)

    def heading(self, title, why):
        """A step begins, and the one before is over."""
        self.finish()
        self.steps.append([title, time.monotonic(), None])
        self.say(f"\n{self.bold}==> {len(self.steps)}. {title}{self.plain}\n    {why}")

    def finish(self):
        if self.steps and self.steps[-1][2] is None:
            self.steps[-1][2] = time.monotonic() - self.steps[-1][1]

    def note(self, text):
        self.say(f"    {text}")

    def leave_out(self, why):
        self.left_out.append(f"{self.steps[-1][0]}: {why}")
        self.note(f"NOT REHEARSED: {why}")

    def run(self, *arguments, expected=(0,), into=None):
        """`infra` with these arguments, seen as it happens; `into` is a file that takes its output. Returns how it ended."""
        line = shlex.join(["infra", *arguments]) + (f" > {into}" if into else "")
        self.say(f"{self.bold}$ {line}{self.plain}")
        output = (self.directory / into).open("wb") if into else None
        try:
            self.child = subprocess.Popen(
                [*self.command, *arguments], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                preexec_fn=end_with_parent)
            code = self.child.wait()
        finally:
            if output:
                output.close()
        self.child = None
        if code not in expected:
            wanted = " or ".join(map(str, expected))
            raise UnexpectedEnd(f"`{line}` ended with {code} instead of {wanted}")
        if code:
            self.say(f"(exit code {code})")
        return code

    def quietly(self, *arguments):
        """Whether it succeeds."""
        run = subprocess.run([*self.command, *arguments], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
                             capture_output=True)
        return run.returncode == 0

    def difference(self, before, after):
        """What was edited in cluster.yaml, as `diff` shows it."""
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "cluster.yaml", "cluster.yaml", n=0, lineterm="")
        for line in list(lines)[2:]:
            if not line.startswith("@@"):
                self.say(f"    {line}")

    def end_child(self):
        """The program may have got the same Control-C, and gets the time to say what is under way."""
        for end in (lambda: None, self.child.terminate, self.child.kill) if self.child else ():
            end()
            try:
                self.child.wait(3)
                break
            except subprocess.TimeoutExpired:
                pass

    def summary(self):
        self.finish()
        self.say(f"\n{self.bold}==> Summary{self.plain}")
        for number, (title, _, seconds) in enumerate(self.steps, 1):
            self.say(f"    {seconds:6.1f} s  {number}. {title}")
        self.say(f"    {sum(seconds for _, _, seconds in self.steps):6.1f} s  in all")
        for line in self.left_out:
            self.say(f"    NOT REHEARSED: {line}")
