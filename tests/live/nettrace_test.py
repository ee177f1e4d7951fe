#!/usr/bin/env python3
"""nettrace_test.py VARIANT: files of dotnet-trace, and files for it.

dotnet-trace collects thread time of primes and webapi. Its own topN and speedscope conversion of the files are compared
with ours; then files that we write are given to it. Skips where dotnet-trace cannot be had.
"""
import collections
import json
import os
import re
import sys

from live import CLRPERF, PLAIN_ENVIRONMENT, Checks, Load, Skip, Target, Work, record_busy, report, run, sample_command, tool_command

SECONDS = 4
TOP = 15
TOP_LEAST = 4  # that are methods: the program's own, and those that it waits in
# Rounding of what dotnet-trace prints, in percent.
SHARE_OFF = 0.011
# A thread's last sample counts until the next round with us and nothing with dotnet-trace; rounds are slow at first and on
# a busy machine.
TOTAL_OFF_MS, TOTAL_OFF = 100.0, 0.01


def collect(tracer, pid, file):
    run(*tracer, "collect", "-p", pid, "--profile", "dotnet-sampled-thread-time,dotnet-common,gc-verbose", "--duration",
        f"00:00:0{SECONDS}", "-o", file, timeout=240)


def theirs(tracer, file, inclusive):
    """(name without type and arguments, inclusive, exclusive) by rank; pseudo frames are left out."""
    rows = []
    for line in run(*tracer, "report", file, "topN", "-n", str(TOP), *(["--inclusive"] if inclusive else [])).splitlines():
        match = re.match(r"\d+\.\s+(.*?)\s+([\d.]+)%\s+([\d.]+)%\s*$", line)
        if match and not match[1].startswith(("(Non-Activities)", "Threads")):
            rows.append((match[1], float(match[2]), float(match[3])))
    return rows


def ours(file, inclusive):
    said = report(file, "topN", "-n", "0", "--raw-names", *(["-i"] if inclusive else []))
    return [(row["name"].replace("::", "."), 100 * row["inclusive_share"], 100 * row["exclusive_share"]) for row in said["rows"]]


def same_method(short, full):
    """dotnet-trace cuts names at both ends."""
    if short == "Missing Symbol":
        return full == "[unknown]"
    name = short.split("(")[0].split("!")[-1]
    whole = full.split("(")[0]
    return whole.endswith(name) or ("(" not in short and name in whole) or short.split("!")[-1] in full


def check_topn(checks, tracer, name, file):
    for inclusive in (False, True):
        rows, wanted, missing = ours(file, inclusive), theirs(tracer, file, inclusive), []
        for method, total, self in wanted:
            if not any(same_method(method, full) and abs(total - t) <= SHARE_OFF and abs(self - s) <= SHARE_OFF
                       for full, t, s in rows):
                missing.append((method, total, self))
        checks.check(f"{name}: topN{' --inclusive' if inclusive else ''} has dotnet-trace's figures",
                     len(wanted) >= TOP_LEAST and not missing, str(missing[:3]) if missing else f"{len(wanted)} of {TOP} rows")


def totals(path):
    """Milliseconds with each method on the stack, all threads together."""
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    # TraceEvent writes some modules in lower case
    names, sums = [frame["name"].replace("::", ".").lower() for frame in said["shared"]["frames"]], collections.Counter()
    factor = {"milliseconds": 1, "nanoseconds": 1e-6, "microseconds": 1e-3, "seconds": 1e3}
    sampled = [p for p in said["profiles"] if p["type"] == "sampled"]
    for profile in sampled[:1]:  # all threads
        for stack, weight in zip(profile["samples"], profile["weights"]):
            for name in {names[frame] for frame in stack}:
                sums[name] += weight * factor[profile["unit"]]
    for profile in (p for p in said["profiles"] if p["type"] == "evented"):
        stack, before = [], 0
        for event in profile["events"]:
            for name in set(stack):
                sums[name] += (event["at"] - before) * factor[profile["unit"]]
            before = event["at"]
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                stack.pop()
    return sums


def timeline_totals(path):
    """The same of a timeline of beginnings and ends."""
    with open(path, encoding="utf-8") as file:
        said = json.load(file)["traceEvents"]
    sums, stacks, before = collections.Counter(), collections.defaultdict(list), {}
    for event in said:
        if event["ph"] not in "BE" or event.get("cat", "sample") not in ("sample", "sampleEvent"):
            continue
        thread = event["tid"]
        for name in set(stacks[thread]):
            sums[name] += (event["ts"] - before[thread]) / 1000
        before[thread] = event["ts"]
        if event["ph"] == "B":
            stacks[thread].append(event["name"].replace("::", ".").lower())
        else:
            stacks[thread].pop()
    return sums


