"""cluster.yaml: what the rehearsal needs to know of it, and changes that leave everything else in it as it was written."""

import functools
import pathlib
import re

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPU_MACHINES = ROOT / "src/config/gpu_machines.yaml"
DEFAULT_MACHINE = "t3.medium"


@functools.cache
def gpu_sizes():
    """What each type of machine with GPUs has: {"g5.xlarge": {"gpus": 1, "vcpus": 4, ...}}."""
    families = yaml.safe_load(GPU_MACHINES.read_text())["supported"]
    return {f"{family['family']}.{size}": facts | {"model": family["model"]}
            for family in families for size, facts in family["sizes"].items()}


class ClusterFile:
    def __init__(self, path):
        self.path = path

    @property
    def text(self):
        return self.path.read_text()

    @property
    def facts(self):
        return yaml.safe_load(self.text)

    @property
    def pools(self):
        return self.facts.get("pools") or []

    @property
    def account(self):
        """The account of the key, which is the cluster's unless someone shares keys."""
        found = re.search(r":kms:[a-z0-9-]+:(\d{12}):", self.facts["kmsKeyArn"])
        return found.group(1) if found else "111122223333"

    def section(self, name):
        return self.facts.get(name) or {}

    def machine_types(self):
        types = {self.section(part).get("instanceType", DEFAULT_MACHINE) for part in ("etcd", "controllers")}
        for pool in self.pools:
            types |= {pool["instanceType"], *pool.get("instanceTypes", [])}
        return sorted(types)

    def pool_to_change(self):
        """The first with GPUs, or the first."""
        sizes = gpu_sizes()
        with_gpus = [pool for pool in self.pools if pool["instanceType"] in sizes]
        return next(iter(with_gpus or self.pools), None)

    def grow(self, name):
        """One machine more, and room for it."""
        pool = next(pool for pool in self.pools if pool["name"] == name)
        count = pool.get("count", 1) + 1
        self._set(name, "count", count)
        if pool.get("maxCount", count) < count:
            self._set(name, "maxCount", count)
        return count

    def _pool_nodes(self):
        return next(value for key, value in yaml.compose(self.text).value if key.value == "pools")

    def _set(self, pool, key, value):
        for node in self._pool_nodes().value:
            values = {entry.value: item for entry, item in node.value}
            if values["name"].value != pool:
                continue
            if key in values:
                return self._replace(values[key].start_mark.index, values[key].end_mark.index, str(value))
            end = values["name"].end_mark.index
            between = ", " if node.flow_style else "\n" + " " * node.start_mark.column
            return self._replace(end, end, f"{between}{key}: {value}")

    def add_pool(self, line):
        """Behind the last one; the line is a mapping such as `{name: more, instanceType: m5.large}`."""
        pools = self._pool_nodes()
        if pools.flow_style:
            end = pools.value[-1].end_mark.index
            return self._replace(end, end, f", {line}")
        # Up to the end of its last line: what follows may be a comment.
        end = self.text.find("\n", last_index(pools.value[-1]))
        end = len(self.text) if end < 0 else end
        return self._replace(end, end, f"\n{' ' * pools.start_mark.column}- {line}")

    def _replace(self, start, end, new):
        text = self.text
        self.path.write_text(text[:start] + new + text[end:])


def last_index(node):
    """Where a node ends; a block's own mark lies behind the comments that follow it."""
    if isinstance(node, yaml.ScalarNode) or node.flow_style or not node.value:
        return node.end_mark.index
    last = node.value[-1]
    return last_index(last[1] if isinstance(last, tuple) else last)
