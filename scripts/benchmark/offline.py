"""Commands that need nothing but their directory."""

import dataclasses
import tempfile

from clusters import INIT, Rendered, write_cluster
from processes import Cost, measure, median

RUNS, LONG_RUNS = 15, 5
GENERATE = ["render", "credentials", "--generate-ca"]
POOLS = (1, 10, 80)


@dataclasses.dataclass(frozen=True)
class Measured:
    """A command, what it took, and the CPU milliseconds and MiB that it must stay below."""
    name: str
    cost: Cost
    most_cpu: int | None = None
    most_memory: int | None = None

    def is_over(self):
        too_slow = self.most_cpu is not None and self.cost.cpu * 1000 > self.most_cpu
        return too_slow or (self.most_memory is not None and self.cost.memory > self.most_memory)


def measure_offline(infra):
    yield Measured("--help", in_one_directory(infra, ["--help"]), 10, 30)
    yield Measured("init", from_nothing(infra, INIT), 30, 30)
    yield Measured("validate", in_one_directory(infra, ["validate"], INIT), 60, 30)
    yield Measured("init, then render credentials", from_nothing(infra, INIT, GENERATE), 60, 30)
    yield Measured("render credentials again", in_one_directory(infra, ["render", "credentials"], INIT, GENERATE), 30, 30)
    yield Measured("certificates", in_one_directory(infra, ["certificates"], INIT, GENERATE), 30, 30)
    yield Measured("init, then render everything", from_nothing(infra, INIT, ["render", "--generate-ca"]), 150, 40)
    for pools, most_cpu, most_memory in zip(POOLS, (100, 150, 1000), (40, 40, 60)):
        yield Measured(with_pools("render stack", pools), render(infra, pools), most_cpu, most_memory)
    for pools, most_cpu, most_memory in zip(POOLS, (60, 80, 300), (40, 40, 60)):
        yield Measured(with_pools("validate", pools), validate(infra, pools), most_cpu, most_memory)


def with_pools(command, pools):
    return f"{command}, {pools} pool{'s' if pools > 1 else ''}"


def from_nothing(infra, *commands):
    """Several commands one after the other in a fresh directory."""
    costs = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as directory:
            first, *others = [measure([infra, *arguments], directory) for arguments in commands]
            costs.append(sum(others, first))
    return median(costs)


def in_one_directory(infra, arguments, *preparation):
    with tempfile.TemporaryDirectory() as directory:
        for command in preparation:
            measure([infra, *command], directory)
        return median([measure([infra, *arguments], directory) for _ in range(RUNS)])


def render(infra, pools):
    """Each time everything is written: what is on disk already would not be."""
    with Rendered(infra, pools) as cluster:
        costs = []
        for _ in range(LONG_RUNS):
            for file in [*cluster.directory.glob("stacks/*"), *cluster.directory.glob("userdata/*")]:
                file.unlink()
            costs.append(measure([infra, "render", "stack"], cluster.directory))
    return median(costs)


def validate(infra, pools):
    with tempfile.TemporaryDirectory() as directory:
        write_cluster(directory, pools)
        return median([measure([infra, "validate"], directory) for _ in range(LONG_RUNS)])
