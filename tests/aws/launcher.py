"""MiniStack, with what stacks of clusters need and it lacks.

It reaches into MiniStack's insides, hence the pinned version. The parts in stand_in/ add:

- network: types of resources, who holds what, and whatever may not be deleted while something else holds it; tags of stacks on
  all of these;
- deletions: more that may not be deleted while something else holds it;
- tags: all of it in the Resource Groups Tagging API, also for a while after it is gone;
- balancers: classic load balancers;
- machines: those of Auto Scaling groups. They hold interfaces and security groups, claim the volumes that their user data names,
  start, fail to start, signal, and are replaced by rolling updates. Scaling activities report it;
- scheduled_actions: those of Auto Scaling groups, what AWS refuses of them, and when they happen next. They happen when a test says so;
- operations: what CloudFormation refuses, by template, parameters, capabilities, status or policy of the stack; how its
  operations end, are cancelled and are asked for twice; what change sets say about replacement;
- checks: CloudFormation's validation of change sets, and its events;
- lost_events: events of stacks that do not come, or come late;
- objects: owners and versions of objects, their ages, and rules of buckets that S3 refuses;
- drift: what resources are now, for CloudFormation's drift detection, which takes its time;
- lookups: prices, types of machines and where they are offered, images of Flatcar, zones, quotas, roles of services, the KMS keys that
  the golden clusters name;
- rights: what conditions of policies ask about: tags of resources, and who or what a request names;
- wishes: resources under ids that a test asks for.

The file that CONTROL_FILE names says what goes wrong. It is read again whenever it matters, so it may change at any time. An
unknown key is an error: it is printed, and every request is answered with 500. Resources are named by logical id, or, where
several stacks have the same, as "stack/LogicalId".

    accounts         {"111122223333": {...}}: any of these for one account, instead of those for all
    ages             {"Flatcar-stable-4459.2.1-hvm": 4320, "clusters/a/snapshots/etcd.db": 5, "a-control-plane": 24}: hours since an
                     image, an object or a stack was made, by its name or key
    delay            0.2: seconds that each resource takes; a smaller number frees those that wait
    hold             ["stack"]: stacks whose resources wait until the file no longer says so
    backwards        true: of resources that do not depend on each other the last comes first
    fail_checks      {"VPC": [["PROPERTY_VALIDATION", "CidrBlock", "reason"]]}: checks of new change sets that fail, with the path
                     below the resource's properties, or "" for the resource itself; a name with "::" is the type of a Hook
    checks_told_after  2: so often DescribeEvents does not know them yet
    fail_create      {"MountTarget0": "reason"}: also by type of resource
    fail_update      the same; what an update does not touch cannot fail
    fail_delete      the same
    fail_drift       the same, by logical id: drift of these cannot be detected
    fail_rollback    the same, when an update is taken back: the stack ends in UPDATE_ROLLBACK_FAILED. With force_status it says
                     what has failed
    fail_launch      {"Nodes": "message"}: machines of the group do not start, unless an update is being taken back. There is a
                     failed scaling activity every launch_interval, until the file no longer says so; a cancelled one for a
                     message that begins as AWS's about machines that started and did not live
    lose_events      {"stack": ["CREATE_COMPLETE"]}: the stack's own events of that status are never shown
    late_events      {"VPC": ["CREATE_FAILED"]}: events of that status are shown after newer ones
    no_signal        ["Nodes"]: machines of the group start, but say nothing
    launch_interval  0.2: seconds
    signal_timeout   60: seconds after which a group that waits for signals fails; another number counts for those that wait, too
    force_status     {"stack": "UPDATE_ROLLBACK_FAILED"}: its status from now on, set once each time the file is written
    finish_status    "UPDATE_COMPLETE": what follows a status that was forced, if nothing else has changed it
    finish_after     0: seconds until then; may be changed meanwhile
    not_offered      [["g5.xlarge", "us-west-2a"]]: types of machines and places
    gone_images      ["ami-..."]: images that are no longer there
    console          {"*": "text"}: console output by id of the instance, name or logical id of its group; the first counts
    quotas           {"L-DB2E81BA": 0}: instead of what is plenty
    recovery_points  {"arn:aws:backup:...": "cluster"}: backups that AWS Backup made of file systems with a cluster's tag
    missing_roles    ["AWSServiceRoleForEC2Spot"]: roles of services that the account does not have
    keys             {"key id": "Disabled"}: state of KMS keys; those of the golden clusters are "Enabled" in every account
    ids              ["vpc-...", "Z..."]: what is made next gets the first of its kind that is free: networks, subnets, file systems,
                     hosted zones, reservations
    machines         {"g6.xlarge": [4, 16, 1]}: more types of machines, with vCPUs, GiB of memory and GPUs
    zones            ["us-east-1f"]: more zones
    dns_pending      0.2: seconds that a change of Route 53 takes
    drift_delay      0.2: seconds that a drift detection takes; may be changed meanwhile

    unpriced         ["g5.xlarge", "NatGateway-Hours"]: types of machines and usage types that the price list does not have
    real_machines    true: another program boots the machines of Auto Scaling groups; they attach their volumes and signal by themselves

HEAD /amd64-usr/VERSION/flatcar-nvidia-drivers-570-open.gz is answered as by Flatcar's release server, which has a driver or has not.

GET /_calls tells who has called how often: {"aws-sdk-rust": 12}, by the first word of the User-Agent. GET /_site tells whoever
boots machines about them; see stand_in/site.py.

The port is printed on standard output. The end of standard input is the end of the server.
"""

