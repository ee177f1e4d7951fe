#!/usr/bin/env python3
"""Makes the small event files of this folder from a running sample.

make.py PID FORMAT OUT: asks the runtime of PID (FORMAT 0: NetPerf 3, 1: nettrace 4) for two seconds of thread
time, collections and loads of methods, and keeps a part of what it sends: 150 samples, 40 of each of the
runtime's own events, and of the methods it lists those with code in a kept stack. What is kept are the
runtime's own bytes, event for event; nettrace 4's are put into blocks anew.
"""
import glob
import os
import socket
import struct
import sys
import time

SAMPLES, OTHERS = 150, 40
PROVIDERS = [("Microsoft-DotNETCore-SampleProfiler", 0, 5), ("Microsoft-Windows-DotNETRuntime", 0x39, 4)]


def text(value):
    return struct.pack("<I", len(value) + 1) + (value + "\0").encode("utf-16-le")


def message(command, body):
    return b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(body), 2, command, 0) + body


def connect(pid):
    client = socket.socket(socket.AF_UNIX)
    client.connect(glob.glob(os.path.join(os.environ.get("TMPDIR", "/tmp"), f"dotnet-diagnostic-{pid}-*"))[0])
    return client


def receive(client, count):
    data = b""
    while len(data) < count:
        piece = client.recv(count - len(data))
        assert piece, "the runtime closed the connection"
        data += piece
    return data


def record(pid, layout):
    body = struct.pack("<IIBI", 16, layout, 1, len(PROVIDERS))
    for name, keywords, level in PROVIDERS:
        body += struct.pack("<QI", keywords, level) + text(name) + text("")
    client = connect(pid)
    client.sendall(message(3, body))
    session = receive(client, 28)[20:]
    stream, end, stop = b"", time.time() + 2, None
    client.settimeout(0.1)
    while True:
        if not stop and time.time() > end:
            stop = connect(pid)
            stop.sendall(message(1, session))
        try:
            piece = client.recv(1 << 20)
        except TimeoutError:
            continue
        if not piece:
            return stream
        stream += piece


