"""A machine that cloud-init configures: Debian's, with its AWS CLI, its unattended-upgrades and what the Deep Learning image adds.

What is not there: Ubuntu itself, NVIDIA's driver (nvidia-smi answers for it), the kubelet (it sleeps, and delays a shutdown as the real
one does).
"""

import deep_learning_image
from machine import NFS_CLIENT, Worker
from node_archive import BUCKET, PREFIX
from test_userdata import STUB

# Debian's CLI is older than AWS_ENDPOINT_URL.
AWS = """#!/bin/sh
case $1 in
s3api) endpoint=$INFRA_ENDPOINT_S3 ;;
*) endpoint=$INFRA_ENDPOINT_CLOUDFORMATION ;;
esac
exec /usr/bin/aws --endpoint-url "$endpoint" "$@"
"""
KUBELET = "#!/bin/sh\nexec systemd-inhibit --what=shutdown --who=kubelet --why=test --mode=delay sleep infinity\n"
PROGRAMS = {"/opt/bin/kubelet": KUBELET.encode(), "/opt/bin/kubectl": b"#!/bin/sh\nprintf 'True KubeletReady: ready'\n"}


class CloudWorker(Worker):
    """`archive` is rendered; `change` may spoil the machine before it boots."""

    base = deep_learning_image.BASE

    def __init__(self, site, archive, number, drives=(), change=lambda machine: None):
        self.archive, self.change = archive, change
        self.object = f"{BUCKET}/{PREFIX}{archive.key}"
        super().__init__(site, archive, number, drives)
        # Its firewall is its own, as its network is.
        self.options = ("--capability=CAP_NET_ADMIN",)

    def prepare(self):
        self.files = {path: STUB for path in self.archive.downloads} | PROGRAMS
        # What it would unpack is no archive here.
        self.files["/opt/infra/bin/unpack-cni"] = STUB
        self.settings = {}
        # The role of a pool's machines has s3:GetObject alone.
        self.aws.may_list = False
        deep_learning_image.furnish(self, self.instance)
        environment = {
            "INFRA_BACKOFF_MILLISECONDS": "100", "INFRA_DOWNLOAD_PROTOCOLS": "=http", **self.stack_settings(), **self.aws.environment(),
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{self.aws.url}/imds/",
        }
        self.serve()
        self.write("usr/local/bin/aws", AWS, 0o755)
        self.write("usr/bin/nvidia-smi", "#!/bin/sh\necho 580.126.09\n", 0o755)
        self.write("usr/bin/nv-fabricmanager", "#!/bin/sh\necho 'Fabric Manager version is : 580.126.09'\n", 0o755)
        (self.root / "usr/sbin/mount.nfs4").unlink(missing_ok=True)
        self.write("usr/sbin/mount.nfs4", NFS_CLIENT, 0o755)
        self.write("var/console", "")
        (self.root / "srv/server").mkdir(parents=True)
        self.add_drives()
        self.change(self)
        deep_learning_image.set_environment(self, environment | self.settings)

    def serve(self):
        """The archive, in which downloads lead to this machine's stand-in, and the script with its digest."""
        self.aws.files |= {path.lstrip("/"): content for path, content in self.files.items()}
        self.aws.objects[self.object], user_data = self.archive.served(self.files, f"{self.aws.url}/files")
        deep_learning_image.give_user_data(self, user_data)

    def replace_file(self, path, content):
        self.files[path] = content
        self.serve()

    replace_program = replace_file
