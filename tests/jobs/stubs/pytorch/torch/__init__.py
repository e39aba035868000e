"""Stands for PyTorch where one process for each machine all-reduces: tensors of one number, summed over real connections."""

import json
import os

__version__ = "0.0-stub"
float64 = "float64"
# What the machine of this process is to do.
ROLE = json.loads(os.environ.get("STUB_ROLES", "{}")).get(os.environ.get("INFRA_ADDRESS"), {})


class Tensor:
    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return Tensor(self.value == other)

    def all(self):
        return self

    def __bool__(self):
        return bool(self.value)

    def zero_(self):
        self.value = 0.0

    def item(self):
        return self.value


def full(_shape, value, device):
    assert device == "cpu"
    return Tensor(value)


def tensor(values, dtype, device):
    assert dtype == float64 and device == "cpu"
    return Tensor(values[0])


def device(name):
    return name
