#!/usr/bin/env python3
"""runtime_work_test.py VARIANT: what a report says of the runtime's work is what the program knows of it.

samples/runtimework runs as a program that collects, as one that allocates, as one that compiles and as one that throws, each
beside as much work of its own; it reads each phase's CPU time from the kernel's clock of its thread, and asks its runtime how
often it collected and how long threads stood still for that.
"""
import os
import statistics
import sys

from live import (FAVOURED, PLAIN_ENVIRONMENT, Checks, Target, Watch, Work, clrperf, cpu_clock_ns, dump, folded, record_busy, report,
                  sample_command, succeeded)

RATE = 999
CPU_S = 2.5
POINTS = 5
# By program: its phases, and of which class of work each is.
PROGRAMS = {
    "GC-bound": {"Collect": "gc", "Spin": "user"},
    "allocation-bound": {"Allocate": "allocation", "Spin": "user"},
    "JIT-bound": {"Compile": "jit", "Spin": "user"},
    "exception-bound": {"Throw": "exceptions", "Spin": "user"},
}
FOLDED = {"gc": "[GC]", "allocation": "[allocating]", "jit": "[JIT]", "exceptions": "[exceptions]"}
NO_TIERING = {**PLAIN_ENVIRONMENT, "DOTNET_TieredCompilation": "0"}  # compiles in the background, which no phase knows of
ROOMY = {"DOTNET_GCgen0size": "10000000"}  # in hex: it hardly ever collects
PAUSE_PERCENT = 1
WINDOW_S = 0.5


def seconds(target):
    """CPU seconds by phase and of the process, and what it counts."""
    truth = target.truth()
    return {**{phase["name"]: phase["cpu_s"] for phase in truth["phases"]}, **truth["counts"],
            "process": cpu_clock_ns(target.pid) / 1e9}


class Watched:
    """A recording of a program that was asked meanwhile what it knows; from when on its runtime told of collections."""

    def __init__(self, target, capture):
        self.capture = capture
        with Watch(lambda: seconds(target), 0.2) as self.watch:
            summary = record_busy(capture, target.pid, RATE, CPU_S)
        tables = dump(capture)
        self.zero = int(tables["fact"]["started_monotonic_ns"])
        told = [int(row[4]) for row in tables["told"]]
        self.told = bool(told)
        self.start, self.stop = max([self.zero, *told]), self.zero + int(summary["duration_s"] * 1e9)

    def truth(self):
        return self.watch.between(self.start, self.stop)

    def totals(self, start=None, stop=None):
        """What the report says of that stretch."""
        start, stop = start or self.start, stop or self.stop
        stretch = f"{(start - self.zero) // 1000}us-{(stop - self.zero) // 1000}us"
        return report(self.capture, "--top", "1", "--time", stretch)["totals"]

    def windows(self):
        """What it knew at two times, again and again, half a second apart at least."""
        known = [values for _, values in self.watch.points if self.start < values["now_ns"] < self.stop]
        first = known[:1]
        for values in known:
            if values["now_ns"] - first[0]["now_ns"] >= WINDOW_S * 1e9:
                yield first[0], values
                first = [values]


def check_shares(checks, name, classes, truth, totals):
    """A class's share of the weight is that of its phases of the process's CPU seconds, but what they collect."""
    work, all_seconds = totals["work"], max(1e-9, truth["process"])
    for wanted in dict.fromkeys(classes.values()):
        known = sum(truth[phase] for phase, work_class in classes.items() if work_class == wanted)
        if wanted not in ("gc", "user"):
            known -= truth["paused_us"] / 1e6
        known *= 100 / all_seconds
        said = 100 * work[wanted] / max(1, totals["weight"])
        checks.check(f"{name}: the share of {wanted} within {POINTS} points", abs(said - known) <= POINTS,
                     f"{said:.1f} %, the program knows {known:.1f} %")
    checks.check(f"{name}: the classes add up", sum(value for value in work.values() if value is not True) == totals["weight"])
    checks.check(f"{name}: at most 3 % cannot be told", work["other"] <= 0.03 * totals["weight"],
                 f"{100 * work['other'] / max(1, totals['weight']):.2f} %")
    checks.check(f"{name}: collecting and allocating are told apart", work["gc_holds_allocation"] is False)


