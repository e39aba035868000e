"""Moves files between a claim and whoever runs this program through the Kubernetes API: requests on stdin, answers on stdout, in order.
fetch_objects.py stands before it, in the same program.

A message is two lengths, a JSON document and bytes. Nothing outside of the root is read or written, and no link is followed: every
directory on the way is opened by its name in the one above it. A file appears whole or not at all."""

import errno
import fcntl
import hashlib
import json
import os
import signal
import stat
import struct
import sys
import time

ROOT = sys.argv[1]
# The pod ends when nobody has touched this file for a while.
ALIVE = sys.argv[2]
LENGTHS = struct.Struct(">II")
PIECE = 1 << 20
# What one answer names at most.
BATCH = 500
RECORDS = ".infra"
# Distinguishes what this process writes from what others write at the same time, on whatever machine.
MARK = os.urandom(6).hex()
# Parts of files that nobody finished.
STALE_SECONDS = 7 * 24 * 3600
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


def locked(file):
    """Whether this process alone writes the file from now on. The connection of a run that was killed ends a moment later."""
    for _ in range(60):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            stay_alive()
            time.sleep(0.5)
    return False


class Incoming:
    """Where files are written before they are whole, by their content, so that a later run continues."""

    def __init__(self):
        self.directory = None
        self.file, self.digest, self.offset, self.content = None, None, 0, None

    def prepare(self):
        if self.directory is not None:
            return
        self.directory = open_directory([RECORDS, "incoming"], create=True)
        for name in os.listdir(self.directory):
            status = stat_of(self.directory, name)
            if status is not None and time.time() - status.st_mtime > STALE_SECONDS:
                os.unlink(name, dir_fd=self.directory)

    def new_name(self):
        return f"{MARK}-{time.monotonic_ns()}"

    def length(self, content):
        status = stat_of(self.directory, content)
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else 0

    def begin(self, content, offset):
        """Opens the part of a file up to an offset."""
        self.abandon()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self.file = open(os.open(content, flags, 0o666, dir_fd=self.directory), "r+b", buffering=0)
        if not locked(self.file):
            self.abandon()
            raise Refused("another run is uploading the same file; wait for it, then run the same command again")
        self.digest, self.offset = hashlib.sha256(), 0
        while self.offset < offset:
            stay_alive()
            piece = self.file.read(min(PIECE, offset - self.offset))
            if not piece:
                raise Refused("what was uploaded before is gone; run the same command again")
            self.digest.update(piece)
            self.offset += len(piece)
        self.file.truncate(offset)
        self.content = content

    def append(self, content, offset, piece):
        if self.content != content or self.offset != offset:
            self.begin(content, offset)
        write_all(self.file.fileno(), piece)
        self.digest.update(piece)
        self.offset += len(piece)

    def finish(self, entry):
        """Gives the file its name."""
        if self.content != entry["hash"]:
            self.begin(entry["hash"], self.length(entry["hash"]))
        if self.digest.hexdigest() != entry["hash"]:
            os.unlink(self.content, dir_fd=self.directory)
            self.abandon()
            raise Refused(f"{entry['path']} changed while it was read")
        place(self.content, self.file.fileno(), entry)
        self.abandon()

    def abandon(self):
        if self.file:
            self.file.close()
        self.file, self.content = None, None


INCOMING = Incoming()


def write_all(descriptor, content):
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view):]


def file_mode(entry):
    return (0o777 if entry["executable"] else 0o666) & ~UMASK


UMASK = os.umask(0o022)
os.umask(UMASK)


def place(source, descriptor, entry):
    """Replaces whatever has the name of a file by the file, with its mode and its modification time."""
    parent, name = PARENTS.of(entry["path"], create=True)
    os.fchmod(descriptor, file_mode(entry))
    os.utime(descriptor, (entry["modified"], entry["modified"]))
    try:
        os.replace(source, name, src_dir_fd=INCOMING.directory, dst_dir_fd=parent)
    except IsADirectoryError as error:
        raise Refused(f"{entry['path']} is a directory on the claim") from error
    HASHES.note(entry["path"], os.stat(name, dir_fd=parent, follow_symlinks=False), entry["hash"])


def check(request, _):
    """Which files are not there as they should be, and how much of each is. Directories and links are created."""
    INCOMING.prepare()
    needed = []
    for number, entry in enumerate(request["entries"]):
        stay_alive()
        if entry["kind"] == "directory":
            os.close(open_directory(parts_of(entry["path"]), create=True))
        elif entry["kind"] == "link":
            make_link(entry)
        elif not is_there(entry):
            offset = INCOMING.length(entry["hash"])
            needed.append([number, offset if offset <= entry["size"] else 0])
    HASHES.save()
    answer({"needed": needed})


