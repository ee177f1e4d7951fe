#!/usr/bin/env python3
"""addr_test.py VARIANT: `clrperf addr` tells lines as the program's text has them, functions as gdb and ClrMD, dumps as processes."""
import json
import os
import random
import re
import subprocess
import sys

from live import ROOT, Checks, Target, Work, clrperf, core_dumps, mappings, need_command, need_root, oracle_command, \
    sample_command, succeeded

ASKED = 300
# What a dump has of itself only: the kernel's view of memory files, and permissions.
OF_THE_PLACE = ("mapping", "image")


def ask(addresses, *target):
    done = succeeded(clrperf("addr", *target, "--json", "-", stdin=None, input="\n".join(f"{a:x}" for a in addresses)))
    return json.loads(done.stdout)["rows"]


def code_of(pid, work, part):
    """(start, size) of the methods whose names hold `part`."""
    succeeded(clrperf("map", "-p", pid, "-o", work.file("map")))
    with open(work.file("map"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split(" ", 2) for line in file]
    return [(int(start, 16), int(size, 16)) for start, size, name in rows if part in name]


def method_lines(path, method):
    """The lines of a method of a sample: from its name to the brace that ends it."""
    with open(os.path.join(ROOT, "samples", path), encoding="utf-8-sig") as file:
        lines = ["", *file.read().splitlines()]
    first = next(i for i, line in enumerate(lines) if re.search(rf"\b(int|void|bool) {method}\(", line))
    indent = re.match(" *", lines[first])[0]
    return first, next(i for i in range(first, len(lines)) if lines[i] == indent + "}")


def check_lines(checks, variant, work):
    with Target(sample_command(variant, "primes") + ["600"]) as target:
        target.wait_busy(1.5)
        pieces = code_of(target.pid, work, "Primes.Program.CountPrimes")
        rows = ask([a for start, size in pieces for a in range(start, start + size)], "-p", target.pid)
    first, last = method_lines("primes/Program.cs", "CountPrimes")
    wrong = [row for row in rows if not row["file"] or not row["file"].endswith("primes/Program.cs")
             or not first <= row["line"] <= last]
    checks.check(f"{variant}: every byte of a jitted method is of a line of it", len(rows) > 100 and not wrong,
                 f"{len(rows)} addresses, lines {first} to {last}; {wrong[:1]}")
    known = [row for row in rows if row["il_offset"] is not None]
    lines = {row["line"] for row in known}
    checks.check(f"{variant}: IL offsets are told, and lead to several lines", len(known) > 0.5 * len(rows) and len(lines) >= 6,
                 f"{len(known)} of {len(rows)}, {sorted(lines)}")
    inner = [row for row in known if row["line"] not in (first, last)]
    pairs = {(row["il_offset"], row["line"]) for row in inner}
    checks.check(f"{variant}: an IL offset is of one line", len({il for il, _ in pairs}) == len(pairs), f"{sorted(pairs)}")


def gdb_symbols(pid, addresses):
    """Where the function begins that gdb finds at each address, or None."""
    commands = [word for a in addresses for word in ("-ex", f"info symbol 0x{a:x}")]
    done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "set debuginfod enabled off", *commands],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=200)
    lines = [line for line in done.stdout.splitlines() if re.search(r" in section | of /", line) or line.startswith("No symbol")]
    found = []
    for address, line in zip(addresses, lines):
        match = re.match(r"\S+(?: \+ (\d+))? in section", line)
        found.append(address - int(match[1] or 0) if match else None)
    return found if len(lines) == len(addresses) else None


def check_gdb(checks, variant):
    need_command("gdb")
    with Target(sample_command(variant, "primes") + ["600"]) as target:
        libc = next(line for line in mappings(target.pid) if "libc.so" in line and " r-xp " in line)
        begin, end = (int(word, 16) for word in libc.split()[0].split("-"))
        asked = sorted(random.Random(9).sample(range(begin, end), ASKED))
        rows = ask(asked, "-p", target.pid)
        theirs = gdb_symbols(target.pid, asked)
    if theirs is None:
        raise RuntimeError("gdb did not answer every address")
    both = [(row, start) for row, start in zip(rows, theirs) if start and row["resolver"] in ("elf_symtab", "elf_dynsym", "elf_debug")]
    differ = [(row["address"], row["function"], hex(start)) for row, start in both if int(row["address"], 16) - row["offset"] != start]
    checks.check(f"{variant}: native functions begin where gdb says", len(both) > 50 and not differ,
                 f"{len(both)} compared of {ASKED}; {differ[:3]}")


