"""Tests that boot machines of one golden cluster, and leave none behind."""

import tempfile
import unittest

from machine import Site


class Boot(unittest.TestCase):
    cluster = None

    def run(self, result=None):
        # An interrupted unittest does not clean up.
        try:
            return super().run(result)
        finally:
            self.doCleanups()

    def setUp(self):
        self.site = Site(self.enterContext(tempfile.TemporaryDirectory(prefix="infra-boot-")), self.cluster)
        self.enterContext(self.site)
