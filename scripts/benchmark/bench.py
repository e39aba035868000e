"""CPU time, wall time and peak memory of the release binary, beside other tools: one run, one report. scripts/bench prepares and starts this."""

import argparse
import os
import pathlib
import subprocess
import sys
import time

import listing
import lives
import offline
import peers
import report
from clusters import stacks_with
from growth import Growth
from processes import GNU_TIME, UnexpectedEnd

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/performance.md"
FILES_HEADING = "\n## Files\n"
# Two pools: one with GPUs, one without.
PEERS_POOLS = 2


def say(text):
    print(f"==> {text} ({time.monotonic() - STARTED:.0f} s)", file=sys.stderr, flush=True)


def measure_lives(infra):
    for pools in lives.POOLS:
        say(offline.with_pools("a life", pools))
        yield from lives.live(infra, pools)


def measure_peers(infra):
    """Templates by the CDK, then lives by the others, with infra's own beside them."""
    made, lived = [], []
    for pools in offline.POOLS:
        say(offline.with_pools("cdk synth", pools))
        made.append(peers.synthesize(infra, pools))
    for name, live in {"infra": lives.live, "Sceptre": peers.live_by_sceptre, "aws": peers.live_by_command_line}.items():
        say(f"a life by {name}")
        lived += live(infra, PEERS_POOLS)
    return made, lived


def growths(measured, lived):
    by_name = {row.name: row.cost.cpu * 1000 for row in measured}
    for command in ("render stack", "validate"):
        yield Growth(f"{command}, CPU", "ms", offline.POOLS, tuple(by_name[offline.with_pools(command, pools)] for pools in offline.POOLS))
    for what in ("up", "up again", "destroy"):
        rows = [row for row in lived if row.what == what]
        yield Growth(f"{what}, calls", "calls", lives.POOLS, tuple(row.calls for row in rows))
        yield Growth(f"{what}, CPU", "ms", lives.POOLS, tuple(row.cost.cpu * 1000 for row in rows))


def version(command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]


def page(infra, measured, lived, listed, beside, grown):
    parts = [
        "# Performance",
        f"Measured on {report.today()} by `scripts/bench --write`: {version([infra, '--version'])}, {infra.stat().st_size / 2**20:.1f} MiB, "
        f"on {report.machine()}. CPU time is the figure to trust on a machine that others use too. Figures are medians of {offline.RUNS} runs "
        f"({offline.LONG_RUNS} of the long ones, {peers.CDK_RUNS} of the CDK's); lives on the stand-in were lived once.",
        "## Commands without AWS",
        "Three availability zones, three etcd members, two controllers; pools are CPU and GPU pools in turn. `scripts/bench` fails if a limit is broken.",
        report.offline_table(measured),
        "## Lives on the stand-in",
        "Each cluster comes up, is brought up again unchanged, and is destroyed with its data, on MiniStack with AWS's rules added, where each "
        "resource takes 0.1 s. *In stacks* is how long at least one stack was worked on, by the times of its events; *rest* is all other "
        "time: preflight, uploads, waiting between two looks, the record, the nodes. AWS's own minutes are not in here.",
        report.lives_table(lived),
        "## Many clusters",
        "`infra list` in an account with this many clusters, each of which has three stacks and five Auto Scaling groups. `scripts/bench` "
        "fails if it takes longer than the limit.",
        report.list_table(listed),
        "## Growth",
        "What each pool more costs must not become more itself when there are many.",
        report.growth_table(grown),
    ]
    if beside:
        made, others = beside
        parts += [
            "## Beside others",
            f"AWS CDK {version([peers.CDK, '--version'])} making the same templates (an app that declares the same resources one by one; the "
            "result is compared) beside `infra render stack`:",
            report.cost_table([row for row in measured if row.name.startswith("render stack")] + made),
            f"{version([peers.AWS, '--version']).split()[0]} and Sceptre {version([peers.SCEPTRE, '--version']).split()[-1]} "
            f"bringing the same {stacks_with(PEERS_POOLS)} stacks up on the same stand-in. They create the stacks and wait for "
            "them; infra also checks the account, uploads what machines boot from, points the name at the API, waits for the "
            "nodes, and searches for leftovers after a destroy. `aws cloudformation deploy` creates one stack after the other and reads the status of each every 30 s.",
            report.lives_table(others),
        ]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--without-peers", action="store_true", help="leave the AWS CDK, the AWS CLI and Sceptre out")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--only-list", action="store_true", help="measure nothing but `infra list` in an account with many clusters")
    parser.add_argument("--binary", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not os.path.exists(GNU_TIME):
        sys.exit("GNU time measures memory: apt-get install time")
    infra = arguments.binary.resolve()
    if arguments.only_list and arguments.write:
        parser.error("--only-list has not all of docs/performance.md to --write")

    try:
        say(f"a list of {listing.CLUSTERS} clusters")
        listed = [listing.measure_list(infra)]
        if arguments.only_list:
            print(report.list_table(listed))
            sys.exit(1 if any(row.is_over() for row in listed) else 0)
        say("commands without AWS")
        measured = list(offline.measure_offline(infra))
        lived = list(measure_lives(infra))
        beside = None if arguments.without_peers else measure_peers(infra)
    except UnexpectedEnd as error:
        sys.exit(str(error))
    grown = list(growths(measured, lived))
    text = page(infra, measured, lived, listed, beside, grown)
    print(text)
    if arguments.write:
        # Measured by a test, not by this program.
        _, heading, files = PAGE.read_text().partition(FILES_HEADING)
        PAGE.write_text(text.rstrip("\n") + "\n" + heading + files)
        say(f"written: {PAGE.relative_to(ROOT)}")
    sys.exit(1 if any(row.is_over() for row in measured + listed) or any(growth.is_worse_than_linear() for growth in grown) else 0)


STARTED = time.monotonic()
if __name__ == "__main__":
    main()
