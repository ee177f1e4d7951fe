#!/usr/bin/env python3
"""to_v6.py IN OUT: writes a nettrace 4 file (with blocks as make.py writes them) as nettrace 6.

Events, stacks and losses are the same, so that both must be reported alike. No runtime writes version 6.
"""
import struct
import sys

from make import Cursor, objects, records, varuint


def text(value):
    return varuint(len(value.encode())) + value.encode()


def block(kind, content):
    return struct.pack("<I", len(content) | kind << 24) + content


def trace(content):
    pid, processors, period = struct.unpack_from("<III", content, 36)
    keys = {"ProcessId": pid, "HardwareThreadCount": processors, "ExpectedCPUSamplingRate": period}
    out = content[:36] + struct.pack("<I", len(keys))
    return pid, out + b"".join(text(key) + text(str(value)) for key, value in keys.items())


def metadata(content):
    out = struct.pack("<H", 0)
    for record in records(content):
        c = Cursor(record["payload"])
        number, provider, event, name = c.take("I"), c.utf16(), c.take("I"), c.utf16()
        keywords, version, level = c.take("QII")
        row = varuint(number) + text(provider) + varuint(event) + text(name) + struct.pack("<H", 0)
        options = struct.pack("<BQBBBB", 3, keywords, 8, level, 9, version)
        row += struct.pack("<H", len(options)) + options
        out += struct.pack("<H", len(row)) + row
    return out


class Threads:
    """Indexes are given as threads come; a new one is listed before the block that needs it."""

    def __init__(self, pid):
        self.pid, self.indexes, self.rows = pid, {}, b""

    def index(self, thread):
        if thread not in self.indexes:
            self.indexes[thread] = len(self.indexes) + 1
            row = varuint(self.indexes[thread]) + b"\2" + varuint(self.pid) + b"\3" + varuint(thread)
            row += b"\1" + text(f"thread {self.indexes[thread]}")
            self.rows += struct.pack("<H", len(row)) + row
        return self.indexes[thread]

    def take(self):
        rows, self.rows = self.rows, b""
        return block(6, rows) if rows else b""


def events(content, threads):
    out, sequence, ticks = content[:20], 0, 0
    for r in records(content):
        capture, thread = threads.index(r["capture"]), threads.index(r["thread"])
        out += bytes([0x8F | r["sorted"]]) + varuint(r["type"])
        out += varuint((r["sequence"] - sequence - 1) & 0xFFFFFFFF) + varuint(capture) + varuint(r["processor"])
        out += varuint(thread) + varuint(r["stack"]) + varuint((r["ticks"] - ticks) & 0xFFFFFFFFFFFFFFFF)
        out += varuint(len(r["payload"])) + r["payload"]
        sequence, ticks = r["sequence"], r["ticks"]
    return out


def point(content, threads):
    c = Cursor(content)
    ticks, count = c.take("QI")
    rows = b"".join(varuint(threads.index(thread)) + varuint(sequence) for thread, sequence in
                    (c.take("QI") for _ in range(count)))
    return struct.pack("<QII", ticks, 0, count) + rows


def main():
    with open(sys.argv[1], "rb") as file:
        stream = file.read()
    out, threads = b"Nettrace" + struct.pack("<III", 0, 6, 0), None
    for name, _, content in objects(stream):
        if name == "Trace":
            pid, head = trace(content)
            threads = Threads(pid)
            out += block(1, head)
        elif name == "MetadataBlock":
            out += block(3, metadata(content))
        elif name == "StackBlock":
            out += block(5, content)
        elif name == "EventBlock":
            body = events(content, threads)
            out += threads.take() + block(2, body)
        elif name == "SPBlock":
            body = point(content, threads)
            out += threads.take() + block(4, body)
    with open(sys.argv[2], "wb") as file:
        file.write(out + block(0, b""))


if __name__ == "__main__":
    main()
