"""What deny.toml says about the dependency tree, as cargo itself shows it, in seconds: bans, licences and sources. scripts/deny asks
cargo-deny, which also knows what is vulnerable and takes minutes to build."""

import json
import pathlib
import re
import subprocess
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DENY = tomllib.loads((ROOT / "deny.toml").read_text())
LOCK = tomllib.loads((ROOT / "Cargo.lock").read_text())
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def packages(target):
    """Names, versions and licences of everything that is built for a target."""
    command = ["cargo", "tree", "--locked", "--all-features", "--edges", "all", "--target", target]
    command += ["--prefix", "none", "--format", "{p}|{l}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = {line.replace(" (*)", "").strip() for line in done.stdout.splitlines()}
    found = set()
    for line in lines:
        if match := re.match(r"(\S+) v(\S+)[^|]*\|(.*)", line):
            found.add(match.groups())
    return found


def is_banned(name, version, rule):
    banned, _, release = rule.partition("@")
    return name == banned and (not release or version == release or version.startswith(release + "."))


def is_allowed(expression, allowed):
    """Whether an SPDX expression can be satisfied: `AND` binds more tightly than `OR` and `/`, the old way to write it."""
    tokens = re.findall(r"\(|\)|/|\bAND\b|\bOR\b|[^\s()/]+(?: WITH [^\s()/]+)?", expression)

    def one():
        token = tokens.pop(0)
        if token != "(":
            return token in allowed
        value = alternatives()
        tokens.pop(0)
        return value

    def both():
        value = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = one() and value
        return value

    def alternatives():
        value = both()
        while tokens and tokens[0] in ("OR", "/"):
            tokens.pop(0)
            value = both() or value
        return value

    return bool(tokens) and alternatives() and not tokens


class Dependencies(unittest.TestCase):
    def test_nothing_is_banned_and_every_licence_is_allowed(self):
        allowed = set(DENY["licenses"]["allow"])
        bans = [rule["crate"] for rule in DENY["bans"]["deny"]]
        for target in DENY["graph"]["targets"]:
            found = packages(target)
            self.assertGreater(len(found), 200)
            with self.subTest(target=target):
                self.assertEqual([(name, rule) for name, version, _ in found for rule in bans if is_banned(name, version, rule)], [])
                self.assertEqual([(name, licence) for name, _, licence in found if not is_allowed(licence, allowed)], [])

    def test_every_crate_comes_from_crates_io_with_its_checksum(self):
        foreign = [package["name"] for package in LOCK["package"] if package.get("source", CRATES_IO) != CRATES_IO]
        self.assertEqual(foreign, [])
        own = [package["name"] for package in LOCK["package"] if "source" not in package]
        self.assertEqual(own, ["infra"])
        self.assertEqual([package["name"] for package in LOCK["package"] if "source" in package and not package.get("checksum")], [])

    def test_expressions_and_bans_are_understood(self):
        allowed = {"MIT", "ISC", "Apache-2.0 WITH LLVM-exception"}
        for expression, expected in (
            ("MIT", True),
            ("GPL-3.0", False),
            ("MIT/GPL-3.0", True),
            ("GPL-3.0 OR ISC", True),
            ("ISC AND (GPL-3.0 OR MIT)", True),
            ("ISC AND GPL-3.0 OR BSL-1.0", False),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0", True),
            ("Apache-2.0", False),
            ("", False),
        ):
            self.assertEqual(is_allowed(expression, allowed), expected, expression)
        self.assertTrue(is_banned("hyper", "0.14.3", "hyper@0.14") and is_banned("ring", "0.17.1", "ring"))
        self.assertFalse(is_banned("hyper", "1.4.0", "hyper@0.14") or is_banned("hyper-util", "0.14.1", "hyper@0.14"))


class Hashes(unittest.TestCase):
    """pip refuses what is not in the list, or is another file than the one that was listed."""

    def test_every_python_package_has_hashes_and_no_place(self):
        locked = sorted(ROOT.glob("tests/**/requirements.txt")) + [ROOT / "scripts/benchmark/requirements.txt"]
        self.assertEqual(len(locked), 6)
        for path in locked:
            with self.subTest(path=path.relative_to(ROOT)):
                text = path.read_text()
                self.assertNotRegex(text, r"://|--(index|extra|find)")
                entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
                self.assertTrue(entries)
                for entry in entries:
                    self.assertRegex(entry.strip(), r"(?s)\A[\w.-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\Z")
                wanted = path.with_suffix(".in").read_text().splitlines()
                for line in wanted:
                    if line and not line.startswith("#"):
                        self.assertTrue(any(entry.startswith(line + " ") for entry in entries), f"{line} is not locked: run scripts/lock-requirements")

    def test_every_npm_package_has_its_digest_and_no_place(self):
        text = (ROOT / "scripts/benchmark/cdk/package-lock.json").read_text()
        self.assertNotIn('"resolved"', text)
        for name, package in json.loads(text)["packages"].items():
            self.assertTrue(not name or package.get("inBundle") or package["integrity"].startswith("sha512-"), name)


if __name__ == "__main__":
    unittest.main()
