"""What a machine with GPUs has here in the place of NVIDIA's driver and container runtime.

The runtime is a system extension as Flatcar's is: machines download it, compare its hash and merge it into /usr. In it, and in the
place of the driver, are programs of our own (programs/shared/pretend-gpus). The Deep Learning image has both in itself.
"""

import hashlib
import pathlib
import shutil

import yaml
from cluster_file import GPU_MACHINES, gpu_sizes
from container import run

# The number of GPUs that a machine pretends to have: the device plugin and nvidia-smi read it again and again. The kubelet's directory is
# made anew at each boot, so that the machine keeps the number elsewhere.
COUNT = "var/lib/kubelet/device-plugins/pretend-gpus"
KEPT = "etc/pretend-gpus"
PROVIDE = f"[Service]\nExecStartPre=/usr/bin/install -D --mode=0644 /{KEPT} /{COUNT}\n"
# Flatcar's, which brings the driver; rendered for machines with GPUs only.
DRIVER_SETTINGS = "etc/flatcar/enabled-sysext.conf"
# As in Flatcar's extension: containerd's own settings do not count from then on.
CONTAINERD = """[Unit]
After=nvidia.service
[Service]
ExecStart=
ExecStart=/usr/bin/containerd --config /etc/containerd/config-nvidia.toml
"""


def pack_runtime(programs, scratch):
    """What machines download, by its address: the extension and the list with its hash. `programs` is where pretend-gpus was built."""
    extension = yaml.safe_load(GPU_MACHINES.read_text())["runtimeExtension"]
    scratch = pathlib.Path(scratch) / "extension"
    root, image = scratch / "root", scratch / extension["file"]
    for path, text in {
        # The name of the link that machines make to it.
        "usr/lib/extension-release.d/extension-release.nvidia-runtime": "ID=_any\n",
        "usr/lib/systemd/system/containerd.service.d/10-nvidia.conf": CONTAINERD,
    }.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(text)
    (root / "usr/bin").mkdir()
    shutil.copy(programs / "nvidia-container-runtime", root / "usr/bin")
    run("mkfs.ext4", "-q", "-d", root, image, "16M")
    sums = scratch / "SHA256SUMS"
    with image.open("rb") as file:
        sums.write_text(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {image.name}\n")
    return {extension["url"]: image, extension["sumsUrl"]: sums}


def has_gpus(root):
    return (root / DRIVER_SETTINGS).exists()


def add_driver(machine):
    """nvidia-smi and the GPUs themselves."""
    shutil.copy(machine.parts.driver / "nvidia-smi", machine.root / "usr/bin/nvidia-smi")
    machine.write("etc/systemd/system/kubelet.service.d/pretend-gpus.conf", PROVIDE)
    set_number(machine, gpu_sizes()[machine.facts["type"]]["gpus"])


def adapt(machine):
    """What Flatcar and its extension with the driver give."""
    add_driver(machine)
    # Extensions are mounted from files.
    machine.options.append("--bind=/dev/loop-control")
    for unit in ("systemd-sysext.service", "ensure-sysext.service"):
        machine.enable(unit, "sysinit.target")


def set_number(machine, count):
    """The machine has that many GPUs from now on."""
    machine.write(KEPT, f"{count}\n")
    if machine.leader:
        # In one step: it may be read at any moment.
        read = pathlib.Path(f"/proc/{machine.leader}/root/{COUNT}")
        part = read.with_name(f"{read.name}.part")
        part.write_text(f"{count}\n")
        part.rename(read)
