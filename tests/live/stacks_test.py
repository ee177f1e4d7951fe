#!/usr/bin/env python3
"""stacks_test.py VARIANT: stacks are whole, and no caller is missing that the program guarantees.

That a stack reaches its thread's root says nothing of callers that were skipped. So stacks are judged by names that must
be neighbours: whoever called a method that only one place calls, and that no compiler may inline or jump to.
"""
import os
import sys

from live import Checks, Load, Recording, Target, Work, folded, record_busy, report, sample_command, wait_for

RATE = 999
CPU_S = 2.0
PINVOKE = "[P/Invoke*"  # "[P/Invoke] libc!qsort", or where it is not known what it calls "[P/Invoke stub]"
MUSL = "libc.so!*"  # of musl's functions only what it exports has a name
QSORT = ("qsort", "qsort_r", "msort_with_tmp", "msort_with_tmp.part.0", MUSL)
QSORT_PHASES = ("PInvoke.Program.PhaseQsortDelegate", "PInvoke.Program.PhaseQsortFunctionPointer",
                "PInvoke.Program.PhaseNested")
LIBC = ("bsearch", *QSORT)
# Who can have called a frame. The stub of a call to native code is a frame of its own where it is not compiled in; from
# .NET 11 on it has the name of the method that is declared as native.
CALLERS = {
    "shapes": {
        "Shapes.Catalogue.RunOnce": ("Shapes.Program.Main",),
        "Shapes.Catalogue.Repeat": ("Samples.Run.Slice", "Shapes.Catalogue.RunOnce lambda"),
        "Shapes.Closures.LocalFunction": ("Shapes.Catalogue.Repeat",),
        "Shapes.Closures.LocalFunction.Spin": ("Shapes.Closures.LocalFunction",),
        "Shapes.Closures.CapturingLocalFunction.Spin": ("Shapes.Closures.CapturingLocalFunction",),
        "Shapes.Closures.GenericLocalFunction.Spin<T>": ("Shapes.Closures.GenericLocalFunction",),
    },
    "r2rhot": {
        **{f"R2rHot.Program.Phase{name}": ("Samples.Run.Slice",) for name in ("Sort", "Dictionary", "Linq", "Json", "Regex")},
        "Samples.Run.Slice": ("R2rHot.Program.Main",),
    },
    "crypto": {
        **{f"Crypto.Program.{name}": ("Samples.Run.Slice", "Crypto.Program.Main lambda*")
           for name in ("SignRsa", "SignCurve", "Seal", "Encrypt", "Hash256", "Hash512", "Password", "MakeKey")},
        "Samples.Run.Slice": ("Crypto.Program.Main",),
    },
    "pinvoke": {
        **{f"PInvoke.Program.Phase{name}": ("Samples.Run.Slice",)
           for name in ("QsortDelegate", "QsortFunctionPointer", "Nested", "Bsearch", "GetPid", "Access", "Memcpy")},
        "Samples.Run.Slice": ("PInvoke.Program.Main",),
        "qsort_r": ("qsort", PINVOKE, "PInvoke.Libc.Sort", *QSORT_PHASES),
        "msort_with_tmp.part.0": QSORT,
        "bsearch": (PINVOKE, "PInvoke.Libc.Search", "PInvoke.Program.PhaseBsearch"),
        "PInvoke.Program.CompareUnmanagedCallersOnly": QSORT,
    },
}


def is_among(frame, allowed):
    """`*` stands for any end."""
    return frame in allowed or any(name[-1] == "*" and frame.startswith(name[:-1]) for name in allowed)


