"""A stand-in for S3 with what the program that fetches objects needs: versions by ETag, ranges, refusals in S3's words, transfers that break."""

import contextlib
import http.server
import threading
import urllib.parse


class ObjectServer:
    """Serves objects by key. `faults` are used up one after the other: a status with code and message, or how many bytes an answer has."""

    def __init__(self, objects):
        self.objects, self.faults = dict(objects), []
        # The key and the range of every request.
        self.asked = []
        self.stalls, self.let_go = False, threading.Event()
        self.lock = threading.Lock()

    def etag(self, key):
        return f'"{len(self.objects[key])}-{hash(self.objects[key]) & 0xFFFF}"'

    def entry(self, key, modified=1_700_000_000, **changes):
        entry = {"path": key, "size": len(self.objects[key]), "etag": self.etag(key), "modified": modified}
        return {**entry, "link": f"{self.url}/{urllib.parse.quote(key)}?X-Amz-Signature=secret", **changes}

    @contextlib.contextmanager
    def serving(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with contextlib.suppress(ConnectionError):
                    outer.answer(self)
                self.close_connection = True

            def log_message(self, *arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield self
        finally:
            self.let_go.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, handler):
        key, wanted = urllib.parse.unquote(handler.path.partition("?")[0])[1:], handler.headers.get("Range")
        with self.lock:
            self.asked.append((key, wanted))
            fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, tuple):
            return self.refuse(handler, *fault)
        if key not in self.objects:
            return self.refuse(handler, 404, "NoSuchKey", "The specified key does not exist.")
        if handler.headers.get("If-Match") != self.etag(key):
            return self.refuse(handler, 412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
        first = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        content = self.objects[key][first:]
        handler.send_response(206 if wanted else 200)
        if wanted:
            handler.send_header("Content-Range", f"bytes {first}-{len(self.objects[key]) - 1}/{len(self.objects[key])}")
        handler.send_header("ETag", self.etag(key))
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[:fault])
        handler.wfile.flush()
        if fault is not None and self.stalls:
            # Slowly enough that the client saves what it has before the end.
            for byte in content[fault:fault + 6000]:
                if self.let_go.wait(0.01):
                    break
                handler.wfile.write(bytes([byte]))
        return None

    @staticmethod
    def refuse(handler, status, code, message):
        body = f"<Error><Code>{code}</Code><Message>{message}</Message><StringToSign>secret</StringToSign></Error>".encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)
