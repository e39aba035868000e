"""Fetches objects of S3 onto the claim, by links that whoever runs this program signs. It is in the same program as
claim_files.py and move_files.py.

In: a directory on the claim, what the objects are, and links to those that are missing there. Out: each object as a file below `tree`, with
the time of the object; parts of large ones, by which a later run continues, in `parts`. A link is used and forgotten: it is in no file, no
argument and no answer."""

import concurrent.futures
import errno
import hashlib
import http.client
import json
import os
import re
import stat
import threading
import time
import urllib.error
import urllib.request

# Objects at the same time: enough that nobody waits for a round trip of a small one.
STREAMS = 16
# Statuses and codes of S3 that a retry may change.
PASSING_STATUSES = {408, 429, 500, 502, 503, 504}
PASSING_CODES = {"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown"}
CHANGED = "PreconditionFailed"
# A server that sends nothing for this long has stopped.
SILENCE = 60
FIRST_PAUSE = float(os.environ.get("INFRA_PAUSE", "1"))
LONGEST_PAUSE = 60 * FIRST_PAUSE
# Without a new byte for this long, the object is given up.
PATIENCE = float(os.environ.get("INFRA_DATA_PATIENCE", "900"))
# What was written after the last time is fetched again when the machine is lost. Objects that are smaller begin again.
SECONDS_UNSAFE, BYTES_UNSAFE = 2 * FIRST_PAUSE, 64 << 20
LARGE = 8 << 20
FETCHED, PARTS, COMPLETE = "tree", "parts", "complete.json"


class Broken(Exception):
    """The transfer broke, or S3 cannot answer now."""


class RefusedByS3(Exception):
    """S3 does not hand out the object."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def in_words(error):
    """Why there was no answer. Some errors of Python's quote what was asked for, which is a secret."""
    text = str(getattr(error, "reason", None) or error) or type(error).__name__
    return type(error).__name__ if "?" in text or "X-Amz" in text else text


def open_link(entry, first):
    """S3's answer, from a byte on."""
    headers = {"If-Match": entry["etag"], "Accept-Encoding": "identity", **({"Range": f"bytes={first}-"} if first else {})}
    try:
        return urllib.request.urlopen(urllib.request.Request(entry["link"], headers=headers), timeout=SILENCE)
    except urllib.error.HTTPError as error:
        with error:
            try:
                text = error.read(64 << 10).decode(errors="replace")
            except (OSError, http.client.HTTPException):
                text = ""
        code, message = (re.search(f"<{name}>([^<]*)</{name}>", text) for name in ("Code", "Message"))
        code, message = code[1] if code else str(error.code), message[1] if message else f"S3 answers {error.code}"
        if error.code in PASSING_STATUSES or code in PASSING_CODES:
            raise Broken(f"{code}: {message}") from None
        raise RefusedByS3(CHANGED if error.code in (404, 412, 416) else code, message) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Broken(in_words(error)) from None


