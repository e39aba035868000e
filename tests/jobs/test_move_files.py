"""The program that reads and writes the claim for `infra data`, over a pipe: what arrives is what was sent, and nothing leaves the claim."""

import hashlib
import json
import os
import shutil
import unittest

from claim_program import ClaimProgram


def digest(content):
    return hashlib.sha256(content).hexdigest()


def file_entry(path, content, **changes):
    return {"kind": "file", "path": path, "size": len(content), "modified": 1_700_000_000, "executable": False,
            "hash": digest(content), **changes}


class MoveFiles(ClaimProgram):
    def put(self, path, content, **changes):
        entry = file_entry(path, content, **changes)
        answer = self.ask(do="check", entries=[entry])
        if answer.get("needed"):
            answer = self.ask(content, do="write", files=[entry])
        return answer

    def read(self, path, offset=0):
        self.send(do="read", path=path, offset=offset)
        pieces = []
        while True:
            answer, content = self.receive()
            pieces.append(content)
            if answer.get("end"):
                return answer, b"".join(pieces)

    def test_files_arrive_whole_with_mode_and_time(self):
        content = os.urandom(100_000)
        self.assertEqual(self.put("a/b/run.sh", content, executable=True), {})
        status = (self.claim / "a/b/run.sh").stat()
        self.assertEqual((status.st_mode & 0o777, int(status.st_mtime)), (0o755, 1_700_000_000))
        answer, got = self.read("a/b/run.sh")
        self.assertEqual((got, answer["hash"], answer["executable"]), (content, digest(content), True))
        self.assertEqual(self.read("a/b/run.sh", 99_990)[1], content[99_990:])
        self.assertEqual(self.put("a/b/run.sh", content, executable=True), {"needed": []})

    def test_a_known_file_is_not_read_again_and_a_changed_one_is(self):
        content = b"x" * 1000
        self.put("a", content)
        self.start()
        path = self.claim / "a"
        self.assertEqual(self.ask(do="hashes", paths=["a"]), {"hashes": [digest(content)]})
        record, = (self.claim / ".infra/hashes").iterdir()
        # A record that counts is believed: the file is not read.
        record.write_text(record.read_text().replace(digest(content), "0" * 64))
        self.start()
        self.assertEqual(self.ask(do="hashes", paths=["a"]), {"hashes": ["0" * 64]})
        status = path.stat()
        path.write_bytes(b"y" * 1000)
        # Even with the modification time set back.
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        self.assertEqual(self.ask(do="hashes", paths=["a", "none"]), {"hashes": [digest(b"y" * 1000), None]})

    def test_a_part_that_is_longer_than_what_continues_it_is_cut(self):
        content = os.urandom(2_000_000)
        entry = file_entry("big", content)
        self.ask(do="check", entries=[entry])
        self.ask(content[:1_000_000] + b"x" * 1_500_000, do="part", hash=entry["hash"], offset=0)
        self.start()
        self.ask(do="check", entries=[entry])
        self.ask(content[1_000_000:], do="part", hash=entry["hash"], offset=1_000_000)
        self.assertEqual(self.ask(do="finish", file=entry), {})
        self.assertEqual((self.claim / "big").read_bytes(), content)

    def test_a_record_that_is_no_record_is_forgotten(self):
        self.put("a", b"1")
        self.start()
        for record in (self.claim / ".infra/hashes").iterdir():
            record.write_text("{")
        self.assertEqual(self.ask(do="hashes", paths=["a"]), {"hashes": [digest(b"1")]})

    def test_parts_continue_and_are_verified(self):
        content = os.urandom(3_000_000)
        entry = file_entry("big", content)
        self.assertEqual(self.ask(do="check", entries=[entry]), {"needed": [[0, 0]]})
        self.ask(content[:1_000_000], do="part", hash=entry["hash"], offset=0)
        self.start()
        self.assertEqual(self.ask(do="check", entries=[entry]), {"needed": [[0, 1_000_000]]})
        self.ask(content[1_000_000:2_000_000], do="part", hash=entry["hash"], offset=1_000_000)
        self.assertEqual(self.ask(content[2_000_000:], do="part", hash=entry["hash"], offset=2_000_000), {})
        self.assertFalse((self.claim / "big").exists())
        self.assertEqual(self.ask(do="finish", file=entry), {})
        self.assertEqual((self.claim / "big").read_bytes(), content)
        self.assertEqual(list((self.claim / ".infra/incoming").iterdir()), [])

    def test_what_is_not_what_was_announced_does_not_appear(self):
        entry = file_entry("big", b"right")
        self.ask(do="check", entries=[entry])
        self.assertEqual(self.ask(b"wrong", do="write", files=[entry])["error"], "big changed while it was read")
        self.ask(b"wrong", do="part", hash=entry["hash"], offset=0)
        self.assertEqual(self.ask(do="finish", file=entry)["error"], "big changed while it was read")
        self.assertEqual([path.name for path in self.claim.iterdir()], [".infra"])
        # The damaged part is not the beginning of the next attempt.
        self.assertEqual(self.ask(do="check", entries=[entry]), {"needed": [[0, 0]]})

    def tree_digest(self, entries):
        """The digest of a tree by the book: fields and path of each entry, in the order of the paths."""
        lines = b"".join(b"\0".join([*fields, path, b""]) for path, fields in sorted(entries.items()))
        return digest(lines)

    def stage(self, directory, files):
        for path, content in files.items():
            self.put(f"{directory}/{path}", content)
        return self.tree_digest({**{path.encode(): [b"file", b"", digest(content).encode()] for path, content in files.items()},
                                 **{path.rpartition("/")[0].encode(): [b"directory", b"", b""] for path in files if "/" in path}})

    def test_a_tree_appears_whole_and_is_known_by_its_content(self):
        files = {"train.py": b"print(1)\n", "lib/model.py": b"layers = 3\n", "lib/\u00fc.txt": b""}
        expected = self.stage(".infra/code/abc", files)
        self.assertEqual(self.ask(do="tree", path="code/abc"), {"newest": None})
        self.assertEqual(self.ask(do="publish", **{"from": ".infra/code/abc"}, to="code/abc", digest=expected[:32]), {})
        self.assertEqual({path: (self.claim / "code/abc" / path).read_bytes() for path in files}, files)
        self.assertEqual(list((self.claim / ".infra/code").iterdir()), [])
        found = self.ask(do="tree", path="code/abc")
        self.assertEqual((found["tree"], found["newest"]), (expected, None))
        # Every record of hashes is about what is there.
        self.assertEqual(len(list((self.claim / ".infra/hashes").iterdir())), 2)
        for change in (lambda: (self.claim / "code/abc/more").mkdir(), lambda: (self.claim / "code/abc/train.py").chmod(0o755)):
            change()
            self.assertNotEqual(self.ask(do="tree", path="code/abc")["tree"], expected)
            shutil.rmtree(self.claim / "code/abc/more", ignore_errors=True)

    def test_a_tree_that_is_not_what_was_sent_does_not_appear(self):
        expected = self.stage(".infra/code/abc", {"a": b"1", "b": b"2"})
        (self.claim / ".infra/code/abc/b").unlink()
        refused = self.ask(do="publish", **{"from": ".infra/code/abc"}, to="code/abc", digest=expected)
        self.assertIn("is not what was sent", refused["error"])
        self.assertFalse((self.claim / "code").exists() or (self.claim / ".infra/code/abc").exists())

    def test_whoever_publishes_the_same_tree_second_changes_nothing(self):
        for _ in range(2):
            expected = self.stage(".infra/code/abc", {"a": b"1"})
            self.assertEqual(self.ask(do="publish", **{"from": ".infra/code/abc"}, to="code/abc", digest=expected), {})
        self.assertEqual(list((self.claim / ".infra/code").iterdir()), [])
        expected = self.stage(".infra/code/def", {"a": b"2"})
        refused = self.ask(do="publish", **{"from": ".infra/code/def"}, to="code/abc", digest=expected)
        self.assertIn("error", refused)
        self.assertEqual((self.claim / "code/abc/a").read_bytes(), b"1")

    def test_a_tree_takes_what_an_earlier_one_has(self):
        expected = self.stage(".infra/code/old", {"lib/same": b"same", "lib/other": b"old"})
        self.ask(do="publish", **{"from": ".infra/code/old"}, to="code/old", digest=expected)
        found = self.ask(do="tree", path="code/new")
        self.assertEqual(found, {"newest": "code/old"})
        entries = [file_entry(f".infra/code/new/lib/{name}", content) for name, content in (("same", b"same"), ("other", b"new"), ("none", b"3"))]
        self.assertEqual(self.ask(do="copy", **{"from": "code/old"}, to=".infra/code/new", entries=entries), {})
        self.assertEqual(self.ask(do="check", entries=entries), {"needed": [[1, 0], [2, 0]]})
        old, new = (self.claim / place / "lib/same" for place in ("code/old", ".infra/code/new"))
        self.assertNotEqual(old.stat().st_ino, new.stat().st_ino, "a change of one would change the other")

    def test_an_empty_directory_is_no_tree_and_unfinished_ones_go_after_a_week(self):
        (self.claim / "code/abc").mkdir(parents=True)
        self.assertIsNone(self.ask(do="tree", path="code/abc")["tree"])
        self.stage(".infra/code/stale", {"a": b"1"})
        os.utime(self.claim / ".infra/code/stale", (1, 1))
        expected = self.stage(".infra/code/abc", {"a": b"1"})
        self.assertEqual(self.ask(do="publish", **{"from": ".infra/code/abc"}, to="code/abc", digest=expected), {})
        self.assertEqual(list((self.claim / ".infra/code").iterdir()), [])

    def test_no_request_leaves_the_claim(self):
        outside = self.directory / "outside"
        outside.mkdir()
        (outside / "secret").write_text("secret")
        (self.claim / "way").symlink_to(outside)
        (self.claim / "file").symlink_to(outside / "secret")
        for path in ("../outside/secret", "/etc/passwd", "a/../../outside/secret", "way/secret"):
            self.assertIn("error", self.put(path, b"mine"), path)
            self.assertIn("error", self.read(path)[0], path)
            self.assertIn("error", self.ask(do="remove", path=path), path)
            self.assertIn("error", self.ask(do="list", path=path, recursive=True), path)
        self.assertEqual(self.read("file")[0], {"gone": True, "end": True})
        self.assertEqual(self.put("file", b"mine"), {})
        self.assertEqual((self.claim / "file").read_bytes(), b"mine")
        self.assertEqual(self.ask(do="remove", path="way"), {})
        self.assertEqual((outside / "secret").read_text(), "secret")
        self.assertIn("error", self.ask(do="remove", path="."))

    def test_records_behind_a_link_are_neither_read_nor_written(self):
        outside = self.directory / "outside"
        outside.mkdir()
        (self.claim / ".infra").symlink_to(outside)
        self.assertEqual(self.put("a", b"1")["error"], ".infra is a link or a file, not a directory")
        self.assertEqual(list(outside.iterdir()), [])

    def test_a_growing_file_is_read_as_long_as_it_was(self):
        path = self.claim / "log"
        path.write_bytes(b"1" * 2_500_000)
        self.send(do="read", path="log", offset=0)
        first = self.receive()
        with path.open("ab") as log:
            log.write(b"2" * 100)
        pieces = [first[1]]
        while not first[0].get("end"):
            first = self.receive()
            pieces.append(first[1])
        self.assertEqual(b"".join(pieces)[:2_500_000], b"1" * 2_500_000)
        self.assertEqual(first[0]["hash"], digest(b"".join(pieces)))

    def test_a_list_names_what_is_there_but_no_records(self):
        (self.claim / "run/.infra").mkdir(parents=True)
        (self.claim / "run/output").mkdir()
        (self.claim / "run/output/latest").symlink_to("model")
        (self.claim / "run/output/model").write_bytes(b"12345")
        os.mkfifo(self.claim / "run/pipe")
        with open(os.path.join(os.fsencode(self.claim), b"run/\xff"), "wb"):
            pass
        self.send(do="list", path="run", recursive=True)
        answer, _ = self.receive()
        found = {entry["path"]: entry["kind"] for entry in answer["entries"]}
        self.assertEqual(found, {"": "directory", "output": "directory", "output/latest": "link", "output/model": "file",
                                 "pipe": "special", "\\xff": "special"})

    def test_many_names_come_in_several_answers(self):
        (self.claim / "many").mkdir()
        for number in range(1200):
            (self.claim / f"many/{number}").touch()
        self.send(do="list", path="many", recursive=False)
        sizes = []
        while True:
            answer, _ = self.receive()
            sizes.append(len(answer["entries"]))
            if answer.get("end"):
                break
        self.assertEqual((sum(sizes), max(sizes)), (1201, 500))

    def test_the_connection_before_is_ended_by_the_next(self):
        first = self.process
        self.process = None
        self.start()
        self.assertEqual(first.wait(10), -9)
        first.stdin.close()
        first.stdout.close()
        self.assertEqual(self.put("a", b"1"), {})


if __name__ == "__main__":
    unittest.main()
