"""Serves one directory as a tar archive over HTTP, so that the API server can pass it on. Every pod of the cluster can reach it, so
a request must know the token of this run."""

import hashlib
import hmac
import http.server
import os
import sys
import tarfile
import urllib.parse

CLAIM = os.environ["ARCHIVE_CLAIM"]
ROOT = os.environ["ARCHIVE_ROOT"]
PORT = int(os.environ.get("ARCHIVE_PORT", "8080"))
# Whoever may read the pod's specification learns only the digest.
TOKEN_SHA256 = os.environ["ARCHIVE_TOKEN_SHA256"]


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET /archive.tar with everything below the directory, and GET /ready with how many bytes that is."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        token = urllib.parse.parse_qs(address.query).get("token", [""])[0]
        if not hmac.compare_digest(hashlib.sha256(token.encode()).hexdigest(), TOKEN_SHA256):
            self.answer(403, "the token is not that of this run\n")
        elif not os.path.isdir(ROOT):
            self.answer(404, f"there is no directory {ROOT}\n")
        elif is_elsewhere():
            self.answer(403, f"{ROOT} is, or is below, a link that leads to another directory: it is not followed\n")
        elif address.path == "/ready":
            self.send_size()
        elif address.path == "/archive.tar":
            self.send_archive()
        else:
            self.answer(404, "there is /ready and /archive.tar\n")

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def send_size(self):
        try:
            self.answer(200, f"{sum(size for _, size in files())}\n")
        except OSError as error:
            self.answer(403, f"{error.filename} cannot be read: {error.strerror}\n")

    def send_archive(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/x-tar")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        stream = Chunks(self.wfile)
        # An archive without its end shows the client that something is missing.
        with tarfile.open(fileobj=stream, mode="w|", bufsize=1 << 20) as archive:
            for name, _ in files():
                try:
                    archive.add(os.path.join(ROOT, name), arcname=name, recursive=False, filter=usable)
                except FileNotFoundError:
                    # A running job deletes its older checkpoints.
                    print(f"{name} was deleted meanwhile", file=sys.stderr, flush=True)
        self.wfile.write(b"0\r\n\r\n")

    def log_request(self, code="-", size="-"):
        """Without the token."""
        self.log_message("%s %s %s", self.command, urllib.parse.urlsplit(self.path).path, code)

    def log_message(self, format, *arguments):
        print(format % arguments, file=sys.stderr, flush=True)


class Chunks:
    """Writes what it is given in chunks of HTTP."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, data):
        if data:
            self.stream.write(b"%x\r\n%s\r\n" % (len(data), data))


def is_elsewhere():
    """Whether a link leads from the directory to another one, as to another job's."""
    own = os.path.join(os.path.realpath(CLAIM), os.path.relpath(ROOT, CLAIM))
    return os.path.realpath(ROOT) != os.path.normpath(own)


def usable(entry):
    """The user who unpacks it can read it, and write to its directories."""
    entry.mode |= 0o700 if entry.isdir() else 0o600
    return entry


def refuse(error):
    """Results without an unreadable directory would look complete."""
    if not isinstance(error, FileNotFoundError):
        raise error


def files():
    """Everything below the directory except our own markers: path and size, in order."""
    for directory, names, found in os.walk(ROOT, onerror=refuse):
        names[:] = sorted(name for name in names if name != ".infra")
        below = os.path.relpath(directory, ROOT)
        for name in names:
            yield os.path.normpath(os.path.join(below, name)), 0
        for name in sorted(found):
            try:
                size = os.lstat(os.path.join(directory, name)).st_size
            except FileNotFoundError:
                continue
            yield os.path.normpath(os.path.join(below, name)), size


http.server.ThreadingHTTPServer(("", PORT), Handler).serve_forever()
