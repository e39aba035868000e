"""Other tools, given what `infra render` wrote: the AWS CDK makes the same templates, the AWS CLI and Sceptre bring the same stacks up and
delete them, on the same stand-in. None of them checks the account, uploads what machines boot from, or waits for nodes, as infra does.
"""

import json
import pathlib

from accounts import Place
from clusters import NAME, Rendered, stacks_with
from lives import pass_through
from offline import Measured, with_pools
from processes import measure, median

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "target/test-tools"
AWS, SCEPTRE = TOOLS / "peers/bin/aws", TOOLS / "peers/bin/sceptre"
CDK = TOOLS / "cdk/node_modules/.bin/cdk"
CDK_APP = pathlib.Path(__file__).with_name("cdk") / "app.js"
CDK_RUNS = 3
TEMPLATES = "templates-of-bench"


def synthesize(infra, pools):
    """The templates of a cluster by the CDK; compared with the originals, as otherwise its time means nothing."""
    with Rendered(infra, pools) as cluster:
        originals, made = cluster.directory / "stacks", cluster.directory / "cdk.out"
        environment = {"PATH": f"{CDK.parent}:/usr/local/bin:/usr/bin:/bin", "HOME": str(cluster.directory), "TEMPLATES": str(originals),
                       "NODE_PATH": str(TOOLS / "cdk/node_modules"), "CDK_DISABLE_CLI_TELEMETRY": "true"}
        command = [CDK, "synth", "--quiet", "--no-notices", "--no-path-metadata", "--app", f"node {CDK_APP}", "--output", made]
        cost = median([measure(command, cluster.directory, environment) for _ in range(CDK_RUNS)])
        for original in originals.glob("*.json"):
            twin = json.loads((made / f"{original.stem}.template.json").read_text())
            if json.loads(original.read_text())["Resources"] != twin["Resources"]:
                raise RuntimeError(f"the CDK made something else of {original.name}")
    return Measured(with_pools("cdk synth", pools), cost)


class Stacks:
    """Rendered stacks in the order in which they can be created, and where the values of their parameters come from."""

    def __init__(self, cluster, place):
        self.place, self.directory = place, cluster.directory
        names = sorted(path.stem for path in (cluster.directory / "stacks").glob("*.json"))
        self.order = ["network", "storage", "control-plane", *(name for name in names if name.startswith("pool-"))]
        assert sorted(self.order) == names
        self.templates = {name: json.loads(self.template(name).read_text()) for name in names}
        self.source = {output: name for name in reversed(self.order) for output in self.templates[name].get("Outputs", {})}
        image = place.account.client("ec2").describe_images(Owners=["075585003325"])["Images"][0]["ImageId"]
        self.given = {"AssetBucket": TEMPLATES, "AssetPrefix": "clusters/", "ImageId": image}
        # Templates larger than 51,200 bytes are read from there.
        place.account._make_bucket(TEMPLATES)

    def template(self, name):
        return self.directory / "stacks" / f"{name}.json"

    def parameters(self, name):
        """Each with its value, or with the stack whose output it is."""
        for parameter, declared in self.templates[name].get("Parameters", {}).items():
            if parameter in self.given:
                yield parameter, self.given[parameter], None
            elif parameter in self.source:
                yield parameter, None, self.source[parameter]
            else:
                yield parameter, str(declared["Default"]), None

    def needed_by(self, name):
        return sorted({source for _, _, source in self.parameters(name) if source})


def live_by_command_line(infra, pools):
    """A script that calls `aws cloudformation deploy` for one stack after the other, as it waits for each."""
    with Rendered(infra, pools) as cluster, Place(cluster) as place:
        stacks, outputs = Stacks(cluster, place), {}
        aws = lambda *arguments: measure([AWS, "cloudformation", *arguments], cluster.directory, place.environment)

        def deploy():
            costs = []
            for name in stacks.order:
                values = [f"{key}={outputs[key] if source else value}" for key, value, source in stacks.parameters(name)]
                costs.append(aws(
                    "deploy", "--stack-name", f"{NAME}-{name}", "--template-file", stacks.template(name), "--capabilities",
                    "CAPABILITY_IAM", "--s3-bucket", TEMPLATES, "--no-fail-on-empty-changeset", "--tags", f"infra:cluster={NAME}",
                    *(["--parameter-overrides", *values] if values else [])))
                described = place.account.client("cloudformation").describe_stacks(StackName=f"{NAME}-{name}")["Stacks"][0]
                outputs.update({output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])})
            return sum(costs[1:], costs[0])

        def delete():
            costs = []
            for name in reversed(stacks.order):
                costs.append(aws("delete-stack", "--stack-name", f"{NAME}-{name}"))
                costs.append(aws("wait", "stack-delete-complete", "--stack-name", f"{NAME}-{name}"))
            return sum(costs[1:], costs[0])

        count = stacks_with(pools)
        yield pass_through(place, "aws-cli", "aws cloudformation", "deploy", count, deploy)
        yield pass_through(place, "aws-cli", "aws cloudformation", "deploy again", count, deploy)
        yield pass_through(place, "aws-cli", "aws cloudformation", "delete", count, delete)


def live_by_sceptre(infra, pools):
    with Rendered(infra, pools) as cluster, Place(cluster) as place:
        stacks = Stacks(cluster, place)
        write_sceptre_project(cluster.directory, stacks)
        sceptre = lambda *arguments: measure([SCEPTRE, *arguments], cluster.directory, place.environment)
        count = stacks_with(pools)
        for what in ("launch", "launch again", "delete"):
            yield pass_through(place, "Boto3", "Sceptre", what, count, lambda: sceptre(what.split()[0], "--yes", "cluster"))


def write_sceptre_project(directory, stacks):
    """config/cluster/NAME.yaml for each stack; values of other stacks by Sceptre's own resolver, so that it knows the order."""
    config = directory / "config/cluster"
    config.mkdir(parents=True)
    (directory / "templates").mkdir(exist_ok=True)
    region = stacks.place.account.region
    (directory / "config/config.yaml").write_text(f"project_code: {NAME}\nregion: {region}\n")
    for name in stacks.order:
        # Without blanks they are small enough to be sent: Sceptre would read them from AWS's own S3 only.
        small = json.dumps(stacks.templates[name], separators=(",", ":"))
        (directory / "templates" / f"{name}.json").write_text(small)
        lines = [f"template: {{type: file, path: {name}.json}}",
                 f"stack_tags: {{'infra:cluster': {NAME}}}", "parameters:"]
        for key, value, source in stacks.parameters(name):
            lines.append(f"  {key}: !stack_output cluster/{source}.yaml::{key}" if source else f"  {key}: {json.dumps(value)}")
        (config / f"{name}.yaml").write_text("\n".join(lines if lines[-1] != "parameters:" else lines[:-1]) + "\n")
