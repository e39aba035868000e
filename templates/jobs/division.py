"""Divides what was unpacked among the trainers.

In: a directory, and an empty one for each trainer. Out: each trainer's part in its directory; directories that are left hold configuration
and programs for all of them.
"""

import os
import shutil

CHUNK = 1 << 20
# Where the first tutorials have data that is divided already: a directory for each trainer.
DIVIDED = "data"


class Indivisible(Exception):
    """The data cannot be divided among these trainers."""


def divide(unpacked, shards, split, kept):
    """`kept`: a directory that is never divided."""
    files = sorted(path for path in unpacked.iterdir() if path.is_file())
    parts = sorted(unpacked.glob(f"{DIVIDED}/*"))
    if split == "lines":
        divide_lines(files, shards)
    elif files:
        has_trees = any(path.is_dir() for path in unpacked.iterdir())
        expect_enough(len(files), shards, "; those in directories are divided only if there are none at the top" if has_trees else "")
        deal(files, unpacked, shards)
    elif parts and all(path.is_dir() and path.name.isdigit() for path in parts):
        take_parts(parts, shards)
        (unpacked / DIVIDED).rmdir()
    else:
        deal_trees([path for path in sorted(unpacked.iterdir()) if path.name != kept], unpacked, shards)


def deal(files, unpacked, shards):
    """Gives each file to the next shard in turn, under the same path."""
    count = 0
    for count, path in enumerate(files, 1):
        os.rename(path, shards[(count - 1) % len(shards)] / os.path.relpath(path, unpacked))
    return count


def expect_enough(count, shards, note=""):
    if count < len(shards):
        raise Indivisible(f"the archive has {count} {'file' if count == 1 else 'files'} for {len(shards)} trainers{note}")


def deal_trees(trees, unpacked, shards):
    """Deals out the files of directories, in the order of their paths."""

    def files_of(tree):
        # One directory after the other: there may be millions of files.
        for directory, below, files in os.walk(tree):
            below.sort()
            # The name of a directory may be that of a class, whose number follows from all names: every shard has all of them.
            for shard in shards:
                os.makedirs(shard / os.path.relpath(directory, unpacked))
            yield from (os.path.join(directory, name) for name in sorted(files))

    expect_enough(deal((path for tree in trees for path in files_of(tree)), unpacked, shards), shards)
    for tree in trees:
        shutil.rmtree(tree)


def take_parts(parts, shards):
    """Gives each shard the directory with its number."""
    if {path.name for path in parts} != {str(number) for number in range(len(shards))}:
        names = ", ".join(f"{DIVIDED}/{path.name}" for path in parts[:4]) + (", …" if len(parts) > 4 else "")
        raise Indivisible(f"the archive is divided into {names}, but {len(shards)} trainers need {DIVIDED}/0 to {DIVIDED}/{len(shards) - 1}")
    for path in parts:
        shard = shards[int(path.name)]
        shard.rmdir()
        path.rename(shard)


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
        raise Indivisible(f"{path.name} has {count} lines for {len(pieces)} trainers")
    with open(path, "rb") as file:
        for number, piece in enumerate(pieces):
            wanted = count // len(pieces) + (number < count % len(pieces))
            with open(piece, "wb") as target:
                for _ in range(wanted):
                    target.write(file.readline())


def divide_lines(files, shards):
    """Splits the files whose names begin with `train`; every other file goes to all."""
    cut = [path for path in files if path.name.startswith("train")]
    if not cut:
        raise Indivisible("no file at the top of the archive begins with 'train': there is nothing to split by lines")
    for path in cut:
        split_lines(path, [shard / path.name for shard in shards])
    for path in files:
        if path not in cut:
            for shard in shards:
                shutil.copy(path, shard)
