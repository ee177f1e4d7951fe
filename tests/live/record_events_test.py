#!/usr/bin/env python3
"""Events of runtimes in recordings: exact, from the first instruction on, with nobody harmed.

    record_events_test.py VARIANT
"""
import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time

from live import CLRPERF, PLAIN_ENVIRONMENT, Checks, Target, Work, helper, need_command, need_root, sample_command, wait_for

RUNTIME = "Microsoft-Windows-DotNETRuntime"


def clrperf(*arguments, at_most_s=120, **options):
    return subprocess.run([CLRPERF, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=at_most_s, **options)


def record(*arguments, **options):
    """Its summary."""
    done = clrperf("record", "--quiet", "--json", *arguments, **options)
    if done.returncode:
        raise RuntimeError(f"record {' '.join(map(str, arguments))}: {done.returncode}: {done.stderr[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def thrown(path):
    """What a recording says of exceptions: all that were thrown, and again."""
    done = clrperf("report", path, "exceptions", "--json", "--top", "0")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def events(path):
    """(time, pid, tid, provider, id, payload) of each."""
    text = subprocess.run([helper("capture_dump"), path], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        words = line.split("\t")
        if words[0] == "event":
            yield int(words[1]), int(words[2]), int(words[3]), words[4], int(words[5]), bytes.fromhex(words[7])


def again(counts, variant):
    """Only .NET 8 tells of `throw;`."""
    return sum(n for name, n in counts.items() if name.startswith("rethrown")) if variant == "8" else 0


def check_exact(checks, work, command, variant):
    """A launched program, from its first instruction to its last: not one exception more or less."""
    path = work.file("launched.clrperf")
    done = clrperf("record", "--json", "-q", "-e", "exceptions,jit,gc", "-o", path, "--", *command, 2)
    truth, said = (json.loads(line) for line in done.stdout.splitlines()[-2:])
    if "counts" not in truth:
        truth, said = said, truth
    counts = truth["counts"]
    seen = thrown(path)
    checks.check(f"{variant}: every exception of a launched program", seen["totals"]["count"] == counts["thrown"] and
                 seen["totals"]["rethrown"] == again(counts, variant) and said["events_lost"] == 0,
                 f"{seen['totals']} of {counts['thrown']}, {said['events_lost']} lost")
    rows = collections.Counter()
    for row in seen["rows"]:
        rows[row["type"]] += row["count"]
    wanted = collections.Counter()
    for name, n in counts.items():
        kind, _, rest = name.partition(" ")
        if rest and kind == "thrown":
            wanted[rest.split("|")[0]] += n
    checks.check(f"{variant}: by type", rows == wanted, str({k: (rows[k], wanted[k]) for k in wanted if rows[k] != wanted[k]}))
    whole = sum(row["count"] for row in seen["rows"] if row["stack"] and "Throws." in row["stack"][-1])
    checks.check(f"{variant}: each with the stack of its throw", whole == seen["totals"]["count"],
                 f"{whole} of {seen['totals']['count']}")
    ids = collections.Counter(event[4] for event in events(path) if event[3] == RUNTIME)
    checks.check(f"{variant}: methods jitted since the first instruction", ids[145] > 100 and ids[143] >= ids[145] - 20,
                 f"{ids[145]} begun, {ids[143]} loaded")


def check_stream(checks, work, command, variant):
    path = work.file("stream.nettrace")
    done = clrperf("collect", "--json", "-q", "--clrevents", "exception", "--clreventlevel", "error", "-o", path, "--", *command, 2)
    lines = [json.loads(line) for line in done.stdout.splitlines()[-2:]]
    truth, said = sorted(lines, key=lambda line: "schema" in line)
    counts = truth["counts"]
    seen = thrown(path)["totals"]
    checks.check(f"{variant}: a .nettrace file of a launched program has every exception",
                 seen["count"] == counts["thrown"] and seen["rethrown"] == again(counts, variant) and
                 said["events_lost"] == 0 and done.returncode == 0, f"{seen} of {counts['thrown']}")


def missing(ticks):
    """Numbers that are not there between the first and the last of each thread."""
    return sum(max(seen) - min(seen) + 1 - len(seen) for seen in ticks.values())


def ticks_of(path):
    ticks = collections.defaultdict(set)
    for _, _, _, provider, number, payload in events(path):
        if provider == "Clrperf-Flood" and number == 1:
            ticks[int.from_bytes(payload[:8], "little")].add(int.from_bytes(payload[8:16], "little"))
    return ticks


def check_flood(checks, work, command, variant):
    """As fast as two threads can write: nothing is lost, and the end comes in time."""
    with Target([*command, "0", "0", "2"]) as target:
        path = work.file("flood.clrperf")
        said = record("-p", target.pid, "--providers", "Clrperf-Flood", "-d", "2s", "-o", path)
        ticks = ticks_of(path)
        count = sum(map(len, ticks.values()))
        checks.check(f"{variant}: a flood is kept whole", missing(ticks) == 0 and len(ticks) == 2 and said["events_lost"] == 0,
                     f"{count / said['duration_s']:.0f} events a second, {missing(ticks)} missing, {said['events_lost']} said to be lost")
        began = time.monotonic()
        said = record("-p", target.pid, "--providers", "Clrperf-Flood", "-d", "2s", "-o", work.file("flood.nettrace"))
        over_s = said["duration_s"] - 2 + said["self"]["rundown_ms"] / 1000
        checks.check(f"{variant}: a recording of it ends in time", over_s < 1,
                     f"{over_s * 1000:.0f} ms late, {said['events'] / said['duration_s']:.0f} events a second, "
                     f"{time.monotonic() - began:.1f} s in all")
        checks.check(f"{variant}: and the program lives", target.alive())


# What could be too much for a runtime, next to what is refused because it is.
HARMLESS = [
    ("--clrevents", "gc", "--buffersize", "1"), ("--clrevents", "gc", "--buffersize", "16384"),
    ("--providers", ",".join(f"P{i}" for i in range(1000))), ("--providers", "A:0:0"), ("--providers", "A:ffffffffffffffff:5"),
    ("--providers", "A:1:4:k=" + "v" * 20000), ("--providers", f"{RUNTIME}:0:0"), ("--profile", "database"),
    ("--providers", f"{RUNTIME}:ffffffffffefffff:5"), ("--clrevents", "gc", "--rundown", "false"), ("-e", "gc,jit,alloc,exceptions,locks"),
    ("-e", "alloc-sampled"), ("-e", "http,tasks,threadpool"),
]
REFUSED = [
    ("--clrevents", "gc", "--buffersize", "0"), ("--clrevents", "gc", "--buffersize", "16385"), ("--clrevents", "gc", "--buffersize", "-1"),
    ("--providers", ",".join(f"P{i}" for i in range(1001))), ("--providers", ":1:4"), ("--providers", "A:1:4:k=" + "v" * 40000),
    ("--providers", "A:1:bogus"), ("-e", "alloc,alloc-sampled"),
]


def check_unharmed(checks, work, command, variant):
    with Target([*command, "0"]) as target:
        for i, options in enumerate(HARMLESS):
            for suffix in ("clrperf", "nettrace"):
                done = clrperf("record", "-q", "-p", target.pid, *options, "-d", "300ms", "-o", work.file(f"u{i}.{suffix}"))
                if not target.alive() or done.returncode:
                    checks.check(f"{variant}: {' '.join(options)[:60]} to {suffix}", False,
                                 f"alive {target.alive()}, {done.returncode}: {done.stderr[-200:]}")
                    return
        checks.check(f"{variant}: {len(HARMLESS)} unusual requests do no harm", True)
        codes = [clrperf("record", "-q", "-p", target.pid, *options, "-d", "300ms", "-o", work.file("refused.clrperf")).returncode
                 for options in REFUSED]
        checks.check(f"{variant}: what could do harm is refused", codes == [2] * len(REFUSED) and target.alive(), str(codes))


def check_stopping(checks, work, command, variant):
    with Target([*command, "0"]) as target:
        for suffix in ("clrperf", "nettrace"):
            said = record("-p", target.pid, "--clrevents", "exception", "--stopping-event-provider-name", RUNTIME,
                          "--stopping-event-event-name", "Exception/Start", "--stopping-event-payload-filter",
                          "ExceptionType:Throws.OrderException,ExceptionMessage:order 7", "-d", "20s",
                          "-o", work.file(f"stop.{suffix}"))
            checks.check(f"{variant}: a stopping event ends it ({suffix})", said["ended_by"] == "stop_when" and said["duration_s"] < 10,
                         f"{said['ended_by']} after {said['duration_s']:.1f} s")


def check_port(checks, work, command, variant):
    """A runtime that calls us waits until it is recorded."""
    port, path = work.file("port"), work.file("port.clrperf")
    said = []
    recording = threading.Thread(target=lambda: said.append(
        record("--diagnostic-port", port, "-e", "jit", "-d", "2s", "-o", path)), daemon=True)
    recording.start()
    wait_for(lambda: os.path.exists(port), "the port")
    with Target([*command, "0"], env={**PLAIN_ENVIRONMENT, "DOTNET_DiagnosticPorts": port}) as target:
        recording.join(60)
        ids = collections.Counter(event[4] for event in events(path) if event[1] == target.pid)
        checks.check(f"{variant}: a runtime that calls at --diagnostic-port", bool(said) and ids[145] > 100,
                     f"{ids[145]} methods jitted")
        checks.check(f"{variant}: the port is gone, the program is not", target.alive() and not os.path.exists(port))


def check_children(checks, work, command, variant):
    """Runtimes that start one after the other, and one that starts when the recording is over."""
    path = work.file("children.clrperf")
    line = " ".join(f"'{word}'" for word in command)
    done = clrperf("record", "-q", "--json", "-e", "exceptions", "-d", "6s", "-o", path, "--", "sh", "-c",
                   f"{line} 1; {line} 1; sleep 5; {line} 1; exit 5")
    truths = [json.loads(text)["counts"]["thrown"] for text in done.stdout.splitlines() if '"counts"' in text]
    pids = collections.Counter(event[1] for event in events(path) if event[4] == 80)
    checks.check(f"{variant}: every runtime a command starts, and none waits for ever", len(truths) == 3 and len(pids) >= 2 and
                 done.returncode == 5, f"{dict(pids)}, {truths}, exit code {done.returncode}")


def check_several(checks, work, command, variant):
    """Several programs in one capture, also where nobody named them: one that sleeps has no sample, but events."""
    need_root()
    with Target([*command, "0"]) as one, Target([*command, "0"]) as other:
        for options in (("-p", f"{one.pid},{other.pid}"), ("-a",)):
            path = work.file(f"several{len(options)}.clrperf")
            record(*options, "-e", "exceptions", "-d", "1500ms", "-o", path)
            pids = collections.Counter(event[1] for event in events(path) if event[4] == 80)
            checks.check(f"{variant}: two programs at once, {options[0]}", pids[one.pid] > 0 and pids[other.pid] > 0, str(dict(pids)))


def check_container(checks, work, command, variant):
    """Threads of another pid namespace have our numbers."""
    need_root()
    need_command("unshare")
    with Target(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *command, "0"]) as outer:
        def inner():
            with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii") as children:
                return children.read().split()
        wait_for(inner, "the process inside")
        pid = int(inner()[0])
        path = work.file("inside.clrperf")
        record("-p", pid, "-e", "exceptions", "-d", "1s", "-o", path)
        threads = set(map(int, os.listdir(f"/proc/{pid}/task")))
        seen = collections.Counter(event[2] for event in events(path) if event[4] == 80)
        ours = sum(n for tid, n in seen.items() if tid in threads)
        checks.check(f"{variant}: events of threads in a container", ours > 0.5 * sum(seen.values()),
                     f"{ours} of {sum(seen.values())} events have the number of a thread that lives; {seen[0]} have none")
        os.kill(pid, signal.SIGKILL)


def main():
    variant = sys.argv[1]
    checks = Checks()
    with Work() as work:
        throws, flood = sample_command(variant, "throws"), sample_command(variant, "flood")
        for check, command in ((check_exact, throws), (check_stream, throws), (check_flood, flood), (check_unharmed, throws),
                               (check_stopping, throws), (check_port, throws), (check_children, throws),
                               (check_several, throws), (check_container, throws)):
            checks.run(f"{variant}: {check.__name__}", check, work, command, variant)
    checks.exit()


if __name__ == "__main__":
    main()
