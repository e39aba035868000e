"""Imports an archive, or files that were fetched, and gives every trainer its part. Run again, it finds its marker and does nothing."""

import gzip
import hashlib
import json
import lzma
import os
import pathlib
import shutil
import stat
import sys
import tarfile
import urllib.parse
import zipfile
import zlib

from division import Indivisible, divide
from download import Download, Interrupted, Refused, is_url, shown, version_on_server

MISCONFIGURED = 64
BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError)
CHUNK = 1 << 20
# Pods that are evicted or lose their machine are replaced without being counted.
MOST_STARTS = 10
# The largest public sets of images have 14 million files.
MOST_ENTRIES = 20_000_000


def misconfigured(reason):
    """A retry cannot help: the Job fails instead of starting another pod."""
    print(f"infra: {reason}", file=sys.stderr)
    sys.exit(MISCONFIGURED)


def state_of(source):
    """What distinguishes two versions of an archive on the claim."""
    try:
        found = os.stat(source)
    except (FileNotFoundError, NotADirectoryError):
        misconfigured(f"there is no {source}: copy the archive there first")
    if not os.path.isfile(source):
        misconfigured(f"{source} is not a file")
    return {"source": source, "size": found.st_size, "modified": found.st_mtime_ns}


def state_of_objects(directory, source):
    """What `infra job submit` has recorded of the objects that it has fetched."""
    try:
        return json.loads((directory / "complete.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        misconfigured(f"{source} is not on the claim: `infra job submit --replace` fetches it")


def link_tree(source, target):
    """The same files under other names: the import may be killed and begin again."""
    for directory, below, files in os.walk(source):
        here = os.path.join(target, os.path.relpath(directory, source))
        for name in below:
            os.mkdir(os.path.join(here, name))
        for name in files:
            path, copy = os.path.join(directory, name), os.path.join(here, name)
            try:
                os.link(path, copy)
            except OSError:
                # A file system without hard links.
                shutil.copy2(path, copy)


def is_imported(stamp, source, state):
    """Whether the files are those of the source as it is now."""
    try:
        known = json.loads(stamp.read_text())
    except (FileNotFoundError, ValueError):
        return False
    if state:
        return known == state
    if known.get("source") != source:
        return False
    try:
        version, length = version_on_server(source)
    except (Refused, Interrupted) as error:
        print(f"{shown(source)} cannot be compared with what was imported ({error}): that is used")
        return True
    # What the server does not say, now or then, cannot have changed.
    pairs = ((version, known.get("version")), (length, known.get("length")))
    return all(now is None or then is None or now == then for now, then in pairs)


def fetch(source, download):
    """The archive as a file."""
    if not is_url(source):
        return source
    try:
        download.run(source, lambda kept: Budget(download.path.parent, kept))
    except Refused as error:
        misconfigured(f"{shown(source)} cannot be fetched: {error}")
    except SystemExit:
        # It is too large.
        download.remove()
        raise
    return download.path


def is_zip(source):
    """By its name: a tar archive may end with the bytes of a zip archive that is in it."""
    path = urllib.parse.urlsplit(source).path if is_url(source) else source
    return path.endswith(".zip")


class Budget:
    """What may still be written: a small archive can hold more than any disk."""

    def __init__(self, directory, kept=0):
        """`kept`: bytes that are there already, and part of it."""
        self.limit = int(os.environ["DATA_SIZE_LIMIT"])
        found = os.statvfs(directory)
        self.free = kept + found.f_bavail * found.f_frsize
        self.used, self.entries = kept, 0

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
    unpack_zip(archive, directory) if zipped else unpack_tar(archive, directory)


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


def forget_imports(stamp, download):
    """From here on the files belong to no finished import, and no trainer may begin with them."""
    for path in stamp.parent.glob("data-*.ready"):
        path.unlink(missing_ok=True)
    for path in stamp.parent.glob("data-*.part"):
        shutil.rmtree(path, ignore_errors=True)
    for path in stamp.parent.glob("download-*"):
        # What has arrived of this source is kept: the download continues there.
        if path not in (download.path, download.record):
            path.unlink(missing_ok=True)


def count_start(record, arrived):
    """Ends an import whose pods are evicted again and again, and get no further."""
    job = os.environ.get("INFRA_JOB_UID", "")
    try:
        known = json.loads(record.read_text())
        is_stuck = known["job"] == job and arrived <= known["arrived"]
        starts = known["starts"] + 1 if is_stuck else 1
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        starts = 1
    if starts > MOST_STARTS:
        record.unlink(missing_ok=True)
        misconfigured(f"the import was started {MOST_STARTS} times and gets no further: its pods are evicted, or their machines are lost")
    record.parent.mkdir(parents=True, exist_ok=True)
    part = record.with_suffix(".new")
    part.write_text(json.dumps({"job": job, "starts": starts, "arrived": arrived}))
    part.rename(record)


def place(unpacked, scratch, imported, names, split, source, called):
    """Gives every trainer its part, and puts all of it in its place."""
    if split == "none":
        imported.replace(unpacked, "data")
        return
    shards = [scratch / str(number) for number in range(len(names))]
    for shard in shards:
        shard.mkdir()
    try:
        divide(unpacked, shards, split, os.environ.get("DATA_BESIDE"))
    except Indivisible as error:
        misconfigured(str(error).replace("the archive", called))
    directories = sorted(path for path in unpacked.iterdir() if path.is_dir())
    for name in (path.name for path in directories):
        if name in {"output", "runs", ".infra"} or name.isdigit():
            misconfigured(f"{called} has a directory '{name}', which the job uses itself")
    imported.check([directory.name for directory in directories], source)
    for shard, name in zip(shards, names):
        imported.replace(shard, name)
    # Directories hold configuration and programs.
    for directory in directories:
        imported.replace(directory, directory.name)
    imported.remove_shards(len(names))


def main():
    root = pathlib.Path(os.environ["OUT_DIR"])
    stamp = pathlib.Path(os.environ["DATA_STAMP"])
    source, split = os.environ["DATA_SOURCE"], os.environ["DATA_SPLIT"]
    count = int(os.environ["SPLIT_COUNT"])
    objects, unpacks = os.environ.get("DATA_OBJECTS"), os.environ.get("DATA_UNPACKS", "yes") == "yes"
    objects = pathlib.Path(objects) if objects else None
    tree = objects and objects / "tree"
    if objects:
        state = state_of_objects(objects, source)
    else:
        state = None if is_url(source) else state_of(source)
    if is_imported(stamp, source, state):
        if objects:
            shutil.rmtree(tree, ignore_errors=True)
        print("the data is already imported")
        return
    if objects and not tree.is_dir():
        misconfigured(f"{source} is no longer on the claim: `infra job submit --replace` fetches it again")
    download = Download(stamp.with_name(f"download-{hashlib.sha256(source.encode()).hexdigest()[:12]}"))
    forget_imports(stamp, download)
    starts = stamp.with_name("import-starts.json")
    count_start(starts, download.done)
    imported = Imported(root, stamp.with_name("imported.json"))
    names = ["data"] if split == "none" else [f"{number}/data" for number in range(count)]
    imported.check(names, source)
    archive = tree / source.rpartition("/")[2] if objects else fetch(source, download)
    scratch = stamp.with_suffix(".part")
    try:
        unpacked = scratch / "unpacked"
        unpacked.mkdir(parents=True)
        (root / "output").mkdir(parents=True, exist_ok=True)
        if unpacks:
            unpack(archive, unpacked, is_zip(source))
        else:
            link_tree(tree, unpacked)
        place(unpacked, scratch, imported, names, split, source, "the archive" if unpacks else "the data")
    except BROKEN as error:
        download.remove()
        if download.parts > 1:
            raise OSError(f"{shown(source)} arrived in {download.parts} parts and cannot be unpacked ({error}): it is fetched again from the beginning")
        misconfigured(f"{source if state else shown(source)} cannot be unpacked: {error}")
    except SystemExit:
        # A changed job file may take another archive.
        download.remove()
        raise
    finally:
        # Also what was unpacked of an archive that is refused.
        shutil.rmtree(scratch, ignore_errors=True)
    part = stamp.with_suffix(".stamp")
    part.write_text(json.dumps(state or {"source": source, "version": download.version, "length": download.length}))
    part.rename(stamp)
    download.remove()
    if objects:
        shutil.rmtree(tree, ignore_errors=True)
    starts.unlink(missing_ok=True)
    print(f"imported {source if state else shown(source)}" + (f" in {count} parts" if split != "none" else ""))


if not hasattr(tarfile, "data_filter"):
    misconfigured(f"Python {sys.version.split()[0]} cannot unpack archives safely: data.image needs 3.12, or a late 3.8 to 3.11")
try:
    main()
except OSError as error:
    # A full disk or a broken connection: a retry may succeed.
    sys.exit(f"infra: the data cannot be imported: {error!r}")