def is_there(entry):
    parent, name = PARENTS.of(entry["path"], create=True)
    status = stat_of(parent, name)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise Refused(f"{entry['path']} is a directory on the claim")
    if status is None or not stat.S_ISREG(status.st_mode) or status.st_size != entry["size"]:
        return False
    if digest_of(entry["path"], parent, name, status) != entry["hash"]:
        return False
    if bool(status.st_mode & 0o100) != entry["executable"]:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        os.fchmod(file, file_mode(entry))
        os.close(file)
        HASHES.note(entry["path"], os.stat(name, dir_fd=parent, follow_symlinks=False), entry["hash"])
    return True


def make_link(entry):
    parent, name = PARENTS.of(entry["path"], create=True)
    status = stat_of(parent, name)
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise Refused(f"{entry['path']} is a directory on the claim")
    if status is not None and stat.S_ISLNK(status.st_mode) and os.readlink(name, dir_fd=parent) == entry["target"]:
        return
    source = INCOMING.new_name()
    os.symlink(entry["target"], source, dir_fd=INCOMING.directory)
    os.replace(source, name, src_dir_fd=INCOMING.directory, dst_dir_fd=parent)


def write(request, content):
    """Small files, one behind the other."""
    start = 0
    for entry in request["files"]:
        piece = content[start:start + entry["size"]]
        start += entry["size"]
        if hashlib.sha256(piece).hexdigest() != entry["hash"]:
            raise Refused(f"{entry['path']} changed while it was read")
        source = INCOMING.new_name()
        with open(create(source, INCOMING.directory), "wb", buffering=0) as file:
            write_all(file.fileno(), piece)
            place(source, file.fileno(), entry)
    answer({})


def part(request, content):
    INCOMING.append(request["hash"], request["offset"], content)
    answer({})


def finish(request, _):
    INCOMING.finish(request["file"])
    answer({})


def entries_of_tree(descriptor, below, path):
    """What a directory holds, with nothing left out: the path and what else counts of each entry, and of files what they are now."""
    for name in os.listdir(descriptor):
        stay_alive()
        relative = below + name
        status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield relative, ("directory", "", ""), None
            inner = os.open(name, READ_DIRECTORY, dir_fd=descriptor)
            try:
                yield from entries_of_tree(inner, f"{relative}/", path)
            finally:
                os.close(inner)
        elif stat.S_ISLNK(status.st_mode):
            yield relative, ("link", "", os.readlink(name, dir_fd=descriptor)), None
        elif stat.S_ISREG(status.st_mode):
            digest = digest_of(f"{path}/{relative}", descriptor, name, status) or ""
            yield relative, ("file", "x" if status.st_mode & 0o100 else "", digest), (status, digest)
        else:
            yield relative, ("special", "", ""), None


def tree_of(path):
    """The digest of a tree, as whoever sends it computes it too, and its files."""
    descriptor = open_directory(parts_of(path))
    try:
        entries = [(os.fsencode(relative), fields, file) for relative, fields, file in entries_of_tree(descriptor, "", path)]
    finally:
        os.close(descriptor)
    digest, files = hashlib.sha256(), []
    for relative, fields, file in sorted(entries, key=lambda entry: entry[0]):
        digest.update(b"\0".join([*map(os.fsencode, fields), relative, b""]))
        if file:
            files.append((os.fsdecode(relative), *file))
    return digest.hexdigest(), files if entries else None


def tree(request, _):
    """The digest of the tree at a path, if there is one, and the newest tree beside it."""
    parts, found = parts_of(request["path"]), {}
    try:
        digest, files = tree_of(request["path"])
        descriptor = open_directory(parts)
        modified = int(os.fstat(descriptor).st_mtime)
        os.close(descriptor)
        # An empty directory is none: a mount of something that was deleted creates it.
        found = {"tree": digest if files is not None else None, "modified": modified}
    except FileNotFoundError:
        pass
    HASHES.save()
    answer({**found, "newest": newest_in(parts[:-1], parts[-1])})


