"""The certificate authority that machines trust for the names of AWS. Made once and kept, because images hold its certificate."""

import pathlib

from container import run
from golden import TOOLS

DIRECTORY = TOOLS / "real-cluster-authority"
YEARS = 10 * 365


def certificate():
    """The path of the authority's certificate; its key is beside it."""
    path = DIRECTORY / "ca.pem"
    if not path.exists():
        part = DIRECTORY.with_suffix(".part")
        part.mkdir(parents=True, exist_ok=True)
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", YEARS,
            "-subj", "/CN=stand-in for AWS", "-keyout", part / "ca-key.pem", "-out", part / "ca.pem")
        part.rename(DIRECTORY)
    return path


def issue(scratch, *names):
    """A certificate for these names: the paths of it and of its key."""
    authority = certificate()
    key, request, issued, extensions = (pathlib.Path(scratch) / f"aws{suffix}" for suffix in ("-key.pem", ".csr", ".pem", ".ext"))
    run("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=amazonaws.com",
        "-keyout", key, "-out", request)
    extensions.write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in names) + "\n")
    run("openssl", "x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority.with_name("ca-key.pem"), "-CAcreateserial",
        "-days", YEARS, "-extfile", extensions, "-out", issued)
    return issued, key


def trusted_certificates(base):
    """What a machine or an image trusts: Debian's authorities and this one."""
    return (base / "etc/ssl/certs/ca-certificates.crt").read_text() + certificate().read_text()