def judge(stacks, callers):
    """Samples with a guaranteed call in them: how many, in how many every caller is where it must be, and in how many one
    is nowhere above. With an example of what is wrong."""
    judged = exact = missing = 0
    example = ""
    for stack, weight in stacks:
        # the runtime sorts, too: libc is judged below methods of the program's own
        own = any(".Program." in frame for frame in stack)
        calls = [(i, callers[frame]) for i, frame in enumerate(stack) if frame in callers and (own or frame not in LIBC)]
        if not calls:
            continue
        judged += weight
        wrong = [(i, allowed) for i, allowed in calls if i == 0 or not is_among(stack[i - 1], allowed)]
        exact += 0 if wrong else weight
        missing += weight if any(not set(allowed) & set(stack[:i]) for i, allowed in wrong) else 0
        if wrong and not example:
            i = wrong[0][0]
            example = ";".join(stack[max(0, i - 2):i + 2])
    return judged, exact, missing, example


def check_whole(checks, name, capture, *arguments, per_mille=1):
    """At most one in a thousand, and one more: a recording of some thousand samples has no thousandths."""
    totals = report(capture, "--top", "1", *arguments)["totals"]
    ends = totals["stacks"]
    checks.check(f"{name}: {100 - per_mille / 10} % of the stacks are whole",
                 ends["truncated"] + ends["broken"] <= 1 + totals["samples"] * per_mille / 1000 and totals["samples"] > 100,
                 f"{ends['whole']} of {totals['samples']}, {ends['truncated']} truncated, {ends['broken']} broken "
                 f"{ends['broken_by_image'] or ''}")
    frames = totals["frames"]
    checks.check(f"{name}: at most 0.1 % of the user frames have no name", frames["user"] > 1000 and frames["unnamed"] <= 0.001 * frames["user"],
                 f"{frames['unnamed']} of {frames['user']} {frames['unnamed_by'] or ''}")


def check_sample(checks, variant, sample, work, env=None):
    name = f"{variant} {sample}" + (", diagnostics off" if env else "")
    capture = work.file(f"{sample}{'-off' if env else ''}.clrperf")
    options = {"env": {**os.environ, **env}} if env else {}
    with Target(sample_command(variant, sample) + ["0"], **options) as target:
        target.wait_busy(1.5)
        record_busy(capture, target.pid, RATE, CPU_S)
    check_whole(checks, name, capture)
    stacks = list(folded(capture))
    judged, exact, missing, example = judge(stacks, CALLERS[sample])
    checks.check(f"{name}: 99.5 % of the guaranteed callers are next to whom they call",
                 judged > 0.4 * RATE * CPU_S and exact >= 0.995 * judged, f"{exact} of {judged} {example}")
    checks.check(f"{name}: no guaranteed caller is missing", missing == 0, f"{missing} of {judged} {example}")
    if sample == "pinvoke":
        check_stubs(checks, name, stacks)


def check_stubs(checks, name, stacks):
    """Stubs are called what they serve. From .NET 11 on there are none."""
    stubs = {frame for stack, _ in stacks for frame in stack if frame.startswith(("[P/Invoke", "[reverse P/Invoke"))}
    checks.check(f"{name}: stubs have the names of what they serve", all("] " in stub for stub in stubs) and
                 (not stubs or "[P/Invoke] libc!qsort" in stubs), stubs)


def check_deep(checks, variant, work):
    """Each stack needs more than 32 KiB; none of its calls is missing."""
    capture = work.file("deep.clrperf")
    with Target(sample_command(variant, "deepstack") + ["0"]) as target:
        target.wait_busy(1.5)
        record_busy(capture, target.pid, 199, CPU_S)
        levels = target.truth()["counts"]["levels"]
    check_whole(checks, f"{variant} deepstack", capture)
    depths = [(stack.count("DeepStack.Program.Descend"), weight) for stack, weight in folded(capture)
              if "DeepStack.Program.Burn" in stack]
    checks.check(f"{variant} deepstack: all {levels} calls are in each stack",
                 sum(weight for _, weight in depths) > 100 and all(depth == levels for depth, _ in depths), depths)


