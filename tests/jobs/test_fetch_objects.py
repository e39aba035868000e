"""The part of the program on the claim that fetches objects by links: once, again, after breaks, and what S3 refuses."""

import json
import os
import pathlib
import subprocess
import time
import unittest

from claim_program import ClaimProgram
from object_server import ObjectServer

DIRECTORY = "train/.infra/objects-1"
STAMP = "train/.infra/data-1.ready"
STATE = {"source": "s3://bucket/set/", "objects": "1"}
LARGE = 9 << 20


class FetchObjects(ClaimProgram):
    def setUp(self):
        super().setUp()
        self.start(INFRA_PAUSE="0.01")
        server = ObjectServer({"a.txt": b"one\n", "deep/er/b.bin": os.urandom(200_000), "empty": b""})
        serving = server.serving()
        self.server = serving.__enter__()
        self.addCleanup(serving.__exit__, None, None, None)
        self.tree = self.claim / DIRECTORY / "tree"

    def begin(self, **changes):
        request = {"directory": DIRECTORY, "stamp": STAMP, "placed": ["train/data"], "state": STATE, **changes}
        return self.ask(do="objects-begin", **request)["imported"]

    def entries(self, **changes):
        return [self.server.entry(key, **changes) for key in sorted(self.server.objects)]

    def missing(self, entries):
        told = [{name: entry[name] for name in ("path", "size", "etag", "modified")} for entry in entries]
        return self.ask(do="objects-missing", entries=told)["needed"]

    def fetch(self, entries):
        """What S3 refused, and all that was told."""
        self.send(do="objects-fetch", entries=entries)
        news = []
        while True:
            answer, _ = self.receive()
            self.assertNotIn("secret", json.dumps(answer))
            news.append(answer)
            if answer.get("end"):
                return answer["refused"], news

    def fetch_all(self):
        """As `infra job submit` does it."""
        if self.begin():
            return []
        entries = self.entries()
        needed = [entries[number] for number, _ in self.missing(entries)]
        self.assertEqual(self.ask(do="objects-prepare", bytes=sum(entry["size"] for entry in needed)), {})
        self.assertEqual(self.fetch(needed)[0], [])
        self.assertEqual(self.ask(do="objects-finish", state=STATE), {})
        return [entry["path"] for entry in needed]

    def expect_all(self):
        found = {str(path.relative_to(self.tree)): path.read_bytes() for path in self.tree.rglob("*") if path.is_file()}
        self.assertEqual(found, self.server.objects)

    def test_objects_become_files_with_their_times_once(self):
        self.assertEqual(self.fetch_all(), ["a.txt", "deep/er/b.bin", "empty"])
        self.expect_all()
        status = (self.tree / "a.txt").stat()
        self.assertEqual((status.st_mtime, status.st_mode & 0o777), (1_700_000_000, 0o644))
        self.assertEqual(json.loads((self.claim / DIRECTORY / "complete.json").read_text()), STATE)
        self.assertEqual(sorted(path.name for path in (self.claim / DIRECTORY).iterdir()), ["complete.json", "tree"])
        self.start()
        self.assertEqual(self.fetch_all(), [])
        self.assertEqual(len(self.server.asked), 3)

    def test_only_what_changed_is_fetched_again_and_what_is_gone_is_deleted(self):
        self.fetch_all()
        self.server.objects["a.txt"] = b"three\n"
        del self.server.objects["deep/er/b.bin"]
        # A file where a directory was.
        self.server.objects["deep"] = b"file"
        self.assertEqual(self.fetch_all(), ["a.txt", "deep"])
        self.expect_all()

    def test_an_object_of_the_same_size_that_was_written_again_is_missing(self):
        self.fetch_all()
        self.assertEqual(self.missing(self.entries()), [])
        self.assertEqual(len(self.missing(self.entries(modified=1_700_000_001))), 3)

    def test_files_that_an_import_has_placed_are_used_again(self):
        self.fetch_all()
        (self.tree).rename(self.claim / "train/data")
        self.assertEqual(self.fetch_all(), [])
        self.expect_all()
        self.assertTrue((self.tree / "a.txt").samefile(self.claim / "train/data/a.txt"))

    def test_an_import_that_is_complete_needs_nothing(self):
        (self.claim / STAMP).parent.mkdir(parents=True)
        (self.claim / STAMP).write_text(json.dumps({**STATE, "objects": "0"}))
        self.assertFalse(self.begin())
        (self.claim / STAMP).write_text(json.dumps(STATE))
        self.assertTrue(self.begin())
        self.assertEqual(json.loads((self.claim / DIRECTORY / "complete.json").read_text()), STATE)
        (self.claim / STAMP).write_text("{")
        self.assertFalse(self.begin())
        self.assertFalse((self.claim / DIRECTORY / "complete.json").exists())

    def test_a_large_object_continues_at_its_byte(self):
        self.server.objects = {"large": os.urandom(LARGE)}
        self.server.faults = [5_000_000]
        self.begin()
        refused, news = self.fetch(self.entries())
        self.assertEqual(refused, [])
        self.assertEqual(self.server.asked, [("large", None), ("large", "bytes=5000000-")])
        self.assertIn("large: ", news[0]["notes"][0] if news[0]["notes"] else news[1]["notes"][0])
        self.assertEqual(sum(answer["bytes"] for answer in news), LARGE)
        self.expect_all()

    def test_a_killed_program_continues_at_what_is_safe(self):
        self.server.objects = {"large": os.urandom(LARGE)}
        self.server.faults, self.server.stalls = [6_000_000], True
        self.begin()
        self.send(do="objects-fetch", entries=self.entries())
        record, end = self.claim / DIRECTORY / "parts", time.monotonic() + 60
        while not list(record.glob("*.done")):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        self.kill()
        self.start(INFRA_PAUSE="0.01")
        self.begin()
        (_, arrived), = self.missing(self.entries())
        self.assertGreater(arrived, 0)
        self.fetch(self.entries())
        self.assertEqual(self.server.asked[-1], ("large", f"bytes={arrived}-"))
        self.expect_all()

    def test_a_part_belongs_to_one_version(self):
        self.server.objects = {"large": os.urandom(LARGE)}
        entries = self.entries()
        self.begin()
        self.server.faults = [4_000_000, (403, "AccessDenied", "Request has expired")]
        self.fetch(entries)
        self.assertEqual(self.missing(entries), [[0, 4_000_000]])
        self.server.objects = {"large": os.urandom(LARGE)}
        self.assertEqual(self.missing(self.entries()), [[0, 0]])
        self.fetch(self.entries())
        self.expect_all()

    def test_what_s3_refuses_is_told_in_its_words_and_the_others_arrive(self):
        entries = self.entries()
        self.server.objects["a.txt"] = b"two\n"
        del self.server.objects["empty"]
        self.begin()
        refused, _ = self.fetch(entries)
        self.assertEqual(sorted((one["number"], one["code"]) for one in refused), [(0, "PreconditionFailed"), (2, "PreconditionFailed")])
        self.assertTrue((self.tree / "deep/er/b.bin").exists())
        for status, code in [(403, "AccessDenied"), (400, "ExpiredToken"), (403, "InvalidObjectState")]:
            self.server.faults = [(status, code, "Because")]
            refused, _ = self.fetch([self.server.entry("a.txt")])
            self.assertEqual(refused, [{"number": 0, "code": code, "message": "Because"}])

    def test_what_passes_is_tried_again(self):
        self.server.faults = [(503, "SlowDown", "Please reduce your request rate."), (500, "InternalError", "We"), 2]
        self.begin()
        refused, news = self.fetch([self.server.entry("a.txt")])
        self.assertEqual(refused, [])
        notes = [note for answer in news for note in answer["notes"]]
        self.assertIn("a.txt: SlowDown: Please reduce your request rate.; trying again", notes)
        self.assertEqual(sum(answer["bytes"] for answer in news), 4)
        self.assertEqual((self.tree / "a.txt").read_bytes(), b"one\n")

    def test_an_object_that_never_comes_is_given_up(self):
        self.start(INFRA_PAUSE="0.01", INFRA_DATA_PATIENCE="0.1")
        self.server.faults = [(503, "SlowDown", "Slow")] * 99
        self.begin()
        refused, _ = self.fetch([self.server.entry("a.txt")])
        self.assertEqual(refused[0]["code"], "Broken")
        self.assertIn("SlowDown: Slow; there was no new byte for 0.1 s", refused[0]["message"])

    def test_a_link_that_cannot_be_used_is_not_quoted(self):
        self.start(INFRA_PAUSE="0.01", INFRA_DATA_PATIENCE="0.1")
        self.begin()
        for link in ["http://127.0.0.1:1/a?X-Amz-Signature=secret", "http://127.0.0.1:1/a b?X-Amz-Signature=secret", "secret?X-Amz=secret"]:
            refused, _ = self.fetch([self.server.entry("a.txt", link=link)])
            self.assertEqual(refused[0]["code"], "Broken")

    def test_no_link_is_kept(self):
        self.server.objects = {"large": os.urandom(LARGE)}
        self.begin()
        self.server.faults = [4_000_000, (403, "AccessDenied", "Request has expired")]
        self.fetch(self.entries())
        arguments = pathlib.Path(f"/proc/{self.process.pid}/cmdline").read_bytes() + pathlib.Path(f"/proc/{self.process.pid}/environ").read_bytes()
        self.assertNotIn(b"Signature", arguments)
        self.fetch_all()
        found = subprocess.run(["grep", "-r", "X-Amz-Signature", self.claim], capture_output=True, text=True)
        self.assertEqual((found.returncode, found.stdout), (1, ""))

    def test_paths_that_leave_the_claim_are_refused(self):
        self.begin()
        self.send(do="objects-missing", entries=[{"path": "../out", "size": 1, "etag": '"1"', "modified": 1}])
        self.assertIn("outside of the claim", self.receive()[0]["error"])

    def test_a_full_claim_is_refused_before_anything_is_fetched(self):
        self.begin()
        self.send(do="objects-prepare", bytes=1 << 60)
        self.assertRegex(self.receive()[0]["error"], f"{1 << 60} bytes are missing, and [0-9]+ are free: delete something there first")

    def test_objects_that_nobody_finished_are_deleted_after_a_week(self):
        stale = self.claim / "train/.infra/objects-0/tree"
        stale.mkdir(parents=True)
        (stale / "x").write_bytes(b"x")
        os.utime(stale.parent, (1, 1))
        self.begin()
        self.assertFalse(stale.parent.exists())
        self.assertTrue((self.claim / DIRECTORY).is_dir())


if __name__ == "__main__":
    unittest.main()
