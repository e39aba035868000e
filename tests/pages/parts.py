"""Whether pages can be opened here: prints why not, or nothing."""

import pathlib
import shutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")


def reason():
    if CHROMIUM is None:
        return "there is no chromium: apt-get install chromium"
    if not (ROOT / "target/test-tools/pages/bin/python").exists():
        return "target/test-tools/pages is not there: run scripts/prepare-tests"
    return ""


if __name__ == "__main__":
    print(reason())
