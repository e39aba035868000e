"""A web server whose transfers break, and whose file changes."""

import contextlib
import email.utils
import http.server
import threading
import time


class BreakingServer:
    """Serves one file. Each response is cut after the number of bytes that `cuts` gives next; without one it is whole."""

    def __init__(self, contents, cuts=(), tag='"one"', modified=None, ranges=True, obeys_if_range=True, chunked=False, status=200):
        self.contents, self.cuts, self.tag, self.modified = contents, list(cuts), tag, modified
        self.ranges, self.obeys_if_range, self.chunked, self.status = ranges, obeys_if_range, chunked, status
        # The byte that each request begins with, and how many were sent.
        self.asked, self.sent = [], 0
        # Set, the answer stays open after its cut.
        self.stalls = False
        self.redirects = False
        self.let_go = threading.Event()

    @contextlib.contextmanager
    def serving(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                # The client goes away when it is too much, or killed.
                with contextlib.suppress(ConnectionError):
                    outer.answer(self)
                self.close_connection = True

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = False
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/sets/small.tar.gz?key=secret"
        finally:
            self.let_go.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, handler):
        if self.redirects and not handler.path.startswith("/elsewhere"):
            handler.send_response(302)
            handler.send_header("Location", f"/elsewhere{handler.path}")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        wanted, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
        self.asked.append(wanted and wanted.removeprefix("bytes="))
        if self.status != 200:
            handler.send_error(self.status)
            return
        first, last = 0, len(self.contents) - 1
        is_part = self.ranges and wanted and (condition in (None, self.tag, self.modified) or not self.obeys_if_range)
        if is_part:
            begin, _, end = wanted.removeprefix("bytes=").partition("-")
            first, last = int(begin), min(int(end), last) if end else last
            if first > last:
                handler.send_error(416)
                return
        handler.send_response(206 if is_part else 200)
        if is_part:
            handler.send_header("Content-Range", f"bytes {first}-{last}/{len(self.contents)}")
        if self.tag:
            handler.send_header("ETag", self.tag)
        if self.modified:
            handler.send_header("Last-Modified", self.modified)
        body = self.contents[first:last + 1]
        handler.send_header(*(("Transfer-Encoding", "chunked") if self.chunked else ("Content-Length", str(len(body)))))
        handler.end_headers()
        cut = self.cuts.pop(0) if self.cuts and wanted != "bytes=0-0" else None
        for piece in (body[:cut][start:start + 8192] for start in range(0, len(body[:cut]), 8192)):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if self.chunked else piece)
            self.sent += len(piece)
            if self.stalls:
                # Slowly enough that the client saves what it has before the next piece.
                time.sleep(0.01)
        if cut is None and self.chunked:
            handler.wfile.write(b"0\r\n\r\n")
        if cut is not None and self.stalls:
            handler.wfile.flush()
            self.let_go.wait(60)

    def await_bytes(self, count):
        end = time.monotonic() + 60
        while self.sent < count:
            assert time.monotonic() < end, f"{self.sent} bytes were sent"
            time.sleep(0.01)


def day(number):
    """A moment as Last-Modified writes it."""
    return email.utils.formatdate(1_700_000_000 + 86400 * number, usegmt=True)
