"""Requests that change a claim, in the same program as claim_files.py: files that arrive, copies, trees that get their name, deletions.

A file appears whole or not at all."""

import errno
import fcntl
import hashlib
import os
import stat
import time

# Parts of files that nobody finished.
STALE_SECONDS = 7 * 24 * 3600


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