def held_totals(file):
    """As topN has it, by dotnet-trace's rule: a sample counts until its thread is seen again, however late."""
    said, sums = report(file, "topN", "-n", "0", "-i", "--raw-names"), collections.Counter()
    for row in said["rows"]:
        method, ms = row["name"].replace("::", ".").lower(), row["inclusive_share"] * said["totals"]["wall_s"] * 1000
        sums[f"{row['module'] or ''}!{method}".lower()] += ms
        sums[method] += ms
    return sums


def check_totals(checks, name, wanted, got, held):
    """We end a sample with the round that does not see its thread: less, where theirs is what the late rule gives."""
    allowed = {method: TOTAL_OFF_MS + TOTAL_OFF * ms for method, ms in wanted.items()}
    off = {method: (round(ms, 2), round(got.get(method, 0), 2), round(held[method], 2)) for method, ms in wanted.items()
           if abs(ms - got.get(method, 0)) > allowed[method] and
           not (got.get(method, 0) < ms and abs(ms - held[method]) <= allowed[method])}
    checks.check(name, wanted and not off,
                 f"{len(wanted)} methods" if not off else f"{len(off)} of {len(wanted)} differ: {list(off.items())[:3]}")


def check_convert(checks, tracer, name, file, work):
    run(*tracer, "convert", file, "--format", "Speedscope", "-o", work.file("theirs"))
    run(*tracer, "convert", file, "--format", "Chromium", "-o", work.file("theirs"))
    run(CLRPERF, "export", file, "-o", work.file("ours.speedscope.json"), "--modules", "--raw-names", "--force")
    run(CLRPERF, "export", file, "-o", work.file("ours.chromium.json"), "--raw-names", "--force")
    wanted, got = totals(work.file("theirs.speedscope.json")), totals(work.file("ours.speedscope.json"))
    wanted = {method: ms for method, ms in wanted.items() if "!" in method and not method.startswith("?!")}
    held = held_totals(file)
    check_totals(checks, f"{name}: methods have the totals of dotnet-trace convert", wanted, got, held)
    methods = {method.split("!", 1)[1] for method in wanted}
    wanted = {method: ms for method, ms in timeline_totals(work.file("theirs.chromium.json")).items() if method in methods}
    check_totals(checks, f"{name}: and in the timeline", wanted, timeline_totals(work.file("ours.chromium.json")), held)


def check_write(checks, tracer, name, file, work):
    again = work.file("again.nettrace")
    run(CLRPERF, "export", file, "-o", again, "--force")
    first, second = theirs(tracer, file, False), theirs(tracer, again, False)
    checks.check(f"{name}: dotnet-trace reports what we wrote as it does what we read", first and first == second,
                 f"{len(first)} rows" if first == second else f"{first[:3]} {second[:3]}")


def check_file(checks, tracer, name, file, work):
    said = run(CLRPERF, "report", file)
    checks.check(f"{name}: a report says wall time and not CPU time", " of wall time" in said and "CPU time" not in said)
    check_topn(checks, tracer, name, file)
    check_convert(checks, tracer, name, file, work)
    check_write(checks, tracer, name, file, work)


def check_primes(checks, variant, tracer):
    with Work() as work, Target(sample_command(variant, "primes") + ["0"], env=PLAIN_ENVIRONMENT) as target:
        target.wait_busy(1.0)
        collect(tracer, target.pid, work.file("primes.nettrace"))
        check_file(checks, tracer, f"{variant} primes", work.file("primes.nettrace"), work)


def check_webapi(checks, variant, tracer):
    command = sample_command(variant, "webapi") + ["0", "--urls", "http://127.0.0.1:0"]
    with Work() as work, Target(command, env=PLAIN_ENVIRONMENT) as target:
        target.load = Load(target.url, {"/on-cpu": 1, "/off-cpu": 1, "/dict/5": 1, "/exception/3": 1})
        collect(tracer, target.pid, work.file("webapi.nettrace"))
        target.load.stop()
        check_file(checks, tracer, f"{variant} webapi", work.file("webapi.nettrace"), work)


def without_lines(said):
    """What a .nettrace keeps of a report: everything about samples but source lines."""
    rows = [{key: value for key, value in row.items() if key not in ("file", "line", "line_is")} for row in said["rows"]]
    capture = {key: value for key, value in said["capture"].items() if key not in ("file", "format")}
    return [capture, said["processes"], said["totals"], rows]


