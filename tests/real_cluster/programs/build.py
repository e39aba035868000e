#!/usr/bin/env python3
"""Builds the programs of a real cluster from the Go modules beside this file.

Comes in: a Kubernetes minor version. Comes out: a directory for each module in target/test-tools/programs, named after it and
the version that its go.mod requires. What is there with the same sources and flags is kept.

A module that cannot be fetched is a reason to skip (exit code 3); a build that fails is a failure (exit code 1).
"""

import argparse
import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

from modules import FILES, MODULES, PROGRAMS, Module, directory, minors, source, version
from toolchain import Unavailable, build_environment, check_compiler, environment, find_go, find_libseccomp, last_lines


class Failed(Exception):
    """A build that should have worked."""


def linker_flags(module: Module, minor: str) -> list[str]:
    flags = ["-s", "-w"]
    for variable in module.version_variables:
        flags += ["-X", f"{variable}={version(module, minor)}"]
    if module.name == "kubernetes":
        # Clients compare the numbers as well.
        major, number = minor.split(".")
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
            flags += ["-X", f"{package}.gitMajor={major}", "-X", f"{package}.gitMinor={number}"]
            flags += ["-X", f"{package}.gitTreeState=clean"]
    if module.needs_compiler:
        flags += ["-linkmode", "external", "-extldflags", "-static"]
    return flags


def key(module: Module, minor: str) -> str:
    """Changes with everything that goes into the programs of a module."""
    content = hashlib.sha256()
    facts = dataclasses.asdict(module)
    # When it is built changes nothing of it.
    del facts["in_every_cluster"]
    content.update(json.dumps([facts, linker_flags(module, minor)]).encode())
    if module.name in FILES:
        content.update(json.dumps(FILES[module.name]).encode())
    for path in sorted(source(module, minor).rglob("*")):
        if path.is_file():
            content.update(f"{path.relative_to(source(module, minor))}\0".encode())
            content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def is_built(module: Module, minor: str, target: pathlib.Path = PROGRAMS) -> bool:
    mark = directory(module, minor, target) / ".key"
    return mark.is_file() and mark.read_text() == key(module, minor)


def missing(minor: str, target: pathlib.Path = PROGRAMS, only: list[str] | None = None) -> list[Module]:
    """Of the modules that are named, or of those that are part of every cluster."""
    chosen = [module for module in MODULES if (module.name in only if only else module.in_every_cluster)]
    return [module for module in chosen if not is_built(module, minor, target)]


