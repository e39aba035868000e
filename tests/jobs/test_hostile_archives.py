"""The import of archives that someone made to do harm, run for real: paths that lead out, links, bombs."""

import io
import os
import shutil
import stat
import tarfile
import unittest
import zipfile

from imports import FILES, LINES, MISCONFIGURED, Imports, tar, zipped
from rendering import SCRIPTS


def tar_of(*entries):
    """An archive of entries that are no plain files: name, type, where a link leads, contents."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, kind, target, contents in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, target, len(contents)
            archive.addfile(entry, io.BytesIO(contents))
    return stream.getvalue()


def past_the_filter(outside):
    """Overwrites `flag` in another directory although the filter checks every entry (CVE-2025-4517): no system call takes a path as long
    as the one that the links make, so that Python takes a link for a directory."""
    component, steps, path, entries = "d" * 247, "abcdefghijklmnop", "", []
    for step in steps:
        entries += [(os.path.join(path, component), tarfile.DIRTYPE, "", b""), (os.path.join(path, step), tarfile.SYMTYPE, component, b"")]
        path = os.path.join(path, component)
    long = "/".join(steps) + "/" + "l" * 254
    entries.append((long, tarfile.SYMTYPE, "../" * len(steps), b""))
    entries.append(("escape", tarfile.SYMTYPE, f"{long}/{outside}", b""))
    entries.append(("flaglink", tarfile.LNKTYPE, "escape/flag", b""))
    entries.append(("flaglink", tarfile.REGTYPE, "", b"OVERWRITTEN\n"))
    return tar_of(("train.txt", tarfile.REGTYPE, "", b"1\n2\n3\n"), *entries)


# The system's answer is put in: a claim with little room.
WITH_LITTLE_ROOM = """
import os, runpy, sys, types
sys.path.insert(0, os.path.dirname(sys.argv[1]))
os.statvfs = lambda path: types.SimpleNamespace(f_bavail=10, f_frsize=4096)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class HostileArchives(Imports):
    def test_nothing_gets_out_of_the_directory(self):
        inner = {"train.txt": b"1\n2\n3\n"}
        self.archive.write_bytes(tar({**inner, "../../escaped.txt": b"!"}))
        self.assertIn("'../../escaped.txt' leads out of its directory", self.run_import(MISCONFIGURED))
        self.assertEqual(list(self.claim.rglob("escaped.txt")), [])
        # Python makes these paths below the directory.
        away = self.claim / "away"
        for ending, contents in {"tar": tar({**inner, str(away / "escaped.txt"): b"!"}), "zip": zipped({**inner, "../../../escaped.txt": b"!"})}.items():
            archive = self.archive.with_name(f"data.{ending}")
            archive.write_bytes(contents)
            self.run_import(DATA_SOURCE=str(archive))
            self.assertFalse(away.exists())
            found = {path for path in self.claim.rglob("escaped.txt")}
            self.assertTrue(all(self.root in path.parents for path in found), found)

    def test_an_archive_that_gets_past_the_filter_overwrites_nothing(self):
        flag = self.claim / "outside/flag"
        flag.parent.mkdir()
        flag.write_text("mine\n")
        # From `unpacked` in the import's own directory to the claim.
        self.archive.write_bytes(past_the_filter("../../../../outside"))
        text = self.run_import(MISCONFIGURED)
        self.assertEqual(flag.read_text(), "mine\n")
        self.assertIn("the archive contains the link 'a', which is not unpacked", text)
        self.assertIn("tar --dereference --hard-dereference", text)

    def test_only_files_and_directories_are_unpacked(self):
        train = ("train.txt", tarfile.REGTYPE, "", b"1\n2\n3\n")
        for kind, target, reason in (
            (tarfile.SYMTYPE, "../../..", "the link"),
            (tarfile.SYMTYPE, "train.txt", "the link"),
            (tarfile.LNKTYPE, "train.txt", "the link"),
            (tarfile.FIFOTYPE, "", "the device or pipe"),
            (tarfile.CHRTYPE, "", "the device or pipe"),
            (tarfile.BLKTYPE, "", "the device or pipe"),
        ):
            self.archive.write_bytes(tar_of(train, ("an \x1b[2J entry", kind, target, b"")))
            with self.subTest(kind=kind, target=target):
                self.assertIn(f"the archive contains {reason} 'an \\x1b[2J entry'", self.run_import(MISCONFIGURED))
        for mode, reason in ((stat.S_IFLNK, "the link"), (stat.S_IFIFO, "the device or pipe")):
            entry = zipfile.ZipInfo("entry")
            entry.create_system, entry.external_attr = 3, (mode | 0o777) << 16
            archive = self.archive.with_name("data.zip")
            with zipfile.ZipFile(archive, "w") as file:
                file.writestr("train.txt", "1\n2\n3\n")
                file.writestr(entry, "train.txt")
            with self.subTest(mode=mode):
                self.assertIn(f"the archive contains {reason} 'entry'", self.run_import(MISCONFIGURED, DATA_SOURCE=str(archive)))

    def test_a_small_archive_does_not_fill_the_claim(self):
        files = {"train.txt": b"".join(LINES), "zeros": bytes(3 << 20)}
        kinds = {".tar": tar(files, ""), ".tgz": tar(files), ".txz": tar(files, "xz"), ".zip": zipped(files)}
        for ending, contents in kinds.items():
            archive = self.archive.with_name(f"data{ending}")
            archive.write_bytes(contents)
            with self.subTest(ending=ending):
                text = self.run_import(MISCONFIGURED, DATA_SOURCE=str(archive), DATA_SIZE_LIMIT=str(2 << 20))
                self.assertIn("with 'zeros' the data has more than 2097152 bytes: if that is right, raise data.sizeLimit", text)
                self.options = ["-c", WITH_LITTLE_ROOM]
                text = self.run_import(MISCONFIGURED, DATA_SOURCE=str(archive))
                self.assertIn("with 'zeros' the data has more than the 40960 bytes that are free on the claim", text)
                self.options = ()
                self.run_import(DATA_SOURCE=str(archive), DATA_SIZE_LIMIT=str(4 << 20))
        # What nobody unpacks is not read for ever either.
        self.archive.write_bytes(tar(FILES, "") + bytes(4 << 20))
        text = self.run_import(MISCONFIGURED, DATA_SIZE_LIMIT=str(2 << 20))
        self.assertIn("what follows the end of the archive", text)

    def test_an_archive_has_a_limited_number_of_files(self):
        text = (SCRIPTS / "import_data.py").read_text()
        few = self.claim / "few.py"
        for module in ("download.py", "division.py"):
            shutil.copy(SCRIPTS / module, self.claim)
        few.write_text(text.replace("MOST_ENTRIES = 20_000_000", "MOST_ENTRIES = 6"))
        self.assertNotEqual(few.read_text(), text)
        self.options = [few]
        for contents, ending in ((tar({**FILES, "a": b"", "b": b""}), "tgz"), (zipped({**FILES, "a": b"", "b": b""}), "zip")):
            archive = self.archive.with_name(f"data.{ending}")
            archive.write_bytes(contents)
            self.assertIn("the archive has more than 6 files", self.run_import(MISCONFIGURED, DATA_SOURCE=str(archive)))


if __name__ == "__main__":
    unittest.main()
