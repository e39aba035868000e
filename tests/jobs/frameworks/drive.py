"""Runs a rendered job with the real framework: a process for each replica, on loopback addresses, until all have trained together.

    drive.py FRAMEWORK ENVIRONMENT      ENVIRONMENT is the virtual environment the framework is installed in
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from rendering import SCRIPT_DIRECTORY, claim_path, command_of, container_of, environment_of, host_names, moved, render  # noqa: E402

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


def on_loopback(value, job, addresses):
    """Names of pods as loopback addresses. Where a name stands with a port, each gets one of its own: servers listen on all addresses."""
    ports = {address: free_port() for address in addresses}
    declared = container_of(job)["ports"][0]["containerPort"]
    for name, address in zip(host_names(job), addresses):
        value = {key: text.replace(f"{name}:{declared}", f"{address}:{ports[address]}").replace(name, address) for key, text in value.items()}
    return value


def main(framework, virtual_environment):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="infra-framework-"))
    processes = []
    try:
        job = render(HERE / f"{framework}.yaml")
        (training,) = job.training
        container = container_of(training)
        scripts, claim = folder / "scripts", folder / "claim"
        scripts.mkdir()
        (claim / "line/code").mkdir(parents=True)
        (claim / "line/output").mkdir()
        for name, text in job.scripts.items():
            (scripts / name).write_text(text)
        shutil.copy(HERE / f"{framework}.py", claim / "line/code/train.py")
        places = {SCRIPT_DIRECTORY: scripts, claim_path(container): claim}
        network = f"127.{random.randrange(1, 255)}.{random.randrange(255)}"
        addresses = [f"{network}.{index + 1}" for index in range(training["spec"]["completions"])]
        base = {
            "PATH": f"{virtual_environment}/bin:/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "INFRA_PAUSE": "0.2",
            # This machine's name need not lead to loopback.
            "GLOO_SOCKET_IFNAME": "lo",
        }
        # One mapping for all, so that everybody is told the same ports.
        told = {}
        for index, address in enumerate(addresses):
            told.update({f"{index} {key}": text for key, text in environment_of(container, index, address).items()})
        told = on_loopback(told, training, addresses)
        started = time.monotonic()
        for index in range(len(addresses)):
            environment = {key.split(" ", 1)[1]: text for key, text in told.items() if key.startswith(f"{index} ")}
            command = moved(command_of(container, environment), places)
            with open(folder / f"log.{index}", "w") as log:
                process = subprocess.Popen(
                    command, env={**base, **moved(environment, places)}, cwd=folder, stdout=log, stderr=log, start_new_session=True
                )
            processes.append(process)
        print(f"{framework}: {len(processes)} x {' '.join(container['command'])}", flush=True)
        statuses = []
        for process in processes:
            try:
                statuses.append(process.wait(max(1, started + PATIENCE_SECONDS - time.monotonic())))
            except subprocess.TimeoutExpired:
                statuses.append(None)
        seconds = time.monotonic() - started
        results = [json.loads(path.read_text()) for path in sorted((claim / "line/output").glob("result.*.json"))]
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
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
