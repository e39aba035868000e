"""What every training program of the suite does besides training: it writes down its steps, obeys orders, and ends when it is told to.

All of it is in the output directory of the run: `steps.RANK` has a line for each step, `order.RANK` an exit code that the process ends with
(the file is deleted first), `orders.RANK` one for every attempt, `closing.RANK` one for the end of training. Training ends once there is
a file `finish`.
"""

import json
import os
import pathlib
import sys
import time

OUTPUT = pathlib.Path(os.environ["INFRA_OUTPUT_DIR"])
PAUSE_SECONDS = 0.5
STEPS_BETWEEN_CHECKPOINTS = 5


def record(rank, step, loss):
    """Writes a step down, then obeys."""
    entry = {"time": time.time(), "attempt": int(os.environ["INFRA_ATTEMPT"]), "step": step, "loss": loss}
    with (OUTPUT / f"steps.{rank}").open("a") as file:
        file.write(json.dumps(entry) + "\n")
    for name in (f"order.{rank}", f"orders.{rank}"):
        obey(OUTPUT / name, is_repeated=name.startswith("orders"))
    time.sleep(PAUSE_SECONDS)


def obey(order, is_repeated=False):
    if order.exists():
        code = int(order.read_text())
        if not is_repeated:
            order.unlink()
        print(f"told to exit with {code}", flush=True)
        sys.exit(code)


def is_told_to_finish():
    return (OUTPUT / "finish").exists()


def is_checkpoint(step):
    return step % STEPS_BETWEEN_CHECKPOINTS == 0


def replace(path, write):
    """Whoever is killed meanwhile leaves the last good file."""
    part = path.with_name(f"{path.name}.part")
    with part.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def close(rank, **result):
    """The end of training: the result, and the order that is left for this moment."""
    replace(OUTPUT / f"result.{rank}.json", lambda file: file.write(json.dumps(result).encode()))
    obey(OUTPUT / f"closing.{rank}")
