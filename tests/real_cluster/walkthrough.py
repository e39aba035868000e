"""A walkthrough on a real cluster, typed as its page of docs/runbooks says: from an empty directory, with no program on the path.

The account comes with the first command that may need it, and has what cluster.yaml names. Images are the suite's own under the names of
the page, as if someone had pushed them.
"""

import collections
import shutil
import subprocess
import time

from chapters import Chapters, enter_scratch, say
from images import HERE, JOB_IMAGE
from parts import find_parts
from real_cluster import ROOT, cluster_of_directory
from runbook import Edit, holds, quotes_of, steps_of, with_sections

FILES = HERE / "walkthrough_files"
BINARY = ROOT / "target/debug/infra"


class Walkthrough(Chapters):
    """`page` is the page, `changes` are what this machine has in another size: text of the page, and what is typed instead."""

    page = None
    changes = {}

    @classmethod
    def setUpClass(cls):
        cls.scratch = enter_scratch(cls, cls.__name__)
        cls.parts = find_parts(cls.minors, cls.scratch)
        cls.directory, cls.empty = cls.scratch / "cluster", cls.scratch / "empty"
        cls.directory.mkdir()
        cls.empty.mkdir()
        cls.steps, cls.cluster = collections.deque(steps_of(cls.page)), None
        cls.printed, cls.changed = [], set()

    # --- What a reader does ---

    def follow(self, last):
        """Does what the page says, up to the line that begins like this. Returns how that ended."""
        while self.steps:
            step = self.steps.popleft()
            if isinstance(step, Edit):
                self.edit(step)
                continue
            done = self.type(*self.change(" ".join(step.words)).split(), expected=step.code)
            if str(step).startswith(last):
                return done
        self.fail(f"{self.page} has no line '{last}' from there on")

    def follow_to_the_end(self):
        self.follow("infra destroy")
        self.assertEqual(list(self.steps), [])
        self.assertEqual([old for old in self.changes if old not in self.changed], [], "the page does not say that any more")
        printed = "\n".join(self.printed)
        self.assertEqual([quote for quote in quotes_of(self.page) if not holds(printed, quote)], [], "nothing printed that")
        self.wait_for("every machine is off", lambda: not self.cluster.room.machines)
        self.assertEqual(self.cluster.account.left(), [])

    def edit(self, edit):
        path, text = self.directory / edit.file, self.change(edit.text)
        path.write_text(with_sections(path.read_text(), text) if edit.file == "cluster.yaml" else text)

    def change(self, text):
        for old, new in self.changes.items():
            if old in text:
                self.changed.add(old)
                text = text.replace(old, new)
        return text

    def type(self, *words, expected=0):
        command = ["env", f"PATH={self.empty}", BINARY, *words]
        if words[0] != "init" and self.cluster is None:
            type(self).cluster = self.enterClassContext(cluster_of_directory(self.scratch, self.directory, self.parts))
        began = time.monotonic()
        if self.cluster is None:
            done = subprocess.run(command, cwd=self.directory, env={"PATH": "/usr/bin:/bin", "HOME": str(self.empty), "NO_COLOR": "1"},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
        else:
            done = self.cluster.run(*command, timeout=1200)
        say(f"{time.monotonic() - began:5.1f} s  infra {' '.join(words)}")
        self.printed += [done.stdout, done.stderr]
        if done.returncode != expected:
            report = self.cluster.report() if self.cluster else ""
            self.fail(f"infra {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}\n{report}")
        return done

    # --- What others have done ---

    def publish(self, *images):
        """Machines find these in the registry."""
        for machine in self.cluster.room.machines.values():
            if machine.role.startswith("pool-"):
                for image in images:
                    machine.run("ctr", "--namespace=k8s.io", "images", "tag", JOB_IMAGE, image)

    def install(self, *programs):
        """Puts what images would hold into `bin` on the file system; the path of the job's processes leads there."""
        directory = self.parts.shared / "bin"
        directory.mkdir(exist_ok=True)
        for name in programs:
            shutil.copy(FILES / name, directory / name)
        shutil.copy(ROOT / "tests/jobs/stubs/paddle", directory / "stub.py")
