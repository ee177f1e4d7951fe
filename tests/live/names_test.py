#!/usr/bin/env python3
"""names_test.py VARIANT [SAMPLE...]: recordings of the samples say what the samples themselves know.

The programs run at once, with nothing set in their environment, and are attached 5 s after their start.
"""
import os
import re
import sys
import threading
from collections import Counter

from live import Checks, Load, Target, Watch, Work, cpu_clock_ns, dump, folded, record, record_busy, report, sample_command

RATE = 999
# How much CPU time of the target a recording must hold; primes' must outweigh what the session's start costs.
CPU_S = {"primes": 8}
CPU_S_OTHERS = 1.8
COUNT_TRIES = 3
SAMPLES = ("primes", "r2rhot", "pinvoke", "shapes", "webapi")
# The frames that tell a phase's samples, where those are not the ones that the sample expects. Phases with the same frames
# are judged as one.
# glibc's qsort keeps no frame pointer: frame-pointer stacks end there or skip its caller.
QSORT = ("Program.PhaseQsortDelegate", "Program.PhaseQsortFunctionPointer", "Program.PhaseNested", "qsort", "qsort_r",
         "msort_with_tmp.part.0", "msort_with_tmp")
TELLTALES = {
    "pinvoke QsortDelegate": QSORT,
    "pinvoke QsortFunctionPointer": QSORT,
    "pinvoke Nested": QSORT,
    "pinvoke Bsearch": ("Program.PhaseBsearch", "bsearch"),
    # the caller of a leaf in libc, or of one that keeps no frame pointer, is skipped
    "pinvoke GetPid": ("Program.PhaseGetPid", "getpid"),
    "pinvoke GetParentPid": ("Program.PhaseGetParentPid", "getppid"),
    "pinvoke GetEnvironment": ("Program.PhaseGetEnvironment", "getenv"),
    "pinvoke Access": ("Program.PhaseAccess", "access"),
    # .NET Core 3.1 sorts numbers in C++
    "r2rhot Sort": ("Program.PhaseSort", "ArrayHelpers<>::IntroSort", "ArrayHelpers<>::PickPivotAndPartition",
                    "ArrayHelpers<>::InsertionSort", "ArrayHelpers<>::Heapsort"),
    "r2rhot Json": ("Program.PhaseJson", "System.Text.Json.*"),
    "shapes Async": ("StateMachines.SpinAsync (async)",),
    "shapes AsyncNested": ("StateMachines.SpinAsync (async)",),
    "shapes AsyncIterator": ("StateMachines.StepsAsync (async)",),
    "shapes ExplicitInterface": ("Hidden.ISpinner.Spin",),
    "shapes ExplicitGenericInterface": ("Hidden.ISpinner<>.Spin",),
    "shapes Indexer": ("Gadget.Item.get",),
    "shapes CompiledExpression": ("lambda_method1 [compiled expression]", "lambda_method [compiled expression]"),
}


def plain(frame):
    """Without type arguments, which a phase does not tell, and without the samples' namespaces."""
    while True:
        less = re.sub(r"<[^<>]+>", "<>", frame)
        less = re.sub(r"<(?:<>|[^<>])+>", "<>", less)
        if less == frame:
            return re.sub(r"^(Shapes|PInvoke|R2rHot|Primes)\.", "", frame)
        frame = less


def tells(stack, frames):
    """Whether one of the frames is in the stack; `*` stands for any end."""
    return any(frame in stack or frame[-1] == "*" and any(name.startswith(frame[:-1]) for name in stack)
               for frame in frames)


def check_names(checks, name, totals):
    frames = totals["frames"]
    share = frames["unnamed"] / max(1, frames["user"])
    causes = ", ".join(f"{cause} {count}" for cause, count in frames["unnamed_by"].items())
    checks.check(f"{name}: at most 1 % of the user frames have no name", frames["user"] > 0 and share <= 0.01,
                 f"{100 * share:.2f} % of {frames['user']}" + (f" ({causes})" if causes else ""))


def counts_right(summary, least_s, most_s):
    """
    The CPU time was read a moment before and after the recording began and ended, hence the two. The most includes what
    the hypervisor stole: the clock that samples goes on then, the thread's CPU time does not.
    """
    return RATE * least_s * 0.97 <= summary["attempted"] <= RATE * most_s * 1.03


def check_count(checks, name, summary, least_s, most_s, tries):
    attempted, middle = summary["attempted"], RATE * (least_s + most_s) / 2
    checks.check(f"{name}: samples are rate x CPU seconds within 3 %", counts_right(summary, least_s, most_s),
                 f"{attempted} for {least_s:.3f} to {most_s:.3f} s, {100 * (attempted / middle - 1):+.2f} %, recording {tries}")


def check_hot_method(checks, name, stacks, method):
    total = sum(weight for _, weight in stacks)
    inside = sum(weight for stack, weight in stacks if method in stack)
    checks.check(f"{name}: at least 95 % of the samples contain {method}", inside >= 0.95 * total,
                 f"{100 * inside / max(1, total):.2f} %")


