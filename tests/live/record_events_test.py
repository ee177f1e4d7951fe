#!/usr/bin/env python3
"""Events of runtimes in recordings: exact, from the first instruction on, with nobody harmed.

    record_events_test.py VARIANT alone|beside       alone: what is exact only where we get to read in time
"""
import collections
import json
import os
import re
import signal
import sys

from live import (PLAIN_ENVIRONMENT, Checks, Recording, Target, Work, clrperf, events, need_command, need_root, record, report,
                  sample_command, wait_cpu, wait_for)

RUNTIME = "Microsoft-Windows-DotNETRuntime"


def thrown(path):
    """What a recording says of exceptions: all that were thrown, and again."""
    return report(path, "exceptions", "--top", "0")


def again(counts, variant):
    """Only .NET 8 tells of `throw;`. Of awaits the stacks do."""
    told = ("awaited", "rethrown") if variant == "8" else ("awaited",)
    return sum(n for name, n in counts.items() if name.startswith(told))


def truths_of(done):
    """What samples said of themselves: on stderr, as stdout is the recorder's."""
    return [line for line in done.stderr.splitlines() if '"counts"' in line]


def check_exact(checks, work, command, variant):
    """A launched program, from its first instruction to its last: not one exception more or less."""
    path = work.file("launched.clrperf")
    done = clrperf("record", "--json", "-q", "-e", "exceptions,jit,gc", "-o", path, "--", *command, 2)
    truth, said = json.loads(truths_of(done)[-1]), json.loads(done.stdout)
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
    truth, said = json.loads(truths_of(done)[-1]), json.loads(done.stdout)
    counts = truth["counts"]
    seen = thrown(path)["totals"]
    checks.check(f"{variant}: a .nettrace file of a launched program has every exception",
                 seen["count"] == counts["thrown"] and seen["rethrown"] == again(counts, variant) and
                 said["events_lost"] == 0 and done.returncode == 0, f"{seen} of {counts['thrown']}")
    for where in (path, work.file("no/folder.nettrace")):
        done = clrperf("record", "--clrevents", "gc", "-o", where, "--", *command, 2, timeout=60)
        checks.check(f"{variant}: a file that cannot be created: the program is not started", done.returncode == 1 and not truths_of(done)
                     and "cannot create" in done.stderr and "waited for" not in done.stderr, done.stderr)


def missing(ticks):
    """Numbers that are not there between the first and the last of each thread."""
    return sum(max(seen) - min(seen) + 1 - len(seen) for seen in ticks.values())


def ticks_of(path):
    ticks = collections.defaultdict(set)
    for _, _, _, provider, number, payload in events(path):
        if provider == "Clrperf-Flood" and number == 1:
            ticks[int.from_bytes(payload[:8], "little")].add(int.from_bytes(payload[8:16], "little"))
    return ticks


FLOOD_TRIES = 4
LATE_S_MAX = 20  # the flood goes on: who waited for its end would wait for ever


def check_flood(checks, work, command, variant):
    """As fast as two threads can write: nothing is lost, and the end comes in time."""
    with Target([*command, "0", "0", "2"]) as target:
        # where the machine is so crowded that we do not get to read, the runtime's buffers run over; it says so then
        for tries in range(FLOOD_TRIES):
            path = work.file(f"flood{tries}.clrperf")
            said = record(path, "-p", target.pid, "--providers", "Clrperf-Flood", "-d", "2s")
            ticks = ticks_of(path)
            os.unlink(path)
            if said["events_lost"] == 0 or missing(ticks) > said["events_lost"]:
                break
        count = sum(map(len, ticks.values()))
        checks.check(f"{variant}: a flood is kept whole", missing(ticks) == 0 and len(ticks) == 2 and said["events_lost"] == 0,
                     f"{count / said['duration_s']:.0f} events a second, {missing(ticks)} missing, {said['events_lost']} said to be lost")
        said = record(work.file("flood.nettrace"), "-p", target.pid, "--providers", "Clrperf-Flood", "-d", "2s")
        over_s = said["duration_s"] - 2 + said["self"]["rundown_ms"] / 1000
        checks.check(f"{variant}: a recording of it ends", over_s < LATE_S_MAX,
                     f"{over_s * 1000:.0f} ms late, {said['events'] / said['duration_s']:.0f} events a second")
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
        harmed = []
        for i, options in enumerate(HARMLESS):
            for suffix in ("clrperf", "nettrace"):
                done = clrperf("record", "-q", "-p", target.pid, *options, "-d", "300ms", "-o", work.file(f"u{i}.{suffix}"))
                if not target.alive() or done.returncode:
                    harmed.append(f"{' '.join(options)[:60]} to {suffix}: alive {target.alive()}, {done.returncode}: {done.stderr[-200:]}")
        checks.check(f"{variant}: {len(HARMLESS)} unusual requests do no harm", not harmed, "; ".join(harmed[:2]))
        codes = [clrperf("record", "-q", "-p", target.pid, *options, "-d", "300ms", "-o", work.file("refused.clrperf")).returncode
                 for options in REFUSED]
        checks.check(f"{variant}: what could do harm is refused", codes == [2] * len(REFUSED) and target.alive(), str(codes))


