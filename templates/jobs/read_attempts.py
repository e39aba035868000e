"""Reads what the launchers of a run left on the claim: how each attempt of the group ended, and which replica was the first. Prints that as
one line of JSON, since a pod's log is all that the reader of this has."""

import json
import os
import re
import time

CLAIM = os.environ["ATTEMPTS_CLAIM"]
RUN = os.environ["ATTEMPTS_RUN"]
MARKS = os.path.join(RUN, ".infra", os.environ["ATTEMPTS_JOBSET_UID"])
LOGS = os.path.join(RUN, "logs")
MOST_ATTEMPTS = 20
# What torchrun prints of eight processes that failed, and what the program printed before.
MOST_LINES = 120
LONGEST_LINE = 500
# More than the last lines of a log need.
TAIL = 64 << 10
REPLICA = re.compile(r"([a-z]+)-([0-9]+)")
EXITED = re.compile(r"infra: .* exited with ([0-9]+)")
TERMINATED = "infra: this pod is being terminated"
LATE = "infra: the deadline has passed"


def attempts():
    """The newest attempts that left a log, oldest first."""
    numbers = [int(name[8:]) for name in names(LOGS) if re.fullmatch("attempt-[0-9]+", name)]
    return sorted(numbers)[-MOST_ATTEMPTS:]


def names(directory):
    """What is in a directory, without the links."""
    try:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if not entry.is_symlink()]
    except OSError:
        return []


def changed(path):
    """When a file was changed last; nothing if there is none."""
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return None


def last_lines(path):
    """The last lines of a log, and those of the launcher among them."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return []
    with os.fdopen(descriptor, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL))
        lines = file.read().decode(errors="replace").splitlines()
    return [line[:LONGEST_LINE] for line in lines[1 if size > TAIL else 0 :]]


class Attempt:
    """One attempt of the group: its replicas by their logs, and the marks they left."""

    def __init__(self, number, marks):
        self.number = number
        self.directory = os.path.join(LOGS, f"attempt-{number}")
        self.replicas = sorted(
            (found.group(1), int(found.group(2))) for name in names(self.directory) if (found := REPLICA.fullmatch(name))
        )
        self.failed = {replica for replica in self.replicas if self.mark("failed", replica) in marks}
        self.answered = {replica for replica in self.replicas if self.mark("alive", replica) in marks}

    def mark(self, kind, replica):
        return f"{kind}.{self.number}.{replica[0]}.{replica[1]}"

    def log(self, replica):
        return os.path.join(self.directory, f"{replica[0]}-{replica[1]}", "output.log")

    def failed_at(self, replica):
        return changed(os.path.join(MARKS, self.mark("failed", replica))) or 0

    def ended_at(self, replica):
        return changed(self.log(replica)) or 0

    def first(self):
        """The replica that the others followed. One that did not answer when another failed was gone before."""
        lost = [replica for replica in self.replicas if replica not in self.answered and replica not in self.failed]
        if self.failed and (not lost or len(self.replicas) == 1):
            return min(self.failed, key=self.failed_at)
        return min(lost or self.replicas, key=self.ended_at)

    def describe(self):
        first = self.first()
        lines = last_lines(self.log(first))
        exits = [found.group(1) for line in lines if (found := EXITED.match(line))]
        if exits:
            how = "exited"
        elif any(line.startswith(LATE) for line in lines):
            how = "late"
        elif any(line.startswith(TERMINATED) for line in lines):
            how = "terminated"
        else:
            how = "silent"
        at = self.failed_at(first) if first in self.failed else self.ended_at(first)
        others_failed = len(self.failed - {first})
        return {
            "attempt": self.number,
            "role": first[0],
            "index": first[1],
            "how": how,
            "exitCode": int(exits[-1]) if exits else None,
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
            "lastLines": lines[-MOST_LINES:],
            "othersFailed": others_failed,
            "othersTerminated": len(self.replicas) - 1 - others_failed,
        }


def is_elsewhere():
    """Whether a link leads from the run's directory to another one, as to another job's."""
    own = os.path.join(os.path.realpath(CLAIM), os.path.relpath(RUN, CLAIM))
    return os.path.realpath(RUN) != os.path.normpath(own)


def main():
    found = []
    if not is_elsewhere():
        marks = set(names(MARKS))
        found = [attempt for number in attempts() if (attempt := Attempt(number, marks)).replicas]
    print(json.dumps({"attempts": [attempt.describe() for attempt in found]}), flush=True)


main()
