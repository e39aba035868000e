"""Where on a machine is a copy of the key that it joins with: in plain text, or encoded once more, as user data may be.

In comes the kubeconfig with the key; pieces of it are looked for, short enough that most of them are not broken by the end of a line.
"""

import base64
import re

# What cloud-init keeps, what anything logs, and what is in memory.
PLACES = ("/var/lib/cloud", "/var/log", "/run")
LENGTH = 24
# Before that all keys of a kind are alike.
COMMON = 64


def pieces_of_key(kubeconfig):
    """Pieces of the key as the kubeconfig has it, as its PEM text has it, and of both in Base64."""
    [encoded] = re.findall(r"client-key-data: (\S+)", kubeconfig)
    lines = base64.b64decode(encoded).decode().splitlines()
    own = "".join(line for line in lines if not line.startswith("-----"))
    texts = [encoded, own]
    # Three bytes become four characters, from wherever the text begins.
    texts += [base64.b64encode(bytes(shift) + text.encode())[4:-4].decode() for text in (encoded, own) for shift in range(3)]
    return [text[at:at + LENGTH] for text in texts for at in range(COMMON, len(text) - LENGTH, LENGTH)]


def holds_key(text, pieces):
    return any(piece in text for piece in pieces)


def files_with_key(machine, pieces):
    """The files in PLACES that hold a piece of the key."""
    # Or nothing would be found in what is not there.
    machine.run("ls", "-d", *PLACES)
    patterns = [f"--regexp={piece}" for piece in pieces]
    # Files come and go meanwhile.
    found = machine.run("grep", "--recursive", "--text", "--no-messages", "--files-with-matches", "--fixed-strings", *patterns, *PLACES, check=False)
    return sorted(found.split())


def assert_no_key(case, machine, kubeconfig):
    """Neither a file nor the journal has the key; and the search would find one that was there, in each of its forms."""
    pieces = pieces_of_key(kubeconfig)
    case.assertEqual(files_with_key(machine, pieces), [])
    case.assertFalse(holds_key(machine.journal(), pieces))
    planted = machine.root / "var/lib/cloud/planted"
    for form in (kubeconfig, base64.encodebytes(b"#" + kubeconfig.encode()).decode()):
        planted.write_text(form)
        case.assertEqual(files_with_key(machine, pieces), ["/var/lib/cloud/planted"])
        case.assertTrue(holds_key(form, pieces))
        planted.unlink()
