#!/usr/bin/env python3
"""Writes files as a C source that defines a `struct web_file` (render/web_files.h) for each.

usage: embed.py OUTPUT FILE...
"""
import base64
import hashlib
import os
import sys

# What would end the element or section that a page puts the file into.
FORBIDDEN = (b"</script", b"</style", b"]]>", b"<!--", b"\0")


def main():
    output, inputs = sys.argv[1], sys.argv[2:]
    with open(output, "w", encoding="ascii") as out:
        out.write('#include "render/web_files.h"\n')
        for path in inputs:
            with open(path, "rb") as file:
                text = file.read()
            if not path.endswith(".html"):
                for word in FORBIDDEN:
                    if word in text.lower():
                        sys.exit(f"{path}: must not hold {word!r}")
            name = os.path.basename(path).replace(".", "_")
            digest = base64.b64encode(hashlib.sha256(text).digest()).decode()
            out.write(f"\nstatic const uint8_t {name}_bytes[] = {{\n")
            data = text + b"\0"
            for at in range(0, len(data), 24):
                out.write(",".join(str(byte) for byte in data[at : at + 24]) + ",\n")
            out.write(f"}};\nconst struct web_file web_{name} = {{ {{ {name}_bytes, {len(text)} }}, "
                      f'"{digest}" }};\n')


main()
