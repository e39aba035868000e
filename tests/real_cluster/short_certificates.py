"""Certificates that are valid for another time than infra or Kubernetes would issue them for, signed by the cluster's own authorities."""

import datetime
import re

from container import run

SETTINGS = """
[ca]
default_ca = cluster
[cluster]
database = {directory}/index
serial = {directory}/serial
new_certs_dir = {directory}
default_md = sha256
policy = subject
copy_extensions = copy
x509_extensions = usages
unique_subject = no
[subject]
organizationName = optional
commonName = supplied
[usages]
keyUsage = critical, digitalSignature
extendedKeyUsage = {usage}
"""
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)


def issue_again(directory, authority, certificate, key, usage, begin, end):
    """A certificate like another one, for the same key, that is valid in these days from now. Everything but the names is as given."""
    directory.mkdir()
    (directory / "index").touch()
    (directory / "serial").write_text("0FA0\n")
    settings, request = directory / "settings", directory / "request.pem"
    settings.write_text(SETTINGS.format(directory=directory, usage=usage))
    run("openssl", "x509", "-x509toreq", "-copy_extensions", "copy", "-in", certificate, "-key", key, "-out", request)
    now = datetime.datetime.now(datetime.timezone.utc)
    begins, ends = ((now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ") for days in (begin, end))
    issued = directory / "issued.pem"
    run("openssl", "ca", "-batch", "-notext", "-config", settings, "-cert", f"{authority}.pem", "-keyfile", f"{authority}-key.pem",
        "-startdate", begins, "-enddate", ends, "-in", request, "-out", issued)
    return CERTIFICATE.search(issued.read_text()).group()


def issued_long_ago(directory, credentials, text, age, left):
    """A kubelet's serving certificate with its key, as the machine would have it that many days after it was issued."""
    directory.mkdir()
    pair = directory / "pair.pem"
    pair.write_text(text)
    issued = issue_again(directory / "authority", credentials / "ca", pair, pair, "serverAuth", -age, left)
    return issued + CERTIFICATE.sub("", text)


def shorten(directory, credentials, name, authority, days):
    """The client certificate of that name expires in this many days."""
    certificate, key = credentials / f"{name}.pem", credentials / f"{name}-key.pem"
    certificate.write_text(issue_again(directory, credentials / authority, certificate, key, "clientAuth", -1, days))
