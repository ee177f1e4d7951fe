#!/usr/bin/env python3
"""walk_test.py CASE...: jitted code of stopped processes is named from their memory, all of it, and as ClrMD names it.

A CASE is "VARIANT PROGRAM [NAME=VALUE...]". For each: the walk finds its layout and names all code that it finds; one that is
derived from the process, as if its version were not known, is the same to the number; ClrMD, which shares no code with us,
says the same of 10,000 random addresses in that code; and a recording names its frames. Two more cases: "unknown", a runtime that says it is of a version nobody
knows; and "events VARIANT PROGRAM", what memory tells while the program runs against what the runtime announces of it.
"""
import bisect
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from live import (HERE, PLAIN_ENVIRONMENT, Checks, Target, Work, clrperf, comes_true, dump, helper, oracle_command, record_busy,
                  report, sample_command, sessions)
from oracle import ask_clrmd, last, ours

ADDRESSES = 10000
METHODS_MIN = 50  # that a program has jitted before it is looked at


def walk(pid):
    """Pieces of code as (begin, size, kind, name), by address; and what is told of the layout."""
    done = subprocess.run([helper("code_walk_live"), str(pid)], capture_output=True, text=True, errors="replace",
                          check=False, timeout=60)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    found = []
    for line in done.stdout.splitlines():
        begin, size, kind, _, _, name = line.split("\t")[0].split(" ", 5)
        if kind != "stub":
            found.append((int(begin, 16), int(size, 16), kind, name))
    return found, done.stderr.splitlines()[0]


def random_addresses(found):
    """By address: the piece of code that holds it. As many of a method as it is large."""
    ends = list(itertools.accumulate(size for _, size, _, _ in found))
    chosen = {}
    for _ in range(ADDRESSES):
        offset = random.randrange(ends[-1])
        piece = found[bisect.bisect_right(ends, offset)]
        chosen[piece[0] + random.randrange(piece[1])] = piece
    return chosen


def compare_with_clrmd(checks, name, pid, found):
    chosen = random_addresses(found)
    theirs = ask_clrmd(oracle_command("names"), pid, sorted(chosen))
    wrong, silent = [], 0
    for address, (_, _, kind, text) in sorted(chosen.items()):
        their = theirs.get(address)
        silent += their is None
        our = last(ours(text))
        # what has no metadata has no type: each has its own word for that, and ClrMD splits "InvokeStub_X..ctor"
        if their and (our[1] != their[1].lstrip(".") if kind == "dynamic" else our != their):
            wrong.append(f"{address:x}: ours {our}, theirs {their}")
    checks.check(f"{name}: ClrMD says the same of {ADDRESSES} random addresses", not wrong and silent * 50 < len(chosen),
                 f"{len(chosen)} addresses, {silent} of which it does not know, {len(wrong)} differ" +
                 "".join(f"; {text}" for text in wrong[:5]))


def check_case(checks, case):
    variant, program, *settings = case.split()
    command = sample_command(variant, program) + ["0"]
    if program == "webapi":
        command += ["--urls", "http://127.0.0.1:0"]
    with Target(command, env={**PLAIN_ENVIRONMENT, **dict(word.split("=") for word in settings)}) as target:
        target.wait_busy(1.5, 10)
        for again in (False, True):  # it can be stopped in the midst of a method's birth
            if again:
                target.process.send_signal(signal.SIGCONT)
                time.sleep(0.2)
            target.process.send_signal(signal.SIGSTOP)
            found, layout = walk(target.pid)
            unnamed = [piece for piece in found if not piece[3]]
            if not unnamed:
                break
        checks.check(f"{case}: all jitted code is named", len(found) >= METHODS_MIN and not unnamed,
                     f"{len(found)} found, {len(unnamed)} unnamed; {layout}")
        ways = subprocess.run([helper("layout_ways"), str(target.pid)], capture_output=True, text=True, check=False,
                              timeout=60)
        checks.check(f"{case}: a derived layout is the same", ways.returncode == 0,
                     "; ".join(line for line in ways.stdout.splitlines() if not line.startswith("way")))
        if not re.search("single|3.1", variant):  # of which ClrMD finds no runtime, or brings none to read it with
            compare_with_clrmd(checks, case, target.pid, found)
        target.process.send_signal(signal.SIGCONT)
        if program != "webapi":  # which nobody asks for anything
            check_names(checks, case, target.pid)
        checks.check(f"{case}: the target lives on", target.alive())


