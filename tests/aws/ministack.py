"""Starts and ends the stand-in for AWS that launcher.py describes."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

import boto3
import botocore.config

LAUNCHER = pathlib.Path(__file__).with_name("launcher.py")


class MiniStack:
    """A server of its own on a free port of 127.0.0.1. It ends when it is closed, or when its owner dies."""

    def __init__(self, checks_rights=False):
        """With rights checked, signatures count and each caller may do what its policies say; `test` with secret `test` may do all."""
        self.directory = tempfile.TemporaryDirectory(prefix="ministack-")
        self.control_file = pathlib.Path(self.directory.name, "control.json")
        self.log_file = pathlib.Path(self.directory.name, "log")
        self.control()
        # Nothing of the caller's environment: no proxy, no credentials, and no Docker, whose containers MiniStack would tidy up.
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "TMPDIR": self.directory.name,
            "CONTROL_FILE": str(self.control_file),
            "LOG_LEVEL": "ERROR",
            "DOCKER_HOST": "unix:///nowhere",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
        }
        if checks_rights:
            environment["AUTH"] = "true"
        with self.log_file.open("wb") as log:
            # Isolated, or `import ministack` in the launcher would find this file.
            self.process = subprocess.Popen(
                [sys.executable, "-I", LAUNCHER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, cwd=self.directory.name,
                # Control-C reaches its owner only, who may still need it.
                start_new_session=True)
        port = self.process.stdout.readline().decode().strip()
        if not port:
            log = self.log()
            self.close()
            raise RuntimeError(f"MiniStack did not start:\n{log}")
        self.url = f"http://127.0.0.1:{port}"

    def control(self, **settings):
        """What fails, and how slow everything is, from now on; without arguments nothing fails. See launcher.py."""
        part = self.control_file.with_suffix(".part")
        part.write_text(json.dumps(settings))
        part.replace(self.control_file)

    def client(self, service, account, region, secret="any"):
        """Each account sees only what is its own."""
        return boto3.client(
            service, endpoint_url=self.url, region_name=region, aws_access_key_id=account, aws_secret_access_key=secret,
            config=botocore.config.Config(proxies={}, retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}))

    def calls(self):
        """How often each kind of client has called so far."""
        # Around proxies of the caller's environment.
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{self.url}/_calls") as answer:
            return json.load(answer)

    def log(self):
        return self.log_file.read_text(errors="replace")

    def close(self):
        # The launcher ends with its standard input.
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.directory.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
