"""AWS as machines see it: HTTPS under AWS's own names, and HTTP for the operator, both in front of the stand-in. Also the server of what
machines download from elsewhere.

Every call is noted with the machine that made it, so that tests can compare calls with the rights of roles.
"""

import collections
import http.client
import http.server
import re
import ssl
import threading
import urllib.parse

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
Call = collections.namedtuple("Call", "source service action")


class AwsEndpoints:
    """Listens in the network namespace it is made in (see container.inside); asks the stand-in from the caller's."""

    def __init__(self, stand_in_url, address, certificate, key, downloads):
        self.stand_in = urllib.parse.urlsplit(stand_in_url).netloc
        self.calls, self.downloads = [], downloads
        # Given a call and its path, a test may answer in AWS's place: with a status, headers and a content.
        self.intercept = lambda _call, _path: None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        secure = Server((address, 443), handler_for(self))
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        self.servers = [secure, Server((address, 80), handler_for(self))]

    def start(self):
        for server in self.servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def note(self, handler, body):
        scope = re.search(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/", handler.headers.get("Authorization", ""))
        form = dict(urllib.parse.parse_qsl(body.decode(errors="replace")))
        service = scope.group(1) if scope else "anonymous"
        action = form.get("Action") or handler.headers.get("X-Amz-Target", "").rpartition(".")[2] or handler.command
        call = Call(handler.client_address[0], service, action)
        self.calls.append(call)
        return call


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        """A client that went away, or does not trust us."""


def handler_for(endpoints):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def forward(self):
            if download := endpoints.downloads.get(f"https://{self.headers.get('Host')}{self.path}"):
                self.answer(200, {}, download.read_bytes())
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if own := endpoints.intercept(endpoints.note(self, body), self.path):
                self.answer(*own)
                return
            if self.command == "HEAD" and "Authorization" not in self.headers:
                # How S3 tells whoever has no rights in which region a bucket is.
                self.answer(403, {"x-amz-bucket-region": self.region()}, b"")
                return
            connection = http.client.HTTPConnection(endpoints.stand_in, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP - {"host"}}
            connection.request(self.command, self.path, body, headers)
            response = connection.getresponse()
            content = response.read()
            connection.close()
            self.answer(response.status, dict(response.getheaders()), content, response.getheader("Content-Length"))

        def answer(self, status, headers, content, length=None):
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in HOP_BY_HOP | {"date", "server"}:
                    self.send_header(name, value)
            # The answer to HEAD has the length of what it does not send.
            self.send_header("Content-Length", length if self.command == "HEAD" and length else str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def region(self):
            found = re.search(r"s3[.-]([a-z]{2}-[a-z-]+-\d)\.", self.headers.get("Host", ""))
            return found.group(1) if found else "us-east-1"

        do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = forward

        def log_message(self, *_):
            pass

    return Handler
