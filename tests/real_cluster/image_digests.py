"""The names under which rendered files ask for images: with the digest of the published image, where the release table has one.

Images that are packed here have other digests, so machines give each a second name. containerd finds an image by its name and compares
the digest only of what it pulls.
"""

import re

from images import RELEASES, read_release


def digest_names(minor: str) -> dict[str, str]:
    """The name with a digest for each name with a tag; containerd drops the tag when there is a digest."""
    text = (RELEASES / f"{minor}.yaml").read_text()
    block = re.search(r"^digests:\n((?:  .*\n)+)", text, re.MULTILINE).group(1)
    images = read_release(minor).images
    names = {images[name]: digest for name, digest in re.findall(r"^  (\w+): (\w+)$", block, re.MULTILINE)}
    for version, rows in re.findall(r"^- version: (\S+)\n(?:  \w+: \w+\n)*  images:\n((?:    .*\n)+)", text, re.MULTILINE):
        for name, digest in re.findall(r"^    (\w+): (\w+)$", rows, re.MULTILINE):
            names[f"registry.k8s.io/{name.replace('_', '-')}:{version}"] = digest
    return {reference: f"{reference.rsplit(':', 1)[0]}@sha256:{digest}" for reference, digest in names.items()}