class Objects:
    """The objects of one source on their way to a directory."""

    def __init__(self, request):
        self.parts = parts_of(request["directory"])
        self.placed = [parts_of(directory) for directory in request["placed"]]
        # What of them is meant, by a hash of each path: there may be a million.
        self.meant = set()
        self.lock, self.stopped = threading.Lock(), threading.Event()
        self.arrived, self.done, self.notes = 0, 0, []

    def open(self, *below, create=False):
        return open_directory([*self.parts, *below], create)

    @staticmethod
    def part_name(entry):
        """A part belongs to one version of one object."""
        return hashlib.sha256("\0".join([entry["path"], str(entry["size"]), entry["etag"]]).encode()).hexdigest()

    def is_there(self, parts, entry):
        """Whether a file is the object, by its size and its time."""
        try:
            directory = open_directory(parts[:-1])
        except (FileNotFoundError, Refused):
            return False
        try:
            found = stat_of(directory, parts[-1])
        except NotADirectoryError:
            return False
        finally:
            os.close(directory)
        return found is not None and stat.S_ISREG(found.st_mode) and (found.st_size, int(found.st_mtime)) == (entry["size"], entry["modified"])

    def missing(self, entry):
        """How much of an object has arrived, or nothing if all of it has."""
        below = parts_of(entry["path"])
        self.meant.add(hashlib.sha256("/".join(below).encode()).digest()[:16])
        if self.is_there([*self.parts, FETCHED, *below], entry) or any(self.reuse(placed, below, entry) for placed in self.placed):
            return None
        return self.length_of_part(entry)

    def reuse(self, placed, below, entry):
        """Takes a file that an earlier import has put in its place, if it is still the object."""
        if not self.is_there([*placed, *below], entry):
            return False
        source, target = open_directory([*placed, *below[:-1]]), None
        try:
            target = self.open(FETCHED, *below[:-1], create=True)
            os.link(below[-1], below[-1], src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
            return True
        except (OSError, Refused):
            return False
        finally:
            os.close(source)
            if target is not None:
                os.close(target)

    def length_of_part(self, entry):
        """Only what was recorded as safe counts: a lost machine leaves holes before the end of a file."""
        try:
            directory = self.open(PARTS)
        except (FileNotFoundError, Refused):
            return 0
        try:
            name = self.part_name(entry)
            with open(os.open(f"{name}.done", os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory), encoding="ascii") as file:
                done = int(file.read())
            found = stat_of(directory, name)
            return done if found is not None and done <= min(found.st_size, entry["size"]) else 0
        except (OSError, ValueError):
            return 0
        finally:
            os.close(directory)

    def tidy(self):
        """Deletes what an earlier version of the source had, and this one has not."""
        try:
            directory = self.open(FETCHED)
        except FileNotFoundError:
            return
        try:
            self.tidy_below(directory, "")
        finally:
            os.close(directory)

    def tidy_below(self, directory, below):
        for name in os.listdir(directory):
            stay_alive()
            path, found = f"{below}{name}", stat_of(directory, name)
            if found is not None and stat.S_ISDIR(found.st_mode):
                inner = os.open(name, READ_DIRECTORY, dir_fd=directory)
                try:
                    self.tidy_below(inner, f"{path}/")
                    is_empty = not os.listdir(inner)
                finally:
                    os.close(inner)
                if is_empty:
                    os.rmdir(name, dir_fd=directory)
            elif hashlib.sha256(path.encode(errors="surrogateescape")).digest()[:16] not in self.meant:
                os.unlink(name, dir_fd=directory)

    def fetch(self, entry):
        """Returns when the file is complete. A transfer that breaks continues at its byte."""
        furthest, moved, pause = -1, time.monotonic(), FIRST_PAUSE
        while True:
            done = self.length_of_part(entry)
            if done > furthest:
                furthest, moved, pause = done, time.monotonic(), FIRST_PAUSE
            try:
                self.transfer(entry, done)
                with self.lock:
                    self.done += 1
                return
            except Broken as error:
                if self.stopped.is_set():
                    raise
                if time.monotonic() - moved + pause > PATIENCE:
                    raise RefusedByS3("Broken", f"{error}; there was no new byte for {PATIENCE:g} s") from None
                with self.lock:
                    self.notes.append(f"{entry['path']}: {error}; trying again")
            self.stopped.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def transfer(self, entry, first):
        """One answer of S3, written to the part, which then gets its name."""
        size, name = entry["size"], self.part_name(entry)
        is_large = size > LARGE
        directory = self.open(PARTS, create=True)
        try:
            if first < size or not size:
                with open_link(entry, first) as response:
                    if response.status != http.client.PARTIAL_CONTENT:
                        first = 0
                    tag, length = response.headers.get("ETag", entry["etag"]), response.headers.get("Content-Length")
                    if tag != entry["etag"] or (length is not None and int(length) != size - first):
                        raise RefusedByS3(CHANGED, "it is another version")
                    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                    with open(os.open(name, flags, 0o666, dir_fd=directory), "r+b", buffering=0) as file:
                        self.write(file, response, first, size, directory, name if is_large else None)
            self.place(directory, name, entry)
        finally:
            os.close(directory)

    def write(self, file, response, first, size, directory, record):
        file.seek(first)
        file.truncate()
        done = saved = first
        since = time.monotonic()

        def save():
            os.fsync(file.fileno())
            with open(os.open(f"{record}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o666, dir_fd=directory), "w") as text:
                text.write(str(done))
            os.replace(f"{record}.new", f"{record}.done", src_dir_fd=directory, dst_dir_fd=directory)

        try:
            while done < size:
                if self.stopped.is_set():
                    raise Broken("stopped")
                try:
                    piece = response.read1(PIECE)
                except (OSError, http.client.HTTPException) as error:
                    raise Broken(in_words(error)) from None
                if not piece:
                    raise Broken(f"the answer ended after {done} of {size} bytes")
                write_all(file.fileno(), piece)
                done += len(piece)
                with self.lock:
                    self.arrived += len(piece)
                if record and (time.monotonic() - since > SECONDS_UNSAFE or done - saved > BYTES_UNSAFE):
                    save()
                    saved, since = done, time.monotonic()
        finally:
            if record:
                save()
            elif done < size:
                # It begins again.
                with self.lock:
                    self.arrived -= done

    def place(self, directory, name, entry):
        below = parts_of(entry["path"])
        parent = self.open(FETCHED, *below[:-1], create=True)
        try:
            os.utime(name, (entry["modified"], entry["modified"]), dir_fd=directory, follow_symlinks=False)
            os.replace(name, below[-1], src_dir_fd=directory, dst_dir_fd=parent)
        finally:
            os.close(parent)
        try:
            os.unlink(f"{name}.done", dir_fd=directory)
        except FileNotFoundError:
            pass

    def take_news(self):
        with self.lock:
            news = {"bytes": self.arrived, "files": self.done, "notes": self.notes[:5]}
            self.arrived, self.done, self.notes = 0, 0, []
        return news


OBJECTS = None


def write_text(directory, name, text):
    with open(os.open(f"{name}.{MARK}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=directory), "w") as file:
        file.write(text)
    os.replace(f"{name}.{MARK}", name, src_dir_fd=directory, dst_dir_fd=directory)


def read_state(path):
    """The state that a finished import has recorded."""
    parts = parts_of(path)
    try:
        directory = open_directory(parts[:-1])
    except (FileNotFoundError, Refused):
        return None
    try:
        with open(os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW, dir_fd=directory), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None
    finally:
        os.close(directory)


def begin_objects(request, _):
    """Whether an import of exactly these objects is complete; if not, they can be fetched."""
    global OBJECTS
    OBJECTS = Objects(request)
    directory = OBJECTS.open(create=True)
    try:
        is_imported = read_state(request["stamp"]) == request["state"]
        if is_imported:
            write_text(directory, COMPLETE, json.dumps(request["state"]))
        else:
            try:
                os.unlink(COMPLETE, dir_fd=directory)
            except FileNotFoundError:
                pass
    finally:
        os.close(directory)
    remove_stale_objects(OBJECTS.parts)
    answer({"imported": is_imported})


def remove_stale_objects(own):
    """What nobody has fetched to its end."""
    above = open_directory(own[:-1])
    try:
        os.utime(own[-1], dir_fd=above, follow_symlinks=False)
        for name in os.listdir(above):
            found = stat_of(above, name)
            if name.startswith("objects-") and found is not None and time.time() - found.st_mtime > STALE_SECONDS:
                remove_entry(above, name)
    finally:
        os.close(above)


def find_missing_objects(request, _):
    found = ((number, OBJECTS.missing(entry)) for number, entry in enumerate(request["entries"]))
    stay_alive()
    answer({"needed": [[number, offset] for number, offset in found if offset is not None]})


def prepare_objects(request, _):
    """After all objects were named: deletes what is none of them, and sees that the rest has room."""
    OBJECTS.tidy()
    OBJECTS.meant.clear()
    directory = OBJECTS.open()
    try:
        room = os.fstatvfs(directory)
    finally:
        os.close(directory)
    free = room.f_bavail * room.f_frsize
    if request["bytes"] > free:
        raise Refused(f"{request['bytes']} bytes are missing, and {free} are free: delete something there first")
    answer({})


def fetch_objects(request, _):
    """Fetches some objects at the same time; tells now and then how far it is, and at the end which of them S3 refused."""
    objects, refused = OBJECTS, []
    objects.take_news()
    with concurrent.futures.ThreadPoolExecutor(STREAMS) as threads:
        waiting = {threads.submit(objects.fetch, entry): number for number, entry in enumerate(request["entries"])}
        numbers = dict(waiting)
        try:
            while waiting:
                done, _ = concurrent.futures.wait(waiting, timeout=0.5)
                stay_alive()
                for future in done:
                    number = waiting.pop(future)
                    error = future.exception()
                    if isinstance(error, RefusedByS3):
                        refused.append({"number": number, "code": error.code, "message": error.message})
                    elif error is not None:
                        raise error
                answer(objects.take_news())
        finally:
            # Whoever signed the links may be gone: nothing more is fetched with them.
            objects.stopped.set()
            for future in numbers:
                future.cancel()
    objects.stopped.clear()
    answer({**objects.take_news(), "refused": refused, "end": True})


def finish_objects(request, _):
    """Says to the import that all objects are there."""
    directory = OBJECTS.open()
    try:
        if stat_of(directory, PARTS) is not None:
            remove_entry(directory, PARTS)
        write_text(directory, COMPLETE, json.dumps(request["state"]))
    finally:
        os.close(directory)
    answer({})


OBJECT_REQUESTS = {"objects-begin": begin_objects, "objects-missing": find_missing_objects, "objects-prepare": prepare_objects,
                   "objects-fetch": fetch_objects, "objects-finish": finish_objects}

