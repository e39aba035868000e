"""The import of objects that were fetched from S3 before: divided, unpacked, once and again, and killed in between."""

import json
import os
import pathlib
import shutil
import unittest

from imports import FILES, MISCONFIGURED, Imports, tar

SOURCE = "s3://bucket/sets/"


class Objects(Imports):
    def setUp(self):
        super().setUp()
        self.objects = self.claim / "objects"
        self.environment.update(DATA_SOURCE=SOURCE, DATA_OBJECTS=str(self.objects), DATA_UNPACKS="no")

    def put(self, files, digest="1"):
        """As the program that fetches leaves it."""
        for name, contents in files.items():
            path = self.objects / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
            os.utime(path, (1_700_000_000, 1_700_000_000))
        (self.objects / "complete.json").write_text(json.dumps({"source": SOURCE, "objects": digest}))

    def test_files_are_divided_as_those_of_an_archive(self):
        self.put(FILES)
        self.assertIn(f"imported {SOURCE} in 3 parts", self.run_import())
        from_objects = self.tree()
        self.assertFalse((self.objects / "tree").exists(), "what was fetched takes room twice")
        shutil.rmtree(self.root)
        self.archive.write_bytes(tar(FILES))
        for name in ("DATA_OBJECTS", "DATA_UNPACKS"):
            del self.environment[name]
        self.run_import(DATA_SOURCE=str(self.archive))
        self.assertEqual(from_objects, self.tree())

    def test_times_are_kept_so_that_a_later_fetch_finds_the_files(self):
        self.put({"a/1": b"1", "b/2": b"2"})
        self.run_import(DATA_SPLIT="none")
        self.assertEqual({path.stat().st_mtime for path in (self.root / "data").rglob("*") if path.is_file()}, {1_700_000_000})

    def test_the_same_objects_are_imported_once_and_others_again(self):
        self.put({"train.txt": b"1\n2\n3\n"})
        self.run_import()
        self.assertIn("already imported", self.run_import())
        self.put({"train.txt": b"4\n5\n6\n"}, digest="2")
        self.run_import()
        self.assertEqual((self.root / "2/data/train.txt").read_bytes(), b"6\n")

    def test_an_archive_is_unpacked_with_its_limits(self):
        self.environment["DATA_SOURCE"] = "s3://bucket/sets/data.tar.gz"
        self.put({"data.tar.gz": tar(FILES)})
        self.assertIn("more than 10 bytes", self.run_import(MISCONFIGURED, DATA_UNPACKS="yes", DATA_SIZE_LIMIT="10"))
        self.run_import(DATA_UNPACKS="yes")
        self.assertEqual((self.root / "recommendation/trainer_config.py").read_bytes(), b"settings()\n")

    def test_an_import_that_was_killed_begins_again_with_what_was_fetched(self):
        self.put(FILES)
        scratch = pathlib.Path(self.environment["DATA_STAMP"]).with_suffix(".part")
        (scratch / "unpacked").mkdir(parents=True)
        os.link(self.objects / "tree/train.txt", scratch / "unpacked/train.txt")
        self.run_import()
        self.assertEqual((self.root / "0/data/dictionary.txt").read_bytes(), FILES["dictionary.txt"])

    def test_what_was_not_fetched_is_not_imported(self):
        self.assertIn(f"{SOURCE} is not on the claim: `infra job submit --replace` fetches it", self.run_import(MISCONFIGURED))
        self.put({"train.txt": b"1\n2\n3\n"})
        shutil.rmtree(self.objects / "tree")
        self.assertIn(f"{SOURCE} is no longer on the claim", self.run_import(MISCONFIGURED))

    def test_what_cannot_be_divided_is_called_data(self):
        self.put({"a/b": b""})
        self.assertIn("the data has 1 file for 3 trainers", self.run_import(MISCONFIGURED, DATA_SPLIT="files"))
        self.put({"train.txt": b"1\n2\n3\n", "output/x": b""})
        self.assertIn("the data has a directory 'output', which the job uses itself", self.run_import(MISCONFIGURED))
        self.assertTrue((self.objects / "tree/train.txt").exists(), "a changed job file may use it")


if __name__ == "__main__":
    unittest.main()
