#!/usr/bin/env python3
"""perf_dwarf_test.py VARIANT: what `perf record --call-graph dwarf` leaves to the reader is unwound.

perf itself ends such stacks at the first jitted frame. Its own frames are the judge of what it finds; of the rest
stacks_test.py's guaranteed callers are.
"""
import re
import subprocess
import sys

from live import Checks, Target, Work, clrperf, folded, need_command, report, run, sample_command, succeeded
from stacks_test import CALLERS, judge

RATE = 499
STACK_BYTES = 65528  # the most that the kernel copies
FRAME = re.compile(r"\s+[0-9a-f]+ \S")


def perf_record(path, target):
    subprocess.run(["perf", "record", "-q", "-o", path, "-e", "cpu-clock", "-F", str(RATE), "--call-graph",
                    f"dwarf,{STACK_BYTES}", "-p", str(target.pid), "--", "sleep", "2"], check=True, stderr=subprocess.DEVNULL)


def depths(text):
    """How many frames each sample has, in `perf script`'s text."""
    found = []
    for line in text.splitlines():
        if FRAME.match(line):
            found[-1] += 1
        elif line.strip():
            found.append(0)
    return found


def check_depths(checks, name, path, work):
    """Inlined functions are frames of perf's only where it is asked for them."""
    theirs = subprocess.run(["perf", "script", "-i", path, "--no-inline", "-F", "comm,ip,sym"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace", check=True).stdout
    ours = work.file("ours.perf.txt")
    succeeded(clrperf("export", path, "--force", "-o", ours))
    with open(ours, encoding="utf-8", errors="replace") as file:
        pairs = list(zip(depths(theirs), depths(file.read())))
    shorter = sum(own < perfs for perfs, own in pairs)
    checks.check(f"{name}: no stack is shorter than perf's", len(pairs) > RATE / 2 and shorter == 0,
                 f"{shorter} of {len(pairs)}; frames: perf {sum(p for p, _ in pairs)}, clrperf {sum(o for _, o in pairs)}")


def check_whole(checks, name, path, least):
    """But for one, which among so few is more than its share: a stack can be deeper than what the kernel copies."""
    totals = report(path, "--top", "1")["totals"]
    ends = totals["stacks"]
    enough = ends["whole"] + 1 >= least * totals["samples"] > 0
    torn = [] if enough else [";".join(stack)[-300:] for stack, _ in folded(path) if {"[broken]", "[truncated]"} & set(stack[:2])]
    checks.check(f"{name}: {100 * least:g} % of the stacks are whole", enough,
                 f"{ends['whole']} of {totals['samples']}, {ends['truncated']} truncated, {ends['broken']} broken {torn[:4]}")


def check_sample(checks, variant, sample, work):
    name, path = f"{variant} {sample}", work.file(f"{sample}.data")
    with Target(sample_command(variant, sample) + ["0"]) as target:
        target.wait_busy(2)
        perf_record(path, target)
        check_whole(checks, name, path, 0.999)
        judged, exact, missing, example = judge(folded(path), CALLERS[sample])
        checks.check(f"{name}: 99.5 % of the guaranteed callers are next to whom they call",
                     judged > RATE / 2 and exact >= 0.995 * judged and missing == 0, f"{exact} of {judged} {example}")
    check_whole(checks, f"{name}, gone", path, 0.95)
    check_depths(checks, f"{name}, gone", path, work)


def check_lost(checks, work):
    """What rings lost: perf says it of each loss in turn, with the next sample that has room, if one comes, and once more of all
    that a ring lost."""
    path = work.file("lost.data")
    run("perf", "record", "-q", "-m", "1", "-F", "49999", "-e", "cpu-clock", "--call-graph", f"dwarf,{STACK_BYTES}", "-o", path, "--",
        "sh", "-c", "n() { i=0; while [ $i -lt $1 ]; do i=$((i+1)); done; }; n 200000; sleep 1; n 2000")
    text = run("perf", "script", "--show-lost-events", "-i", path, errors="replace")
    told = sum(int(lost) for lost in re.findall(r"PERF_RECORD_LOST lost (\d+)", text))
    script = work.file("lost.txt")
    with open(script, "w") as file:
        file.write(text)
    binary, by_script = (report(kept, "--top", "1")["totals"]["lost"] for kept in (path, script))
    dump = run("perf", "report", "-D", "-i", path, errors="replace")
    most = max(told, sum(int(lost) for lost in re.findall(r"PERF_RECORD_LOST_SAMPLES:.*lost samples\s*:\s*(\d+)", dump)))
    checks.check("what perf lost is counted once", told > 100 and told <= binary <= most * 1.01 + 100, f"{binary} of {told}, {most}")
    checks.check("text of perf script tells of losses, too", by_script == told, f"{by_script} of {told}")


def main():
    checks = Checks()
    variant = sys.argv[1]
    need_command("perf")
    with Work() as work:
        for sample in ("shapes", "pinvoke"):
            checks.run(f"{variant} {sample}", check_sample, variant, sample, work)
        checks.run("lost", check_lost, work)
    checks.exit()


if __name__ == "__main__":
    main()
