"""Moves files between a claim and whoever runs this program through the Kubernetes API: requests on stdin, answers on stdout, in order.
A message is two lengths, a JSON document and bytes.

The end of a program: claim_files.py, fetch_objects.py, write_files.py and read_files.py stand before it."""

import json
import os
import signal
import struct
import sys

LENGTHS = struct.Struct(">II")
REQUESTS = {"check": check, "write": write, "part": part, "finish": finish, "list": list_entries,
            "hashes": hashes, "read": read, "remove": remove, "tree": tree, "copy": copy, "publish": publish, **OBJECT_REQUESTS}
OUTPUT = sys.stdout.buffer


def answer(document, content=b""):
    text = json.dumps(document).encode()
    OUTPUT.write(LENGTHS.pack(len(text), len(content)))
    OUTPUT.write(text)
    OUTPUT.write(content)
    OUTPUT.flush()


def read_exactly(length):
    content = sys.stdin.buffer.read(length)
    if len(content) < length:
        raise EOFError
    return content


def replace_predecessor():
    """Only one command uses this pod, over one connection after the other: what still runs for an earlier one has lost its client."""
    try:
        with open(f"{ALIVE}.process", encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
    except (OSError, ValueError):
        pass
    with open(f"{ALIVE}.process", "w", encoding="ascii") as file:
        file.write(str(os.getpid()))


def serve():
    replace_predecessor()
    answer({"ready": True})
    while True:
        try:
            text_length, length = LENGTHS.unpack(read_exactly(LENGTHS.size))
            request, content = json.loads(read_exactly(text_length)), read_exactly(length)
        except EOFError:
            break
        stay_alive()
        try:
            REQUESTS[request["do"]](request, content)
        except Refused as error:
            answer({"error": str(error), "end": True})
        except FileNotFoundError as error:
            answer({"missing": True, "error": f"{request.get('path', error.filename)}: {error.strerror}", "end": True})
        except OSError as error:
            answer({"error": f"{error.filename or request.get('path', 'the claim')}: {error.strerror}", "end": True})
    HASHES.save()
    os.unlink(f"{ALIVE}.process")


serve()
