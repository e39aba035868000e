"""The network of a VPC: a bridge in a network namespace of its own, with what AWS has in every VPC.

The gateway, the resolver (dnsmasq), the metadata service, AWS's endpoints and the load balancers have addresses on the bridge;
machines and the operator are connected to it. Subnets are one segment here, and security groups let everything through.
"""

import contextlib
import ipaddress
import pathlib
import signal
import subprocess
import urllib.parse

import authority
from aws_endpoints import AwsEndpoints
from container import bridged_namespace, inside, run, switch_namespace
from load_balancers import LoadBalancers
from metadata_service import ADDRESS as METADATA_ADDRESS, MetadataService

# Of AWS's endpoints in a region; a star stands for one label.
NAMES = ["*.amazonaws.com", "*.{region}.amazonaws.com", "*.s3.amazonaws.com", "*.s3.{region}.amazonaws.com",
         "*.s3.dualstack.{region}.amazonaws.com"]


class Network(contextlib.ExitStack):
    """`show` tells it what the stand-in says; names, load balancers and metadata follow."""

    def __init__(self, scratch, region, cidr, stand_in_url, credentials_of, base, downloads):
        super().__init__()
        self.scratch, self.region, self.block = pathlib.Path(scratch), region, ipaddress.ip_network(cidr)
        self.gateway, self.resolver, self.endpoints_address, self.operator_address = (str(self.block[number]) for number in (1, 2, 3, 250))
        self.stand_in_url, self.credentials_of = stand_in_url, credentials_of
        self.base = base
        # Files of other servers than AWS's, by their address.
        self.downloads = downloads
        # Names that a test adds, each with its addresses.
        self.more_names = {}
        # Written once: commands that run at the same time read it.
        self.resolver_settings = self.scratch / "resolv.conf"
        self.resolver_settings.write_text(f"nameserver {self.resolver}\n")

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.switch = stack.enter_context(switch_namespace("vpc"))
            for address in (self.gateway, self.resolver, self.endpoints_address):
                run("ip", "-n", self.switch, "address", "add", f"{address}/{self.block.prefixlen}", "dev", "bridge")
            run("ip", "-n", self.switch, "address", "add", f"{METADATA_ADDRESS}/32", "dev", "bridge")
            # Frames between machines are no business of the load balancers' rules, and those that come back to their sender would be lost.
            for setting in ("net.ipv4.ip_forward=1", "net.bridge.bridge-nf-call-iptables=0"):
                run("ip", "netns", "exec", self.switch, "sysctl", "--quiet", "--ignore", "--write", setting)
            self.operator = stack.enter_context(bridged_namespace(self.switch, "operator", self.operator_address, self.block.prefixlen))
            self.start_services(stack)
            self.push(stack.pop_all())
        return self

    def start_services(self, stack):
        others = sorted({urllib.parse.urlsplit(address).hostname for address in self.downloads})
        certificate, key = authority.issue(self.scratch, *(name.format(region=self.region) for name in NAMES), *others)
        self.aws = inside(
            self.switch, lambda: AwsEndpoints(self.stand_in_url, self.endpoints_address, certificate, key, self.downloads))
        self.metadata = inside(self.switch, lambda: MetadataService(self.credentials_of))
        for service in (self.aws, self.metadata):
            service.start()
            stack.callback(service.close)
        self.load_balancers = inside(self.switch, lambda: LoadBalancers(self.switch, self.base, self.scratch / "load-balancers.log"))
        stack.callback(self.load_balancers.close)
        self.start_resolver(stack, others)

    def start_resolver(self, stack, others):
        """dnsmasq, in the namespace of the bridge and with Debian's libraries."""
        directory = self.scratch / "resolver"
        directory.mkdir()
        self.hosts = directory / "hosts"
        self.hosts.write_text("")
        inside_base = 'mount --bind "$1" "$2/mnt" && base=$2 && shift 2 && exec chroot "$base" "$@"'
        settings = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--user=root", "--pid-file=", "--bind-interfaces", "--local-ttl=1",
                    f"--listen-address={self.resolver}", "--addn-hosts=/mnt/hosts", f"--address=/amazonaws.com/{self.endpoints_address}",
                    *(f"--address=/{name}/{self.endpoints_address}" for name in others),
                    # A load balancer's name ends with it.
                    *(f"--address=/{name}/" for name in ("elb.amazonaws.com", f"elb.{self.region}.amazonaws.com")),
                    # There is no other server to ask: unknown names do not exist.
                    "--address=/#/"]
        command = ["setpriv", "--pdeathsig", "TERM", "nsenter", f"--net=/run/netns/{self.switch}", "unshare", "--mount",
                   "sh", "-c", inside_base, "resolver", directory, self.base, "dnsmasq", *settings]
        with (self.scratch / "resolver.log").open("wb") as log:
            self.dns = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(lambda: (self.dns.terminate(), self.dns.wait()))

    def show(self, site, machines):
        """What the stand-in says, with the machines that are switched on."""
        self.metadata.machines = {machine["address"]: machine for machine in machines}
        self.load_balancers.balancers = site["balancers"]
        names = self.more_names | site["records"] | {machine["name"]: [machine["address"]] for machine in machines}
        text = "".join(f"{address} {name}\n" for name, addresses in sorted(names.items()) for address in addresses)
        if text != self.hosts.read_text():
            part = self.hosts.with_suffix(".part")
            part.write_text(text)
            part.rename(self.hosts)
            self.dns.send_signal(signal.SIGHUP)

    def connect(self, name, machine):
        """A network namespace for a machine, with its address and the routes that DHCP would give."""
        stack = contextlib.ExitStack()
        with contextlib.ExitStack() as failing:
            failing.push(stack)
            inner = stack.enter_context(bridged_namespace(self.switch, name, machine["address"], self.block.prefixlen))
            run("ip", "-n", inner, "route", "add", "default", "via", self.gateway)
            run("ip", "-n", inner, "route", "add", METADATA_ADDRESS, "dev", "eth0")
            machine["mac"] = run("ip", "netns", "exec", inner, "cat", "/sys/class/net/eth0/address").strip()
            failing.pop_all()
        return inner, stack

    def command(self, namespace, *words):
        """A command that runs in a namespace and asks the resolver of the VPC."""
        bind = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        return ["nsenter", f"--net=/run/netns/{namespace}", "unshare", "--mount", "sh", "-c", bind, self.resolver_settings, *words]