def check_shares(checks, name, stacks, seconds):
    """Each phase's share of all phases' samples is its share of their CPU seconds, within 3 points."""
    stacks = [({plain(frame) for frame in stack}, weight) for stack, weight in stacks]
    samples = {frames: sum(weight for stack, weight in stacks if tells(stack, frames)) for frames in seconds}
    all_samples, all_seconds = max(1, sum(samples.values())), max(1e-9, sum(seconds.values()))
    off = {frames: 100 * (samples[frames] / all_samples - seconds[frames] / all_seconds) for frames in samples}
    worst = max(off, key=lambda frames: abs(off[frames]))
    missing = [frames[0] for frames in samples if not samples[frames] and seconds[frames] > 0.02]
    checks.check(f"{name}: shares of {len(samples)} phases are those of their CPU seconds within 3 points",
                 abs(off[worst]) <= 3, f"worst is {worst[0]}, {off[worst]:+.2f} of {100 * seconds[worst] / all_seconds:.1f}")
    checks.check(f"{name}: every phase shows", not missing, ", ".join(missing))


# Over values a generic method has code of its own; that over references is shared.
INSTANCES = {"Generics.Spin<double>", "Generics.Spin<T>", "Box<T>.Convert<long>", "LoudVisitor.Visit<DayOfWeek>", "LoudVisitor.Visit<T>",
             "Generics.Early<long>"}


def check_instances(checks, name, stacks):
    frames = {frame.removeprefix("Shapes.") for stack, _ in stacks for frame in stack}
    checks.check(f"{name}: instances of generic methods have names of their own", INSTANCES <= frames, f"{INSTANCES - frames} missing")


def telltales(truth):
    """By phase: the sample's own methods that only this phase expects. Any of them will do: a frame-pointer stack skips the
    caller of a leaf, so that the outermost one is missing as soon as the JIT leaves the inner one without a frame."""
    def own_methods(frames):
        return [plain(frame) for frame in frames if frame.split(".")[0] == frames[0].split(".")[0]]

    expected = {phase["name"]: own_methods(phase["expected"]) for phase in truth["phases"]}
    uses = Counter(frame for frames in expected.values() for frame in set(frames))
    own = {name: tuple(frame for frame in frames if uses[frame] == 1) or (frames[0],) for name, frames in expected.items()}
    return {name: TELLTALES.get(f"{truth['sample']} {name}", frames) for name, frames in own.items()}


def phase_seconds(target):
    """CPU seconds by the frames that only this phase has."""
    seconds = {}
    truth = target.truth()
    frames_of = telltales(truth)
    for phase in truth["phases"]:
        frames = frames_of[phase["name"]]
        seconds[frames] = seconds.get(frames, 0) + phase["cpu_s"]
    return seconds


def stolen_s():
    """Seconds that the hypervisor gave to others while a CPU of this machine had work, all CPUs together."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def record_watched(target, capture, cpu_s, watch_truth):
    """The recording's summary, and what the kernel and the sample itself say about the same time."""
    with Watch(lambda: {"cpu": cpu_clock_ns(target.pid) / 1e9, "stolen": stolen_s()}, 0.003) as cpu, \
         Watch(lambda: phase_seconds(target) if watch_truth else {}, 0.2) as truth:
        summary = record_busy(capture, target.pid, RATE, cpu_s)
    start = int(dump(capture)["fact"]["started_monotonic_ns"])
    stop = start + int(summary["duration_s"] * 1e9)
    begin, end = cpu.around(start), cpu.around(stop)
    least = end[0]["cpu"] - begin[1]["cpu"]
    most = end[1]["cpu"] - begin[0]["cpu"] + end[1]["stolen"] - begin[0]["stolen"]
    return summary, (least, most), truth.between(start, stop)


def check_sample(checks, variant, sample, work):
    name = f"{variant} {sample}"
    is_web = sample == "webapi"
    command = sample_command(variant, sample) + ["0"] + (["--urls", "http://127.0.0.1:0"] if is_web else [])
    if sample == "primes" and os.geteuid() == 0:
        # the start of an EventPipe session costs its runtime 0.1 s of CPU, too much of what a fifth of a machine gives
        command = ["nice", "-n", "-10"] + command
    with Target(command) as target:
        if is_web:
            target.load = Load(target.url, {"/on-cpu": 1, "/dict/7": 1, "/alloc/64": 1, "/exception/5": 1, "/log": 1})
        target.wait_age(5)
        target.wait_busy(1.5)
        # on a crowded machine the kernel's timers are late at times; a recorder that counts wrong does so each time
        for tries in range(1, COUNT_TRIES + 1):
            capture = work.file(f"{sample}-{tries}.clrperf")
            summary, cpu_s, seconds = record_watched(target, capture, CPU_S.get(sample, CPU_S_OTHERS),
                                                     sample not in ("webapi", "primes"))
            if counts_right(summary, *cpu_s):
                break
    check_names(checks, name, report(capture, "--top", "1")["totals"])
    check_count(checks, name, summary, *cpu_s, tries)
    if sample == "primes":
        check_hot_method(checks, name, folded(capture), "Primes.Program.CountPrimes")
    elif not is_web:
        check_shares(checks, name, folded(capture), seconds)
    if sample == "shapes" and "aot" not in variant:
        check_instances(checks, name, folded(capture))
        # the runtime has told of a method when it is sampled first, and not of which instance; its memory is gone at the end. Long
        # enough for looks at it behind the first samples of all: the pause between two is as long as the recording then is
        ended = work.file("shapes-ended.clrperf")
        record(ended, "-F", RATE, "--", *command[:-1], "14")
        check_instances(checks, f"{name}, from its start to its end", folded(ended))


def main():
    checks = Checks()
    variant, *samples = sys.argv[1:] or ["10"]
    with Work() as work:
        threads = [threading.Thread(target=checks.run, args=(f"{variant} {sample}", check_sample, variant, sample, work))
                   for sample in samples or SAMPLES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    checks.exit()


if __name__ == "__main__":
    main()
