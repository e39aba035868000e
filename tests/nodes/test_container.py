"""The network that machines of the tests are connected to."""

import pathlib
import socket
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from container import bridged_namespace, inside, run, switch_namespace  # noqa: E402
from machine import why_not  # noqa: E402

IMPOSSIBLE = why_not()


@unittest.skipIf(IMPOSSIBLE, IMPOSSIBLE)
class Switch(unittest.TestCase):
    def test_a_machine_that_joins_or_leaves_does_not_silence_the_others(self):
        switch = self.enterContext(switch_namespace("switch"))
        run("ip", "-n", switch, "address", "add", "192.0.2.1/24", "dev", "bridge")
        first = self.enterContext(bridged_namespace(switch, "first", "192.0.2.11"))
        server = inside(switch, lambda: socket.create_server(("192.0.2.1", 0)))
        self.addCleanup(server.close)
        self.connect(first, server)
        # A machine with the lowest MAC address joins, and leaves.
        run("ip", "-n", switch, "link", "add", "lowest", "address", "02:00:00:00:00:01", "type", "veth", "peer", "other")
        run("ip", "-n", switch, "link", "set", "lowest", "master", "bridge", "up")
        self.connect(first, server)
        run("ip", "-n", switch, "link", "delete", "lowest")
        self.connect(first, server)

    def connect(self, namespace, server):
        inside(namespace, lambda: socket.create_connection(server.getsockname(), 3)).close()


if __name__ == "__main__":
    unittest.main()