def newest_in(parts, besides):
    try:
        descriptor = open_directory(parts)
    except FileNotFoundError:
        return None
    try:
        beside = [(stat_of(descriptor, name), name) for name in os.listdir(descriptor) if name != besides]
    finally:
        os.close(descriptor)
    beside = [(status.st_mtime_ns, name) for status, name in beside if status is not None and stat.S_ISDIR(status.st_mode)]
    return "/".join([*parts, max(beside)[1]]) if beside else None


def copy(request, _):
    """Files that another tree has under the same path with the same content."""
    INCOMING.prepare()
    for entry in request["entries"]:
        stay_alive()
        source = request["from"] + entry["path"][len(request["to"]):]
        try:
            descriptor, name = PARENTS.of(source)
            status = stat_of(descriptor, name)
            if status is None or not stat.S_ISREG(status.st_mode) or status.st_size != entry["size"]:
                continue
            if digest_of(source, descriptor, name, status) != entry["hash"]:
                continue
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
        except (FileNotFoundError, Refused):
            continue
        copied, digest = INCOMING.new_name(), hashlib.sha256()
        with open(file, "rb", buffering=0) as file, open(create(copied, INCOMING.directory), "wb", buffering=0) as target:
            while piece := file.read(PIECE):
                stay_alive()
                digest.update(piece)
                write_all(target.fileno(), piece)
            if digest.hexdigest() == entry["hash"]:
                place(copied, target.fileno(), entry)
            else:
                # It changed meanwhile.
                os.unlink(copied, dir_fd=INCOMING.directory)
    answer({})


def publish(request, _):
    """Gives a tree its name, once all of it is what was sent: whoever sees the name sees the whole tree."""
    source, target = request["from"], request["to"]
    PARENTS.forget()
    digest, files = tree_of(source)
    source_parent, source_name = PARENTS.of(source)
    if not digest.startswith(request["digest"]):
        remove_entry(source_parent, source_name)
        raise Refused("what was uploaded is not what was sent, or another run uploads the same; run the same command again")
    source_parent = os.dup(source_parent)
    try:
        parent, name = PARENTS.of(target, create=True)
        os.utime(source_name, dir_fd=source_parent, follow_symlinks=False)
        try:
            os.rename(source_name, name, src_dir_fd=source_parent, dst_dir_fd=parent)
        except OSError as error:
            # Another run was faster.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY) or tree_of(target)[0] != digest:
                raise
            remove_entry(source_parent, source_name)
        else:
            for relative, status, content in files or []:
                HASHES.note(f"{target}/{relative}", status, content)
        HASHES.forget({os.path.dirname(f"{source}/{relative}") for relative, _, _ in files or []})
        remove_stale(source_parent)
    finally:
        os.close(source_parent)
    PARENTS.forget()
    HASHES.save()
    answer({})


def remove_stale(descriptor):
    """Trees that nobody finished."""
    for name in os.listdir(descriptor):
        status = stat_of(descriptor, name)
        if status is not None and time.time() - status.st_mtime > STALE_SECONDS:
            remove_entry(descriptor, name)


def entry_of(path, descriptor, name):
    """What is at a name, or nothing if it is gone."""
    status = stat_of(descriptor, name)
    if status is None:
        return None
    entry = {"path": path, "size": 0, "modified": int(status.st_mtime), "executable": False}
    if stat.S_ISDIR(status.st_mode):
        entry["kind"] = "directory"
    elif stat.S_ISLNK(status.st_mode):
        entry["kind"] = "link"
        entry["target"] = printable(os.readlink(name, dir_fd=descriptor))
    elif stat.S_ISREG(status.st_mode) and path == printable(path):
        entry["kind"] = "file"
        entry["size"] = status.st_size
        entry["executable"] = bool(status.st_mode & 0o100)
    else:
        # Pipes, devices, and names that are no text.
        entry["kind"] = "special"
        entry["path"] = printable(path)
    return entry


def printable(name):
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def entries_below(descriptor, below, recursive):
    """Everything in a directory but records of ours, in the order of the names."""
    for name in sorted(os.listdir(descriptor)):
        stay_alive()
        if name == RECORDS:
            continue
        path = f"{below}{name}"
        entry = entry_of(path, descriptor, name)
        if entry is None:
            continue
        yield entry
        if recursive and entry["kind"] == "directory":
            try:
                inner = os.open(name, READ_DIRECTORY, dir_fd=descriptor)
            except FileNotFoundError:
                # A running job deletes its older checkpoints.
                continue
            try:
                yield from entries_below(inner, f"{path}/", recursive)
            finally:
                os.close(inner)


