"""The parts of AWS that a node talks to, on one loopback port: instance metadata, EC2 volumes and instances, CloudFormation signals, S3 objects.

Answers look like AWS's. Signatures are really checked. What an operation does next can be scripted:
    stand_in.script("ec2:AttachVolume", "throttle", "throttle", "ok")
Behaviours: ok, throttle, error (500), denied, hang, cut (the work is done, the answer is lost half-way), or (status, code, message).
After the last one everything is ok again.
"""

import fnmatch
import hashlib
import http.server
import re
import threading
import urllib.parse
from collections import defaultdict, deque
from xml.sax.saxutils import escape

from ec2_resources import describe_instance
from signature import KEY, SECRET, SESSION, check_signature

METADATA_TOKEN = "standin-metadata-token=="
DENIED = {"ec2": "UnauthorizedOperation", "cloudformation": "AccessDenied", "s3": "AccessDenied"}
THROTTLED = {"ec2": (503, "RequestLimitExceeded"), "cloudformation": (400, "Throttling"), "s3": (503, "SlowDown")}


class StandIn:
    def __init__(self):
        self.metadata = {
            "meta-data/instance-id": "i-0aaaaaaaaaaaaaaaa",
            "meta-data/local-hostname": "ip-10-0-1-23.us-west-2.compute.internal",
            "meta-data/local-ipv4": "10.0.1.23",
            "meta-data/placement/availability-zone": "us-west-2b",
            "meta-data/iam/security-credentials/": "etcd-role",
            "meta-data/iam/security-credentials/etcd-role": (
                '{\n  "Code" : "Success",\n  "LastUpdated" : "2030-01-01T00:00:00Z",\n  "Type" : "AWS-HMAC",\n'
                f'  "AccessKeyId" : "{KEY}",\n  "SecretAccessKey" : "{SECRET}",\n  "Token" : "{SESSION}",\n'
                '  "Expiration" : "2030-01-01T06:00:00Z"\n}'
            ),
        }
        self.volumes = {}
        self.instances = []
        self.on_attach = lambda volume: None
        self.objects = {}
        # Without this right, S3 answers AccessDenied for an object that does not exist.
        self.may_list = True
        # Enabled or Suspended, or nothing in a bucket that never had versions; versions are by key and id.
        self.versioning = None
        self.versions = {}
        self.uploads = []
        self.files = {}
        self.signals = []
        self.calls = []
        self.faults = []
        self.scripted = defaultdict(deque)
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Head and body are two writes; the second would wait for the first one's acknowledgement.
            disable_nagle_algorithm = True

            def handle_request(self):
                owner.answer(self)

            do_GET = do_PUT = do_POST = handle_request

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            # A client may close the connection.
            def handle_error(self, *_):
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def environment(self):
        return {
            "INFRA_ENDPOINT_IMDS": f"{self.url}/imds",
            "INFRA_ENDPOINT_EC2": f"{self.url}/ec2",
            "INFRA_ENDPOINT_CLOUDFORMATION": f"{self.url}/cloudformation",
            "INFRA_ENDPOINT_S3": f"{self.url}/s3",
        }

    def script(self, operation, *behaviours):
        self.scripted[operation].extend(behaviours)

    def count(self, operation):
        return sum(1 for call in self.calls if call == operation)

    # ---- one request

    def answer(self, request):
        length = int(request.headers.get("Content-Length") or 0)
        body = request.rfile.read(length) if length else b""
        service, _, rest = request.path.lstrip("/").partition("/")
        with self.lock:
            if service == "imds":
                status, content = self.answer_metadata(request, rest)
                behaviour = "ok"
            elif service == "files":
                found = self.files.get(rest)
                self.calls.append(f"files:{rest}")
                status, content, behaviour = (404, b"", "ok") if found is None else (200, found, "ok")
            else:
                request.more_headers = {}
                status, content, behaviour = self.answer_service(request, service, rest, body)
        if behaviour == "hang":
            self.stopping.wait(20)
            request.close_connection = True
            return
        request.send_response(status)
        for name, value in getattr(request, "more_headers", {}).items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if behaviour == "cut":
            request.wfile.write(content[: len(content) // 2])
            request.close_connection = True
            return
        request.wfile.write(content)

    def answer_metadata(self, request, rest):
        if rest == "latest/api/token":
            seconds = request.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
            if request.command != "PUT" or not seconds:
                return 400, b""
            self.calls.append("imds:token")
            return 200, METADATA_TOKEN.encode()
        if request.headers.get("X-aws-ec2-metadata-token") != METADATA_TOKEN:
            self.faults.append("metadata asked without a token")
            return 401, b""
        path = rest.removeprefix("latest/")
        self.calls.append(f"imds:{path}")
        behaviour = self.scripted[f"imds:{path}"].popleft() if self.scripted[f"imds:{path}"] else "ok"
        value = self.metadata.get(path)
        if behaviour == "error":
            return 500, b""
        if behaviour == "missing" or value is None:
            return 404, b"<html>404 - Not Found</html>"
        return 200, value.encode()

    def answer_service(self, request, service, rest, body):
        if service == "s3":
            rest, _, query = rest.partition("?")
            form = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
            action = {"GET": "GetObject", "PUT": "PutObject"}[request.command]
            if not rest:
                action = "GetBucketVersioning" if "versioning" in form else "ListBucket"
        else:
            form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True))
            action = form.get("Action", "")
        operation = f"{service}:{action}"
        self.calls.append(operation)
        fault = check_signature(request, service, body)
        if fault:
            self.faults.append(f"{operation}: {fault}")
            return *self.error(service, 403, "SignatureDoesNotMatch", fault), "ok"
        queue = self.scripted[operation]
        behaviour = queue.popleft() if queue else "ok"
        if behaviour == "hang":
            return 0, b"", "hang"
        if behaviour == "throttle":
            status, code = THROTTLED[service]
            return *self.error(service, status, code, "Rate exceeded"), "ok"
        if behaviour == "error":
            return *self.error(service, 500, "InternalError", "An internal error has occurred"), "ok"
        if behaviour == "denied":
            message = f"User: arn:aws:sts::111122223333:assumed-role/etcd-role is not authorized to perform: {operation}"
            return *self.error(service, 403, DENIED[service], message), "ok"
        if isinstance(behaviour, tuple):
            return *self.error(service, *behaviour), "ok"
        if operation == "s3:PutObject":
            status, content = self.put_object(request, rest, body)
        elif operation == "s3:GetObject":
            status, content = self.get_object(rest, form.get("versionId"))
        else:
            known = {
                "ec2:DescribeVolumes": self.describe_volumes,
                "ec2:AttachVolume": self.attach_volume,
                "ec2:DescribeInstances": self.describe_instances,
                "cloudformation:SignalResource": self.signal_resource,
                "s3:GetBucketVersioning": self.get_bucket_versioning,
                "s3:ListBucket": self.list_bucket,
            }
            if operation in known:
                status, content = known[operation](form)
            else:
                status, content = self.error(service, 400, "InvalidAction", f"The action {action} is not valid for this web service.")
        return status, content, behaviour

    @staticmethod
    def error(service, status, code, message):
        detail = f"<Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        text = {
            "ec2": f"<Response><Errors><Error>{detail}</Error></Errors><RequestID>0a1b</RequestID></Response>",
            "cloudformation": (
                '<ErrorResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">\n  <Error>\n    <Type>Sender</Type>\n    '
                f"{detail}\n  </Error>\n  <RequestId>0a1b</RequestId>\n</ErrorResponse>"
            ),
            "s3": f"<Error>{detail}<RequestId>0A1B</RequestId></Error>",
        }[service]
        return status, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'.encode()

    # ---- EC2

    def describe_volumes(self, form):
        name = form.get("VolumeId.1")
        volume = self.volumes.get(name)
        if volume is None:
            return self.error("ec2", 400, "InvalidVolume.NotFound", f"The volume '{name}' does not exist.")
        state, instance, attachment = volume.look()
        attachments = "<attachmentSet/>"
        if instance:
            attachments = f"""<attachmentSet>
                <item>
                    <volumeId>{name}</volumeId>
                    <instanceId>{instance}</instanceId>
                    <device>/dev/xvdf</device>
                    <status>{attachment}</status>
                    <attachTime>2030-01-01T00:00:00.000Z</attachTime>
                    <deleteOnTermination>false</deleteOnTermination>
                </item>
            </attachmentSet>"""
        return 200, f"""<?xml version="1.0" encoding="UTF-8"?>
<DescribeVolumesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
    <requestId>0a1b</requestId>
    <volumeSet>
        <item>
            <volumeId>{name}</volumeId>
            <size>20</size>
            <snapshotId/>
            <availabilityZone>us-west-2b</availabilityZone>
            <status>{state}</status>
            <createTime>2030-01-01T00:00:00.000Z</createTime>
            {attachments}
            <tagSet>
                <item>
                    <key>infra:cluster</key>
                    <value>paddle</value>
                </item>
            </tagSet>
            <volumeType>gp3</volumeType>
            <encrypted>true</encrypted>
        </item>
    </volumeSet>
</DescribeVolumesResponse>""".encode()

    def attach_volume(self, form):
        name, instance = form.get("VolumeId"), form.get("InstanceId")
        volume = self.volumes[name]
        state, holder, _ = volume.scenes[0]
        if form.get("Device") != "/dev/xvdf":
            return self.error("ec2", 400, "InvalidParameterValue", f"Invalid value '{form.get('Device')}' for unixDevice.")
        if state != "available":
            return self.error("ec2", 400, "VolumeInUse", f"{name} is already attached to an instance ({holder})")
        volume.attach(instance)
        self.on_attach(name)
        return 200, f"""<?xml version="1.0" encoding="UTF-8"?>
<AttachVolumeResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
    <requestId>0a1b</requestId><volumeId>{name}</volumeId><instanceId>{instance}</instanceId>
    <device>/dev/xvdf</device><status>attaching</status><attachTime>2030-01-01T00:00:00.000Z</attachTime>
</AttachVolumeResponse>""".encode()

    def describe_instances(self, form):
        filters = {}
        for key, value in form.items():
            if match := re.fullmatch(r"Filter\.(\d+)\.Value\.\d+", key):
                filters.setdefault(form[f"Filter.{match.group(1)}.Name"], []).append(value)
        if any(len(values) > 200 for values in filters.values()):
            return self.error("ec2", 400, "FilterLimitExceeded", "The maximum number of filter values specified on a single call is 200")

        def is_asked_for(instance):
            facts = {"tag:infra:cluster": instance.cluster, "instance-state-name": instance.state, "private-dns-name": instance.name}
            return all(any(fnmatch.fnmatchcase(facts[name], value) for value in values) for name, values in filters.items())

        items = "".join(describe_instance(instance) for instance in self.instances if is_asked_for(instance))
        return 200, f"""<?xml version="1.0" encoding="UTF-8"?>
<DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">
    <requestId>0a1b</requestId>
    <reservationSet>{items}
    </reservationSet>
</DescribeInstancesResponse>""".encode()

    # ---- CloudFormation

    def signal_resource(self, form):
        self.signals.append({name: form.get(name) for name in ("StackName", "LogicalResourceId", "UniqueId", "Status")})
        return 200, b"""<SignalResourceResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/">
  <ResponseMetadata><RequestId>0a1b</RequestId></ResponseMetadata>
</SignalResourceResponse>"""

    # ---- S3

    def get_object(self, key, version):
        if version is not None:
            found = self.versions.get((key, version))
            missing = (404, "NoSuchVersion", "The specified version does not exist.")
        else:
            found, missing = self.objects.get(key), (404, "NoSuchKey", "The specified key does not exist.")
            if not self.may_list:
                missing = (403, "AccessDenied", "Access Denied")
        return (200, found) if found is not None else self.error("s3", *missing)

    def list_bucket(self, form):
        if form.get("list-type") != "2":
            return self.error("s3", 400, "InvalidArgument", "this is the second version of the API")
        found = sorted(key for key in self.objects if key.startswith(form.get("prefix", "")))[: int(form.get("max-keys", 1000))]
        items = "".join(f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size></Contents>" for key in found)
        return 200, (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>team-bucket</Name>'
            f"<Prefix>{escape(form.get('prefix', ''))}</Prefix><KeyCount>{len(found)}</KeyCount><IsTruncated>false</IsTruncated>{items}"
            "</ListBucketResult>"
        ).encode()

    def get_bucket_versioning(self, _form):
        status = f"<Status>{self.versioning}</Status>" if self.versioning else ""
        return 200, (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{status}</VersioningConfiguration>'
        ).encode()

    def put_object(self, request, key, body):
        if self.versioning == "Enabled":
            # Real ones have no order either, and characters that a query must encode.
            version = f"v+{len(self.versions)}/{hashlib.sha256(body).hexdigest()[:8]}="
            self.versions[key, version] = body
            request.more_headers["x-amz-version-id"] = version
        self.objects[key] = body
        self.uploads.append((key, {name.lower(): value for name, value in request.headers.items()}))
        return 200, b""
