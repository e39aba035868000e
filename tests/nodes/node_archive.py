"""The archive of a pool on the Deep Learning image, and the script that fetches it, as `infra render` writes them."""

import hashlib
import io
import json
import re
import tarfile

from golden import CLUSTERS

BUCKET, PREFIX = "team-bucket", "clusters/"
VALUES = {
    "AssetBucket": BUCKET, "AssetPrefix": PREFIX, "AWS::Region": "us-west-2", "AWS::URLSuffix": "amazonaws.com", "AWS::StackName": "deep-pool",
}


class NodeArchive:
    """Has the same properties as golden.Config, as far as both forms have them."""

    def __init__(self, cluster, role):
        self.cluster, self.role = cluster, role
        self.path = CLUSTERS / cluster / f"expected/userdata/{role}.tar"
        self.bytes = self.path.read_bytes()
        self.entries = {}
        with tarfile.open(self.path) as archive:
            for entry in archive:
                assert "/" + entry.name not in self.entries, f"{entry.name} is there twice"
                self.entries["/" + entry.name] = (entry, archive.extractfile(entry).read() if entry.isfile() else None)

    def text(self, path):
        return self.entries[path][1].decode()

    def paths(self):
        return set(self.entries)

    @property
    def downloads(self):
        """By path: hash, mode and address."""
        lines = (line.split(" ") for line in self.text("/etc/infra/downloads").splitlines())
        return {path: (hash, int(mode, 8), url) for hash, mode, path, url in lines}

    def units(self, word):
        lines = (line.split(" ") for line in self.text("/etc/infra/units").splitlines())
        return [name for found, name in lines if found == word]

    @property
    def user_data(self):
        """As CloudFormation gives it to a machine."""
        stack = json.loads((CLUSTERS / self.cluster / f"expected/stacks/{self.role}.json").read_text())
        data = stack["Resources"]["NodeLaunchTemplate"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]["Fn::Sub"]
        return re.sub(r"\$\{([^}]*)\}", lambda match: VALUES[match[1]], data)

    @property
    def key(self):
        return re.search("(?m)^key=\\$INFRA_PREFIX'([^']*)'$", self.user_data)[1]

    def served(self, files, url):
        """The archive with only its downloads and `files` changed, and user data with the digest of that."""
        lines = [f"{hash} {mode:o} {path} {url}{path}" for path, (hash, mode, _) in self.downloads.items()]
        for path, content in files.items():
            lines = [re.sub("^[0-9a-f]{64}", hashlib.sha256(content).hexdigest(), line) if f" {path} " in line else line for line in lines]
        changed = {path: content for path, content in files.items() if path not in self.downloads}
        changed["/etc/infra/downloads"] = "".join(f"{line}\n" for line in lines).encode()
        result = io.BytesIO()
        with tarfile.open(fileobj=result, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            for path, (entry, content) in self.entries.items():
                content = changed.get(path, content)
                if content is not None:
                    entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content) if content is not None else None)
        served = result.getvalue()
        digest = hashlib.sha512(self.bytes).hexdigest()
        assert f"\ndigest={digest}\n" in self.user_data, "user data has another digest than the archive"
        return served, self.user_data.replace(f"\ndigest={digest}\n", f"\ndigest={hashlib.sha512(served).hexdigest()}\n")
