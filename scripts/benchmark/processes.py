"""Runs a program and says what it took: CPU time, wall time and peak memory, of itself and of whatever it started."""

import dataclasses
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

GNU_TIME = shutil.which("time") or "/usr/bin/time"


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds, seconds and MiB."""
    cpu: float
    wall: float
    memory: float

    def __add__(self, other):
        """One after the other: memory is that of the larger."""
        return Cost(self.cpu + other.cpu, self.wall + other.wall, max(self.memory, other.memory))


class UnexpectedEnd(Exception):
    """A program did not succeed, so that its figures mean nothing."""


def measure(command, directory, environment=None):
    """In this environment instead of the caller's, if one is given."""
    with tempfile.NamedTemporaryFile() as report, tempfile.TemporaryFile() as output:
        # A child of Python counts Python's own memory as its peak; a child of the small `time` does not.
        start = time.monotonic()
        process = subprocess.Popen(
            [GNU_TIME, "-f", "%M", "-o", report.name, *command], cwd=directory, env=environment,
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            line = " ".join(map(str, command))
            raise UnexpectedEnd(f"`{line}` ended with {process.returncode}:\n{output.read().decode(errors='replace')[-2000:]}")
        peak = int(pathlib.Path(report.name).read_text().split()[-1]) / 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, peak)


def median(costs):
    """Of each figure by itself."""
    return Cost(*(statistics.median(column) for column in zip(*map(dataclasses.astuple, costs))))
