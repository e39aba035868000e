"""The pods of a rendered job as processes of this machine: a directory as the claim, loopback addresses, stubs for what images bring."""

import atexit
import concurrent.futures
import functools
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

from rendering import HERE, SCRIPT_DIRECTORY, claim_path, command_of, container_of, environment_of, host_names, moved, render

# Debian's sh and that of small images: what runs in the wild is one of these or bash.
SHELLS = ("dash", "busybox")
PATIENCE_SECONDS = 180
STUBS = {"paddle": "paddle", "python": "program", "torchrun": "program", "getent": "getent"}


@functools.cache
def applets():
    """A directory with all programs that busybox has, and no others."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-busybox-"))
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

    def __init__(self, case, name, shell="dash", *arguments):
        self.case, self.shell = case, shell
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-job-"))
        case.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.running = []
        case.addCleanup(self.end_all)
        self.claim, self.scripts, self.records, self.stubs = (self.folder / part for part in ("claim", "scripts", "records", "stubs"))
        for folder in (self.claim, self.scripts, self.records, self.stubs):
            folder.mkdir()
        self.hosts = self.folder / "hosts"
        for program, stub in STUBS.items():
            path = self.stubs / program
            path.write_text(f"#!{sys.executable} -IS\n{(HERE / 'stubs' / stub).read_text()}")
            path.chmod(0o755)
        self.move()
        self.take(name, *arguments)

    def take(self, name, *arguments):
        """Renders a job; another one than before meets the same claim."""
        self.job = render(name, *arguments)
        for script, text in self.job.scripts.items():
            (self.scripts / script).write_text(text)

    def move(self):
        """Other addresses than before, as pods that take the place of others have."""
        self.network = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"

    def address(self, index):
        return f"{self.network}.{index + 1}"

    @property
    def root(self):
        """The job's directory on the claim."""
        (path,) = {job["metadata"]["labels"]["infra.internal/job"] for job in self.job.training}
        return self.claim / path

    def write(self, path, text="x\n"):
        target = self.claim / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def start(self, index, role=None, address=None, init=False, **more):
        """Starts a pod's container as the kubelet would; `more` is put on top of its environment."""
        job = self.job.role(role) if role else self.job.training[0]
        spec = job["spec"]["template"]["spec"]
        container = spec["initContainers"][0] if init else container_of(job)
        environment = environment_of(container, index, address or self.address(index))
        if not self.hosts.exists():
            for number, name in enumerate(host_names(job)):
                environment = {key: text.replace(name, self.address(number)) for key, text in environment.items()}
        work = self.folder / f"work.{role}.{index}.{len(self.running)}"
        work.mkdir()
        places = {SCRIPT_DIRECTORY: self.scripts, claim_path(container): self.claim}
        command = moved(command_of(container, environment), places)
        system = applets() if self.shell == "busybox" else "/usr/local/bin:/usr/bin:/bin"
        self.case.assertEqual(command[0], "/bin/sh", "launchers ask for no more than a shell")
        command = [*(["busybox", "sh"] if self.shell == "busybox" else ["dash"]), *command[1:]]
        environment = {
            **moved(environment, places), "PATH": f"{self.stubs}:{system}", "HOME": str(work), "INFRA_PAUSE": "0.25",
            "INFRA_WORK_DIR": str(work), "INFRA_PEER_TIMEOUT": "60", "STUB_RECORDS": str(self.records), "STUB_HOSTS": str(self.hosts),
            "STUB_ROLE": role or "worker", "PYTHONDONTWRITEBYTECODE": "1", **more,
        }
        log = self.folder / f"log.{role}.{index}.{len(self.running)}"
        with open(log, "w") as file:
            command[0] = shutil.which(command[0])
            process = subprocess.Popen(
                command, env=environment, cwd=work, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        pod = Pod(self.case, process, log)
        self.running.append(pod)
        return pod

    def mark(self, name):
        """Waits for a mark of a run, and gives its path."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := list(self.root.glob(f".infra/r-*/{name}"))):
            self.case.assertLess(time.monotonic(), end, f"there is no mark {name}: {[pod.text for pod in self.running]}")
            time.sleep(0.02)
        return found[0]

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

    def __init__(self, case, process, log):
        self.case, self.process, self.log = case, process, log

    @property
    def text(self):
        return self.log.read_text()

    @property
    def runs(self):
        return self.process.poll() is None

    def ends_with(self, status):
        try:
            found = self.process.wait(PATIENCE_SECONDS)
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

    def ask_to_end(self):
        os.kill(self.process.pid, signal.SIGTERM)

    def kill(self):
        """As when a machine is lost: everything in the container at once."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def others_alive(self):
        """Processes of the container that are left when its first one is gone. A process that was killed may need a moment to end."""
        deadline = time.monotonic() + 10
        while (found := self.others_now()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def others_now(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                    command = (entry / "cmdline").read_text()
                except OSError:
                    continue
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append(command)
        return found
