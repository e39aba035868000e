"""What `infra policy` prints, by what it is for."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import typing

ROOT = pathlib.Path(__file__).parents[2]
S3_URI = "s3://assets/clusters"


class Policies(typing.NamedTuple):
    operator: dict
    boundary: dict


def split(printed):
    """The boundary is the one that is not numbered."""
    [boundary] = [name for name in printed if not name.rpartition("-")[2].isdigit()]
    return Policies({name: document for name, document in printed.items() if name != boundary}, printed[boundary])


def policies_of(cluster_file):
    with tempfile.TemporaryDirectory() as directory:
        shutil.copy(cluster_file, pathlib.Path(directory, "cluster.yaml"))
        run = subprocess.run([ROOT / "target/debug/infra", "-C", directory, "policy", "--s3-uri", S3_URI, "--output", "json"],
                             env={"PATH": os.environ["PATH"], "HOME": directory}, capture_output=True, text=True, check=True)
    return split(json.loads(run.stdout))
