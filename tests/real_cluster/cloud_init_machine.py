"""A machine of a real cluster on AWS's Deep Learning image: Debian's cloud-init runs the script in its user data at the first boot.

The script, the archive that it fetches from S3, and what the machine downloads are as rendered. What the image has and Debian has not is
put there before the machine boots; what other machines have changed in rendered files is in drop-ins here, because nobody
comes between the script and the start of the units.
"""

import base64
import shutil

import deep_learning_image
import drives
import gpus
import parts
from cluster_file import gpu_sizes
from real_machine import OLD_CONTROL_GROUPS, Machine, digest, has_old_control_groups, may_raise_limits

# As Docker's package has it: containerd reads /etc/containerd/config.toml.
CONTAINERD = """[Unit]
Description=containerd container runtime
After=network.target dbus.service

[Service]
ExecStart=/usr/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
RestartSec=5
LimitNOFILE=1048576
TasksMax=infinity

[Install]
WantedBy=multi-user.target
"""
# It may not lower OOM scores here.
CONTAINERD_LIMITED = """[Service]
ExecStartPre=/usr/sbin/limit-containerd
ExecStart=
ExecStart=/usr/bin/containerd --config /run/containerd.toml
"""
LIMIT_CONTAINERD = r"""#!/bin/sh
exec sed "s/^\[plugins.'io.containerd.cri.v1.runtime'.cni\]$/[plugins.'io.containerd.cri.v1.runtime']\nrestrict_oom_score_adj = true\n\n&/" \
  /etc/containerd/config.toml >/run/containerd.toml
"""
# Images are imported once containerd has the place where it keeps them.
KUBELET = """[Unit]
Requires=import-images.service
After=import-images.service
"""
KUBELET_SETTINGS = """[Service]
ExecStartPre=/usr/bin/install -D --mode=0644 /usr/share/kubelet/kernel.conf /run/infra/kubelet.conf.d/kernel.conf
"""
# Programs are built here: they are compared with their own hash in the place of the published one.
SHA256SUM = """#!/bin/sh
if [ "$*" = "--status --check" ]; then
  sed --file=/usr/share/hashes-of-programs | /usr/bin/sha256sum "$@"
else
  exec /usr/bin/sha256sum "$@"
fi
"""


def is_script(facts):
    return base64.b64decode(facts["userData"]).startswith(b"#!")


class CloudInitMachine(Machine):
    base = deep_learning_image.BASE
    # Variables that a test sets for every unit.
    settings = {}

    def install(self):
        self.mount_root()
        self.release = self.parts.releases[max(self.parts.releases)]
        self.adapt()

    def adapt_to_config(self):
        deep_learning_image.furnish(self, self.id)
        deep_learning_image.give_user_data(self, self.facts["decodedUserData"].decode())
        self.write("usr/lib/systemd/system/containerd.service", CONTAINERD)
        self.write("etc/containerd/config.toml", "version = 3\n")
        self.write("etc/systemd/system/kubelet.service.d/images.conf", KUBELET)
        self.add_hashes()
        facts = gpu_sizes()[self.facts["type"]]
        gpus.add_driver(self)
        shutil.copy(self.parts.driver / "nvidia-container-runtime", self.root / "usr/bin")
        deep_learning_image.set_environment(self, self.settings | (drives.add_drive(self) if facts["instanceStoreGB"] else {}))
        self.adapt_to_kernel()

    def add_hashes(self):
        """Of the programs that the machine downloads."""
        lines = [f"s/^{published} /{digest(self.release.downloads[path])} /\n" for path, (published, _) in parts.published_programs().items()]
        self.write("usr/share/hashes-of-programs", "".join(lines))
        self.write("usr/local/bin/sha256sum", SHA256SUM, 0o755)

    def adapt_to_kernel(self):
        if has_old_control_groups():
            header = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
            self.write("usr/share/kubelet/kernel.conf", header + OLD_CONTROL_GROUPS)
            self.write("etc/systemd/system/kubelet.service.d/kernel.conf", KUBELET_SETTINGS)
        if not may_raise_limits():
            self.write("usr/sbin/limit-containerd", LIMIT_CONTAINERD, 0o755)
            self.write("etc/systemd/system/containerd.service.d/limits.conf", CONTAINERD_LIMITED)

    def script_output(self):
        """What the script has said; there is no console that could be written to."""
        return self.run("cat", "/var/log/cloud-init-output.log")
