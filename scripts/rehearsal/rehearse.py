"""The whole life of a cluster on a local stand-in for AWS, through the real program. scripts/rehearse prepares and starts this."""

import argparse
import contextlib
import pathlib
import shutil
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# First, or `ministack` would be the package.
sys.path.insert(0, str(ROOT / "tests/aws"))

from account import Account
from cluster_file import ClusterFile
from kubernetes_api import KubernetesApi
from ministack import MiniStack
from stage import Stage, UnexpectedEnd

KEY = "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EXAMPLE = ["--cluster-name", "example", "--external-dns-name", "k8s.example.com", "--region", "us-west-2",
           "--availability-zone", "us-west-2a,us-west-2b", "--kms-key-arn", KEY]
# In AWS's own words.
NO_CAPACITY = ("We currently do not have sufficient {kind} capacity in the Availability Zone you requested ({zone}). "
               "Launching EC2 instance failed.")


class Rehearsal:
    more_of_example = ["--gpu", "g5.xlarge"]

    def __init__(self, stage, aws, closing, own):
        self.stage, self.aws, self.closing, self.own = stage, aws, closing, own
        self.directory = stage.directory
        self.cluster = ClusterFile(self.directory / "cluster.yaml")

    def play(self):
        self.get_cluster_file()
        self.validate_and_render()
        self.plan_and_bring_up()
        self.look()
        self.change_pool()
        self.run_job()
        self.drill()
        self.destroy()

    def get_cluster_file(self):
        stage = self.stage
        if not self.own:
            stage.heading("A cluster.yaml", "One file describes the cluster; `init` writes it and explains every setting in it.")
            stage.run("init", *EXAMPLE, *self.more_of_example)
            return
        stage.heading("Your cluster.yaml", "A copy of it is rehearsed; your directory, your credentials and your AWS account are not touched.")
        shutil.copy(self.own / "cluster.yaml", self.cluster.path)
        for name in ("templates", "snippets", "manifests/extra"):
            if (self.own / name).is_dir():
                shutil.copytree(self.own / name, self.directory / name)
                stage.note(f"copied with it: {name}/")
        if (self.own / "infra.lock").exists():
            stage.note("not copied: infra.lock, as the stand-in has images of its own")

    def validate_and_render(self):
        stage = self.stage
        stage.heading("Check it", "Every problem is reported at once, with its line and how to fix it; no account is needed.")
        stage.run("validate")
        stage.heading("Render it", "Keys and certificates, CloudFormation stacks and machine configurations, all as files that you can read.")
        stage.run("render", "--generate-ca")

    def plan_and_bring_up(self):
        stage, facts = self.stage, self.cluster.facts
        self.account = self.new_account()
        stage.heading("An account", "Creates in the stand-in for AWS what cluster.yaml expects to exist.")
        for what, error in self.account.make_what_is_named():
            stage.leave_out(f"{what}: {error}") if error else stage.note(what)
        stage.environment |= {"AWS_ACCESS_KEY_ID": self.cluster.account, "AWS_SECRET_ACCESS_KEY": "any"}
        self.start_machines()
        # Later commands find the place in the live stacks.
        place = [] if facts.get("s3URI") else ["--s3-uri", f"s3://{facts['clusterName']}-{self.cluster.account}/clusters"]
        stage.heading("Plan", "What `up` would create, before anything exists.")
        stage.run("plan", *place)
        stage.heading("Up", "Checks the account, uploads assets, creates stacks in parallel and waits until every node is Ready.")
        stage.run("up", *place, *(["--create-bucket"] if place else []))

    def new_account(self):
        return Account(self.aws, self.cluster)

    def start_machines(self):
        """None here: an API server says that every instance is a Ready node."""
        api = KubernetesApi(self.directory / "credentials", self.account, self.cluster)
        self.closing.callback(api.close)
        self.stage.environment |= {"AWS_ENDPOINT_URL": self.aws.url, "INFRA_RELEASE_SERVER": self.aws.url,
                                   "INFRA_API_SERVER": api.address}

    def look(self):
        self.stage.heading("Status", "The health of the cluster on one screen.")
        self.stage.run("status")

    def change_pool(self):
        stage = self.stage
        stage.heading("Change a pool", "One more machine for a pool; the plan shows it, and nothing else changes.")
        pool = self.cluster.pool_to_change()
        if not pool:
            stage.leave_out("cluster.yaml has no pools")
        elif self.edit(lambda _: self.cluster.grow(pool["name"])):
            stage.run("plan")
            stage.run("up", "--yes")

    def run_job(self):
        stage = self.stage
        stage.heading("A training job", "Checked against the pools of this cluster, then rendered as Kubernetes objects.")
        if self.own and (self.own / "job.yaml").exists():
            shutil.copy(self.own / "job.yaml", self.directory)
            stage.note("copied: your job.yaml")
        else:
            stage.run("job", "init", "--framework", "pytorch")
        if stage.run("job", "lint", expected=(0, 2) if self.own else (0,)):
            stage.leave_out("this cluster is not made for that job")
            return
        stage.run("job", "render", into="job-objects.yaml")
        objects = (self.directory / "job-objects.yaml").read_text()
        kinds = [line.partition(": ")[2] for line in objects.splitlines() if line.startswith("kind: ")]
        stage.note(f"job-objects.yaml: {', '.join(kinds)}. On a real cluster `infra job submit` sends them and follows the job.")

    def drill(self):
        stage = self.stage
        stage.heading("A failure drill", "A new GPU pool while AWS has no capacity for it.")
        pool = self.cluster.pool_to_change()
        if not pool:
            stage.leave_out("cluster.yaml has no pools")
            return
        zone = (pool.get("availabilityZones") or self.cluster.facts["availabilityZones"])[0]
        kind, name = pool["instanceType"], "drill"
        line = f"{{name: {name}, instanceType: {kind}, count: 1, availabilityZones: [{zone}]}}"
        if not self.edit(lambda _: self.cluster.add_pool(line)):
            return
        stack = f"{self.cluster.facts['clusterName']}-pool-{name}"
        self.account.refuse_machines(stack, NO_CAPACITY.format(kind=kind, zone=zone))
        stage.run("up", "--yes", expected=(6,))
        stage.note("Exit code 6: the stack was rolled back, and the rest of the cluster keeps running. Capacity is back; `up` again:")
        self.account.allow_machines()
        stage.run("up", "--yes")

    def destroy(self):
        stage = self.stage
        stage.heading("Destroy", "Deletes everything in the right order, then checks that nothing is left. Data is kept unless you ask to delete it.")
        stage.run("destroy", "--yes")
        if left := self.account.left():
            raise UnexpectedEnd(f"`infra destroy` reported that everything is deleted, but the stand-in still has {', '.join(left)}")
        stage.note("The stand-in confirms it: no stack and no machine is left.")

    def edit(self, change):
        """Changes cluster.yaml and shows how. A file that is written too cleverly to be changed like that stays as it was."""
        before = self.cluster.text
        try:
            after = change(before)
            if isinstance(after, str):
                self.cluster.path.write_text(after)
            good = self.cluster.text != before and self.stage.quietly("validate")
        except Exception:
            good = False
        if not good:
            self.cluster.path.write_text(before)
            self.stage.leave_out("this cluster.yaml is written in a way that the rehearsal cannot edit")
            return False
        self.stage.difference(before, self.cluster.text)
        return True


