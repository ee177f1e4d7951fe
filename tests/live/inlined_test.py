#!/usr/bin/env python3
"""Native functions that the compiler inlined: in stacks, reports and at addresses, with the lines of the program's text."""
import json
import os
import re

from live import CLRPERF, HERE, Checks, Target, Work, need_command, record_busy, report, run, wait_for

RATE = 999
CPU_S = 1.0
ADDRESSES = 400
SOURCE = os.path.join(HERE, "inlined.cc.txt")
# name, compiler, its options, and how the program is finished
BUILDS = [
    ("gcc DWARF 4", "g++", ["-gdwarf-4"], None),
    ("gcc DWARF 5", "g++", ["-gdwarf-5"], None),
    ("gcc LTO", "g++", ["-gdwarf-5", "-flto"], None),
    ("gcc, a compressed debug file", "g++", ["-gdwarf-5"], "separate"),
    ("clang DWARF 5", "clang++", ["-gdwarf-5"], None),
]

# Without what it does not know: addr2line of binutils 2.40 passes over indexed range lists, as clang writes them.
JUDGES = {"g++": ["addr2line"], "clang++": ["llvm-symbolizer", "--output-style=GNU"]}


def build(work, compiler, options, finish):
    need_command(compiler)
    program = work.file("inlined")
    run(compiler, "-O2", "-x", "c++", SOURCE, "-o", program, *options)
    if finish == "separate":
        need_command("objcopy")
        run("objcopy", "--only-keep-debug", "--compress-debug-sections", program, f"{program}.debug")
        run("objcopy", "--strip-all", f"--add-gnu-debuglink={program}.debug", program)
    return program


def text_of(frame):
    with open(SOURCE, encoding="utf-8") as file:
        lines = ["", *file.read().splitlines()]
    return lines[frame["line"]].partition("//")[2].strip() if frame["line"] else ""


def json_of(*arguments):
    return json.loads(run(CLRPERF, *arguments, "--json"))


def wait_asleep(pid):
    def asleep():
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0] == "S"
    wait_for(asleep, "the program sleeps")


def check_stack(checks, name, program):
    with Target([program, "idle"]) as target:
        wait_asleep(target.pid)
        frames = json_of("stack", "-p", str(target.pid))["threads"][0]["frames"]
        text = run(CLRPERF, "stack", "-p", str(target.pid))
    at = next((i for i, frame in enumerate(frames) if frame["function"] == "rest"), None)
    seen = " < ".join(str(frame["function"]) for frame in frames)
    checks.check(f"{name}: stack: rest is inlined into loop", at is not None and
                 [frame["function"] for frame in frames[at:at + 2]] == ["rest", "loop"] and
                 [frame["inlined"] for frame in frames[at:at + 2]] == [True, False] and
                 frames[at]["address"] == frames[at + 1]["address"], seen)
    if at is not None:
        checks.check(f"{name}: stack: each at its own line", text_of(frames[at]) == "rest" and
                     text_of(frames[at + 1]) == "loop calls rest", f"{frames[at]['line']}, {frames[at + 1]['line']}")
    checks.check(f"{name}: stack: the text marks it", re.search(r"^ +rest \(inlined\) in .*:\d+\n +loop ", text, re.M))


def check_report(checks, name, judge, work, program):
    with Target([program]) as target:
        target.wait_busy(0.3)
        record_busy(work.file("c"), target.pid, RATE, CPU_S)
        check_addresses(checks, name, judge, target.pid, program)
    rows = report(work.file("c"), "--lines", "--top", "0")["rows"]
    mine = [row for row in rows if row["module"] == "inlined" and row["file"]]
    own = sum(row["self"] for row in mine)
    turn = sum(row["self"] for row in mine if row["name"] == "plan::mixer::turn" and row["inlined"])
    checks.check(f"{name}: report --lines: most time is in what was inlined", turn >= 0.5 * own > 0,
                 f"{100 * turn / max(1, own):.0f} %")
    wrong = [f"{row['name']}:{row['line']}" for row in mine if row["self"] and row["line"] and
             not re.match(row["name"].rpartition("::")[2] + r"\b", text_of(row) or row["name"])]
    checks.check(f"{name}: report --lines: every line is in its function", not wrong, " ".join(wrong[:6]))
    callers = run(CLRPERF, "report", work.file("c"), "--lines", "--callers", "plan::mixer::turn")
    checks.check(f"{name}: its caller is blend, at the line of the call",
                 re.search(r"plan::blend \(inlined\.cc\.txt:21\) \(inlined\)", callers), callers.splitlines()[-1])
    whole = [row for row in report(work.file("c"), "--top", "0")["rows"] if row["module"] == "inlined"]
    checks.check(f"{name}: without lines all of it is burn's", not any("turn" in row["name"] for row in whole) and
                 max(whole, key=lambda row: row["self"])["name"] == "burn", str([row["name"] for row in whole]))


def base_of(pid, program):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return min(int(line.split("-")[0], 16) for line in maps if line.rstrip().endswith(program))


def judged(judge, program, addr):
    """(function, line) from the innermost on, as another program has them."""
    lines = run(*judge, "-i", "-f", "-C", "-e", program, f"{addr:#x}").splitlines()
    return [(function.partition("(")[0], re.sub(r" .*|\?", "", place.rpartition(":")[2]) or "0")
            for function, place in zip(lines[::2], lines[1::2])]


def check_addresses(checks, name, judge, pid, program):
    need_command(judge[0])
    with_names = program + (".debug" if os.path.exists(program + ".debug") else "")
    symbols = [line.split() for line in run("nm", "-S", with_names).splitlines()]
    start, size = next((int(words[0], 16), int(words[1], 16)) for words in symbols if "4burn" in words[-1])
    addrs = list(range(start, start + min(size, ADDRESSES)))
    base = base_of(pid, program)
    rows = json_of("addr", "-p", str(pid), *(f"{base + addr:x}" for addr in addrs))["rows"]
    wrong, inlined = [], 0
    for addr, row in zip(addrs, rows):
        wanted = judged(judge, with_names, addr)
        got = [(frame["function"], str(frame["line"] or 0)) for frame in row["inlined"]]
        got.append((row["function"], str(row["line"] or 0)))
        inlined += len(got) > 1
        if got != wanted:
            wrong.append(f"{addr:#x}: {got}, not {wanted}")
    checks.check(f"{name}: addr: as {judge[0]} has it", inlined and not wrong,
                 f"{len(addrs)} addresses, {inlined} in inlined functions" + "".join(f"; {text}" for text in wrong[:3]))


def check_build(checks, name, compiler, options, finish):
    with Work() as work:
        program = build(work, compiler, options, finish)
        check_stack(checks, name, program)
        check_report(checks, name, JUDGES[compiler], work, program)


def main():
    checks = Checks()
    for name, compiler, options, finish in BUILDS:
        checks.run(name, check_build, name, compiler, options, finish)
    checks.exit()


if __name__ == "__main__":
    main()
