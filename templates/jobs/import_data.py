"""Imports an archive to the claim and gives every trainer its part. Run again, it finds its marker and does nothing."""

import gzip
import http.client
import json
import lzma
import os
import pathlib
import shutil
import stat
import sys
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
import zlib

MISCONFIGURED = 64
BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)
# HTTP statuses that a retry does not change.
REFUSALS = {400, 401, 403, 404, 410}
CHUNK = 1 << 20
# The largest public sets of images have 14 million files.
MOST_ENTRIES = 20_000_000


def misconfigured(reason):
    """A retry cannot help: the Job fails instead of starting another pod."""
    print(f"infra: {reason}", file=sys.stderr)
    sys.exit(MISCONFIGURED)


def state_of(source):
    """What distinguishes two versions of an archive on the claim; nothing does for one on the web."""
    if source.startswith(("http://", "https://")):
        return {"source": source}
    try:
        found = os.stat(source)
    except (FileNotFoundError, NotADirectoryError):
        misconfigured(f"there is no {source}: copy the archive there first")
    if not os.path.isfile(source):
        misconfigured(f"{source} is not a file")
    return {"source": source, "size": found.st_size, "modified": found.st_mtime_ns}


def fetch(source, scratch):
    """The archive as a file."""
    if not source.startswith(("http://", "https://")):
        return source
    target = scratch / "archive"
    print(f"fetching {source}", flush=True)
    try:
        answer = urllib.request.urlopen(source, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code in REFUSALS:
            misconfigured(f"{source} cannot be fetched: {error}")
        raise
    with answer, open(target, "wb") as file:
        expected = answer.headers.get("Content-Length")
        budget = Budget(scratch)
        budget.use(int(expected or 0), source, entries=0)
        done, told = 0, time.monotonic()
        while chunk := answer.read(CHUNK):
            if not expected:
                budget.use(len(chunk), source, entries=0)
            file.write(chunk)
            done += len(chunk)
            if time.monotonic() - told > 10:
                print(f"  {done >> 20} MiB", flush=True)
                told = time.monotonic()
    if expected and int(expected) != done:
        raise OSError(f"{source} ended after {done} of {expected} bytes")
    return target


def is_zip(source):
    """By its name: a tar archive may end with the bytes of a zip archive that is in it."""
    path = urllib.parse.urlsplit(source).path if source.startswith(("http://", "https://")) else source
    return path.endswith(".zip")


class Budget:
    """What may still be written: a small archive can hold more than any disk."""

    def __init__(self, directory):
        self.limit = int(os.environ["DATA_SIZE_LIMIT"])
        found = os.statvfs(directory)
        self.free = found.f_bavail * found.f_frsize
        self.used = self.entries = 0

    def use(self, size, name, entries=1):
        self.used += size
        self.entries += entries
        if self.entries > MOST_ENTRIES:
            misconfigured(f"the archive has more than {MOST_ENTRIES} files: pack them into larger ones, such as shards of a thousand each")
        if self.used > self.limit:
            misconfigured(f"with {name} the data has more than {self.limit} bytes: if that is right, raise data.sizeLimit in the job file")
        if self.used > self.free:
            misconfigured(f"with {name} the data has more than the {self.free} bytes that are free on the claim: delete something there first")


def refuse_member(name, kind):
    misconfigured(
        f"the archive contains {kind} {name!r}, which is not unpacked: it could lead to other data on the claim. Pack the files themselves, "
        "as with `tar --dereference --hard-dereference -czf ARCHIVE FILES`"
    )


def unpack_tar(archive, directory):
    budget = Budget(directory)
    with tarfile.open(archive) as file:
        while (entry := file.next()) is not None:
            # Not kept for later: an archive may have millions.
            file.members = []
            if entry.issym() or entry.islnk():
                refuse_member(entry.name, "the link")
            if not (entry.isreg() or entry.isdir()):
                refuse_member(entry.name, "the device or pipe")
            if ".." in entry.name.split("/"):
                misconfigured(f"{archive} cannot be unpacked: {entry.name!r} leads out of its directory")
            budget.use(entry.size if entry.isreg() else 0, repr(entry.name))
            file.extract(entry, directory, filter="data")
        # The checksum of compressed data comes after the end of the archive.
        while chunk := file.fileobj.read(CHUNK):
            budget.use(len(chunk), "what follows the end of the archive", entries=0)


def unpack_zip(archive, directory):
    budget = Budget(directory)
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            kind = stat.S_IFMT(entry.external_attr >> 16)
            if kind == stat.S_IFLNK:
                refuse_member(entry.filename, "the link")
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                refuse_member(entry.filename, "the device or pipe")
            # No more than this is read of it.
            budget.use(entry.file_size, repr(entry.filename))
        file.extractall(directory)


def unpack(archive, directory, zipped):
    """Nothing in an archive gets out of the directory: there is no link to follow, whatever this Python's filter lets pass."""
    try:
        unpack_zip(archive, directory) if zipped else unpack_tar(archive, directory)
    except BROKEN as error:
        misconfigured(f"{archive} cannot be unpacked: {error}")


def count_lines(path):
    """How many lines a file has; the last one may lack its end."""
    count, last = 0, b"\n"
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            count += chunk.count(b"\n")
            last = chunk[-1:]
    return count if last == b"\n" else count + 1


def split_lines(path, pieces):
    """Splits a file into parts with the same number of lines, in order: trainers that wait for each other need the same number of steps."""
    count = count_lines(path)
    if count < len(pieces):
        misconfigured(f"{path.name} has {count} lines for {len(pieces)} trainers")
    with open(path, "rb") as file:
        for number, piece in enumerate(pieces):
            wanted = count // len(pieces) + (number < count % len(pieces))
            with open(piece, "wb") as target:
                for _ in range(wanted):
                    target.write(file.readline())


def divide(unpacked, shards, split):
    """Gives each shard its part of the files at the top of the archive."""
    files = sorted(path for path in unpacked.iterdir() if path.is_file())
    if split == "files":
        if len(files) < len(shards):
            misconfigured(f"the archive has {len(files)} files for {len(shards)} trainers")
        for number, path in enumerate(files):
            shutil.copy(path, shards[number % len(shards)])
        return
    cut = [path for path in files if path.name.startswith("train")]
    if not cut:
        misconfigured("no file at the top of the archive begins with 'train': there is nothing to split by lines")
    for path in cut:
        split_lines(path, [shard / path.name for shard in shards])
    for path in files:
        if path not in cut:
            for shard in shards:
                shutil.copy(path, shard)


class Imported:
    """The directories that imports have created, by their inodes: all others are kept."""

    def __init__(self, root, record):
        self.root, self.record = root, record
        try:
            self.inodes = json.loads(record.read_text())
        except (FileNotFoundError, ValueError):
            self.inodes = {}

    def made(self, name):
        try:
            return self.inodes.get(name) == os.lstat(self.root / name).st_ino
        except (FileNotFoundError, NotADirectoryError):
            return False

    def check(self, names, source):
        """Refuses to begin where something would be lost."""
        for name in names:
            target = self.root / name
            if pathlib.Path(os.path.realpath(target)) in pathlib.Path(os.path.realpath(source)).parents:
                misconfigured(f"{source} is in {target}, which the import replaces: move it somewhere else")
            if os.path.lexists(target) and not self.made(name):
                misconfigured(f"{target} was not created by an import, which would replace it: move it away, or choose another storage.path")

    def replace(self, directory, name):
        """Puts a finished directory in the place of an older one."""
        self.remove(name)
        # Recorded before it exists: an import that is killed in between recognizes it as its own.
        self.inodes[name] = os.lstat(directory).st_ino
        self.write()
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        directory.rename(target)

    def remove(self, name):
        if self.made(name):
            shutil.rmtree(self.root / name)

    def remove_shards(self, count):
        """Deletes the parts of trainers that no longer exist."""
        for name in list(self.inodes):
            number, _, rest = name.partition("/")
            if rest == "data" and number.isdigit() and int(number) >= count:
                self.remove(name)
                del self.inodes[name]
        self.write()

    def write(self):
        part = self.record.with_suffix(".new")
        part.write_text(json.dumps(self.inodes))
        part.rename(self.record)


def forget_imports(stamp):
    """From here on the files belong to no finished import, and no trainer may begin with them."""
    for path in stamp.parent.glob("data-*.ready"):
        path.unlink(missing_ok=True)
    for path in stamp.parent.glob("data-*.part"):
        shutil.rmtree(path, ignore_errors=True)


def main():
    root = pathlib.Path(os.environ["OUT_DIR"])
    stamp = pathlib.Path(os.environ["DATA_STAMP"])
    source, split = os.environ["DATA_SOURCE"], os.environ["DATA_SPLIT"]
    count = int(os.environ["SPLIT_COUNT"])
    state = json.dumps(state_of(source))
    if stamp.exists() and stamp.read_text() == state:
        print("the data is already imported")
        return
    forget_imports(stamp)
    imported = Imported(root, stamp.with_name("imported.json"))
    names = ["data"] if split == "none" else [f"{number}/data" for number in range(count)]
    imported.check(names, source)
    scratch = stamp.with_suffix(".part")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        unpacked = scratch / "unpacked"
        unpacked.mkdir(parents=True)
        (root / "output").mkdir(parents=True, exist_ok=True)
        unpack(fetch(source, scratch), unpacked, is_zip(source))
        directories = sorted(path for path in unpacked.iterdir() if path.is_dir())
        for name in (path.name for path in directories):
            if split != "none" and (name in {"output", ".infra"} or name.isdigit()):
                misconfigured(f"the archive has a directory '{name}', which the job uses itself")
        if split == "none":
            imported.replace(unpacked, "data")
        else:
            shards = [scratch / str(number) for number in range(count)]
            for shard in shards:
                shard.mkdir()
            divide(unpacked, shards, split)
            imported.check([directory.name for directory in directories], source)
            for shard, name in zip(shards, names):
                imported.replace(shard, name)
            # Directories hold configuration and programs.
            for directory in directories:
                imported.replace(directory, directory.name)
            imported.remove_shards(count)
    finally:
        # Also what was unpacked of an archive that is refused.
        shutil.rmtree(scratch, ignore_errors=True)
    part = stamp.with_suffix(".stamp")
    part.write_text(state)
    part.rename(stamp)
    print(f"imported {source}" + (f" in {count} parts" if split != "none" else ""))


if not hasattr(tarfile, "data_filter"):
    misconfigured(f"Python {sys.version.split()[0]} cannot unpack archives safely: data.image needs 3.12, or a late 3.8 to 3.11")
try:
    main()
except (OSError, http.client.HTTPException) as error:
    # A full disk or a broken connection: a retry may succeed.
    sys.exit(f"infra: the data cannot be imported: {error!r}")