def check_names(checks, case, pid):
    """A recording of the same process leaves no frame without a name."""
    with Work() as work:
        for number in range(3):  # code that is freed at once is gone before anybody looks where the machine is crowded
            capture = work.file(f"names{number}.clrperf")
            record_busy(capture, pid, 999, 1)
            frames = report(capture, "--top", "1")["totals"]["frames"]
            fine = frames["user"] > 1000 and frames["unnamed"] <= 0.001 * frames["user"]
            if fine:
                break
    checks.check(f"{case}: record leaves at most 0.1 % of the user frames without a name", fine,
                 f"{frames['unnamed']} of {frames['user']} {frames['unnamed_by'] or ''}; recording {number + 1}")


def check_unknown(checks):
    """.NET 9, which has no description of its own to go by, under another version's number."""
    [program] = sample_command("9", "shapes")
    with Work() as work:
        folder = work.file("unknown")
        shutil.copytree(os.path.dirname(program), folder)
        library = os.path.join(folder, "libcoreclr.so")
        with open(library, "rb") as file:
            code = file.read()
        with open(library, "wb") as file:
            file.write(code.replace(b"@(#)Version 9.0.", b"@(#)Version 7.0."))
        with Target([os.path.join(folder, "shapes"), "0"]) as target:
            target.wait_busy(1.5, 10)
            asked = clrperf("doctor", "--json", "-p", target.pid)
            told = json.loads(asked.stdout)["walk"]
            checks.check("unknown: doctor says that the layout is derived, and fits",
                         told and told["way"] == "derived" and told["layout"].startswith("7.0.") and
                         told["checked"] >= METHODS_MIN and told["agreed"] >= 0.99 * told["checked"], str(told))
            capture = work.file("unknown.clrperf")
            record_busy(capture, target.pid, 999, 1)
        jitted = [fields for fields in dump(capture)["location"] if fields[3] == "jit"]
        checks.check("unknown: record names all its jitted code by that", jitted and all(fields[6] for fields in jitted),
                     f"{len(jitted)} addresses")


def check_events(checks, variant, program):
    """Over a run in which code is tiered up, replaced while it runs, and freed, and its place used again."""
    with Work() as work, Target(sample_command(variant, program) + ["0"]) as target:
        before = sessions(target.pid)
        with open(work.file("events"), "wb") as announced, open(work.file("memory"), "wb") as found:
            # it listens until its input ends: for longer than the looks take, however long that is
            listener = subprocess.Popen([helper("eventpipe_methods"), str(target.pid), "-"], stdin=subprocess.PIPE, stdout=announced,
                                        stderr=subprocess.PIPE, text=True)
            begun = comes_true(lambda: sessions(target.pid) > before or listener.poll() is not None)
            target.wait_busy(1)  # a runtime answers before it has a list of code, on a slow machine long before
            looker = subprocess.run([helper("memory_methods"), str(target.pid), "25"], stdin=subprocess.DEVNULL, stdout=found,
                                    stderr=subprocess.PIPE, text=True, check=False)
            said = [looker.stderr.strip().splitlines()[-1:], listener.communicate()[1].strip().splitlines()[-1:]]
        checks.check(f"events {variant} {program}: both told what they saw",
                     begun and looker.returncode == 0 and listener.returncode == 0, str(said))
        done = subprocess.run([sys.executable, os.path.join(HERE, "memory_check.py"), work.file("events"), work.file("memory")],
                              capture_output=True, text=True, check=False)
        checks.check(f"events {variant} {program}: memory tells no wrong name", done.returncode == 0, done.stdout.strip())


def main():
    random.seed(1)
    checks = Checks()
    for case in sys.argv[1:]:
        if case == "unknown":
            checks.run(case, check_unknown)
        elif case.startswith("events "):
            checks.run(case, check_events, *case.split()[1:])
        else:
            checks.run(case, check_case, case)
    checks.exit()


if __name__ == "__main__":
    main()
