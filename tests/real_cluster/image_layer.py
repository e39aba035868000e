"""The layer of an image: files, links and directories that are collected, and written as one archive.

Programs and libraries can be taken from a Debian root, with the libraries that they load.
"""

import io
import os
import pathlib
import re
import subprocess
import tarfile

# cap_net_bind_service=ep, as setcap writes it: revision 2, effective, bit 10.
NET_BIND_SERVICE = bytes.fromhex("0100000200040000000000000000000000000000")


class Layer:
    """The files of an image, written in one order and with one time, so that the same content is the same archive."""

    def __init__(self, base: pathlib.Path):
        self.base = base
        self.entries: dict[str, tuple[tarfile.TarInfo, pathlib.Path | bytes | None]] = {}
        for name in ("bin", "lib", "lib64", "sbin"):
            self.link(name, f"usr/{name}")
            self.directory(f"usr/{name}")

    def place(self, path: str) -> str:
        """Where a file is in a root whose /bin, /lib and /sbin are links."""
        path = path.lstrip("/")
        return f"usr/{path}" if path.split("/")[0] in ("bin", "lib", "lib64", "sbin") else path

    def directory(self, path: str, mode: int = 0o755) -> None:
        path = path.strip("/")
        if path and path not in self.entries:
            self.directory(os.path.dirname(path))
            entry = tarfile.TarInfo(path)
            entry.type, entry.mode = tarfile.DIRTYPE, mode
            self.entries[path] = (entry, None)

    def link(self, path: str, to: str) -> None:
        path = path.lstrip("/")
        self.directory(os.path.dirname(path))
        entry = tarfile.TarInfo(path)
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, to, 0o777
        self.entries[path] = (entry, None)

    def file(self, path: str, content: pathlib.Path | bytes, mode: int = 0o755, capability: bytes | None = None) -> None:
        path = self.place(path)
        self.directory(os.path.dirname(path))
        entry = tarfile.TarInfo(path)
        entry.mode = mode
        entry.size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if capability:
            # Each byte of it is a valid character of UTF-8, which these headers are.
            entry.pax_headers = {"SCHILY.xattr.security.capability": capability.decode()}
        self.entries[path] = (entry, content)

    def from_base(self, *paths: str) -> None:
        """Programs and libraries of the Debian root, with the libraries that they load."""
        for path in paths:
            self.copy(path)
        for library in shared_libraries(self.base, paths):
            self.copy(library)

    def copy(self, path: str) -> None:
        path = self.place(path)
        if path in self.entries:
            return
        source = self.base / path
        if not source.exists() and not source.is_symlink():
            raise FileNotFoundError(f"{self.base} has no /{path}: make it again with scripts/prepare-tests")
        if source.is_symlink():
            to = os.readlink(source)
            self.link(path, to)
            self.copy(os.path.normpath(os.path.join(os.path.dirname(f"/{path}"), to)))
        else:
            self.file(path, source, source.stat().st_mode & 0o777)

    def tree(self, path: str) -> None:
        for source in sorted((self.base / path).rglob("*")):
            name = str(source.relative_to(self.base))
            if source.is_dir() or "__pycache__" in name:
                continue
            if source.is_symlink() and not source.exists():
                continue
            self.copy(name)

    def write(self, file: io.BufferedIOBase) -> None:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            # Directories come before what is in them.
            for _, (entry, content) in sorted(self.entries.items()):
                if isinstance(content, pathlib.Path):
                    with content.open("rb") as source:
                        archive.addfile(entry, source)
                else:
                    archive.addfile(entry, io.BytesIO(content) if content is not None else None)


def shared_libraries(base: pathlib.Path, paths: tuple[str, ...]) -> list[str]:
    # In the root itself: its loader knows where its libraries are.
    answer = subprocess.run(["chroot", base, "ldd", *paths], capture_output=True, text=True)
    absent = re.findall(r"^\s*(\S+) => not found", answer.stdout, re.MULTILINE)
    if absent:
        raise FileNotFoundError(f"{base} lacks {', '.join(sorted(set(absent)))}: make it again with scripts/prepare-tests")
    return sorted(set(re.findall(r"(/\S+) \(0x", answer.stdout)))
