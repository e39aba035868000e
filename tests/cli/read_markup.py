"""Reads a page or a picture with Python's own XML parser, and prints every element with attributes as a line of JSON."""

import json
import sys
import xml.etree.ElementTree

for element in xml.etree.ElementTree.parse(sys.argv[1]).iter():
    name = element.tag.rsplit("}", 1)[-1]
    print(json.dumps({"name": name, "attributes": element.attrib, "text": "".join(element.itertext())}))