def say_what_next(stage, own):
    stage.say(f"\n{stage.bold}==> Next, with a real account{stage.plain}")
    if not own:
        stage.say("    infra init                    asks for name, region, availability zones, KMS key and GPU machines")
    stage.say("    infra policy --s3-uri s3://YOUR-BUCKET/clusters               the IAM policies that the operator needs")
    stage.say("    infra validate --online --s3-uri s3://YOUR-BUCKET/clusters    checks your account, changes nothing")
    stage.say("    infra cost                    what AWS will charge for")
    stage.say("    infra render --generate-ca    your own keys and certificates")
    stage.say("    infra up --s3-uri s3://YOUR-BUCKET/clusters --create-bucket")
    if not own:
        stage.say("    scripts/rehearse -C DIRECTORY rehearses your own cluster.yaml first.")
    stage.say("    A stand-in is not AWS: docs/first-aws-run.md lists what only AWS can prove.")


def kind_of(arguments):
    if not arguments.real:
        return Rehearsal
    # What it is made of is not there without set-up.
    from real_rehearsal import RealRehearsal

    return RealRehearsal


def ask_to_end(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(prog="scripts/rehearse", description=__doc__)
    parser.add_argument("-C", dest="own", metavar="DIR", type=pathlib.Path, help="rehearse the cluster.yaml of this directory")
    parser.add_argument("--real", action="store_true",
                        help="boot real machines with a real Kubernetes; needs root on Debian, and Go modules (docs/real-cluster.md)")
    parser.add_argument("--keep", action="store_true", help="keep the files of the rehearsal")
    parser.add_argument("--only-arguments", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--binary", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.own and not (arguments.own / "cluster.yaml").is_file():
        parser.error(f"there is no cluster.yaml in {arguments.own}")
    if arguments.only_arguments:
        return

    # Also the first, which whoever starts this in the background may have it ignore: the program would still end at it.
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, ask_to_end)
    started = time.monotonic()
    place = pathlib.Path(tempfile.mkdtemp(prefix="infra-rehearsal-"))
    directory = place / "cluster"
    directory.mkdir()
    stage = Stage(arguments.binary.resolve(), directory, place)
    code = 0
    try:
        with contextlib.ExitStack() as closing:
            try:
                aws = closing.enter_context(MiniStack())
                stage.say(f"A stand-in for AWS runs at {aws.url}; nothing here reaches AWS or costs money.")
                kind_of(arguments)(stage, aws, closing, arguments.own).play()
                stage.summary()
                say_what_next(stage, arguments.own)
            except UnexpectedEnd as error:
                stage.say(f"\nThe rehearsal stops here: {error}.")
                code = 1
            except KeyboardInterrupt:
                code = 130
            finally:
                # A second Control-C must not leave anything running.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                stage.end_child()
            if code == 130:
                stage.say("\nInterrupted; the stand-in and everything on it are deleted.")
    finally:
        if arguments.keep:
            stage.say(f"\nThe files of the rehearsal are in {directory}.")
        else:
            shutil.rmtree(place, ignore_errors=True)
            stage.say(f"\nThe files of the rehearsal are deleted; --keep keeps them ({time.monotonic() - started:.0f} s).")
    sys.exit(code)


if __name__ == "__main__":
    main()
