"""The crates that are in the program, as a CycloneDX document: what `cargo metadata` and Cargo.lock say, and nothing looked up."""

import re
import tomllib
import urllib.parse
import uuid


def bill_of_materials(metadata, lock_text, timestamp):
    """The same input gives the same document. Crates that only tests use are left out."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = metadata["resolve"]["root"]
    needed = reached(root, nodes)
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in tomllib.loads(lock_text)["package"]}
    parts = sorted((packages[name] for name in needed if name != root), key=lambda part: (part["name"], part["version"]))
    components = [component(part, "library", checksums) for part in parts]
    program = component(packages[root], "application", checksums)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        # Made from what is in it: another list has another number.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, ' '.join([program['purl'], timestamp, lock_text]))}",
        "version": 1,
        "metadata": {"timestamp": timestamp, "component": program},
        "components": components,
        "dependencies": sorted(
            ({"ref": purl(packages[name]), "dependsOn": sorted(purl(packages[other]) for other in needs(nodes[name]))}
             for name in needed), key=lambda entry: entry["ref"]),
    }


def needs(node):
    """What it is built from or with."""
    return {other["pkg"] for other in node["deps"] if any(kind["kind"] in (None, "build") for kind in other["dep_kinds"])}


def reached(root, nodes):
    found, open_ones = set(), [root]
    while open_ones:
        name = open_ones.pop()
        if name not in found:
            found.add(name)
            open_ones.extend(needs(nodes[name]))
    return found


def purl(package):
    return f"pkg:cargo/{package['name']}@{urllib.parse.quote(package['version'], safe='')}"


def component(package, kind, checksums):
    described = {"type": kind, "bom-ref": purl(package), "name": package["name"], "version": package["version"], "purl": purl(package)}
    if package.get("license"):
        # Crates of old write a slash for OR.
        described["licenses"] = [{"expression": re.sub(r"\s*/\s*", " OR ", package["license"])}]
    elif package.get("license_file"):
        described["licenses"] = [{"license": {"name": f"see {package['license_file']} of the crate"}}]
    if checksum := checksums.get((package["name"], package["version"])):
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package.get("repository"):
        described["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return described
