"""A page of docs/runbooks as what its reader does, in order: lines that are typed, and files that are edited.

docs/runbooks/README.md has the rules; tests/lifecycle/support/runbook.rs reads pages in the same way.
"""

import dataclasses
import re

from real_cluster import ROOT

PAGES = ROOT / "docs/runbooks"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"([A-Za-z0-9]+):")


@dataclasses.dataclass(frozen=True)
class Line:
    """Words behind `infra`, and how the command ends."""

    words: list[str]
    code: int

    def __str__(self):
        return " ".join(["infra", *self.words])


@dataclasses.dataclass(frozen=True)
class Edit:
    """A whole file, or of cluster.yaml the sections that are replaced."""

    file: str
    text: str


def steps_of(page):
    """In the order of the page."""
    steps = []
    for language, text in BLOCK.findall((PAGES / page).read_text()):
        if language == "infra":
            steps += [line_of(line) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
        elif language == "yaml" and (named := re.match(r"# (\S+\.yaml)\n", text)):
            steps.append(Edit(named.group(1), text[named.end():]))
    return steps


def line_of(text):
    typed, _, code = text.partition(" # exit ")
    program, *words = typed.split()
    assert program == "infra", text
    return Line(words, int(code or 0))


def with_sections(text, edit):
    """A file after each top-level section of an edit has taken the place of its own of that name."""
    names = [found.group(1) for line in edit.splitlines() if (found := SECTION.match(line))]
    kept, is_replaced = [], False
    for line in text.splitlines(keepends=True):
        if found := SECTION.match(line):
            is_replaced = found.group(1) in names
        if not is_replaced:
            kept.append(line)
    return "".join(kept) + edit


def quotes_of(page):
    """What a reader sees: all that is in backticks under that heading and is no command."""
    section = (PAGES / page).read_text().partition("\n## What you see\n")[2].partition("\n## ")[0]
    quotes = [" ".join(quote.split()) for quote in section.split("`")[1::2]]
    commands = ("infra", "aws", "up", "validate", "destroy")
    return [quote for quote in quotes if " " in quote and quote.split()[0] not in commands and not quote.startswith("--")]


def holds(text, quote):
    """Whether a text holds a quote, in which `…` stands for anything."""
    return re.search(".*?".join(map(re.escape, quote.split("…"))), " ".join(text.split())) is not None
