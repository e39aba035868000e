"""The rehearsal with real machines and a real Kubernetes: what differs from the one that pretends."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/real_cluster"))

from rehearse import Rehearsal
from real_cluster import RealAccount, RealCluster
from images import JOB_IMAGE
from parts import find_parts, why_not
from stage import UnexpectedEnd

JOB = f"""\
# Two processes that find each other, as PyTorch's do; the image has no PyTorch.
name: pair
framework: pytorch
image: {JOB_IMAGE}
replicas: 2
command: [sh, -c, 'echo "rank $RANK of $WORLD_SIZE" | tee "$INFRA_OUTPUT_DIR/rank-$RANK"']
"""


class RealRehearsal(Rehearsal):
    # No machine here has a GPU.
    more_of_example = []

    def play(self):
        if reason := why_not():
            raise UnexpectedEnd(f"there can be no real cluster on this machine: {reason}")
        super().play()

    def new_account(self):
        return RealAccount(self.aws, self.cluster)

    def start_machines(self):
        scratch = self.directory.parent
        self.stage.note("Machines boot when their Auto Scaling group launches them; their consoles are in " + str(scratch))
        # The newest release is the one that `init` writes.
        parts = find_parts(["1.36"], scratch)
        cluster = self.closing.enter_context(RealCluster(scratch, self.aws, self.account, self.cluster, parts))
        self.stage.environment |= cluster.environment
        self.stage.command = [str(word) for word in cluster.network.command(cluster.network.operator, *self.stage.command)]

    def run_job(self):
        stage = self.stage
        stage.heading("A training job", "Two pods on the cluster's file system, submitted and followed to their end.")
        (self.directory / "job.yaml").write_text(JOB)
        stage.run("job", "submit")
        stage.run("job", "logs", "--index", "1")
        stage.run("job", "fetch", "--to", "results")
        stage.run("job", "delete", "--yes")
