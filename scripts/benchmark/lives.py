"""Clusters that come up, are looked at again and go, on a stand-in for AWS."""

import dataclasses

from accounts import Place
from clusters import ACCOUNT, NAME, Rendered, stacks_with
from processes import Cost, measure

POOLS = (1, 10, 80)
BUCKET = f"s3://bench-{ACCOUNT}/clusters"


@dataclasses.dataclass(frozen=True)
class Passage:
    """A part of a life: who did what to how many stacks, by how many calls, and how long the stacks themselves took."""
    who: str
    what: str
    stacks: int
    calls: int
    cost: Cost
    in_stacks: float

    @property
    def rest(self):
        """Seconds in which no stack was worked on."""
        return max(self.cost.wall - self.in_stacks, 0)


def pass_through(place, caller, who, what, stacks, work):
    """`work` gives its cost."""
    watch = place.watch(caller)
    cost = work()
    return Passage(who, what, stacks, watch.calls(), cost, watch.seconds_in_stacks())


def live(infra, pools):
    with Rendered(infra, pools) as cluster, Place(cluster) as place:
        def passage(what, *arguments):
            command = [infra, *arguments]
            work = lambda: measure(command, cluster.directory, place.environment)
            return pass_through(place, "aws-sdk-rust", "infra", what, stacks_with(pools), work)

        yield passage("up", "up", "--yes", "--s3-uri", BUCKET, "--create-bucket")
        yield passage("up again", "up", "--yes")
        yield passage("destroy", "destroy", "--yes", "--delete-data", "--confirm", NAME)