def check_clrmd(checks, variant, work):
    """Of jitted methods: ClrMD calls a precompiled one that has not run yet by the name of one before it."""
    oracle = oracle_command("names")
    with Target(sample_command(variant, "shapes") + ["600"]) as target:
        target.wait_busy(1.0)
        addresses = [start + size // 2 for start, size in code_of(target.pid, work, "Shapes.")]
        rows = ask(addresses, "-p", target.pid, "--raw-names")
        done = subprocess.run([*oracle, str(target.pid)], input="\n".join(f"{a:x}" for a in addresses), capture_output=True,
                              text=True, check=False, timeout=120)
    theirs = [line.split("\t") for line in done.stdout.splitlines()]
    judged = [(row, other) for row, other in zip(rows, theirs) if len(other) > 2]
    differ = [(row["address"], row["function"], other[1:3]) for row, other in judged if f"::{re.split('[<[]', other[2])[0]}" not in row["function"]]
    checks.check(f"{variant}: managed functions are ClrMD's", len(theirs) == len(rows) and len(judged) > 40 and not differ,
                 f"{len(judged)} of {len(rows)} judged; {differ[:3]}")


def facts(row):
    return {key: value for key, value in row.items() if key not in OF_THE_PLACE}


def check_cores(checks, variant, work):
    """A dump says of the code on its stacks what the process said, whatever kind it is; a full one also of the rest."""
    with Target(sample_command(variant, "deadlock") + ["0", "two"]) as target:
        rest = [start + size // 2 for start, size in code_of(target.pid, work, "Deadlock.")]
        stack = json.loads(succeeded(clrperf("stack", "-p", target.pid, "--json")).stdout)
        frames = {int(f["address"], 16) for t in stack["threads"] if t["name"].startswith(("cycle-", "by-")) for f in t["frames"]}
        on_stack, nowhere = sorted(frames), 0x1000
        live = {row["address"]: row for row in ask([*on_stack, *rest, nowhere], "-p", target.pid)}
        dumps = core_dumps(work, target.pid, variant)
    for kind, path in dumps:
        rows = ask(on_stack if kind == "mini" else [*on_stack, *rest], "--core", path)
        differ = [(live[row["address"]], row) for row in rows if facts(row) != facts(live[row["address"]])]
        jitted = [row for row in rows if row["kind"] == "jit"]
        checks.check(f"{variant} {kind}: the dump tells what the process told", len(jitted) >= 3 and not differ,
                     f"{len(rows)} addresses, {len(jitted)} jitted; {differ[:1]}")
        checks.check(f"{variant} {kind}: with mapping and image", all(row["mapping"] for row in rows if row["kind"] != "kernel"))
        # what the compiler made, a closure's constructor for one, has no line
        lines = sum(row["line"] is not None and row["il_offset"] is not None for row in jitted)
        checks.check(f"{variant} {kind}: with lines and IL offsets", lines >= 3, f"{lines} of {len(jitted)}")
        text = succeeded(clrperf("addr", "--core", path, f"{nowhere:x}"))
        checks.check(f"{variant} {kind}: where nothing was is said", "not in the dump" in text.stdout, " ".join(text.stdout.split()))
    path = dumps[0][1]
    checks.check(f"{variant}: a dump and a process exclude each other",
                 clrperf("addr", "--core", path, "-p", os.getpid(), "10").returncode == 2)
    checks.check(f"{variant}: what is no dump is an error", clrperf("addr", "--core", sys.executable, "10").returncode == 1)


def check_all(checks, variant, work):
    need_root()
    checks.run("lines", check_lines, variant, work)
    checks.run("gdb", check_gdb, variant)
    checks.run("ClrMD", check_clrmd, variant, work)
    checks.run("cores", check_cores, variant, work)


def main():
    checks, variant = Checks(), (sys.argv[1:] or ["10"])[0]
    with Work() as work:
        checks.run("addr", check_all, variant, work)
    checks.exit()


if __name__ == "__main__":
    main()
