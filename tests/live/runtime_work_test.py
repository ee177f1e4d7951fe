#!/usr/bin/env python3
"""runtime_work_test.py VARIANT: what a report says of the runtime's work is what the program knows of it.

samples/runtimework runs as a program that collects and allocates, as one that compiles and as one that throws, each beside
as much work of its own; it reads each phase's CPU time from the kernel's clock of its thread.
"""
import os
import sys

from live import (PLAIN_ENVIRONMENT, Checks, Target, Watch, Work, clrperf, cpu_clock_ns, dump, folded, record_busy, report,
                  sample_command, succeeded)

RATE = 999
CPU_S = 2.5
POINTS = 5
# By program: its phases, and of which class of work each is.
PROGRAMS = {
    "GC-bound": {"Collect": "gc", "Allocate": "gc", "Spin": "user"},
    "JIT-bound": {"Compile": "jit", "Spin": "user"},
    "exception-bound": {"Throw": "exceptions", "Spin": "user"},
}
FOLDED = {"gc": "[GC]", "jit": "[JIT]", "exceptions": "[exceptions]"}
NO_TIERING = {**PLAIN_ENVIRONMENT, "DOTNET_TieredCompilation": "0"}  # compiles in the background, which no phase knows of


def seconds(target):
    """CPU seconds by phase, and of the process."""
    truth = {phase["name"]: phase["cpu_s"] for phase in target.truth()["phases"]}
    return {**truth, "process": cpu_clock_ns(target.pid) / 1e9}


def record_watched(target, capture):
    with Watch(lambda: seconds(target), 0.2) as watch:
        summary = record_busy(capture, target.pid, RATE, CPU_S)
    start = int(dump(capture)["fact"]["started_monotonic_ns"])
    return watch.between(start, start + int(summary["duration_s"] * 1e9))


def check_shares(checks, name, classes, truth, totals):
    """A class's share of the weight is that of its phases of the process's CPU seconds."""
    work, all_seconds = totals["work"], max(1e-9, truth["process"])
    for wanted in dict.fromkeys(classes.values()):
        known = 100 * sum(truth[phase] for phase, work_class in classes.items() if work_class == wanted) / all_seconds
        said = 100 * work[wanted] / max(1, totals["weight"])
        checks.check(f"{name}: the share of {wanted} within {POINTS} points", abs(said - known) <= POINTS,
                     f"{said:.1f} %, the program knows {known:.1f} %")
    checks.check(f"{name}: the classes add up", sum(value for value in work.values() if value is not True) == totals["weight"])
    checks.check(f"{name}: at most 3 % cannot be told", work["other"] <= 0.03 * totals["weight"],
                 f"{100 * work['other'] / max(1, totals['weight']):.2f} %")
    checks.check(f"{name}: says that allocations are in it", work["gc_holds_allocation"] is True)


def check_folding(checks, name, classes, capture, totals):
    stacks, whole = folded(capture, "--group", "runtime", "--modules"), folded(capture)
    checks.check(f"{name}: folding keeps every sample", sum(w for _, w in stacks) == sum(w for _, w in whole))
    left = {frame for stack, _ in stacks for frame in stack if frame.startswith(("libcoreclr.so!", "libclrjit.so!"))}
    checks.check(f"{name}: no frame of the runtime's is left", not left, ", ".join(sorted(left)[:3]))
    rows = {row["name"]: row for row in report(capture, "--group", "runtime", "--top", "0")["rows"]}
    for wanted in set(classes.values()) - {"user"}:
        row = rows.get(FOLDED[wanted], {"self": 0})
        checks.check(f"{name}: {FOLDED[wanted]} is a row of that weight", row["self"] == totals["work"][wanted],
                     f"{row['self']} of {totals['work'][wanted]}")
    text = succeeded(clrperf("report", capture)).stdout
    line = next((line for line in text.splitlines() if line.startswith("runtime  ")), "")
    checks.check(f"{name}: the report has the split", "user code" in line, line)


def check_program(checks, variant, program, work):
    name, classes = f"{variant} {program}", PROGRAMS[program]
    command = sample_command(variant, "runtimework") + ["0", ",".join(classes)]
    with Target(command, env=NO_TIERING) as target:
        target.wait_busy(1.5)
        capture = work.file(f"{program}.clrperf")
        truth = record_watched(target, capture)
    totals = report(capture, "--top", "1")["totals"]
    check_shares(checks, name, classes, truth, totals)
    check_folding(checks, name, classes, capture, totals)


def check_server_gc(checks, variant, work):
    """A server collection runs on threads of its own, which tell by their names what they do."""
    command = sample_command(variant, "runtimework") + ["0", "Collect,Spin"]
    environment = {**NO_TIERING, "DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "2", "DOTNET_GCHeapAffinitizeMask": "3"}
    with Target(command, env=environment) as target:
        target.wait_busy(1.5)
        capture = work.file("server.clrperf")
        record_busy(capture, target.pid, RATE, CPU_S)
    stacks = [(stack, w) for stack, w in folded(capture, "--group", "runtime", "--threads") if "Server GC" in
              stack[0].replace("_", " ")]
    if not stacks and os.cpu_count() == 1:
        checks.skip(f"{variant} server GC", "one CPU has no threads for it")
        return
    inside, everything = sum(w for stack, w in stacks if stack[-1] == "[GC]"), sum(w for _, w in stacks)
    checks.check(f"{variant} server GC: its threads collect", everything > 0 and inside == everything,
                 f"{inside} of {everything} samples")


def main():
    checks = Checks()
    variant = (sys.argv[1:] or ["10"])[0]
    with Work() as work:
        for program in PROGRAMS:
            checks.run(f"{variant} {program}", check_program, variant, program, work)
        checks.run(f"{variant} server GC", check_server_gc, variant, work)
    checks.exit()


if __name__ == "__main__":
    main()
