"""Requests that only read a claim, in the same program as claim_files.py: lists, hashes, digests of trees, contents."""

import errno
import hashlib
import os
import stat

# What one answer names at most.
BATCH = 500


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