import asyncio
import collections
import json
import os
import pathlib
import re
import socket
import sys
import threading

# Last, or `ministack` would be the file beside this one.
sys.path.append(str(pathlib.Path(__file__).parent))

# MiniStack reads its settings while it is imported.
listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
os.environ["GATEWAY_PORT"] = str(port)

import hypercorn.asyncio
import hypercorn.config
from ministack import app

# First, because others guard these types.
import stand_in.network_types
import stand_in.balancers
import stand_in.checks
import stand_in.deletions
import stand_in.drift
import stand_in.lookups
import stand_in.lookups_beyond_ec2
import stand_in.lost_events
import stand_in.machine_calls
import stand_in.objects
import stand_in.operation_calls
import stand_in.prices
import stand_in.reservations
import stand_in.rights
import stand_in.scheduled_actions
import stand_in.tags
import stand_in.wishes
from stand_in.control import control
from stand_in.site import describe_site


calls = collections.Counter()
# What Flatcar stable 4593 has.
DRIVER = re.compile(r"/amd64-usr/[0-9.]+/flatcar-nvidia-drivers-(535|550|570)(-open)?\.gz")


async def serve(scope, receive, send):
    if scope["type"] == "http":
        if scope["path"] == "/_calls":
            await answer(send, 200, b"application/json", json.dumps(calls))
            return
        if scope["path"] == "/_site":
            await answer(send, 200, b"application/json", json.dumps(describe_site(scope["query_string"].decode())))
            return
        if scope["path"].startswith("/amd64-usr/"):
            await answer(send, 200 if DRIVER.fullmatch(scope["path"]) else 404, b"application/octet-stream", "")
            return
        caller = dict(scope["headers"]).get(b"user-agent", b"nobody").decode(errors="replace")
        calls[caller.partition("/")[0]] += 1
        try:
            control()
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr, flush=True)
            await answer(send, 500, b"text/plain", str(error))
            return
    await app.app(scope, receive, send)


async def answer(send, status, kind, text):
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": text.encode()})


def end_with_standard_input():
    sys.stdin.buffer.read()
    os._exit(0)


threading.Thread(target=end_with_standard_input, daemon=True).start()
print(port, flush=True)
config = hypercorn.config.Config()
config.bind = [f"fd://{listener.detach()}"]
config.loglevel = "ERROR"
# After the default of 5 seconds a connection may be closed just when its client, who does not retry, sends the next request.
config.keep_alive_timeout = 3600
asyncio.run(hypercorn.asyncio.serve(serve, config))
