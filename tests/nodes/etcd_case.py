"""A machine of an etcd member, for the scripts that run beside the member."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from node_case import Node  # noqa: E402


class Etcd(Node):
    """What runs beside the member; docker is a stub."""

    def setUp(self):
        super().setUp()
        self.write("etc/infra/etcd-image.env", "INFRA_ETCD_IMAGE=registry.k8s.io/etcd:3.6.8-0\n")
        self.write(
            "etc/etcd/etcd.env",
            """\
            ETCD_NAME=etcd-1
            ETCD_INITIAL_CLUSTER=etcd-0=https://etcd-0.paddle.infra.internal:2380,etcd-1=https://etcd-1.paddle.infra.internal:2380
            ETCD_INITIAL_CLUSTER_TOKEN=paddle
            ETCD_INITIAL_ADVERTISE_PEER_URLS=https://etcd-1.paddle.infra.internal:2380
            ETCD_TRUSTED_CA_FILE=/etc/etcd/pki/ca.pem
            ETCD_CERT_FILE=/etc/etcd/pki/member.pem
            ETCD_KEY_FILE=/etc/etcd/pki/member-key.pem
            """,
        )
        self.data = self.root / "var/lib/etcd"
        (self.data / "lost+found").mkdir(parents=True)
        self.stub("docker", "exit 98")

    def set_state(self, state):
        self.write("run/infra/etcd-state", f"{state}\n")