def fetch(module: Module, minor: str) -> None:
    """Has Go download every module that is compiled. What it cannot have is no failure of ours; a wrong checksum is one."""
    tags = ["-tags", ",".join(module.tags)] if module.tags else []
    answer = subprocess.run(
        [find_go(), "list", "-deps", *tags, "-f", "{{.ImportPath}}", *module.programs.values()],
        cwd=source(module, minor),
        env=build_environment(module),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    if answer.returncode != 0:
        explain(module, answer.stderr)


# What Go prints when a proxy, a repository or the checksum database does not answer or does not have a module.
UNFETCHED = re.compile(
    r"\breading (https?|file)://|\bGet \"https?://|dial tcp|i/o timeout|module lookup disabled|unknown revision|exec: \"git\"|git ls-remote"
)


def explain(module: Module, words: str) -> None:
    if UNFETCHED.search(words) and "SECURITY ERROR" not in words and "checksum mismatch" not in words:
        raise Unavailable(f"Go cannot fetch what {module.name} is built from: {last_lines(words, 2)}")
    raise Failed(f"the modules of {module.name} cannot be loaded:\n{last_lines(words, 20)}")


def why_not(minor: str, target: pathlib.Path = PROGRAMS) -> str | None:
    """Why the programs of a minor cannot be had on this machine, or None. Fetches the main module of each that is missing."""
    try:
        for module in missing(minor, target):
            go = find_go()
            if module.needs_compiler:
                check_compiler()
            if module.libseccomp:
                find_libseccomp()
            if module.requires:
                answer = subprocess.run(
                    [go, "mod", "download", module.requires],
                    cwd=source(module, minor),
                    env=environment(),
                    capture_output=True,
                    text=True,
                )
                if answer.returncode != 0:
                    explain(module, answer.stderr)
    except Unavailable as reason:
        return str(reason)
    return None


def compile_module(module: Module, minor: str, part: pathlib.Path) -> None:
    settings = build_environment(module)
    tags = ["-tags", ",".join(module.tags)] if module.tags else []
    for program, package in module.programs.items():
        began, spent = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        answer = subprocess.run(
            [find_go(), "build", "-trimpath", "-buildvcs=false", *tags, "-ldflags", " ".join(linker_flags(module, minor)), "-o", part / program, package],
            cwd=source(module, minor),
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if answer.returncode != 0:
            raise Failed(f"{program} of {module.name} {version(module, minor) or ''} does not build:\n{last_lines(answer.stdout, 40)}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime - spent.ru_utime + now.ru_stime - spent.ru_stime
        print(f"{time.monotonic() - began:7.1f} s {cpu:7.1f} s CPU  {directory(module, minor).name}/{program}", flush=True)


def copy_files(module: Module, minor: str, part: pathlib.Path) -> None:
    if module.name not in FILES:
        return
    command = [find_go(), "list", "-m", "-f", "{{.Dir}}", module.requires]
    answer = subprocess.run(command, cwd=source(module, minor), env=environment(), capture_output=True, text=True, check=True)
    for name, path in FILES[module.name].items():
        found = pathlib.Path(answer.stdout.strip()) / path
        # Not their modes: files of Go's cache are read-only.
        if found.is_dir():
            copy_tree(found, part / name)
        else:
            shutil.copyfile(found, part / name)


def copy_tree(origin: pathlib.Path, target: pathlib.Path) -> None:
    for file in origin.rglob("*"):
        if file.is_file():
            copy = target / file.relative_to(origin)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def build_module(module: Module, minor: str, target: pathlib.Path = PROGRAMS) -> None:
    final = directory(module, minor, target)
    part = target / f".{final.name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        began = time.monotonic()
        fetch(module, minor)
        if time.monotonic() - began > 5:
            print(f"{time.monotonic() - began:7.1f} s                {final.name}: modules fetched", flush=True)
        compile_module(module, minor, part)
        copy_files(module, minor, part)
        (part / ".key").write_text(key(module, minor))
        if final.exists():
            # Renamed first: whoever runs one of these programs keeps it.
            old = target / f".{final.name}.old"
            shutil.rmtree(old, ignore_errors=True)
            final.rename(old)
            part.rename(final)
            shutil.rmtree(old)
        else:
            part.rename(final)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def build(minor: str, target: pathlib.Path = PROGRAMS, only: list[str] | None = None) -> None:
    """Builds what is missing, one program after another; `directories` says where it is."""
    # Whose programs are there does not wait for a build of others.
    if not missing(minor, target, only):
        return
    target.mkdir(parents=True, exist_ok=True)
    with open(target / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for module in missing(minor, target, only):
            build_module(module, minor, target)


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the programs of a real cluster into target/test-tools/programs.")
    parser.add_argument("--kubernetes", metavar="MINOR", choices=minors(), default=minors()[-1], help="such as 1.36; the newest by default")
    parser.add_argument("--all", action="store_true", help="the programs of every minor, and those that are not part of every cluster")
    parser.add_argument("--only", metavar="NAME", action="append", choices=[module.name for module in MODULES], help="only these modules")
    parser.add_argument("--target", metavar="DIRECTORY", type=pathlib.Path, default=PROGRAMS)
    parser.add_argument("--why-not", action="store_true", help="print why they cannot be built and exit with 3, or exit with 0")
    options = parser.parse_args()
    began = time.monotonic()
    names = options.only or ([module.name for module in MODULES] if options.all else None)
    for minor in minors() if options.all else [options.kubernetes]:
        try:
            if options.why_not:
                reason = why_not(minor, options.target)
                if reason:
                    print(reason)
                    return 3
            else:
                build(minor, options.target, names)
        except Unavailable as reason:
            print(f"skipped: {reason}", file=sys.stderr)
            return 3
        except Failed as reason:
            print(reason, file=sys.stderr)
            return 1
    if not options.why_not:
        print(f"programs are ready in {os.path.relpath(options.target)} ({time.monotonic() - began:.0f} s)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