class Cursor:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values if len(values) > 1 else values[0]

    def bytes(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def varuint(self):
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def utf16(self):
        start = self.at
        while self.data[self.at:self.at + 2] != b"\0\0":
            self.at += 2
        self.at += 2
        return self.data[start:self.at - 2].decode("utf-16-le")


def varuint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def objects(stream):
    """The head before the objects, and (type, version, content) of each."""
    c = Cursor(stream, 32 if stream[:8] == b"Nettrace" else 24)
    yield None, 0, stream[:c.at]
    while stream[c.at] != 1:
        c.at += 3
        version, _, length = c.take("III")
        name = c.bytes(length).decode()
        c.at += 1
        if name == "Trace":
            content = c.bytes(48)
        else:
            size = c.take("I")
            c.at += -c.at % 4
            content = c.bytes(size)
        assert c.take("B") == 6
        yield name, version, content


def records(content):
    """Those of a block of nettrace 4: everything that a header can say, and the payload."""
    c = Cursor(content, struct.unpack_from("<H", content)[0])
    type_id = sequence = capture = processor = thread = stack = ticks = size = 0
    activity = related = bytes(16)
    while c.at < len(content):
        flags = c.take("B")
        if flags & 1:
            type_id = c.varuint()
        if flags & 2:
            sequence = (sequence + c.varuint() + 1) & 0xFFFFFFFF
            capture, processor = c.varuint(), c.varuint()
        elif type_id:
            sequence += 1
        if flags & 4:
            thread = c.varuint()
        if flags & 8:
            stack = c.varuint()
        ticks = (ticks + c.varuint()) & 0xFFFFFFFFFFFFFFFF
        if flags & 16:
            activity = c.bytes(16)
        if flags & 32:
            related = c.bytes(16)
        if flags & 128:
            size = c.varuint()
        yield dict(type=type_id, sequence=sequence, capture=capture, processor=processor, thread=thread, stack=stack,
                   ticks=ticks, activity=activity, related=related, sorted=flags & 64, payload=c.bytes(size))


def put_records(rows):
    """A block of nettrace 4 again: every header says everything."""
    out, sequence, ticks = b"", 0, 0
    for r in rows:
        out += bytes([0xBF | r["sorted"]]) + varuint(r["type"])
        out += varuint((r["sequence"] - sequence - 1) & 0xFFFFFFFF) + varuint(r["capture"]) + varuint(r["processor"])
        out += varuint(r["thread"]) + varuint(r["stack"]) + varuint((r["ticks"] - ticks) & 0xFFFFFFFFFFFFFFFF)
        out += r["activity"] + r["related"] + varuint(len(r["payload"])) + r["payload"]
        sequence, ticks = r["sequence"], r["ticks"]
    times = [r["ticks"] for r in rows]
    return struct.pack("<HHQQ", 20, 1, min(times), max(times)) + out


def netperf_records(content):
    c = Cursor(content)
    while c.at < len(content):
        start = c.at
        size, type_id = c.take("II")
        c.at = start + 12 + 8 + 32
        payload = c.bytes(c.take("I"))
        stack = c.bytes(c.take("I"))
        c.at = start + 4 + size
        yield dict(type=type_id, payload=payload, frames=struct.unpack(f"<{len(stack) // 8}Q", stack),
                   raw=content[start:c.at])


class Keeper:
    """Which events are kept: asked in the stream's order, the methods once all stacks are known."""

    def __init__(self):
        self.types, self.seen, self.frames = {}, {}, set()

    def describe(self, payload):
        c = Cursor(payload)
        type_id = c.take("I")
        self.types[type_id] = c.utf16(), c.take("I")

    def wants(self, record, frames):
        provider, event = self.types[record["type"]]
        if provider.endswith("Rundown") and event in (144, 154):
            return event
        seen = self.seen[provider, event] = self.seen.get((provider, event), 0) + 1
        if seen > (SAMPLES if provider.endswith("SampleProfiler") else OTHERS):
            return False
        if provider.endswith("DotNETRuntime") and not frames and event in (143, 144):
            return event
        if provider.endswith("Rundown") and event not in (146, 187):
            return False
        self.frames.update(frames)
        return True

    def covers(self, event, payload):
        if event == 154:
            return True
        start, size = struct.unpack_from("<QI", payload, 16)
        return any(start <= frame <= start + size for frame in self.frames)


def put_object(out, name, version, content):
    begin = b"\5" if out[:8] == b"Nettrace" else b"\4"
    least = {"Trace": version, "EventBlock": version}.get(name, version)
    out += begin * 2 + b"\1" + struct.pack("<III", version, 0 if version < 2 else least, len(name)) + name.encode() + b"\6"
    if name != "Trace":
        out += struct.pack("<I", len(content))
        out += bytes(-len(out) % 4)
    return out + content + b"\6"


def shrink(stream):
    keeper, blocks, stacks, head = Keeper(), [], {}, None
    for name, version, content in objects(stream):
        rows = None
        if name is None:
            head = content
            continue
        if name == "StackBlock":
            c = Cursor(content)
            first, count = c.take("II")
            for number in range(first, first + count):
                data = c.bytes(c.take("I"))
                stacks[number] = struct.unpack(f"<{len(data) // 8}Q", data)
        elif name == "MetadataBlock":
            for row in records(content):
                keeper.describe(row["payload"])
        elif name == "EventBlock" and version == 1:
            rows = []
            for row in netperf_records(content):
                if row["type"] == 0:
                    keeper.describe(row["payload"])
                    rows.append((True, row))
                else:
                    rows.append((keeper.wants(row, row["frames"]), row))
        elif name == "EventBlock":
            rows = [(keeper.wants(row, stacks.get(row["stack"], ())), row) for row in records(content)]
        blocks.append((name, version, content, rows))
    out = head
    for name, version, content, rows in blocks:
        if rows is not None:
            kept = [row for want, row in rows if want and (want is True or keeper.covers(want, row["payload"]))]
            if not kept:
                continue
            content = put_records(kept) if version > 1 else b"".join(row["raw"] for row in kept)
        out = put_object(out, name, version, content)
    return out + b"\1"


def main():
    pid, layout, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    stream = record(pid, layout)
    small = shrink(stream)
    with open(path, "wb") as file:
        file.write(small)
    print(f"{path}: {len(small)} of {len(stream)} bytes")


if __name__ == "__main__":
    main()