def check_again(checks, name, capture, written):
    first, second = (report(file, "--top", "0") for file in (capture, written))
    differ = [key for key in first["totals"] if first["totals"][key] != second["totals"].get(key)]
    checks.check(f"{name}: a .nettrace of a capture is reported as the capture is",
                 first["totals"]["samples"] > 100 and without_lines(first) == without_lines(second),
                 f"{second['totals']['samples']} of {first['totals']['samples']} samples, {second['totals']['cpu_s']} of "
                 f"{first['totals']['cpu_s']} s, {len(second['rows'])} of {len(first['rows'])} rows, {differ} differ")


def check_served(checks, variant):
    """The same of a program with generic and async methods, many threads, and events."""
    command = sample_command(variant, "webapi") + ["0", "--urls", "http://127.0.0.1:0"]
    with Work() as work, Target(command, env=PLAIN_ENVIRONMENT) as target:
        target.load = Load(target.url, {"/on-cpu": 1, "/dict/5": 1, "/exception/3": 1})
        run(CLRPERF, "record", "-p", target.pid, "-d", SECONDS, "-e", "cpu,gc,exceptions", "-o", work.file("web.clrperf"))
        target.load.stop()
        run(CLRPERF, "export", work.file("web.clrperf"), "-o", work.file("web.nettrace"))
        check_again(checks, f"{variant} webapi", work.file("web.clrperf"), work.file("web.nettrace"))
        thrown = [report(work.file(f"web.{kind}"), "exceptions") for kind in ("clrperf", "nettrace")]
        for said in thrown:
            said.pop("capture")
        checks.check(f"{variant} webapi: and exceptions are, too", thrown[0] == thrown[1] and thrown[0]["totals"]["count"] > 0,
                     str(thrown[1]["totals"]))


def check_cpu_capture(checks, variant, tracer):
    """A capture of CPU samples becomes a file whose methods took what they took."""
    with Work() as work, Target(sample_command(variant, "primes") + ["0"], env=PLAIN_ENVIRONMENT) as target:
        target.wait_busy(1.0)
        record_busy(work.file("cpu.clrperf"), target.pid, 499, 2)
        run(CLRPERF, "export", work.file("cpu.clrperf"), "-o", work.file("cpu.nettrace"))
        run(*tracer, "convert", work.file("cpu.nettrace"), "--format", "Speedscope", "-o", work.file("cpu"))
        said = report(work.file("cpu.clrperf"), "--top", "0")
        check_again(checks, f"{variant} primes", work.file("cpu.clrperf"), work.file("cpu.nettrace"))
        got = totals(work.file("cpu.speedscope.json"))
    wanted = sum(row["total"] for row in said["rows"] if row["name"].endswith("CountPrimes")) / 1e6
    seen = sum(ms for method, ms in got.items() if "countprimes" in method)
    checks.check(f"{variant} primes: CPU samples keep their time in a .nettrace", wanted > 1000 and abs(seen - wanted) <= 0.03 * wanted,
                 f"{seen:.0f} ms of {wanted:.0f} ms")


def check_machine(checks, variant, tracer):
    """A file of the whole machine: samples of CPU time, named by what is in it and by the files that it names."""
    if os.geteuid():
        raise Skip("dotnet-trace collect-linux works for root only")
    with Work() as work, Target(sample_command(variant, "primes") + ["0"], env=PLAIN_ENVIRONMENT) as target:
        target.wait_busy(1.0)
        file = work.file("machine.nettrace")
        run(*tracer, "collect-linux", "--profile", "cpu-sampling", "--duration", "00:00:03", "-o", file)
        said = report(file, "--process", target.pid, "--top", "0")
        samples = report(file)["totals"]["samples"]
        counts = {row["event"]: row["count"] for row in report(file, "events", "--counts")["rows"]}
    found = said["totals"]
    hot = sum(row["self_share"] for row in said["rows"] if row["name"] == "Primes.Program.CountPrimes" and row["kind"] == "jit")
    checks.check(f"{variant} machine: each sample is one", 0 < samples <= counts["cpu"] <= samples * 1.05, f"{samples}, {counts}")
    checks.check(f"{variant} machine: the program's method took its CPU time", found["samples"] > 500 and hot > 0.9,
                 f"{hot:.3f} of {found['samples']} samples")
    checks.check(f"{variant} machine: nearly all frames have names", found["frames"]["unnamed"] <= 0.02 * found["frames"]["user"],
                 str(found["frames"]))


def check_all(checks, variant):
    tracer = tool_command("dotnet-trace")
    checks.run("primes", check_primes, variant, tracer)
    checks.run("webapi", check_webapi, variant, tracer)
    checks.run("cpu capture", check_cpu_capture, variant, tracer)
    checks.run("served", check_served, variant)
    if variant == "10":
        checks.run("machine", check_machine, variant, tracer)


def main():
    checks = Checks()
    checks.run("nettrace", check_all, sys.argv[1])
    checks.exit()


if __name__ == "__main__":
    main()
