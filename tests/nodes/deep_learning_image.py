"""What a Debian root gets so that it boots as AWS's Deep Learning image does: cloud-init with user data, and the units of that image.

Debian itself brings cloud-init, an AWS CLI and unattended-upgrades (scripts/prepare-tests makes the root `cloud-base`).
"""

from container import FOREIGN_UNITS as CONTAINER_UNITS
from golden import TOOLS

BASE = TOOLS / "cloud-base"
# Fail in any container, and have nothing to do with ours.
FOREIGN_UNITS = [*CONTAINER_UNITS, "nftables.service", "run-rpc_pipefs.mount"]
# It would manage a network that is set up already, as it may: a machine's firewall needs the same right.
NETWORK_UNITS = [f"systemd-networkd{name}" for name in (".service", ".socket", "-wait-online.service")]
# The image runs these before the script of the user data does.
RUNNING = ("containerd", "docker", "dlami-nvme")
IDLE = ("nvidia-fabricmanager",)
SERVICE = "[Unit]\nDescription={0}\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/true\n[Install]\nWantedBy=multi-user.target\n"
# What Docker does to a machine's network at its start, and does not undo at its end. The file says that it was done.
DOCKER_LEFT = "/var/lib/docker/rules"
DOCKERD = f"""#!/bin/sh -e
ip link add docker0 type bridge
iptables --wait --policy FORWARD DROP
iptables --wait --table nat --new-chain DOCKER
iptables --wait --table nat --append PREROUTING --match addrtype --dst-type LOCAL --jump DOCKER
iptables --wait --table nat --append POSTROUTING --source 172.17.0.0/16 ! --out-interface docker0 --jump MASQUERADE
mkdir -p /var/lib/docker
{{ iptables --wait --list-rules FORWARD; iptables --wait --table nat --list-rules; }} >{DOCKER_LEFT}
"""
# cloud-init knows EC2 by its firmware, which a container does not have: user data comes from files.
CLOUD_CONFIG = """datasource_list: [NoCloud]
network: {config: disabled}
cloud_init_modules: []
cloud_config_modules: []
cloud_final_modules: [scripts-user]
"""


def why_not():
    """Why there can be no such machine here, or nothing."""
    return None if (BASE / "usr/bin/cloud-init").exists() else "target/test-tools/cloud-base is missing: run scripts/prepare-tests"


def furnish(machine, instance_id):
    """Makes the root of a machine that of a fresh instance; its user data is written by `give_user_data`."""
    machine.write("etc/machine-id", "uninitialized\n")
    for name in (*FOREIGN_UNITS, *NETWORK_UNITS):
        (machine.root / "etc/systemd/system" / name).unlink(missing_ok=True)
        (machine.root / "etc/systemd/system" / name).symlink_to("/dev/null")
    # Until the script has written it: who waits for the machine looks for this file.
    machine.write("etc/infra/stack.env", "")
    machine.write("etc/cloud/ds-identify.cfg", "policy: enabled\n")
    machine.write("etc/cloud/cloud.cfg.d/99_test.cfg", CLOUD_CONFIG)
    machine.write("var/lib/cloud/seed/nocloud/meta-data", f"instance-id: {instance_id}\n")
    for name in (*RUNNING, *IDLE):
        machine.write(f"usr/lib/systemd/system/{name}.service", SERVICE.format(name))
    machine.write("usr/bin/dockerd", DOCKERD, 0o755)
    machine.write("usr/lib/systemd/system/docker.service", SERVICE.format("docker").replace("/usr/bin/true", "/usr/bin/dockerd"))
    wants = machine.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    for name in RUNNING:
        (wants / f"{name}.service").symlink_to(f"/usr/lib/systemd/system/{name}.service")


def give_user_data(machine, text):
    machine.write("var/lib/cloud/seed/nocloud/user-data", text)


def set_environment(machine, settings):
    """Variables of every unit; the script writes the file of settings that other machines have from the start."""
    words = " ".join(f'"{name}={value}"' for name, value in settings.items())
    machine.write("etc/systemd/system.conf.d/test.conf", f"[Manager]\nDefaultEnvironment={words}\n")
