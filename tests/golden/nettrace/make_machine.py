#!/usr/bin/env python3
"""make_machine.py OUT: a nettrace 6 file of a whole machine, as `dotnet-trace collect-linux` writes them, with what they have and little
of it: two processes, one number used twice, code of the kernel, of a library and of a runtime, a context switch."""
import struct
import sys

from to_v6 import block, text, varuint

PERIOD_NS, START = 1000000, 5000000000
TYPES = [("Universal.Events", 1, "cpu", ["Value"]), ("Universal.Events", 2, "cswitch", ["Value"]),
         ("Universal.System", 0, "ExistingProcess", ["NamespaceId", "Name$", "NamespaceName$"]),
         ("Universal.System", 1, "ProcessCreate", ["NamespaceId", "Name$", "NamespaceName$"]), ("Universal.System", 2, "ProcessExit", []),
         ("Universal.System", 3, "ProcessMapping", ["Id", "StartAddress", "EndAddress", "FileOffset", "FileName$", "MetadataId"]),
         ("Universal.System", 4, "ProcessSymbol", ["Id", "MappingId", "StartAddress", "EndAddress", "Name$"]),
         ("Universal.System", 5, "ProcessMappingMetadata", ["Id", "SymbolMetadata$", "VersionMetadata$"])]
CPU, SWITCH, EXISTS, CREATE, EXIT, MAPPING, SYMBOL, METADATA = range(1, 9)
APP, OTHER, TIMES_TWO = (40, 40), (50, 50), (50, 51)  # process, thread
BURN, FREED, LIBC, KERNEL = 0x7F0000001000, 0x7F0000002000, 0x7F1000010000, 0xFFFFFFFF81000000


def short(value):
    return struct.pack("<H", len(value.encode())) + value.encode()


def row(*parts):
    return b"".join(short(part) if isinstance(part, str) else varuint(part) for part in parts)


def metadata():
    out = struct.pack("<H", 0)
    for number, (provider, event, name, fields) in enumerate(TYPES, 1):
        described = b""
        for field in fields:
            one = text(field.rstrip("$")) + (b"\x17" if field.endswith("$") else b"\x15")
            described += struct.pack("<H", len(one)) + one
        content = varuint(number) + text(provider) + varuint(event) + text(name) + struct.pack("<H", len(fields)) + described
        content += struct.pack("<H", 0)
        out += struct.pack("<H", len(content)) + content
    return out


EVENTS = [  # type, thread, ms, stack, payload
    (EXISTS, APP, 0, [], row(4, "app", "Unknown")),
    (METADATA, APP, 0, [], row(9, '{"type": "ELF","debug_link": "","build_id": "00ff11","p_vaddr": "0x0","p_offset": "0x0"}', "")),
    (MAPPING, APP, 0, [], row(1, BURN & ~0xFFFF, BURN + 0xF000, 0, "/memfd:doublemapper", 0)),
    (MAPPING, APP, 0, [], row(2, LIBC, LIBC + 0xFFFF, 0, "/lib/libc.so.6", 9)),  # the last byte
    (EXISTS, OTHER, 0, [], row(50, "first", "Unknown")),
    (MAPPING, OTHER, 0, [], row(2, LIBC, LIBC + 0x10000, 0, "/lib/libc.so.6", 9)),
    (SYMBOL, APP, 1, [], row(1, 1, BURN, BURN + 0xFF, "instance void [app] Shop.Cart::Burn(int32)[OptimizedTier1]")),
    (SYMBOL, APP, 1, [], row(2, 2, LIBC + 0x100, LIBC + 0x1FF, "start_thread")),
    (SYMBOL, OTHER, 1, [], row(3, 77, KERNEL, KERNEL + 0xFF, "do_read")),
    (CPU, APP, 2, [BURN + 0x10, LIBC + 0x120], row(1)),
    (CPU, APP, 3, [KERNEL + 0x20, BURN + 0x10, LIBC + 0x120], row(1)),
    (CPU, APP, 4, [FREED, LIBC + 0x120], row(2)),  # nobody knows what that is; two periods
    (CPU, OTHER, 5, [LIBC + 0x180], row(1)),
    (SWITCH, APP, 6, [LIBC + 0x180], row(1000000)),
    (EXIT, OTHER, 7, [], b""),
    (CREATE, TIMES_TWO, 8, [], row(50, "second", "Unknown")),
    (CPU, TIMES_TWO, 9, [KERNEL + 0x20], row(1)),
    (CPU, APP, 10, [0x1234], row(1)),  # of an address that is nowhere: broken
    (MAPPING, APP, 11, [], row(1)[:1]),  # cut
]


def main():
    threads = [APP, OTHER, TIMES_TWO]
    head = struct.pack("<8HQQII", 2026, 11, 6, 28, 4, 0, 0, 0, START, 1000000000, 8, 2)
    head += text("ExpectedCPUSamplingRate") + text(str(PERIOD_NS)) + text("HardwareThreadCount") + text("2")
    rows = b""
    for number, (process, thread) in enumerate(threads, 1):
        content = varuint(number) + b"\2" + varuint(process) + b"\3" + varuint(thread)
        rows += struct.pack("<H", len(content)) + content
    stacks = []
    for _, _, _, stack, _ in EVENTS:
        if stack and stack not in stacks:
            stacks.append(stack)
    content = struct.pack("<II", 1, len(stacks))
    for stack in stacks:
        content += struct.pack("<I", 8 * len(stack)) + struct.pack(f"<{len(stack)}Q", *stack)
    body = struct.pack("<HHQQ", 20, 1, START, START + 20 * PERIOD_NS)
    ticks, sequence = 0, [0] * (len(threads) + 1)
    for number, thread, ms, stack, payload in EVENTS:
        index, now = threads.index(thread) + 1, START + ms * PERIOD_NS
        sequence[index] += 1
        body += bytes([0xCF]) + varuint(number)
        # the number is counted on from the event before, whoever wrote that
        before = sequence[0]
        body += varuint((sequence[index] - before - 1) & 0xFFFFFFFF) + varuint(index) + varuint(1)
        sequence[0] = sequence[index]
        body += varuint(index) + varuint(stacks.index(stack) + 1 if stack else 0) + varuint(now - ticks) + varuint(len(payload)) + payload
        ticks = now
    out = b"Nettrace" + struct.pack("<III", 0, 6, 0)
    with open(sys.argv[1], "wb") as file:
        file.write(out + block(1, head) + block(6, rows) + block(3, metadata()) + block(5, content) + block(2, body) + block(0, b""))


main()
