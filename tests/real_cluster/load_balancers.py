"""Load balancers of the stand-in, made of nftables' rules: each listener leads to the targets that pass its health check.

Client addresses are not preserved, as the target groups of the API and classic load balancers have it.
"""

import http.client
import socket
import ssl
import subprocess
import threading
import time

from container import run

ANSWER_SECONDS = 6
LOOK_SECONDS = 1
# Failed health checks in a row after which a target is unhealthy.
UNHEALTHY_THRESHOLD = 2

# As load balancers do: they trust any certificate.
TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname, TRUSTING.verify_mode = False, ssl.CERT_NONE


class LoadBalancers:
    """Runs its checks on a thread of its own, in the network namespace that it is made in (see container.inside)."""

    def __init__(self, namespace, base, log):
        """`log` is a file with the targets of the listeners, and when they changed."""
        self.namespace, self.base, self.log = namespace, base, log
        self.balancers, self.addresses, self.rules = [], set(), None
        # How many checks in a row have failed, by address and check; a target that was not checked yet is unhealthy.
        self.failed_checks = {}
        # The checks of this round: listeners may have one in common.
        self.checked = set()
        self.failures = []
        self.stopping = threading.Event()
        # A thread begins in the namespace of the one that starts it.
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def close(self):
        self.stopping.set()
        self.thread.join()

    def watch(self):
        while not self.stopping.wait(LOOK_SECONDS):
            try:
                self.settle()
            except Exception as error:
                self.failures.append(f"the load balancers: {error!r}")

    def settle(self):
        wanted = {address for balancer in self.balancers for address in balancer["addresses"]}
        for address in wanted - self.addresses:
            run("ip", "-n", self.namespace, "address", "add", f"{address}/32", "dev", "bridge")
        for address in self.addresses - wanted:
            run("ip", "-n", self.namespace, "address", "delete", f"{address}/32", "dev", "bridge")
        self.addresses = wanted
        self.checked.clear()
        rules = "".join(self.rules_of(balancer) for balancer in self.balancers)
        if rules != self.rules:
            self.load(rules)
            self.rules = rules
            with self.log.open("a") as log:
                log.write(f"{time.strftime('%H:%M:%S')}\n{rules}")

    def rules_of(self, balancer):
        rules = ""
        for listener in balancer["listeners"]:
            targets = list(listener["targets"].values())
            healthy = [address for address in targets if self.check(address, listener["healthCheck"])]
            if not healthy and balancer["triesUnhealthy"]:
                healthy = targets
            if not healthy or not balancer["addresses"]:
                continue
            targets = ", ".join(f"{number} : {address}" for number, address in enumerate(healthy))
            rules += (f"    ip daddr {{ {', '.join(balancer['addresses'])} }} tcp dport {listener['port']} "
                      f"dnat to numgen inc mod {len(healthy)} map {{ {targets} }} : {listener['targetPort']}\n")
        return rules

    def check(self, address, check):
        target = (address, *check.values())
        if target not in self.checked:
            self.checked.add(target)
            self.failed_checks[target] = 0 if is_healthy(address, check) else self.failed_checks.get(target, UNHEALTHY_THRESHOLD) + 1
        return self.failed_checks[target] < UNHEALTHY_THRESHOLD

    def load(self, rules):
        text = ("table ip balancers {}\nflush table ip balancers\ntable ip balancers {\n"
                f"  chain lead {{\n    type nat hook prerouting priority dstnat;\n{rules}  }}\n"
                "  chain hide {\n    type nat hook postrouting priority srcnat;\n    ct status dnat masquerade\n  }\n}\n")
        command = ["ip", "netns", "exec", self.namespace, "chroot", self.base, "/usr/sbin/nft", "--file", "-"]
        done = subprocess.run(command, input=text, text=True, capture_output=True)
        if done.returncode:
            raise AssertionError(f"nft: {done.stderr}\n{text}")


def is_healthy(address, check):
    if check["protocol"] == "TCP":
        return is_listening(address, check["port"])
    if check["protocol"] == "HTTPS":
        connection = http.client.HTTPSConnection(address, check["port"], timeout=ANSWER_SECONDS, context=TRUSTING)
    elif check["protocol"] == "HTTP":
        connection = http.client.HTTPConnection(address, check["port"], timeout=ANSWER_SECONDS)
    else:
        raise ValueError(f"health checks over {check['protocol']} are not known here")
    try:
        connection.request("GET", check["path"])
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_listening(address, port):
    try:
        socket.create_connection((address, port), ANSWER_SECONDS).close()
        return True
    except OSError:
        return False
