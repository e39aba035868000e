"""The pods of a job as processes of this machine: a directory as the claim, loopback addresses, stubs for what images bring."""

import atexit
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from contract import UID, contract
from rendering import HERE, SCRIPT_DIRECTORY, moved

# Debian's sh and that of small images: what runs in the wild is one of these or bash.
SHELLS = ("dash", "busybox")
PATIENCE_SECONDS = 120
STUBS = {"paddle": "paddle", "python": "program", "getent": "getent"}
NUMBERS = itertools.count()
# Whoever runs this in the background may have had the signal ignored, and a shell cannot trap what was ignored when it began.
signal.signal(signal.SIGINT, signal.default_int_handler)


def in_seconds(seconds):
    """A moment that far from now, as launchers are given it."""
    return str(int(time.time()) + seconds)


@functools.cache
def applets():
    """A directory with all programs that busybox has, and no others."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-busybox-"))
    folder.chmod(0o755)
    names = subprocess.run(["busybox", "--list"], check=True, capture_output=True, text=True).stdout.split()
    for name in names:
        (folder / name).symlink_to(shutil.which("busybox"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def in_each_shell(test):
    """Runs a test with every shell, side by side."""

    @functools.wraps(test)
    def run(case):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = [pool.submit(test, case, shell) for shell in SHELLS]
            for shell, done in zip(SHELLS, runs):
                with case.subTest(shell=shell):
                    done.result()

    return run


class Pods:
    """What the pods of one job have in common."""

    def __init__(self, case, name, shell="dash"):
        self.case, self.shell, self.contract = case, shell, contract(name)
        self.attempt, self.uid = 0, UID
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-job-"))
        self.folder.chmod(0o755)
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.running = []
        case.addCleanup(self.end_all)
        self.claim, self.scripts, self.records, self.stubs = (self.folder / part for part in ("claim", "scripts", "records", "stubs"))
        for folder in (self.claim, self.scripts, self.records, self.stubs):
            folder.mkdir()
        self.hosts = self.folder / "hosts"
        for program, stub in STUBS.items():
            self.install(self.stubs / program, stub)
        for script, text in self.contract.scripts.items():
            (self.scripts / script).write_text(text)
        self.move()
        # As the init container leaves them, which has tests of its own.
        for part in ("output", "logs", f".infra/{self.uid}"):
            (self.run / part).mkdir(parents=True)

    def install(self, path, stub):
        path.write_text(f"#!{sys.executable} -IS\n{(HERE / 'stubs' / stub).read_text()}")
        path.chmod(0o755)

    def move(self):
        """Other addresses than before, as pods that take the place of others have."""
        self.network = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"

    def address(self, index):
        return f"{self.network}.{index + 1}"

    @property
    def root(self):
        """The job's directory on the claim."""
        return self.claim / self.contract.path

    @property
    def run(self):
        """The directory of the run."""
        (path,) = {pods.variables["INFRA_RUN_DIR"] for pods in self.contract.roles.values()}
        return self.root / "runs" / pathlib.Path(path).name

    @property
    def output(self):
        return self.run / "output"

    @property
    def marks(self):
        return self.run / ".infra" / self.uid

    @property
    def mark_names(self):
        return {path.name for path in self.marks.iterdir()}

    def log(self, index, role=None):
        """The log on the claim of a pod of this attempt."""
        return self.run / f"logs/attempt-{self.attempt}/{role or self.first_role}-{index}/output.log"

    @property
    def first_role(self):
        return "worker" if "worker" in self.contract.roles else next(iter(self.contract.roles))

    def write(self, path, text="x\n"):
        target = self.claim / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def start(self, index, role=None, address=None, program=None, prepare=False, user=None, path=None, **more):
        """Starts a pod's container as the kubelet would; `more` is put on top of its environment, `program` runs in place of the job's."""
        role = role or self.first_role
        pods = self.contract.roles[role]
        environment = pods.environment(index, self.attempt, address or self.address(index), self.uid)
        if not self.hosts.exists():
            for number, name in enumerate(pods.hosts):
                environment = {key: text.replace(name, self.address(number)) for key, text in environment.items()}
            # Other roles are waited for too.
            for name in (name for other in self.contract.roles.values() for name in other.hosts if "INFRA_PEERS" in environment):
                environment["INFRA_PEERS"] = environment["INFRA_PEERS"].replace(name, self.address(0))
        number = next(NUMBERS)
        work = self.folder / f"work.{role}.{index}.{number}"
        work.mkdir()
        places = {SCRIPT_DIRECTORY: self.scripts, pods.mount: self.claim}
        if prepare:
            launcher, words = "prepare.sh", []
            environment |= {"DATA_STAMP": pods.stamp} if pods.stamp else {}
        else:
            launcher, words = pods.launcher, pods.words if program is None else program
        words = moved([word for word in words], places)
        shell = ["busybox", "sh"] if self.shell == "busybox" else ["dash"]
        command = [shutil.which(shell[0]), *shell[1:], str(self.scripts / launcher), *words]
        if user is not None:
            command = [shutil.which("setpriv"), f"--reuid={user}", f"--regid={user}", "--clear-groups", *command]
            os.chown(work, user, user)
        system = applets() if self.shell == "busybox" else "/usr/local/bin:/usr/bin:/bin"
        environment = {
            **moved(environment, places), "PATH": path or f"{self.stubs}:{system}", "HOME": str(work), "INFRA_PAUSE": "0.2", "INFRA_HOLD": "0",
            "INFRA_LAST_WAIT": "0", "INFRA_WORK_DIR": str(work), "STUB_RECORDS": str(self.records), "STUB_HOSTS": str(self.hosts),
            "STUB_ROLE": role, "STUB_POD": f"{self.folder.name}.{number}", "PYTHONDONTWRITEBYTECODE": "1", **more,
        }
        log = self.folder / f"log.{role}.{index}.{number}"
        with open(log, "w") as file:
            process = subprocess.Popen(
                command, env=environment, cwd=work, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        pod = Pod(self.case, process, log, environment["STUB_POD"])
        self.running.append(pod)
        return pod

    def mark(self, name):
        """Waits for a mark, and gives its path."""
        self.await_file(self.marks / name)
        return self.marks / name

    def record(self, name):
        return json.loads((self.records / f"{name}.json").read_text())

    def await_file(self, path):
        end = time.monotonic() + PATIENCE_SECONDS
        while not path.exists():
            self.case.assertLess(time.monotonic(), end, f"there is no {path}: {[pod.text for pod in self.running]}")
            time.sleep(0.02)

    def end_all(self):
        for pod in self.running:
            pod.kill()


class Pod:
    """One container that runs."""

    def __init__(self, case, process, log, name):
        self.case, self.process, self.log, self.name = case, process, log, name
        self.started = time.monotonic()

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    @property
    def runs(self):
        return self.process.poll() is None

    def ends_with(self, status, within=PATIENCE_SECONDS):
        try:
            found = self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.case.fail(f"still running: {self.text}")
        self.case.assertEqual(found, status, self.text)
        return self.text

    def goes_on(self, seconds=0.5):
        time.sleep(seconds)
        self.case.assertTrue(self.runs, f"ended with {self.process.returncode}: {self.text}")

    def says(self, text):
        end = time.monotonic() + PATIENCE_SECONDS
        while text not in self.text:
            self.case.assertLess(time.monotonic(), end, f"it does not say '{text}': {self.text}")
            time.sleep(0.02)

    def ask_to_end(self, number=signal.SIGTERM):
        os.kill(self.process.pid, number)

    def kill(self):
        """As when a machine is lost: everything in the container at once."""
        while self.process.poll() is None or self.others_now():
            for pid in [self.process.pid] if self.process.poll() is None else []:
                os.kill(pid, signal.SIGKILL)
            for pid in self.others_now():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()

    def others_alive(self):
        """Processes of the container that are left when its first one is gone. A process that was killed may need a moment to end."""
        deadline = time.monotonic() + 10
        while (found := self.others_now()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return list(found.values())

    def others_now(self):
        """Every process of the container but the first, wherever it was started from: all inherit the name of the pod."""
        wanted, found = f"STUB_POD={self.name}".encode(), {}
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.process.pid:
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        found[int(entry.name)] = (entry / "cmdline").read_text()
                except OSError:
                    continue
        return found
