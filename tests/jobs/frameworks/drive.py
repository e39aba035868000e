"""Runs a rendered job with the real framework: a process for each replica, on loopback addresses, until all have trained together.

    drive.py FRAMEWORK ENVIRONMENT      ENVIRONMENT is the virtual environment the framework is installed in
"""

import json
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from contract import contract  # noqa: E402
from rendering import SCRIPT_DIRECTORY, moved  # noqa: E402

WORLD = 2
PATIENCE_SECONDS = 240


def faults_of(results):
    """What is wrong with the results of a job of two that was to learn the line 3x + 1."""
    faults = []
    if sorted(result["rank"] for result in results) != list(range(WORLD)):
        faults.append(f"the ranks are {sorted(result['rank'] for result in results)}, not 0 to {WORLD - 1}")
    for result in results:
        name = f"rank {result['rank']}"
        if result["world"] != WORLD:
            faults.append(f"{name} saw a world of {result['world']}, not of {WORLD}")
        if not result["last"] < result["first"] / 10:
            faults.append(f"{name} learned nothing: its loss went from {result['first']} to {result['last']}")
        if any(abs(found - wanted) > 0.3 for found, wanted in zip(sorted(result["weights"], reverse=True), (3, 1))):
            faults.append(f"{name} found the weights {result['weights']}, not 3 and 1")
        if result["weights"] != results[0]["weights"]:
            faults.append(f"{name} has other weights than rank {results[0]['rank']}: they did not train together")
    return faults


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def on_loopback(value, hosts, addresses):
    """Names of pods as loopback addresses. Where a name stands with a port, each gets one of its own: servers listen on all addresses."""
    for name, address in zip(hosts, addresses):
        with_port = re.compile(rf"{re.escape(name)}:\d+")
        own = f"{address}:{free_port()}"
        value = {key: with_port.sub(own, text).replace(name, address) for key, text in value.items()}
    return value


def main(framework, virtual_environment):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-framework-"))
    processes = []
    try:
        job = contract(HERE / f"{framework}.yaml")
        (pods,) = job.roles.values()
        scripts, claim = folder / "scripts", folder / "claim"
        scripts.mkdir()
        (claim / "line/code").mkdir(parents=True)
        for name, text in job.scripts.items():
            (scripts / name).write_text(text)
        shutil.copy(HERE / f"{framework}.py", claim / "line/code/train.py")
        places = {SCRIPT_DIRECTORY: scripts, pods.mount: claim}
        network = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"
        addresses = [f"{network}.{index + 1}" for index in range(pods.replicas)]
        base = {
            "PATH": f"{virtual_environment}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "INFRA_PAUSE": "0.2",
            # Libraries that images usually have.
            "LD_LIBRARY_PATH": f"{virtual_environment}/lib",
            # This machine's name need not lead to loopback.
            "GLOO_SOCKET_IFNAME": "lo",
        }
        # One mapping for all, so that everybody is told the same ports.
        told = {}
        for index, address in enumerate(addresses):
            told.update({f"{index} {key}": text for key, text in pods.environment(index, address=address).items()})
        told = on_loopback(told, pods.hosts, addresses)
        started = time.monotonic()
        for index in range(len(addresses)):
            environment = {key.split(" ", 1)[1]: text for key, text in told.items() if key.startswith(f"{index} ")}
            environment = {**base, **moved(environment, places)}
            subprocess.run(["/bin/sh", scripts / "prepare.sh"], env=environment, check=True)
            command = ["/bin/sh", scripts / pods.launcher, *moved(pods.words, places)]
            with open(folder / f"log.{index}", "w") as log:
                process = subprocess.Popen(command, env=environment, cwd=claim / "line/code", stdout=log, stderr=log, start_new_session=True)
            processes.append(process)
        print(f"{framework}: {len(processes)} x {pods.launcher} {' '.join(pods.words)}", flush=True)
        statuses = []
        for process in processes:
            try:
                statuses.append(process.wait(max(1, started + PATIENCE_SECONDS - time.monotonic())))
            except subprocess.TimeoutExpired:
                statuses.append(None)
        seconds = time.monotonic() - started
        results = [json.loads(path.read_text()) for path in sorted(claim.glob("line/runs/*/output/result.*.json"))]
        for result in results:
            print(f"{framework}: " + json.dumps(result), flush=True)
        faults = faults_of(results)
        if any(status != 0 for status in statuses):
            faults.append(f"the processes ended with {statuses}; None is still running after {PATIENCE_SECONDS} s")
        if faults:
            for index in range(len(processes)):
                print(f"--- the log of {index}:\n{(folder / f'log.{index}').read_text()[-6000:]}")
            sys.exit("\n".join(f"{framework}: {fault}" for fault in faults))
        print(f"{framework}: world size {WORLD}, trained together in {seconds:.1f} s", flush=True)
    finally:
        for process in processes:
            if process.poll() is None:
                # The launcher ends what it started.
                process.send_signal(signal.SIGTERM)
                process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