def check_stopping(checks, work, command, variant):
    with Target([*command, "0"]) as target:
        for suffix in ("clrperf", "nettrace"):
            said = record(work.file(f"stop.{suffix}"), "-p", target.pid, "--clrevents", "exception",
                          "--stopping-event-provider-name", RUNTIME, "--stopping-event-event-name", "Exception/Start",
                          "--stopping-event-payload-filter", "ExceptionType:Throws.OrderException,ExceptionMessage:order 7",
                          "-d", "90s")
            checks.check(f"{variant}: a stopping event ends it ({suffix})", said["ended_by"] == "stop_when",
                         f"{said['ended_by']} after {said['duration_s']:.1f} s")
            done = clrperf("record", "-p", target.pid, "--clrevents", "exception", "-d", "300ms", "-o", work.file(f"never.{suffix}"),
                           "--stopping-event-provider-name", RUNTIME, "--stopping-event-event-name", "Contention/Start")
            checks.check(f"{variant}: a stopping event that does not come is said ({suffix})",
                         done.returncode == 0 and "the stopping event did not come" in done.stderr, repr(done.stderr[-200:]))


def check_killed(checks, work, command, variant):
    """A program that is killed lists no methods, and its memory is gone: those from before were asked of it while it lived."""
    path = work.file("killed.clrperf")
    with Target([*command, "0"]) as target:
        recording = Recording(path, "-p", target.pid, "-e", "exceptions")
        wait_cpu([target.pid], 1)
        os.kill(target.pid, signal.SIGKILL)
        recording.end()
    frames = collections.Counter()
    for row in thrown(path)["rows"]:
        for frame in row["stack"] or ():
            frames["[unknown]" in frame] += row["count"]
    checks.check(f"{variant}: methods from before, of a program that was killed", frames[False] > 100 and not frames[True],
                 f"{frames[True]} of {frames.total()} frames unnamed")


def check_port(checks, work, command, variant):
    """A runtime that calls us waits until it is recorded."""
    port, path = work.file("port"), work.file("port.clrperf")
    with Target([*command, "0"], ready=False, env={**PLAIN_ENVIRONMENT, "DOTNET_DiagnosticPorts": port}) as target:
        recording = Recording(path, "--diagnostic-port", port, "-e", "jit")
        target.read_ready()
        wait_cpu([target.pid], 0.5)
        recording.stop()
        ids = collections.Counter(event[4] for event in events(path) if event[1] == target.pid)
        checks.check(f"{variant}: a runtime that calls at --diagnostic-port", ids[145] > 100, f"{ids[145]} methods jitted")
        checks.check(f"{variant}: the port is gone, the program is not", target.alive() and not os.path.exists(port))


def check_children(checks, work, command, variant):
    """Runtimes that start one after the other, and one that starts when the recording is over."""
    line = " ".join(f"'{word}'" for word in command)
    for seconds in (6, 30):  # in which two of them must have started: where the machine is crowded, that takes longer
        path = work.file(f"children{seconds}.clrperf")
        done = clrperf("record", "-q", "--json", "-e", "exceptions", "-d", f"{seconds}s", "-o", path, "--", "sh", "-c",
                       f"{line} 1; {line} 1; sleep {seconds}; {line} 1; exit 5", timeout=240)
        truths = [json.loads(text)["counts"]["thrown"] for text in truths_of(done)]
        pids = collections.Counter(event[1] for event in events(path) if event[4] == 80)
        if len(pids) >= 2:
            break
    checks.check(f"{variant}: every runtime a command starts, and none waits for ever", len(truths) == 3 and len(pids) >= 2 and
                 done.returncode == 5, f"{dict(pids)}, {truths}, exit code {done.returncode}")


def record_descendants(path, command, seconds, count):
    done = clrperf("record", "-q", "--json", "--force", "-e", "exceptions", "-o", path, "--", *command, str(seconds),
                   env={**os.environ, "THROWS_CHILDREN": str(count)}, timeout=240)
    truths = [json.loads(text)["counts"].get("thrown", 0) for text in truths_of(done)]
    rows = report(path, "exceptions", "--by", "process", "--top", "0")["rows"]
    return [row["count"] for row in rows], truths, done.stderr


