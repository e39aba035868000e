"""Files of a claim for the program that move_files.py is the end of: how they are opened, and the hashes of what they hold.

Nothing outside of the root is read or written, and no link is followed: every directory on the way is opened by its name in the one
above it."""

import errno
import hashlib
import json
import os
import sys
import time

ROOT = sys.argv[1]
# The pod ends when nobody has touched this file for a while.
ALIVE = sys.argv[2]
PIECE = 1 << 20
RECORDS = ".infra"
# Distinguishes what this process writes from what others write at the same time, on whatever machine.
MARK = os.urandom(6).hex()
# Directories whose hashes are kept in memory.
REMEMBERED = 64
READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """What was asked for is not done, and why."""


def parts_of(path):
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise Refused(f"{path} is outside of the claim")
    return parts


def open_directory(parts, create=False):
    """A descriptor of a directory below the root. The caller closes it."""
    descriptor = os.open(ROOT, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for number, part in enumerate(parts):
        try:
            below = enter(part, descriptor, create)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise Refused(f"{'/'.join(parts[:number + 1])} is a link or a file, not a directory") from error
            raise
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def enter(name, descriptor, create):
    try:
        return os.open(name, READ_DIRECTORY, dir_fd=descriptor)
    except FileNotFoundError:
        if not create:
            raise
    try:
        os.mkdir(name, 0o777, dir_fd=descriptor)
    except FileExistsError:
        pass
    return os.open(name, READ_DIRECTORY, dir_fd=descriptor)


def create(name, descriptor):
    """Opens a new file for writing."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, 0o666, dir_fd=descriptor)


class Parents:
    """The directory of the file that was used last stays open: the next one is mostly beside it."""

    def __init__(self):
        self.parts, self.descriptor = None, None

    def of(self, path, create=False):
        parts = parts_of(path)
        if not parts:
            raise Refused("this is the root of the claim")
        if self.parts != parts[:-1]:
            self.forget()
            self.descriptor = open_directory(parts[:-1], create)
            self.parts = parts[:-1]
        return self.descriptor, parts[-1]

    def forget(self):
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.parts, self.descriptor = None, None


PARENTS = Parents()


def stat_of(descriptor, name):
    try:
        return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None


def stay_alive(last=[0.0]):
    if time.monotonic() - last[0] > 10:
        last[0] = time.monotonic()
        with open(ALIVE, "a"):
            os.utime(ALIVE)


class Hashes:
    """What files held when they were last read or written, a record for each directory, so that an unchanged file is not read again.
    A record counts only while size, modification and change time of the file are the same."""

    def __init__(self):
        self.loaded = {}
        self.changed = set()

    def of(self, directory):
        if directory not in self.loaded:
            if len(self.loaded) >= REMEMBERED:
                self.save()
                self.loaded.clear()
            self.loaded[directory] = self.load(directory)
        return self.loaded[directory]

    @staticmethod
    def name(directory):
        return hashlib.sha256(directory.encode()).hexdigest()

    def load(self, directory):
        try:
            records = open_directory([RECORDS, "hashes"])
        except (OSError, Refused):
            return {}
        try:
            file = os.open(self.name(directory), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=records)
            with open(file, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}
        finally:
            os.close(records)

    @staticmethod
    def mark(status):
        return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]

    def known(self, path, status):
        directory, _, name = path.rpartition("/")
        record = self.of(directory).get(name)
        return record[3] if record and record[:3] == self.mark(status) else None

    def note(self, path, status, digest):
        directory, _, name = path.rpartition("/")
        self.of(directory)[name] = self.mark(status) + [digest]
        self.changed.add(directory)

    def forget(self, directories):
        """Of directories that are gone."""
        self.changed -= directories
        try:
            records = open_directory([RECORDS, "hashes"])
        except (OSError, Refused):
            return
        for directory in directories:
            self.loaded.pop(directory, None)
            try:
                os.unlink(self.name(directory), dir_fd=records)
            except OSError:
                pass
        os.close(records)

    def save(self):
        if not self.changed:
            return
        try:
            records = open_directory([RECORDS, "hashes"], create=True)
        except (OSError, Refused):
            # Without a record a file is read again.
            return
        for directory in self.changed:
            name = self.name(directory)
            try:
                with open(create(f"{name}.{MARK}", records), "w", encoding="utf-8") as copy:
                    json.dump(self.loaded[directory], copy)
                os.replace(f"{name}.{MARK}", name, src_dir_fd=records, dst_dir_fd=records)
            except OSError:
                pass
        os.close(records)
        self.changed.clear()


HASHES = Hashes()


def digest_of(path, descriptor, name, status):
    """The hash of a file, or nothing if it is gone or changes meanwhile."""
    known = HASHES.known(path, status)
    if known:
        return known
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
    except FileNotFoundError:
        return None
    with open(file, "rb", buffering=0) as file:
        digest = hashlib.sha256()
        while piece := file.read(PIECE):
            stay_alive()
            digest.update(piece)
        after = os.fstat(file.fileno())
    if Hashes.mark(after) != Hashes.mark(status):
        return None
    HASHES.note(path, after, digest.hexdigest())
    return digest.hexdigest()
