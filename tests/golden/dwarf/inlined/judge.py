#!/usr/bin/env python3
"""Writes FILE.frames next to each FILE.elf: what llvm-symbolizer says of every byte of its code."""
import pathlib
import re
import subprocess

here = pathlib.Path(__file__).parent


def code_range(elf):
    headers = subprocess.run(["readelf", "-SW", elf], capture_output=True, text=True, check=True).stdout
    parts = [(int(m[1], 16), int(m[2], 16)) for m in re.finditer(r"\.text\S*\s+NOBITS\s+(\w+) \w+ (\w+)", headers)]
    return range(min(a for a, _ in parts), max(a + size for a, size in parts))


def frames_of(elf):
    addrs = "".join(f"{addr:#x}\n" for addr in code_range(elf))
    command = ["llvm-symbolizer", "--output-style=GNU", "-a", "-i", "-f", "--no-demangle", "-e", elf]
    text = subprocess.run(command, input=addrs, capture_output=True, text=True, check=True).stdout
    frames = {}
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = frames.setdefault(int(line, 16), [])
        else:
            current.append(re.sub(r" \(discriminator \d+\)", "", line))
    return frames


for elf in sorted(here.glob("*.elf")):
    rows, last = [], None
    for addr, frames in frames_of(elf).items():
        chain = " ".join(re.sub(r".*:[0?]$", "--:0", text) for text in frames).replace("??", "--")
        if chain != last:
            rows.append(f"{addr:#x} {chain}\n")
        last = chain
    rows.append(f"{addr + 1:#x} end\n")
    elf.with_suffix(".frames").write_text("".join(rows))
