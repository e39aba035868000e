"""A root directory booted by systemd-nspawn, with a network namespace and control groups of its own.

In come a root that Ignition has written to, a namespace and groups; out comes a running systemd that can be entered, and whose
power can be cut. What is in the root is the caller's business.
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import threading
import time

from golden import TOOLS

NSPAWN = TOOLS / "systemd/usr/bin/systemd-nspawn"
LIBRARIES = ["usr/lib/x86_64-linux-gnu/systemd", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
CLONE_NEWNET = 0x40000000
BRIDGE_MAC = "0e:00:00:00:00:01"

# Fail in any container, and have nothing to do with ours.
FOREIGN_UNITS = ["systemd-firstboot.service", "systemd-network-generator.service"]


def run(*words, check=True, timeout=300):
    """A command's output; its errors are part of the failure."""
    words = [str(word) for word in words]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_for(what, look, seconds=180):
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


class Container:
    """`start` boots it, also again after `kill`."""

    def __init__(self, root, namespace, groups, console, options=(), environment=None):
        self.root, self.namespace, self.groups, self.console = root, namespace, groups, console
        self.options, self.environment = options, environment or {}
        self.process = None
        self.leader = None

    def start(self):
        join = 'for group in $GROUPS_TO_JOIN; do echo $$ >"$group/cgroup.procs" || exit 9; done; exec "$@"'
        command = [
            *["sh", "-c", join, "boot"],
            # Should the tests themselves be killed, the machine shuts down.
            *["setpriv", "--pdeathsig", "TERM"],
            *[NSPAWN, "--quiet", "--boot", "--console=pipe", f"--directory={self.root}", f"--machine={self.namespace}"],
            *["--register=no", "--keep-unit", f"--network-namespace-path=/run/netns/{self.namespace}"],
            *["--resolv-conf=off", "--timezone=off", "--link-journal=no", *self.options],
        ]
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(str(TOOLS / "systemd" / path) for path in LIBRARIES),
            "GROUPS_TO_JOIN": " ".join(str(group) for group in self.groups),
            **self.environment,
        }
        with self.console.open("ab") as console:
            self.process = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True
            )
        self.leader = wait_for("systemd's start", self.find_leader)

    def children(self):
        with contextlib.suppress(FileNotFoundError):
            return pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return []

    def find_leader(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the machine did not start:\n{self.console.read_text()}")
        for child in self.children():
            # Before that the child may still be in this machine's root.
            root = pathlib.Path(f"/proc/{child}/root")
            if (root / "etc/infra/stack.env").exists() and (root / "run/systemd/private").exists():
                return int(child)
        return None

    def kill(self):
        """Cuts the power."""
        if self.process is None:
            return
        # A killed systemd-nspawn would leave the machine running; when the machine's first process is killed, both are gone.
        while self.process.poll() is None:
            for child in self.children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)

    def run(self, *words, check=True, timeout=300):
        """A command on the machine."""
        spaces = ["--mount", "--uts", "--ipc", "--net", "--pid"]
        return run("nsenter", "--target", self.leader, *spaces, "--", *words, check=check, timeout=timeout)

    def unit(self, name, *properties):
        shown = self.run("systemctl", "show", name, *(f"--property={property}" for property in properties))
        values = dict(line.split("=", 1) for line in shown.splitlines())
        return tuple(values[property] for property in properties)

    def failed_units(self):
        return self.run("systemctl", "list-units", "--failed", "--plain", "--no-legend").strip()

    def journal(self, *units):
        return self.run("journalctl", "--quiet", "--no-pager", "--output=cat", *(f"--unit={unit}" for unit in units))


# --- Network namespaces ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def network_namespace(name):
    name = f"infra-{os.getpid()}-{name}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        run("ip", "netns", "delete", name)


@contextlib.contextmanager
def switch_namespace(name):
    """A namespace with a bridge, for others to be connected to."""
    with network_namespace(name) as switch:
        # A bridge without an address of its own takes the lowest of its ports'. Whenever that changed, machines that knew the old one
        # would send to it until ARP asks again.
        run("ip", "-n", switch, "link", "add", "bridge", "address", BRIDGE_MAC, "type", "bridge")
        run("ip", "-n", switch, "link", "set", "bridge", "up")
        yield switch


@contextlib.contextmanager
def bridged_namespace(switch, name, address, prefix_length=24):
    """A namespace whose eth0 is connected to the bridge of another one."""
    with network_namespace(name) as inner:
        run("ip", "link", "add", "eth0", "netns", inner, "type", "veth", "peer", name, "netns", switch)
        run("ip", "-n", switch, "link", "set", name, "master", "bridge", "up")
        run("ip", "-n", inner, "address", "add", f"{address}/{prefix_length}", "dev", "eth0")
        run("ip", "-n", inner, "link", "set", "eth0", "up")
        try:
            yield inner
        finally:
            # A namespace lives on for a moment after its name; the address may be needed again at once.
            run("ip", "-n", switch, "link", "delete", name)


def inside(namespace, make):
    """What `make` gives in a network namespace: sockets stay where they were made."""
    made = []

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{namespace}") as file:
            if libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        made.append(make())

    # A thread's namespace is its own.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return made[0]


# --- Control groups ----------------------------------------------------------------------------------------------------------


def own_control_groups():
    """The directories of the groups that systemd uses and this process is in."""
    paths = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, name, path = line.split(":", 2)
        paths[name] = path.lstrip("/")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2" and "" in paths:
            yield pathlib.Path(mount) / paths[""]
        if kind == "cgroup" and "name=systemd" in options.split(",") and "name=systemd" in paths:
            yield pathlib.Path(mount) / paths["name=systemd"]


@contextlib.contextmanager
def control_group(group):
    """A machine's own: in a common one, each machine's systemd would take the others' processes for its own."""
    group.mkdir()
    try:
        yield group
    finally:
        for directory, _, _ in os.walk(group, topdown=False):
            os.rmdir(directory)
