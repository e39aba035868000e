"""The rendered configs and manifests of tests/clusters/, taken apart."""

import base64
import dataclasses
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOLS = ROOT / "target/test-tools"
CLUSTERS = ROOT / "tests/clusters"


@dataclasses.dataclass
class File:
    path: str
    mode: int
    owner: int
    contents: bytes | None
    source: str
    hash: str | None


class Config:
    """One role's Ignition config."""

    def __init__(self, path):
        self.path = path
        self.cluster = path.parent.parent.parent.name
        self.role = path.stem
        self.document = json.loads(path.read_text())

    def __str__(self):
        return f"{self.cluster}/{self.role}"

    @property
    def kind(self):
        """etcd, controller or pool."""
        return self.role.split("-")[0]

    @property
    def files(self):
        found = {}
        for file in self.document["storage"]["files"]:
            contents = file["contents"]
            source = contents["source"]
            prefix = "data:;base64,"
            embedded = base64.b64decode(source.removeprefix(prefix)) if source.startswith(prefix) else None
            owner = file.get("user", {}).get("id", 0)
            check = contents.get("verification", {}).get("hash")
            found[file["path"]] = File(file["path"], file["mode"], owner, embedded, source, check)
        return found

    @property
    def directories(self):
        return {entry["path"]: entry for entry in self.document["storage"].get("directories", [])}

    @property
    def units(self):
        return {unit["name"]: unit for unit in self.document["systemd"]["units"]}

    def text(self, path):
        return self.files[path].contents.decode()


def configs():
    found = [Config(path) for path in sorted(CLUSTERS.glob("*/expected/userdata/*.ign"))]
    assert len(found) >= 20, "the golden configs are missing"
    return found


def minor(config):
    """The minor version of Kubernetes that a cluster runs."""
    text = (CLUSTERS / config.cluster / "cluster.yaml").read_text()
    return "1.35" if "version: v1.35." in text else "1.36"
