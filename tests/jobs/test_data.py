"""The import of archives on the claim, run for real: whole and broken, once and again."""

import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from imports import FILES, LINES, MISCONFIGURED, Imports, tar, zipped


class Claim(Imports):
    def test_lines_are_dealt_out_in_order_and_fairly(self):
        self.archive.write_bytes(tar(FILES))
        self.assertIn("in 3 parts", self.run_import())
        parts = [(self.root / f"{number}/data/train.txt").read_bytes() for number in range(3)]
        self.assertEqual(b"".join(parts), FILES["train.txt"])
        self.assertEqual([part.count(b"\n") for part in parts], [11, 10, 10])
        labels = [(self.root / f"{number}/data/train_labels.txt").read_bytes() for number in range(3)]
        self.assertEqual([part.count(b"\n") for part in labels], [11, 10, 10], "a line and its label must stay together")
        for number in range(3):
            self.assertEqual((self.root / f"{number}/data/dictionary.txt").read_bytes(), FILES["dictionary.txt"])
        self.assertEqual((self.root / "recommendation/trainer_config.py").read_bytes(), b"settings()\n")
        self.assertEqual((self.root / "recommendation/words/list.txt").read_bytes(), b"w\n")
        self.assertTrue((self.root / "output").is_dir())

    def test_one_long_line_starves_nobody(self):
        self.archive.write_bytes(tar({"train.txt": b"x" * 100_000 + b"\nshort\nlast without an end"}))
        self.run_import()
        parts = [(self.root / f"{number}/data/train.txt").read_bytes() for number in range(3)]
        self.assertEqual([len(part) for part in parts], [100_001, 6, 19])

    def test_files_are_dealt_out_in_turn(self):
        names = [f"part-{number:02}.bin" for number in range(7)]
        self.archive.write_bytes(tar({**{name: name.encode() for name in names}, "code/train.py": b"pass\n"}))
        self.run_import(DATA_SPLIT="files")
        for number in range(3):
            found = sorted(path.name for path in (self.root / f"{number}/data").iterdir())
            self.assertEqual(found, names[number::3])
        self.assertTrue((self.root / "code/train.py").exists())

    def shards_of(self, count=3):
        """What each trainer finds, by its path."""
        parts = [self.root / f"{number}/data" for number in range(count)]
        return [sorted(str(path.relative_to(part)) for path in part.rglob("*") if path.is_file()) for part in parts]

    def test_files_in_directories_are_dealt_out_under_their_paths(self):
        # As torchvision's ImageFolder reads them: a directory is a class, and its number that of its name among all.
        names = [f"train/{name}/{number}.jpg" for name in ("cat", "dog", "emu") for number in range(4)] + ["val/cat/9.jpg"]
        self.archive.write_bytes(tar({name: name.encode() for name in names}))
        self.run_import(DATA_SPLIT="files")
        self.assertEqual(self.shards_of(), [names[number::3] for number in range(3)])
        for number in range(3):
            classes = sorted(path.name for path in (self.root / f"{number}/data/train").iterdir())
            self.assertEqual(classes, ["cat", "dog", "emu"])
        self.assertEqual((self.root / "2/data/train/cat/2.jpg").read_bytes(), b"train/cat/2.jpg")
        self.assertFalse((self.root / "train").exists(), "it is there twice")

    def test_a_class_with_too_few_files_is_in_every_part(self):
        files = {f"cat/{number}": b"" for number in range(5)}
        self.archive.write_bytes(tar({**files, "rare/0": b""}))
        self.run_import(DATA_SPLIT="files")
        for number in range(3):
            self.assertEqual(sorted(path.name for path in (self.root / f"{number}/data").iterdir()), ["cat", "rare"])

    def test_classes_may_be_numbers(self):
        self.archive.write_bytes(tar({f"{digit}/{number}.png": b"" for digit in range(10) for number in range(3)}))
        self.run_import(DATA_SPLIT="files")
        self.assertEqual([len(part) for part in self.shards_of()], [10, 10, 10])
        self.assertTrue((self.root / "1/data/7/1.png").exists())

    def test_a_directory_of_shards_is_dealt_out(self):
        names = [f"shards/{number:04}.tar" for number in range(8)]
        self.archive.write_bytes(tar({name: b"x" for name in names}))
        self.run_import(DATA_SPLIT="files")
        self.assertEqual(self.shards_of(), [names[number::3] for number in range(3)])

    def test_the_configuration_of_paddle_v0_is_not_dealt_out(self):
        self.assertEqual(self.environment["DATA_BESIDE"], "recommendation")
        names = [f"words/{number}.txt" for number in range(3)]
        self.archive.write_bytes(tar({**{name: b"" for name in names}, "recommendation/trainer_config.py": b"settings()\n"}))
        self.run_import(DATA_SPLIT="files")
        self.assertEqual(self.shards_of(), [[name] for name in names])
        self.assertTrue((self.root / "recommendation/trainer_config.py").exists())

    def test_data_that_is_divided_already_keeps_its_parts(self):
        # The tree of the tutorials on AWS.
        files = {"data/0/train.txt": b"a\n", "data/1/train.txt": b"b\n", "data/2/deep/train.txt": b"c\n", "recommendation/trainer_config.py": b""}
        self.archive.write_bytes(tar(files))
        self.run_import(DATA_SPLIT="files")
        self.assertEqual(self.shards_of(), [["train.txt"], ["train.txt"], ["deep/train.txt"]])
        self.assertEqual((self.root / "1/data/train.txt").read_bytes(), b"b\n")
        self.assertTrue((self.root / "recommendation/trainer_config.py").exists())
        self.assertFalse((self.root / "data").exists())

    def test_data_that_is_divided_among_others_is_refused(self):
        for parts, named in ((2, "data/0, data/1"), (4, "data/0, data/1, data/2, data/3"), (6, "data/0, data/1, data/2, data/3, …")):
            with self.subTest(parts=parts):
                self.archive.write_bytes(tar({f"data/{number}/train.txt": b"" for number in range(parts)}))
                text = self.run_import(MISCONFIGURED, DATA_SPLIT="files")
                self.assertIn(f"the archive is divided into {named}, but 3 trainers need data/0 to data/2", text)

    def test_too_few_files_are_refused_wherever_they_are(self):
        for files, reason in (
            ({"a/b/1": b"", "a/2": b""}, "the archive has 2 files for 3 trainers\n"),
            ({"a/b/1": b""}, "the archive has 1 file for 3 trainers\n"),
            ({}, "the archive has 0 files for 3 trainers\n"),
            (
                {"README": b"", **{f"shards/{number}": b"" for number in range(9)}},
                "the archive has 1 file for 3 trainers; those in directories are divided only if there are none at the top\n",
            ),
        ):
            with self.subTest(reason=reason):
                self.archive.write_bytes(tar(files))
                self.assertIn(reason, self.run_import(MISCONFIGURED, DATA_SPLIT="files"))
                self.assertEqual(list(self.root.glob("*/data")), [])

    def test_without_a_split_everybody_reads_everything(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import(DATA_SPLIT="none", SPLIT_COUNT="1")
        self.assertEqual(set(self.tree()), {f"data/{name}" for name in FILES})

    def test_every_kind_of_archive_gives_the_same(self):
        trees = []
        kinds = {".tar": tar(FILES, ""), ".tgz": tar(FILES), ".tar.bz2": tar(FILES, "bz2"), ".txz": tar(FILES, "xz"), ".zip": zipped(FILES)}
        for ending, contents in kinds.items():
            archive = self.archive.with_name(f"data{ending}")
            archive.write_bytes(contents)
            self.run_import(DATA_SOURCE=str(archive))
            trees.append(self.tree())
            shutil.rmtree(self.root)
        self.assertEqual(len(trees[0]), 11)
        self.assertTrue(all(tree == trees[0] for tree in trees))

    def test_a_second_import_does_nothing(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import()
        (self.root / "0/data/train.txt").write_text("a trainer's own\n")
        self.assertIn("the data is already imported", self.run_import())
        self.assertEqual((self.root / "0/data/train.txt").read_text(), "a trainer's own\n")

    def test_a_changed_archive_is_imported_again(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import()
        self.archive.write_bytes(tar({"train.txt": b"1\n2\n3\n"}))
        self.run_import()
        self.assertEqual((self.root / "2/data/train.txt").read_text(), "3\n")
        self.assertFalse((self.root / "2/data/dictionary.txt").exists(), "a file of the old data is left")
        self.assertTrue((self.root / "recommendation").exists(), "what the user may have put there himself stays")

    def test_a_tar_archive_that_ends_with_a_zip_archive_is_a_tar_archive(self):
        archive = self.archive.with_name("data.tar")
        archive.write_bytes(tar({**FILES, "words.zip": zipped({"inner.txt": b"x"})}, ""))
        self.run_import(DATA_SOURCE=str(archive))
        self.assertTrue((self.root / "0/data/train.txt").exists())
        self.assertFalse((self.root / "0/data/inner.txt").exists())

    def as_for(self, count):
        """The environment of the same job with another number of trainers."""
        stamp = pathlib.Path(self.environment["DATA_STAMP"]).with_name(f"data-{count}.ready")
        return {"SPLIT_COUNT": str(count), "DATA_STAMP": str(stamp)}

    def shards(self):
        return {path.parent.parent.name: path.read_bytes().count(b"\n") for path in self.root.glob("*/data/train.txt")}

    def test_fewer_trainers_and_then_as_many_as_before_get_all_of_the_data(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import(**self.as_for(3))
        self.assertEqual(self.shards(), {"0": 11, "1": 10, "2": 10})
        self.run_import(**self.as_for(2))
        self.assertEqual(self.shards(), {"0": 16, "1": 15}, "a part of a trainer that is no more is left")
        self.assertIn("in 3 parts", self.run_import(**self.as_for(3)))
        self.assertEqual(self.shards(), {"0": 11, "1": 10, "2": 10})

    def test_other_data_and_then_the_first_again_is_the_first(self):
        other = self.archive.with_name("other.tar.gz")
        self.archive.write_bytes(tar(FILES))
        other.write_bytes(tar({"train.txt": b"1\n2\n3\n"}))
        stamp = pathlib.Path(self.environment["DATA_STAMP"]).with_name("data-other.ready")
        self.run_import()
        self.run_import(DATA_SOURCE=str(other), DATA_STAMP=str(stamp))
        self.assertFalse(pathlib.Path(self.environment["DATA_STAMP"]).exists(), "pods of the first would begin with other data")
        self.run_import()
        self.assertEqual(self.shards(), {"0": 11, "1": 10, "2": 10})

    def test_no_stamp_is_there_while_files_are_replaced(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import()
        other = self.archive.with_name("other.tar.gz")
        other.write_bytes(b"this is no archive")
        stamp = pathlib.Path(self.environment["DATA_STAMP"]).with_name("data-other.ready")
        self.run_import(MISCONFIGURED, DATA_SOURCE=str(other), DATA_STAMP=str(stamp))
        self.assertEqual(list((self.root / ".infra").glob("*.ready")), [])

    def test_what_no_import_made_is_never_replaced(self):
        self.archive.write_bytes(tar(FILES))
        for name in ("1/data", "recommendation"):
            with self.subTest(name=name):
                own = self.root / name / "own.txt"
                own.parent.mkdir(parents=True)
                own.write_text("by hand\n")
                self.assertIn(f"{self.root / name} was not created by an import", self.run_import(MISCONFIGURED))
                self.assertEqual(own.read_text(), "by hand\n")
                shutil.rmtree(self.root)
        own = self.root / "data/own.txt"
        own.parent.mkdir(parents=True)
        own.write_text("by hand\n")
        self.run_import(MISCONFIGURED, DATA_SPLIT="none", SPLIT_COUNT="1")
        self.assertEqual(own.read_text(), "by hand\n")
        # One that was created by an import and then by a user is the user's.
        shutil.rmtree(self.root)
        self.run_import()
        (self.root / "recommendation").rename(self.root / "mine")
        (self.root / "recommendation").mkdir()
        (self.root / "recommendation/own.txt").write_text("by hand\n")
        os.utime(self.archive, (1, 1))
        self.run_import(MISCONFIGURED)
        self.assertEqual((self.root / "recommendation/own.txt").read_text(), "by hand\n")

    def test_an_archive_in_the_place_of_its_data_is_not_lost(self):
        self.archive.write_bytes(tar(FILES))
        self.run_import(DATA_SPLIT="none", SPLIT_COUNT="1")
        inside = self.root / "data/next.tar.gz"
        inside.write_bytes(tar(FILES))
        text = self.run_import(MISCONFIGURED, DATA_SPLIT="none", SPLIT_COUNT="1", DATA_SOURCE=str(inside))
        self.assertIn(f"{inside} is in {self.root}/data, which the import replaces", text)
        self.assertTrue(inside.exists())

    def test_killed_anywhere_then_run_again_is_right(self):
        many = {f"train-{number}.txt": b"".join(LINES) * 40 for number in range(60)}
        self.archive.write_bytes(tar({**many, "recommendation/trainer_config.py": b"settings()\n"}))
        self.run_import()
        wanted = self.tree()
        began = time.monotonic()
        shutil.rmtree(self.root)
        self.run_import()
        usual = time.monotonic() - began
        killed = 0
        for step in range(6):
            shutil.rmtree(self.root)
            process = subprocess.Popen(self.command(), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(usual * (step + 2) / 9)
            process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            if not process.returncode:
                # The first run took longer than usual, as runs do beside others.
                usual /= 2
            if pathlib.Path(self.environment["DATA_STAMP"]).exists():
                # It was killed after its last step, or not at all.
                self.assertEqual(self.tree(), wanted, "it says that half the data is all")
            self.run_import()
            self.assertEqual(self.tree(), wanted)
        self.assertGreater(killed, 0)

    def test_what_no_retry_can_fix_is_told_apart(self):
        self.assertIn("copy the archive there first", self.run_import(MISCONFIGURED))
        whole = tar(FILES)
        # Bytes that nobody can compress stand in the archive as they are: only the checksum tells that they are others.
        noise = bytearray(tar({"train.txt": os.urandom(200_000)}))
        noise[100_000:100_100] = bytes(100)
        for contents, reason in (
            (tar({"train.txt": b"1\n2\n"}), "train.txt has 2 lines for 3 trainers"),
            (tar({"train.txt": b""}), "train.txt has 0 lines"),
            (tar({"data/train.txt": b"1\n2\n3\n"}), "no file at the top of the archive begins with 'train'"),
            (tar({**FILES, "7/x": b""}), "a directory '7', which the job uses itself"),
            (tar({**FILES, "output/x": b""}), "a directory 'output', which the job uses itself"),
            (tar({**FILES, "runs/x": b""}), "a directory 'runs', which the job uses itself"),
            (b"this is no archive", "cannot be unpacked"),
            (whole[:len(whole) // 2], "cannot be unpacked"),
            (bytes(noise), "cannot be unpacked"),
        ):
            with self.subTest(reason=reason):
                self.archive.write_bytes(contents)
                self.assertIn(reason, self.run_import(MISCONFIGURED))
                self.assertEqual(list(self.root.glob("*/data")), [], "half the data is where trainers look")
        cut = self.archive.with_name("data.zip")
        cut.write_bytes(zipped(FILES)[:-30])
        self.assertIn("cannot be unpacked", self.run_import(MISCONFIGURED, DATA_SOURCE=str(cut)))
        self.archive.write_bytes(tar({"a": b"", "b": b""}))
        self.assertIn("2 files for 3 trainers", self.run_import(MISCONFIGURED, DATA_SPLIT="files"))
        self.archive.unlink()
        self.archive.mkdir()
        self.assertIn("is not a file", self.run_import(MISCONFIGURED))


if __name__ == "__main__":
    unittest.main()