def found_entries(path, recursive):
    parts = parts_of(path)
    if parts:
        parent, name = PARENTS.of(path)
        entry = entry_of("", parent, name)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if entry["kind"] != "directory":
            return [entry]
    return directory_entries(parts, recursive)


def directory_entries(parts, recursive):
    descriptor = open_directory(parts)
    try:
        yield {"path": "", "kind": "directory", "size": 0, "modified": 0, "executable": False}
        yield from entries_below(descriptor, "", recursive)
    finally:
        os.close(descriptor)


def list_entries(request, _):
    """What is at a path: first itself, with an empty name, then what is below."""
    batch = []
    for entry in found_entries(request["path"], request["recursive"]):
        batch.append(entry)
        if len(batch) == BATCH:
            answer({"entries": batch})
            batch = []
    answer({"entries": batch, "end": True})


def hashes(request, _):
    """The hash of each file; none for what is no file any more."""
    found = []
    for path in request["paths"]:
        parent, name = PARENTS.of(path)
        status = stat_of(parent, name)
        is_file = status is not None and stat.S_ISREG(status.st_mode)
        found.append(digest_of(path, parent, name, status) if is_file else None)
    HASHES.save()
    answer({"hashes": found})


def read(request, _):
    """A file from an offset on, as long as it is now: a log that grows meanwhile is read up to there."""
    path, offset = request["path"], request["offset"]
    parent, name = PARENTS.of(path)
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return answer({"gone": True, "end": True})
    except OSError as error:
        if error.errno == errno.ELOOP:
            return answer({"gone": True, "end": True})
        raise
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return answer({"gone": True, "end": True})
        digest, done = hashlib.sha256(), 0
        offset = min(offset, status.st_size)
        piece = b""
        while done < status.st_size:
            stay_alive()
            limit = offset if done < offset else status.st_size
            if piece:
                answer({}, piece)
            piece = file.read(min(PIECE, limit - done))
            if not piece:
                raise Refused(f"{path} was truncated while it was read")
            digest.update(piece)
            done += len(piece)
            if done <= offset:
                piece = b""
        if Hashes.mark(os.fstat(descriptor)) == Hashes.mark(status):
            HASHES.note(path, status, digest.hexdigest())
        answer({"end": True, "size": status.st_size, "offset": offset, "hash": digest.hexdigest(),
                "modified": int(status.st_mtime), "executable": bool(status.st_mode & 0o100)}, piece)


def remove(request, _):
    parent, name = PARENTS.of(request["path"])
    remove_entry(parent, name)
    PARENTS.forget()
    answer({})


def remove_entry(descriptor, name):
    stay_alive()
    status = stat_of(descriptor, name)
    if status is None:
        return
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=descriptor)
        return
    inner = os.open(name, READ_DIRECTORY, dir_fd=descriptor)
    try:
        for below in os.listdir(inner):
            remove_entry(inner, below)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=descriptor)


REQUESTS = {"check": check, "write": write, "part": part, "finish": finish, "list": list_entries,
            "hashes": hashes, "read": read, "remove": remove, "tree": tree, "copy": copy, "publish": publish, **OBJECT_REQUESTS}
OUTPUT = sys.stdout.buffer


def answer(document, content=b""):
    text = json.dumps(document).encode()
    OUTPUT.write(LENGTHS.pack(len(text), len(content)))
    OUTPUT.write(text)
    OUTPUT.write(content)
    OUTPUT.flush()


def read_exactly(length):
    content = sys.stdin.buffer.read(length)
    if len(content) < length:
        raise EOFError
    return content


def replace_predecessor():
    """Only one command uses this pod, over one connection after the other: what still runs for an earlier one has lost its client."""
    try:
        with open(f"{ALIVE}.process", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    except (OSError, ValueError):
        pass
    with open(f"{ALIVE}.process", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def serve():
    replace_predecessor()
    answer({"ready": True})
    while True:
        try:
            text_length, length = LENGTHS.unpack(read_exactly(LENGTHS.size))
            request, content = json.loads(read_exactly(text_length)), read_exactly(length)
        except EOFError:
            break
        stay_alive()
        try:
            REQUESTS[request["do"]](request, content)
        except Refused as error:
            answer({"error": str(error), "end": True})
        except FileNotFoundError as error:
            answer({"missing": True, "error": f"{request.get('path', error.filename)}: {error.strerror}", "end": True})
        except OSError as error:
            answer({"error": f"{error.filename or request.get('path', 'the claim')}: {error.strerror}", "end": True})
    HASHES.save()
    os.unlink(f"{ALIVE}.process")


serve()
