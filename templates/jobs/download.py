"""Downloads a file to the claim, and continues a download that broke at the byte where it stopped, in this pod or in the next.

In: a URL and the path of the file. Out: the whole file. A record beside it holds how much of it is safe on the claim, and of which version on the
server it is a part. It does not unpack anything.
"""

import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request

# HTTP statuses that a retry does not change.
REFUSALS = {400, 401, 403, 404, 410}
BEYOND_THE_END = 416
CHUNK = 1 << 20
# A server that sends nothing for this long has stopped.
SILENCE = 60
FIRST_PAUSE = float(os.environ.get("INFRA_PAUSE", "1"))
LONGEST_PAUSE = 60 * FIRST_PAUSE
# Without a new byte for this long, the import fails.
PATIENCE = float(os.environ.get("INFRA_DATA_PATIENCE", "900"))
# What was written after the last time is fetched again when the machine is lost.
SECONDS_UNSAFE, BYTES_UNSAFE = 2 * FIRST_PAUSE, 64 << 20
SECONDS_QUIET = 10


class Refused(Exception):
    """The server does not hand out the file."""


class Interrupted(Exception):
    """The transfer broke, or the server cannot answer now."""


def is_url(source):
    return source.startswith(("http://", "https://"))


def shown(url):
    """A URL for a log: what follows the question mark may be a key."""
    return urllib.parse.urlsplit(url)._replace(query="", fragment="").geturl()


def version_of(answer):
    """What distinguishes two versions of a file on a server; nothing if the server does not say. A weak ETag does not prove that the bytes are
    the same."""
    tag = answer.headers.get("ETag", "")
    return tag if tag.startswith('"') else answer.headers.get("Last-Modified")


def length_of(answer):
    """The length of the whole file, where the server says it."""
    if answer.status == http.client.PARTIAL_CONTENT:
        found = re.fullmatch(r"bytes \d+-\d+/(\d+)", answer.headers.get("Content-Range", "").strip())
        return int(found.group(1)) if found else None
    length = answer.headers.get("Content-Length", "")
    return int(length) if length.isdigit() else None


def open_url(url, headers):
    """The server's answer."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=SILENCE)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in REFUSALS:
            raise Refused(f"{error.code} {error.reason}") from error
        if error.code == BEYOND_THE_END:
            return None
        raise Interrupted(f"{error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(getattr(error, "reason", None) or error) from error


def version_on_server(url):
    """The version and the length of a file as the server has it now."""
    answer = open_url(url, {"Range": "bytes=0-0"})
    if answer is None:
        return None, None
    with answer:
        return version_of(answer), length_of(answer)


def read_some(answer):
    try:
        # What has arrived, without waiting for more: it is lost if the rest does not come.
        return answer.read1(CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(error) from error


class Download:
    """A file on its way to the claim."""

    def __init__(self, path):
        self.path, self.record = path, path.with_name(f"{path.name}.json")
        self.done, self.version, self.length, self.parts = 0, None, None, 0
        try:
            known = json.loads(self.record.read_text())
            if path.stat().st_size >= known["done"]:
                self.done, self.version, self.length, self.parts = (known[key] for key in ("done", "version", "length", "parts"))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # Nothing was begun, or the record was not written by this program.
            pass

    def run(self, url, room_beside, shown_as=None):
        """Returns when the file is complete. `room_beside` takes the size of the file, and returns how much more may be written."""
        shown_as = shown_as or shown(url)
        print(f"fetching {shown_as}" + (f", from byte {self.done} on" if self.done else ""), flush=True)
        furthest, moved, pause = self.done, time.monotonic(), FIRST_PAUSE
        while True:
            try:
                self.transfer(url, room_beside, shown_as)
                return
            except Interrupted as error:
                reason = error
            # A server that always begins at the beginning makes no progress by sending the same bytes again.
            if self.done > furthest:
                furthest, moved, pause = self.done, time.monotonic(), FIRST_PAUSE
            if time.monotonic() - moved + pause > PATIENCE:
                raise OSError(f"{shown_as}: {reason}; {self.done} bytes have arrived")
            print(f"  {reason}; trying again in {pause:g} s, from byte {self.done} on", flush=True)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def transfer(self, url, room_beside, shown_as):
        """One answer of the server, written to the file."""
        # The last byte is fetched again, so that a file that is complete can be continued too.
        first = max(self.done - 1, 0) if self.version else 0
        answer = open_url(url, {"Range": f"bytes={first}-", "If-Range": self.version} if self.done and self.version else {})
        if answer is None:
            self.begin(None, None)
            raise Interrupted("the file is shorter now")
        with answer:
            version, length = version_of(answer), length_of(answer)
            if answer.status == http.client.PARTIAL_CONTENT:
                # Some servers ignore If-Range.
                is_same = version in (None, self.version) and self.length in (None, length)
                if not is_same or not answer.headers.get("Content-Range", "").startswith(f"bytes {first}-"):
                    self.begin(None, None)
                    raise Interrupted("the file has changed on the server")
                self.length = length
            elif version and (version, length, length) == (self.version, self.length, self.done):
                # A server without ranges; all of it is here.
                return
            else:
                first = 0
                self.begin(version, length)
            self.parts += 1
            self.write(answer, first, room_beside(first), shown_as)
        if self.length is not None and self.done != self.length:
            raise Interrupted(f"the answer ended after {self.done} of {self.length} bytes")

    def begin(self, version, length):
        """The file begins anew."""
        self.done, self.version, self.length, self.parts = 0, version, length, 0

    def write(self, answer, first, room, shown_as):
        if self.length is not None:
            room.use(self.length - first, shown_as, entries=0)
        with open(self.path, "r+b" if first else "wb") as file:
            file.seek(first)
            file.truncate()
            self.done = first
            saved, told, since = self.done, time.monotonic(), time.monotonic()
            try:
                while chunk := read_some(answer):
                    if self.length is None:
                        room.use(len(chunk), shown_as, entries=0)
                    file.write(chunk)
                    self.done += len(chunk)
                    now = time.monotonic()
                    if now - since > SECONDS_UNSAFE or self.done - saved > BYTES_UNSAFE:
                        self.save(file)
                        saved, since = self.done, now
                    if now - told > SECONDS_QUIET:
                        print(f"  {self.done >> 20} MiB" + (f" of {self.length >> 20}" if self.length else ""), flush=True)
                        told = now
            finally:
                self.save(file)

    def save(self, file):
        """Records how much of the file is on the claim, after it is: a lost machine takes with it what it has not sent there."""
        file.flush()
        os.fsync(file.fileno())
        part = self.record.with_suffix(".new")
        part.write_text(json.dumps({"done": self.done, "version": self.version, "length": self.length, "parts": self.parts}))
        part.rename(self.record)

    def remove(self):
        self.record.unlink(missing_ok=True)
        self.path.unlink(missing_ok=True)