def check_descendants(checks, work, command, variant):
    """Runtimes that a runtime starts, and that are gone in a moment."""
    path, count = work.file("descendants.clrperf"), 5
    for seconds in (0.2, 3):  # where the machine is crowded, a moment can be over before the first round, and before anybody listens
        heard, truths, errors = record_descendants(path, command, seconds, count)
        # one that calls before it can be listened to is asked again, and has told nobody of its first exceptions then
        thrown = [n for n in truths if n]
        said = sum(int(n) for n in re.findall(r"(\d+) \.NET process", errors))  # late, or not at all
        said += len(re.findall(r"events of process \d+ ", errors))  # refused, or broken off
        told = len(truths) == count + 1 and len(thrown) - len(heard) <= said and \
            len(heard) <= len(thrown) and all(mine <= most for mine, most in zip(sorted(heard), sorted(thrown)[-len(heard):]))
        exact = (collections.Counter(heard) & collections.Counter(thrown)).total()
        if not told or exact >= count / 2:
            break
    checks.check(f"{variant}: runtimes a runtime starts are heard, none twice, or it is said", told and exact >= count / 2,
                 f"{heard} of {truths} exceptions; {errors.strip()[-200:]}")


def check_several(checks, work, command, variant):
    """Several programs in one capture, also where nobody named them: one that sleeps has no sample, but events."""
    need_root()
    with Target([*command, "0"]) as one, Target([*command, "0"]) as other:
        for options in (("-p", f"{one.pid},{other.pid}"), ("-a",)):
            for cpu_s in (0.5, 4):  # in which both must have been found: where the machine is crowded, that takes longer
                path = work.file(f"several{len(options)}-{cpu_s}.clrperf")
                recording = Recording(path, *options, "-e", "exceptions")
                for target in (one, other):
                    wait_cpu([target.pid], cpu_s)
                recording.stop()
                pids = collections.Counter(event[1] for event in events(path) if event[4] == 80)
                if pids[one.pid] and pids[other.pid]:
                    break
            checks.check(f"{variant}: two programs at once, {options[0]}", pids[one.pid] > 0 and pids[other.pid] > 0, str(dict(pids)))
        said = {pid: report(path, "exceptions", "--process", pid, "--top", "0") for pid in (one.pid, other.pid)}
        told = {pid: answer["totals"]["count"] + answer["totals"]["rethrown"] for pid, answer in said.items()}
        checks.check(f"{variant}: of two programs, what one of them threw", all(
            told[pid] == pids[pid] and {row["pid"] for row in answer["rows"]} == {pid} for pid, answer in said.items()),
            f"{told} of {dict(pids)}")


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
        recording = Recording(path, "-p", pid, "-e", "exceptions")
        wait_cpu([pid], 0.5)
        recording.stop()
        threads = set(map(int, os.listdir(f"/proc/{pid}/task")))
        seen = collections.Counter(event[2] for event in events(path) if event[4] == 80)
        ours = sum(n for tid, n in seen.items() if tid in threads)
        checks.check(f"{variant}: events of threads in a container", ours > 0.5 * sum(seen.values()),
                     f"{ours} of {sum(seen.values())} events have the number of a thread that lives; {seen[0]} have none")
        os.kill(pid, signal.SIGKILL)


def check_metrics(checks, work, command, variant):
    """Metrics go to one session only: that of a launched program must not be ended by another one of ours."""
    if variant == "8":
        return  # has no meter of its own
    path = work.file("metrics.clrperf")
    asked = "System.Diagnostics.Metrics:3:4:Metrics=System.Runtime;RefreshInterval=0.2;SessionId=ours"
    clrperf("record", "-q", "-e", "exceptions", "--providers", asked, "-o", path, "--", *command, 1)
    told = {row["event"]: row["count"] for row in report(path, "events", "--counts")["rows"]
            if row["provider"] == "System.Diagnostics.Metrics"}
    checks.check(f"{variant}: metrics of a launched program", told.get("Collection/Stop", 0) >= 2, str(told))


# Each with the sample that it looks at.
ALONE = [(check_exact, "throws"), (check_stream, "throws"), (check_flood, "flood"), (check_descendants, "throws")]
BESIDE = [(check_unharmed, "throws"), (check_stopping, "throws"), (check_killed, "throws"), (check_port, "throws"),
          (check_children, "throws"), (check_several, "throws"), (check_container, "throws"), (check_metrics, "throws")]


def check_program(checks, check, work, program, variant):
    check(checks, work, sample_command(variant, program), variant)


def main():
    variant, company = sys.argv[1:]
    checks = Checks()
    with Work() as work:
        for check, program in {"alone": ALONE, "beside": BESIDE}[company]:
            checks.run(f"{variant}: {check.__name__}", check_program, check, work, program, variant)
    checks.exit()


if __name__ == "__main__":
    main()