def check_pauses(checks, name, watched):
    """The time that threads stood still, as the runtime adds it up itself; a crowded machine can spoil a window of it."""
    ratios, pauses = [], 0
    for before, after in watched.windows():
        said, known = watched.totals(before["now_ns"], after["now_ns"])["gc"], after["paused_us"] - before["paused_us"]
        collected = after["collected_gen0"] - before["collected_gen0"]
        counted = said["gen0"] + said["gen1"] + said["gen2"]
        checks.check(f"{name}: as many collections as the program counts", abs(counted - collected) <= 1,
                     f"{counted}, the program knows {collected}")
        ratios.append(1000 * said["paused_ms"] / max(1, known))
        pauses += said["pauses"]
    median = statistics.median(ratios or [0])
    checks.check(f"{name}: pauses within {PAUSE_PERCENT} %", pauses > 0 and abs(median - 1) <= PAUSE_PERCENT / 100,
                 f"{pauses} pauses, by window " + " ".join(f"{ratio:.4f}" for ratio in ratios))


def check_folding(checks, name, classes, capture, totals):
    stacks, whole = folded(capture, "--group", "runtime", "--modules"), folded(capture)
    checks.check(f"{name}: folding keeps every sample", sum(w for _, w in stacks) == sum(w for _, w in whole) > 0)
    left = {frame for stack, _ in stacks for frame in stack if frame.startswith(("libcoreclr.so!", "libclrjit.so!"))}
    checks.check(f"{name}: no frame of the runtime's is left", not left, ", ".join(sorted(left)[:3]))
    rows = {row["name"]: row for row in report(capture, "--group", "runtime", "--top", "0")["rows"]}
    for wanted in set(classes.values()) - {"user"}:
        row = rows.get(FOLDED[wanted], {"self": 0})
        checks.check(f"{name}: {FOLDED[wanted]} is a row of that weight", row["self"] == totals["work"][wanted],
                     f"{row['self']} of {totals['work'][wanted]}")
    text = succeeded(clrperf("report", capture)).stdout
    lines = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    checks.check(f"{name}: the report has the split", "user code" in lines.get("runtime", ""), lines.get("runtime"))
    checks.check(f"{name}: the report has the collections", "collection" in lines.get("GC", ""), lines.get("GC"))


def check_program(checks, variant, program, work):
    name, classes = f"{variant} {program}", PROGRAMS[program]
    command = FAVOURED + sample_command(variant, "runtimework") + ["0", ",".join(classes)]
    environment = {**NO_TIERING, **(ROOMY if "Allocate" in classes else {})}
    with Target(command, env=environment) as target:
        target.wait_busy(1.5)
        watched = Watched(target, work.file(f"{program}.clrperf"))
    if not checks.check(f"{name}: the runtime tells when it collects", watched.told):
        return
    check_shares(checks, name, classes, watched.truth(), watched.totals())
    check_folding(checks, name, classes, watched.capture, report(watched.capture, "--top", "1")["totals"])
    if program == "GC-bound":
        check_pauses(checks, name, watched)


def check_silent(checks, variant, work):
    """A runtime that is not asked, or does not answer: collecting and allocating are one, and the report says so."""
    command = sample_command(variant, "runtimework") + ["0", "Allocate,Spin"]
    for name, environment, options in (("--no-runtime", NO_TIERING, ["--no-runtime"]),
                                       ("without diagnostics", {**NO_TIERING, "DOTNET_EnableDiagnostics": "0"}, [])):
        with Target(command, env=environment) as target:
            target.wait_busy(1.5)
            capture = work.file("silent.clrperf")
            record_busy(capture, target.pid, RATE, 1, options=["--force", *options])
        totals, text = report(capture, "--top", "1")["totals"], succeeded(clrperf("report", capture)).stdout
        work_of = totals["work"]
        checks.check(f"{variant} {name}: nothing is told", not dump(capture)["told"] and totals["gc"] is None)
        checks.check(f"{variant} {name}: allocations are in the GC's class, which is said",
                     work_of["allocation"] == 0 < work_of["gc"] and work_of["gc_holds_allocation"] is True and
                     "GC holds slow allocations too" in text and "\nGC " not in text)


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
    said = report(capture, "--top", "1")["totals"]["gc"]
    checks.check(f"{variant} server GC: collections are told", said and said["gen2"] > 0 and said["paused_ms"] > 0, str(said))


def main():
    checks = Checks()
    variant = (sys.argv[1:] or ["10"])[0]
    with Work() as work:
        for program in PROGRAMS:
            checks.run(f"{variant} {program}", check_program, variant, program, work)
        checks.run(f"{variant} server GC", check_server_gc, variant, work)
        checks.run(f"{variant} silent", check_silent, variant, work)
    checks.exit()


if __name__ == "__main__":
    main()
