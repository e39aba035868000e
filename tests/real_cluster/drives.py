"""What a machine with drives of its own (instance store) has here: one loop device, of which only what is written takes space.

A container has the /sys of the machine that it runs on: which drives there are is said by files in another place.
"""

import os
import stat

from container import run

# Rendered for machines of types with instance store only.
UNIT = "etc/systemd/system/scratch.service"
# Room for what is reserved on such drives, and for jobs.
GIB = 200
SETTINGS = {"INFRA_BLOCK_DIRECTORY": "/etc/drives/sys/block", "INFRA_DEVICE_DIRECTORY": "/etc/drives/dev"}


def has_drives(root):
    return (root / UNIT).exists()


def add_drive(machine):
    """What the machine's scripts need to be told of it."""
    image = machine.scratch / "drive.img"
    with image.open("wb") as file:
        file.truncate(GIB << 30)
    device = run("losetup", "--find", "--show", image).strip()
    machine.stack.callback(image.unlink)
    machine.stack.callback(run, "losetup", "--detach", device)
    machine.write("etc/drives/sys/block/nvme1n1/device/model", "Amazon EC2 NVMe Instance Storage        \n")
    (machine.root / "etc/drives/dev").mkdir()
    os.mknod(machine.root / "etc/drives/dev/nvme1n1", 0o600 | stat.S_IFBLK, os.stat(device).st_rdev)
    return SETTINGS
