"""torchrun, as a module of the Python that runs this, and what torchrun itself does not say.

In come torchrun's own arguments and PET_* variables. Exits with 64 if a process of the program did, where torchrun exits with 1. Says in a
line for each process how it ended, where torchrun prints a page that hides what the program printed last. Creates the
file that INFRA_PROGRAM_SUCCEEDED names as soon as all processes of this pod have succeeded: torchrun then waits for those of other pods.
"""

import os
import pathlib
import runpy
import sys

MISCONFIGURED = 64


def main():
    # As `python -m` has it: not the directory of this file.
    sys.path[0] = os.getcwd()
    try:
        from torch.distributed.elastic import metrics
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.run import main as torchrun
    except ImportError:
        # A version before 1.9, or none, which says so itself.
        runpy.run_module("torch.distributed.run", run_name="__main__", alter_sys=True)
        return
    succeeded = os.environ.get("INFRA_PROGRAM_SUCCEEDED")

    class States(metrics.MetricHandler):
        """torchrun publishes the state of its processes."""

        def emit(self, metric):
            if succeeded and metric.value and metric.name.startswith("workers.") and metric.name.endswith(".succeeded"):
                pathlib.Path(succeeded).touch()

    metrics.configure(States())
    try:
        torchrun(sys.argv[1:])
    except ChildFailedError as error:
        failures = sorted(error.failures.items(), key=lambda failure: failure[1].timestamp)
        for rank, failure in failures:
            print(f"infra: process {rank} of torchrun {describe(failure)}", file=sys.stderr)
        sys.exit(MISCONFIGURED if any(failure.exitcode == MISCONFIGURED for _, failure in failures) else 1)


def describe(failure):
    # A process that was killed has the number of the signal, negated.
    return f"was killed by {failure.signal_name()}" if failure.exitcode < 0 else f"ended with exit code {failure.exitcode}"


if __name__ == "__main__":
    main()
