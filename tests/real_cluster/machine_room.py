"""Boots a real machine for every instance that the stand-in for AWS runs, and cuts its power when the instance is terminated.

It asks the stand-in again and again; machines start at the same time, each on a thread of its own. What goes wrong with one is
kept in its `failure` and ends up in the report of whoever waits.
"""

import contextlib
import datetime
import json
import pathlib
import threading
import urllib.request

from cloud_init_machine import CloudInitMachine, is_script
from container import run
from real_machine import Machine

LOOK_SECONDS = 0.3
GIB = 1 << 30
WATCH_LIMIT = pathlib.Path("/proc/sys/fs/inotify/max_user_instances")
WATCHES = 2048


class MachineRoom:
    def __init__(self, stand_in, account, region, network, parts, scratch):
        self.stand_in, self.account, self.region = stand_in, account, region
        self.network, self.parts, self.scratch = network, parts, pathlib.Path(scratch)
        self.machines, self.disks = {}, {}
        self.booted = 0
        self.failures = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        allow_watches()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        # In the reverse order, and each of them even if another one fails.
        with contextlib.ExitStack() as stack:
            for device in self.disks.values():
                stack.callback(run, "losetup", "--detach", device)
            for machine in self.machines.values():
                stack.callback(machine.discard)
                stack.callback(machine.ready.wait)

    def watch(self):
        while not self.stopping.wait(LOOK_SECONDS):
            try:
                self.look()
            except TimeoutError:
                # The stand-in is busy, and is asked again.
                continue
            except Exception as error:
                self.failures.append(f"the machine room: {error!r}")

    def look(self):
        site = self.site()
        present = {facts["id"]: facts for facts in site["machines"] if facts["state"] in ("pending", "running")}
        new = [self.take_in(facts | {"account": self.account}) for instance_id, facts in present.items() if instance_id not in self.machines]
        # Before they boot: a machine whose metadata cannot be had does not come up.
        self.network.show(site, [machine.facts for machine in self.machines.values()])
        for machine in new:
            threading.Thread(target=self.boot, args=[machine], daemon=True).start()
        for instance_id, machine in list(self.machines.items()):
            if instance_id in present:
                self.attach_volumes(machine, present[instance_id]["volumes"])
            elif machine.ready.is_set():
                del self.machines[instance_id]
                machine.discard()

    def site(self):
        url = f"{self.stand_in.url}/_site?account={self.account}&region={self.region}"
        # Around proxies of the caller's environment.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
            return json.load(answer)

    def take_in(self, facts):
        self.booted += 1
        kind = CloudInitMachine if is_script(facts) else Machine
        machine = kind(self.network, facts, self.parts, self.scratch, f"m{self.booted}")
        # The metadata service tells the address of its network card.
        machine.connect()
        self.machines[facts["id"]] = machine
        return machine

    def boot(self, machine):
        try:
            machine.install()
            machine.switch_on()
        except Exception as error:
            machine.failure = error
            self.failures.append(f"{machine.role} ({machine.id}): {error}")
        finally:
            machine.ready.set()
        # A machine is switched off with the thread that started it.
        machine.discarded.wait()

    def attach_volumes(self, machine, volumes):
        if not machine.ready.is_set() or machine.failure:
            return
        for volume_id, gigabytes in volumes.items():
            machine.attach(volume_id, self.disk(volume_id, gigabytes))

    def disk(self, volume_id, gigabytes):
        """The block device of a volume, blank when it is new. It outlives machines."""
        if volume_id not in self.disks:
            path = self.scratch / volume_id
            with path.open("wb") as file:
                file.truncate(gigabytes * GIB)
            self.disks[volume_id] = run("losetup", "--find", "--show", path).strip()
        return self.disks[volume_id]

    def of_role(self, role):
        return [machine for machine in self.machines.values() if machine.role == role]

    def last_words(self):
        """What every machine has reported last, for whoever reads of a failure."""
        texts = []
        # The kernel's messages are those of all machines.
        words = ["journalctl", "--no-pager", "--lines=15", "--output=cat", *(f"_TRANSPORT={way}" for way in ("journal", "stdout", "syslog"))]
        for machine in self.machines.values():
            with contextlib.suppress(AssertionError, OSError):
                texts.append(f"--- {machine.role} ({machine.id})\n{machine.run(*words)}")
        return "\n".join(texts)


def allow_watches():
    """All machines are one user to the kernel, and a dozen of them watch more files than that one may by default."""
    if int(WATCH_LIMIT.read_text()) < WATCHES:
        WATCH_LIMIT.write_text(f"{WATCHES}\n")


class RoleCredentials:
    """Temporary credentials of a machine's role, from the stand-in's own STS."""

    def __init__(self, client):
        self.client = client
        self.kept = {}

    def __call__(self, machine):
        profile = machine["profile"].rpartition("/")[2]
        now = datetime.datetime.now(datetime.timezone.utc)
        kept = self.kept.get(profile)
        if kept is None or kept["Expiration"] - now < datetime.timedelta(minutes=10):
            role = self.client("iam").get_instance_profile(InstanceProfileName=profile)["InstanceProfile"]["Roles"][0]
            kept = self.client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName=machine["id"])["Credentials"]
            self.kept[profile] = kept
        time = "%Y-%m-%dT%H:%M:%SZ"
        return {"Code": "Success", "Type": "AWS-HMAC", "LastUpdated": now.strftime(time), "AccessKeyId": kept["AccessKeyId"],
                "SecretAccessKey": kept["SecretAccessKey"], "Token": kept["SessionToken"],
                "Expiration": kept["Expiration"].strftime(time)}
