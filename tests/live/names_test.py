#!/usr/bin/env python3
"""names_test.py VARIANT [SAMPLE...]: recordings of the samples say what the samples themselves know.

The programs run at once, with nothing set in their environment, and are attached 5 s after their start.
"""
import sys
import threading

from live import Checks, Load, Target, Watch, Work, cpu_clock_ns, dump, folded, record, report, sample_command

RATE = 999
SECONDS = 4
SAMPLES = ("primes", "r2rhot", "pinvoke", "shapes", "webapi")
# glibc's qsort keeps no frame pointer, so that frame-pointer stacks end there or skip our caller: its phases are one.
GROUPS = {
    "PInvoke.Program.PhaseQsortDelegate": "qsort",
    "PInvoke.Program.PhaseQsortFunctionPointer": "qsort",
    "PInvoke.Program.PhaseNested": "qsort",
}
TELLTALES = {
    "qsort": (*GROUPS, "qsort", "qsort_r", "msort_with_tmp.part.0", "msort_with_tmp"),
    "PInvoke.Program.PhaseBsearch": ("PInvoke.Program.PhaseBsearch", "bsearch"),
}


def check_names(checks, name, totals):
    frames = totals["frames"]
    share = frames["unnamed"] / max(1, frames["user"])
    causes = ", ".join(f"{cause} {count}" for cause, count in frames["unnamed_by"].items())
    checks.check(f"{name}: at most 1 % of the user frames have no name", frames["user"] > 0 and share <= 0.01,
                 f"{100 * share:.2f} % of {frames['user']}" + (f" ({causes})" if causes else ""))


def check_count(checks, name, summary, cpu_s):
    off = summary["attempted"] / (RATE * cpu_s) - 1
    checks.check(f"{name}: samples are rate x CPU seconds within 3 %", abs(off) <= 0.03,
                 f"{summary['attempted']} for {cpu_s:.3f} s, {100 * off:+.2f} %")


def has(stack, methods):
    """A frame may leave the namespace out."""
    return any(frame == method or method.endswith("." + frame) for frame in stack for method in methods)


def check_hot_method(checks, name, stacks, method):
    total = sum(weight for _, weight in stacks)
    inside = sum(weight for stack, weight in stacks if has(stack, [method]))
    checks.check(f"{name}: at least 95 % of the samples contain {method}", inside >= 0.95 * total,
                 f"{100 * inside / max(1, total):.2f} %")


def check_shares(checks, name, stacks, seconds):
    """Each method's share of all phases' samples is its share of their CPU seconds, within 3 points."""
    samples = {method: sum(weight for stack, weight in stacks if has(stack, TELLTALES.get(method, [method])))
               for method in seconds}
    all_samples, all_seconds = max(1, sum(samples.values())), max(1e-9, sum(seconds.values()))
    off = {method: 100 * (samples[method] / all_samples - seconds[method] / all_seconds) for method in samples}
    worst = max(off, key=lambda method: abs(off[method]))
    missing = [method for method in samples if not samples[method] and seconds[method] > 0.02]
    checks.check(f"{name}: shares of {len(samples)} phases are those of their CPU seconds within 3 points",
                 abs(off[worst]) <= 3, f"worst is {worst}, {off[worst]:+.2f} of {100 * seconds[worst] / all_seconds:.1f}")
    checks.check(f"{name}: every phase shows", not missing, ", ".join(missing))


def phase_seconds(target):
    """CPU seconds by the method that only this phase has."""
    seconds = {}
    for phase in target.truth()["phases"]:
        method = GROUPS.get(phase["expected"][0], phase["expected"][0])
        seconds[method] = seconds.get(method, 0) + phase["cpu_s"]
    return seconds


def record_watched(target, capture, watch_truth):
    """The recording's summary, and what the kernel and the sample itself say about the same time."""
    with Watch(lambda: {"cpu": cpu_clock_ns(target.pid) / 1e9}, 0.01) as cpu, \
         Watch(lambda: phase_seconds(target) if watch_truth else {}, 0.2) as truth:
        summary = record(capture, "-p", target.pid, "-F", RATE, "-d", SECONDS)
    start = int(dump(capture)["fact"]["started_monotonic_ns"])
    stop = start + int(summary["duration_s"] * 1e9)
    return summary, cpu.between(start, stop)["cpu"], truth.between(start, stop)


def check_sample(checks, variant, sample, work):
    name = f"{variant} {sample}"
    is_web = sample == "webapi"
    with Target(sample_command(variant, sample) + ["0"] + (["--urls", "http://127.0.0.1:0"] if is_web else [])) as target:
        if is_web:
            target.load = Load(target.url, {"/on-cpu": 1, "/dict/7": 1, "/alloc/64": 1, "/exception/5": 1, "/log": 1})
        target.wait_age(5)
        target.wait_busy(2)
        capture = work.file(f"{sample}.clrperf")
        summary, cpu_s, seconds = record_watched(target, capture, not is_web)
    check_names(checks, name, report(capture, "--top", "1")["totals"])
    check_count(checks, name, summary, cpu_s)
    if sample == "primes":
        check_hot_method(checks, name, folded(capture), "Primes.Program.CountPrimes")
    elif not is_web:
        check_shares(checks, name, folded(capture), seconds)


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