def check_large(checks, variant, work):
    """One frame alone is more than a sample can carry: who called it is read in memory, or not known, but nobody else."""
    capture = work.file("large.clrperf")
    with Target(sample_command(variant, "deepstack") + ["0", "large"]) as target:
        target.wait_busy(1.5)
        record_busy(capture, target.pid, 199, CPU_S)
    callers = ("Main", "RunLarge", "Large")
    judged = whole = complete = wrong = 0
    for stack, weight in folded(capture):
        frames = {frame.removeprefix("DeepStack.Program.") for frame in stack}
        for own, other in (("Left", "Right"), ("Right", "Left")):
            if "Burn" + own in frames:
                judged += weight
                wrong += weight if other in frames else 0
                whole += weight if "[truncated]" not in frames else 0
                complete += weight if {*callers, own, "Samples.Run.Slice"} <= frames and "[truncated]" not in frames else 0
    told = f"{whole} whole, {complete} complete, {wrong} wrong of {judged}"
    checks.check(f"{variant} deepstack large: most stacks are whole", judged > 100 and whole >= 0.7 * judged, told)
    checks.check(f"{variant} deepstack large: of these nine in ten have each caller", complete >= 0.9 * whole, told)
    checks.check(f"{variant} deepstack large: no stack has a caller of another", wrong <= 0.005 * judged, told)


def has_handler(stack):
    """The C library's trampoline, which has no name in musl."""
    return "__restore_rt" in stack or any(callee.startswith(MUSL[:-1]) and caller.startswith("Crashes.")
                                          for caller, callee in zip(stack, stack[1:]))


def check_faults(checks, variant, work):
    """Null references at a method's first instruction: the runtime handles them in frames that nobody called."""
    callers = {"Crashes.Program.Touch": ("Crashes.Program.Catch",), "Crashes.Program.Dereference": ("Crashes.Program.Touch",)}
    capture = work.file("faults.clrperf")
    with Target(sample_command(variant, "crashes") + ["0", "null"]) as target:
        target.wait_busy(1.5)
        record_busy(capture, target.pid, RATE, CPU_S)
    check_whole(checks, f"{variant} crashes", capture)
    # the kernel's call of the handler is on a stack of its own, of which a sample has the bytes and not of the other
    stacks = [(stack, weight) for stack, weight in folded(capture) if not has_handler(stack)]
    judged, exact, missing, example = judge(stacks, callers)
    checks.check(f"{variant} crashes: who called what faulted is in each stack",
                 judged > 0.4 * RATE * CPU_S and exact >= 0.995 * judged and missing == 0, f"{exact} of {judged} {example}")


def check_waiting(checks, variant, work):
    """Threads that leave their CPU, in a service that reads, waits, throws and locks."""
    capture = work.file("waiting.clrperf")
    with Target(sample_command(variant, "webapi") + ["0", "--urls", "http://127.0.0.1:0"]) as target:
        target.load = Load(target.url, {"/off-cpu": 1, "/dict/7": 1, "/exception/5": 1, "/log": 1})
        target.wait_busy(1.5)
        recording = Recording(capture, "-p", target.pid, "-e", "context-switches")
        wait_for(lambda: os.path.getsize(capture) > 40_000, "samples in the capture")
        recording.stop()
    # musl's functions keep no frame pointer: the kernel's chain does not go on behind the 32 KiB that a sample has, and the
    # compiler needs more
    check_whole(checks, f"{variant} webapi, context switches", capture, "--event", "context-switches",
                per_mille=10 if variant.endswith("-musl") else 1)


def main():
    checks = Checks()
    variant = sys.argv[1]
    with Work() as work:
        for sample in CALLERS:
            if sample == "crypto" and variant.endswith("-musl"):
                continue  # Debian has no OpenSSL for musl
            checks.run(f"{variant} {sample}", check_sample, variant, sample, work)
        checks.run(f"{variant} shapes, diagnostics off", check_sample, variant, "shapes", work, {"DOTNET_EnableDiagnostics": "0"})
        checks.run(f"{variant} deepstack", check_deep, variant, work)
        checks.run(f"{variant} deepstack large", check_large, variant, work)
        checks.run(f"{variant} crashes", check_faults, variant, work)
        checks.run(f"{variant} webapi, context switches", check_waiting, variant, work)
    checks.exit()


if __name__ == "__main__":
    main()
