"""Brings an archive to the claim and gives every trainer its part. Run again, it finds its stamp and does nothing."""

import json
import os
import pathlib
import shutil
import sys
import tarfile
import time
import urllib.request
import zipfile

MISCONFIGURED = 64
CHUNK = 1 << 20


def misconfigured(reason):
    """Trying again cannot help: the Job ends instead of starting another pod."""
    print(f"infra: {reason}", file=sys.stderr)
    sys.exit(MISCONFIGURED)


def state_of(source):
    """What tells one version of an archive on the claim from the next; of one on the web nothing does."""
    if source.startswith(("http://", "https://")):
        return {"source": source}
    try:
        found = os.stat(source)
    except FileNotFoundError:
        misconfigured(f"there is no {source}: copy the archive there first")
    return {"source": source, "size": found.st_size, "modified": found.st_mtime_ns}


def fetch(source, scratch):
    """The archive as a file."""
    if not source.startswith(("http://", "https://")):
        return source
    target = scratch / source.split("?")[0].rsplit("/", 1)[-1]
    print(f"fetching {source}", flush=True)
    with urllib.request.urlopen(source, timeout=60) as answer, open(target, "wb") as file:
        expected = answer.headers.get("Content-Length")
        done, told = 0, time.monotonic()
        while chunk := answer.read(CHUNK):
            file.write(chunk)
            done += len(chunk)
            if time.monotonic() - told > 10:
                print(f"  {done >> 20} MiB", flush=True)
                told = time.monotonic()
    if expected and int(expected) != done:
        raise OSError(f"{source} broke off after {done} of {expected} bytes")
    return target


def unpack(archive, directory):
    """Nothing in an archive gets out of the directory."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as file:
                file.extractall(directory)
        else:
            with tarfile.open(archive) as file:
                file.extractall(directory, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        misconfigured(f"{archive} cannot be unpacked: {error}")


def split_lines(path, pieces):
    """Cuts a file at line ends into pieces of about the same size, in order."""
    size = path.stat().st_size
    with open(path, "rb") as file:
        for number, piece in enumerate(pieces):
            end = size * (number + 1) // len(pieces)
            piece.parent.mkdir(parents=True, exist_ok=True)
            with open(piece, "wb") as target:
                while file.tell() < end:
                    line = file.readline()
                    if not line:
                        break
                    target.write(line)
            if piece.stat().st_size == 0:
                misconfigured(f"{path.name} has fewer lines than there are trainers ({len(pieces)})")


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


def replace(source, target):
    """Puts a finished directory in the place of an older one."""
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def main():
    root = pathlib.Path(os.environ["OUT_DIR"])
    stamp = pathlib.Path(os.environ["DATA_STAMP"])
    source, split = os.environ["DATA_SOURCE"], os.environ["DATA_SPLIT"]
    count = int(os.environ["SPLIT_COUNT"])
    state = json.dumps(state_of(source))
    if stamp.exists() and stamp.read_text() == state:
        print("the data is already there")
        return
    stamp.unlink(missing_ok=True)
    scratch = stamp.with_suffix(".part")
    shutil.rmtree(scratch, ignore_errors=True)
    unpacked = scratch / "unpacked"
    unpacked.mkdir(parents=True)
    (root / "output").mkdir(parents=True, exist_ok=True)
    unpack(fetch(source, scratch), unpacked)
    if split == "none":
        replace(unpacked, root / "data")
    else:
        shards = [scratch / str(number) for number in range(count)]
        for shard in shards:
            shard.mkdir()
        divide(unpacked, shards, split)
        for number, shard in enumerate(shards):
            replace(shard, root / str(number) / "data")
        # Configuration and programs come along in directories.
        for directory in sorted(path for path in unpacked.iterdir() if path.is_dir()):
            if directory.name in {"output", ".infra"} or directory.name.isdigit():
                misconfigured(f"the archive has a directory '{directory.name}', which the job uses itself")
            replace(directory, root / directory.name)
    shutil.rmtree(scratch)
    part = stamp.with_suffix(".stamp")
    part.write_text(state)
    part.rename(stamp)
    print(f"imported {source}" + (f" in {count} parts" if split != "none" else ""))


main()
