"""The import of archives on the web, run for real against a server whose transfers break."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from breaking_server import BreakingServer, day
from imports import FILES, MISCONFIGURED, Imports, tar

# Nobody can compress it, so that the archive has about this length.
LARGE = {"train.txt": b"\n".join(os.urandom(1000).replace(b"\n", b"") for _ in range(300))}
# The end of the process in the middle of unpacking.
KILLED_WHILE_UNPACKING = """
import os, runpy, sys, tarfile
sys.path.insert(0, os.path.dirname(sys.argv[1]))
tarfile.open = lambda *arguments: os._exit(137)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class Web(Imports):
    def setUp(self):
        super().setUp()
        self.environment |= {"INFRA_PAUSE": "0.02", "INFRA_DATA_PATIENCE": "60"}

    def assert_imported(self, files):
        parts = [(self.root / f"{number}/data/train.txt").read_bytes() for number in range(3)]
        self.assertEqual(b"".join(parts), files["train.txt"])

    @property
    def downloads(self):
        return sorted(path.name for path in self.root.glob(".infra/download-*"))


class Resumed(Web):
    def test_a_transfer_that_breaks_continues_at_the_byte_where_it_stopped(self):
        contents = tar(LARGE)
        for chunked in (False, True):
            server = BreakingServer(contents, cuts=[100_000, 50_000], chunked=chunked)
            with self.subTest(chunked=chunked), server.serving() as url:
                text = self.run_import(DATA_SOURCE=url)
                # The last byte that is there is fetched again each time.
                self.assertEqual(server.asked, [None, "99999-", "149998-"])
                self.assertEqual(server.sent, len(contents) + 2)
                self.assertIn("trying again in 0.02 s, from byte 100000 on", text)
                self.assert_imported(LARGE)
            # Another file than the next one.
            self.assertEqual(self.downloads, [])

    def test_the_next_pod_continues_where_the_last_one_was_killed(self):
        contents = tar(LARGE)
        server = BreakingServer(contents, cuts=[200_000])
        server.stalls = True
        with server.serving() as url:
            process = subprocess.Popen(
                self.command(), env={**self.environment, "DATA_SOURCE": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            server.await_bytes(200_000)
            # The last bytes may be nowhere but in the memory of the machine that is lost.
            record = self.await_record()
            process.send_signal(signal.SIGKILL)
            process.wait()
            safe = json.loads(record.read_text())["done"]
            self.assertGreater(safe, 0)
            with open(record.with_suffix(""), "r+b") as file:
                file.seek(safe)
                file.write(b"what a lost machine left")
            text = self.run_import(DATA_SOURCE=url)
        self.assertIn(f"fetching {url.split('?')[0]}, from byte {safe} on", text)
        self.assertEqual(server.asked, [None, f"{safe - 1}-"])
        self.assert_imported(LARGE)

    def await_record(self):
        end = time.monotonic() + 60
        while not (found := list(self.root.glob(".infra/download-*.json"))):
            self.assertLess(time.monotonic(), end, "nothing is recorded")
            time.sleep(0.01)
        return found[0]

    def test_a_failed_import_is_continued_by_the_next(self):
        server = BreakingServer(tar(LARGE), cuts=[150_000])
        with server.serving() as url:
            text = self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0")
            self.assertIn("the answer ended after 150000 of ", text)
            self.assertIn("150000 bytes have arrived", text)
            self.assertEqual(self.tree(), {})
            self.run_import(DATA_SOURCE=url)
        self.assertEqual(server.asked, [None, "149999-"])
        self.assert_imported(LARGE)

    def test_an_archive_that_arrived_is_not_fetched_again(self):
        contents = tar(LARGE)
        for ranges in (True, False):
            server = BreakingServer(contents, ranges=ranges)
            with self.subTest(ranges=ranges), server.serving() as url:
                self.options = ["-c", KILLED_WHILE_UNPACKING]
                subprocess.run(self.command(), env={**self.environment, "DATA_SOURCE": url}, capture_output=True)
                self.options = ()
                self.assertEqual(self.downloads[0] + ".json", self.downloads[1])
                sent = server.sent
                self.run_import(DATA_SOURCE=url)
                self.assertEqual(server.asked, [None, f"{len(contents) - 1}-"])
                if ranges:
                    self.assertEqual(server.sent - sent, 1)
                self.assert_imported(LARGE)

    def test_a_file_that_changed_is_fetched_from_the_beginning(self):
        other = {"train.txt": LARGE["train.txt"][::-1]}
        for obeys in (True, False):
            for before, after in (({"tag": '"one"'}, {"tag": '"two"'}), ({"tag": None, "modified": day(1)}, {"tag": None, "modified": day(2)})):
                server = BreakingServer(tar(LARGE), cuts=[100_000], obeys_if_range=obeys, **before)
                with self.subTest(obeys=obeys, after=after), server.serving() as url:
                    self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0")
                    server.contents = tar(other)
                    for key, value in after.items():
                        setattr(server, key, value)
                    self.run_import(DATA_SOURCE=url)
                    self.assertEqual(server.asked[:2], [None, "99999-"])
                    self.assert_imported(other)

    def test_a_file_that_became_shorter_is_fetched_from_the_beginning(self):
        server = BreakingServer(tar(LARGE), cuts=[200_000], obeys_if_range=False)
        with server.serving() as url:
            self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0")
            server.contents, server.tag = tar(FILES), '"two"'
            self.assertIn("the file is shorter now", self.run_import(DATA_SOURCE=url))
        self.assert_imported(FILES)

    def test_versions_are_compared_by_what_proves_them(self):
        contents = tar(LARGE)
        for tag, modified, asked in (
            ('"one"', None, "99999-"), (None, day(1), "99999-"), ('W/"one"', day(1), "99999-"),
            # A weak tag is the same although bytes differ.
            ('W/"one"', None, None), (None, None, None),
        ):
            server = BreakingServer(contents, cuts=[100_000], tag=tag, modified=modified)
            with self.subTest(tag=tag, modified=modified), server.serving() as url:
                self.run_import(DATA_SOURCE=url)
                self.assertEqual(server.asked, [None, asked])
                self.assert_imported(LARGE)

    def test_a_server_without_ranges_sends_all_of_it_again(self):
        server = BreakingServer(tar(LARGE), cuts=[100_000, 200_000], ranges=False)
        with server.serving() as url:
            self.run_import(DATA_SOURCE=url)
        self.assertEqual(server.asked, [None, "99999-", "199999-"])
        self.assert_imported(LARGE)

    def test_a_redirection_continues_too(self):
        server = BreakingServer(tar(LARGE), cuts=[100_000])
        server.redirects = True
        with server.serving() as url:
            self.run_import(DATA_SOURCE=url)
        self.assertEqual(server.asked, [None, "99999-"])
        self.assert_imported(LARGE)

    def test_pauses_grow_until_something_arrives(self):
        server = BreakingServer(tar(LARGE), cuts=[0, 0, 0, 100_000, 0])
        with server.serving() as url:
            text = self.run_import(DATA_SOURCE=url)
        self.assertEqual(re.findall(r"trying again in (\S+) s", text), ["0.02", "0.04", "0.08", "0.02", "0.04"])

    def test_sending_the_same_bytes_again_is_no_progress(self):
        # Without ranges it never gets further, however often it begins.
        server = BreakingServer(tar(LARGE), cuts=[100_000] * 1000, ranges=False)
        with server.serving() as url:
            began = time.monotonic()
            self.assertIn("100000 bytes have arrived", self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="1"))
            self.assertLess(time.monotonic() - began, 30)
        self.assertGreater(len(server.asked), 2)


class Given(Web):
    def test_an_archive_on_the_web_is_fetched_once(self):
        with BreakingServer(tar(FILES)).serving() as url:
            self.run_import(DATA_SOURCE=url)
            self.assertEqual(len(self.tree()), 11)
            self.assertIn("already imported", self.run_import(DATA_SOURCE=url))
        # There is nobody to ask any more.
        text = self.run_import(DATA_SOURCE=url)
        self.assertIn("cannot be compared with what was imported", text)
        self.assertIn("already imported", text)
        state = json.loads(pathlib.Path(self.environment["DATA_STAMP"]).read_text())
        self.assertEqual(state, {"source": url, "version": '"one"', "length": len(tar(FILES))})

    def test_an_archive_that_changed_on_the_web_is_imported_again(self):
        server = BreakingServer(tar(FILES))
        with server.serving() as url:
            self.run_import(DATA_SOURCE=url)
            server.contents, server.tag = tar(LARGE), '"two"'
            self.assertIn("in 3 parts", self.run_import(DATA_SOURCE=url))
            self.assert_imported(LARGE)
            # What an earlier version of infra imported says nothing of its version.
            pathlib.Path(self.environment["DATA_STAMP"]).write_text(json.dumps({"source": url}))
            self.assertIn("already imported", self.run_import(DATA_SOURCE=url))

    def test_a_server_that_cannot_answer_is_asked_again(self):
        server = BreakingServer(tar(FILES), status=503)
        with server.serving() as url:
            self.assertIn("503 Service Unavailable", self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0.5"))
        self.assertGreater(len(server.asked), 2)
        self.assertIn("refused", self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0"))

    def test_an_archive_that_is_not_there_is_not_asked_for_again(self):
        server = BreakingServer(tar(LARGE), cuts=[100_000])
        with server.serving() as url:
            self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0")
            for status in (401, 403, 404, 410):
                server.status, server.asked = status, []
                self.assertIn(f"cannot be fetched: {status} ", self.run_import(MISCONFIGURED, DATA_SOURCE=url))
                self.assertEqual(len(server.asked), 1)
            # Whoever gives access to it again has what arrived before.
            server.status, server.asked = 200, []
            self.run_import(DATA_SOURCE=url)
        self.assertEqual(server.asked, ["99999-"])

    def test_what_follows_the_path_is_not_printed(self):
        server = BreakingServer(tar(LARGE), cuts=[100_000])
        with server.serving() as url:
            self.assertNotIn("secret", self.run_import(DATA_SOURCE=url))
        server.status = 404
        with server.serving() as url:
            self.assertNotIn("secret", self.run_import(MISCONFIGURED, DATA_SOURCE=url))

    def test_a_download_does_not_fill_the_claim(self):
        contents = tar({"train.txt": os.urandom(3 << 20)})
        for chunked in (False, True):
            with BreakingServer(contents, chunked=chunked).serving() as url:
                text = self.run_import(MISCONFIGURED, DATA_SOURCE=url, DATA_SIZE_LIMIT=str(1 << 20))
            self.assertIn(f"with {url.split('?')[0]} the data has more than 1048576 bytes", text)
            self.assertEqual(self.downloads, [])

    def test_what_arrived_counts_once(self):
        # A limit between the size of the file and that of the file with what is fetched again.
        contents = tar(LARGE)
        with BreakingServer(contents, cuts=[200_000]).serving() as url:
            self.run_import(DATA_SOURCE=url, DATA_SIZE_LIMIT=str(len(contents) + 40_000))

    def test_a_broken_archive_is_fetched_again_if_it_arrived_in_parts(self):
        broken = bytearray(tar(LARGE))
        broken[100:200] = bytes(100)
        with BreakingServer(bytes(broken)).serving() as url:
            self.assertIn("cannot be unpacked", self.run_import(MISCONFIGURED, DATA_SOURCE=url))
        self.assertEqual(self.downloads, [])
        server = BreakingServer(bytes(broken), cuts=[100_000])
        with server.serving() as url:
            text = self.run_import(1, DATA_SOURCE=url)
            self.assertIn("arrived in 2 parts and cannot be unpacked", text)
            self.assertEqual(self.downloads, [])
            server.asked = []
            self.assertIn("cannot be unpacked", self.run_import(MISCONFIGURED, DATA_SOURCE=url))
        self.assertEqual(server.asked, [None])

    def test_another_import_deletes_what_arrived(self):
        with BreakingServer(tar(LARGE), cuts=[100_000]).serving() as url:
            self.run_import(1, DATA_SOURCE=url, INFRA_DATA_PATIENCE="0")
        self.assertEqual(len(self.downloads), 2)
        self.archive.write_bytes(tar(FILES))
        self.run_import()
        self.assertEqual(self.downloads, [])


class Evicted(Web):
    def start(self, status, url, job="uid-2"):
        return self.run_import(status, DATA_SOURCE=url, INFRA_JOB_UID=job, INFRA_DATA_PATIENCE="0")

    def test_an_import_that_gets_no_further_ends(self):
        self.assertEqual(self.environment["INFRA_JOB_UID"], "uid-2")
        with BreakingServer(tar(LARGE), cuts=[0] * 40).serving() as url:
            for _ in range(10):
                self.start(1, url)
            text = self.start(MISCONFIGURED, url)
            self.assertIn("the import was started 10 times and gets no further: its pods are evicted, or their machines are lost", text)
            # Submitted again, it is another Job.
            self.start(1, url, job="uid-3")

    def test_another_job_counts_from_the_beginning(self):
        with BreakingServer(tar(LARGE), cuts=[0] * 40).serving() as url:
            for job in ("uid-2", "uid-3"):
                for _ in range(10):
                    self.start(1, url, job)

    def test_an_import_that_gets_further_goes_on(self):
        with BreakingServer(tar(LARGE), cuts=[20_000] * 14).serving() as url:
            for _ in range(14):
                self.start(1, url)
            self.start(0, url)
        self.assert_imported(LARGE)


if __name__ == "__main__":
    unittest.main()
