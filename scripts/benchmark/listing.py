"""An account with many clusters, which `infra list` shows on one screen."""

import concurrent.futures
import dataclasses
import datetime
import json
import os
import tempfile

from accounts import MiniStack
from clusters import ACCOUNT, REGION
from processes import Cost, measure

CLUSTERS = 200
MOST_SECONDS = 10
FLATCAR = "075585003325"
# Three etcd members, two controllers and a pool.
GROUPS = {"etcd-0": 1, "etcd-1": 1, "etcd-2": 1, "controller": 2, "pool-cpu": 3}
WORKERS = 4


@dataclasses.dataclass(frozen=True)
class Listed:
    """How long a list took, and by how many calls."""
    clusters: int
    stacks: int
    groups: int
    calls: int
    cost: Cost
    most_seconds: float = MOST_SECONDS

    def is_over(self):
        return self.cost.wall > self.most_seconds


def template(parameters, outputs):
    return json.dumps({
        "Parameters": {name: {"Type": "String"} for name in parameters},
        "Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
        **({"Outputs": {name: {"Value": value} for name, value in outputs.items()}} if outputs else {}),
    })


def stacks_of(cluster, image):
    """By name, what each is given and says."""
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=300)
    facts = {"KubernetesVersion": "1.36.1", "CertificatesExpire": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")}
    yield f"{cluster}-network", {}, {}
    yield f"{cluster}-control-plane", {"ImageId": image}, facts
    yield f"{cluster}-pool-cpu", {"ImageId": image}, {}


def make_cluster(aws, cluster, image):
    """What a list reads of a cluster, without the resources: the stand-in would take minutes for them."""
    cloudformation, autoscaling = (aws.client(service, ACCOUNT, REGION) for service in ("cloudformation", "autoscaling"))
    for name, parameters, outputs in stacks_of(cluster, image):
        cloudformation.create_stack(
            StackName=name, TemplateBody=template(parameters, outputs), Tags=[{"Key": "infra:cluster", "Value": cluster}],
            Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()])
    for role, count in GROUPS.items():
        name, tags = f"{cluster}-{role}", {"infra:cluster": cluster, "infra:role": role}
        autoscaling.create_auto_scaling_group(
            AutoScalingGroupName=name, MinSize=count, MaxSize=count, DesiredCapacity=count, AvailabilityZones=[f"{REGION}a"],
            Tags=[{"ResourceId": name, "ResourceType": "auto-scaling-group", "Key": key, "Value": value, "PropagateAtLaunch": True}
                  for key, value in tags.items()])
    for name, _, _ in stacks_of(cluster, image):
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.2})


def measure_list(infra, clusters=CLUSTERS):
    with MiniStack() as aws, tempfile.TemporaryDirectory(prefix="infra-bench-") as directory:
        image = aws.client("ec2", ACCOUNT, REGION).describe_images(Owners=[FLATCAR])["Images"][0]["ImageId"]
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(lambda number: make_cluster(aws, f"bench-{number}", image), range(clusters)))
        environment = {
            "PATH": os.environ["PATH"], "HOME": directory, "AWS_ACCESS_KEY_ID": ACCOUNT, "AWS_SECRET_ACCESS_KEY": "any",
            "AWS_ENDPOINT_URL": aws.url, "AWS_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true"}
        # A cluster that is not healthy would be another exit code, and no figure.
        cost = measure([infra, "list"], directory, environment)
        return Listed(clusters, 3 * clusters, len(GROUPS) * clusters, aws.calls().get("aws-sdk-rust", 0), cost)
