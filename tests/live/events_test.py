#!/usr/bin/env python3
"""events_test.py VARIANT...: a program sends events of which each field is known; recorded by dotnet-trace and by
clrperf, every field must be what was sent, also where TraceEvent reads something else. Then dotnet-trace records a web
service with each of its profiles, and with providers that say more; `clrperf report FILE.nettrace events` must find in
these files what TraceEvent finds: the same events at the same times, their names, their fields, their stacks frame by
frame."""
import json
import os
import subprocess
import sys

from events_compare import Differences, compare_events, compare_stacks, lines_of
from live import (CLRPERF, Checks, Load, Recording, Target, Work, clrperf, oracle_command, sample_command, sessions, succeeded,
                  tool_command, wait_for)

ALL_BITS = "0xFFFFFFFFFFFFFFFF:5"
MANAGED = ["Microsoft-AspNetCore-Server-Kestrel", "Microsoft.AspNetCore.Hosting", "System.Net.Http", "System.Net.Sockets",
           "System.Diagnostics.Eventing.FrameworkEventSource", "System.Threading.Tasks.TplEventSource"]
RECORDINGS = {
    "dotnet-common": ["--profile", "dotnet-common"],
    "dotnet-sampled-thread-time": ["--profile", "dotnet-sampled-thread-time"],
    "gc-verbose": ["--profile", "gc-verbose"],
    "gc-collect": ["--profile", "gc-collect"],
    "database": ["--profile", "database"],
    # all the runtime has, but what switches allocation ticks off, and what makes it collect
    "runtime": ["--providers", "Microsoft-Windows-DotNETRuntime:0x7ffff6ffbff:5"],
    "heap": ["--providers", "Microsoft-Windows-DotNETRuntime:0x1980001:5"],
    "private": ["--providers", "Microsoft-Windows-DotNETRuntimePrivate:0x80004001:5,Microsoft-DotNETCore-SampleProfiler:0:5"],
    "sources": ["--providers", ",".join(f"{name}:{ALL_BITS}" for name in MANAGED)],
    "counters": ["--providers", f"System.Runtime:{ALL_BITS}:EventCounterIntervalSec=1,"
                 "System.Diagnostics.Metrics:0x7:4:SessionId=x;Metrics=System.Runtime,"
                 f"Microsoft-Diagnostics-DiagnosticSource:{ALL_BITS}:FilterAndPayloadSpecs=\"[AS]*\""],
}
# Of 3.1, what it does not have; of 9, what 8 and 10 send alike.
LEFT_OUT = {"3.1": {"database", "sources", "counters"}, "9": {"gc-verbose", "gc-collect", "database", "heap", "private"}}
SECONDS = {"counters": 2}  # the rest has tens of thousands of events in one
EVENTS_PER_ROUND = 100  # of samples/sources
PATHS = {"/exception/3": 1, "/alloc/200": 1, "/dict/5": 1, "/off-cpu": 1}


def check_comparing(checks):
    """The comparison sees what differs."""
    theirs = {"event": "GC/Start", "id": 1, "version": 2, "fields": {
        "Count": -1, "Reason": {"name": "Induced", "value": 1}, "TypeID": 0x7f00, "Name": "x", "Ratio": 0.1,
        "Values": [{"Size": 5, "Flags": {"name": "Array", "value": 8}}]}}
    ours = {"event": "GC/Start", "id": 1, "version": 2, "fields": {
        "Count": 0xffffffff, "Reason": "Induced", "TypeID": "0x7f00", "Name": "x", "Ratio": 0.1,
        "Values": [{"Size": 5, "Flags": "Array"}, {"Size": 6, "Flags": 9}]}}
    found = Differences()
    found.compare(ours, theirs)
    checks.check("comparing_equal", not found.counts, differences(found))
    wrong = {"Count": 0xfffffffe, "Reason": "AllocSmall", "TypeID": "0x7f01", "Name": "y", "Ratio": 0.11,
             "Values": [{"Size": 6, "Flags": "Array"}]}
    for field, value in wrong.items():
        found = Differences()
        found.compare({**ours, "fields": {**ours["fields"], field: value}}, theirs)
        checks.check(f"comparing_{field}", len(found.counts) == 1)
    for change in ({"event": "GC/Stop"}, {"version": 1}, {"activity": "00000011-0000-0000-0000-000057f69d59"},
                   {"fields": {}}):
        found = Differences()
        found.compare({**ours, **change}, theirs)
        checks.check(f"comparing_{next(iter(change))}", bool(found.counts))


def differences(found):
    return "; ".join(f"{count} x {' '.join(map(str, key))}: {str(found.examples[key])[:200]}"
                     for key, count in sorted(found.counts.items())[:5])


def check_counts(checks, name, path):
    """--counts of what is there one by one."""
    counts = json.loads(succeeded(clrperf("report", path, "events", "--counts", "--json")).stdout)
    expected = {}
    for event in lines_of([CLRPERF, "report", path, "events", "--json"]):
        row = expected.setdefault((event["provider"], event["event"], event["id"], event["version"]), [0, 0])
        row[0] += 1
        row[1] += event["stack"] is not None
    told = {(row["provider"], row["event"], row["id"], row["version"]): [row["count"], row["with_stack"]]
            for row in counts["rows"]}
    checks.check(f"{name}_counts", told == expected and list(told) == sorted(told), f"{len(told)} kinds")


def check_file(checks, name, path, oracle):
    fields = compare_events(CLRPERF, oracle, path)
    checks.check(f"{name}_fields", fields.events > 0 and not fields.counts,
                 differences(fields) or f"{fields.events} events, {fields.fields} fields")
    stacks = compare_stacks(CLRPERF, oracle, path)
    checks.check(f"{name}_stacks", not stacks.counts,
                 differences(stacks) or f"{stacks.events} stacks, {stacks.fields} frames")
    check_counts(checks, name, path)


def sent(i):
    """What samples/sources sends for each number, by event."""
    return {
        "Everything": {
            "i": i, "yes": i % 2 == 0, "tiny": i, "small": i - 50, "big": i << 33, "unsigned": (1 << 64) - 1 - i,
            "ratio": float(f"{i}.1"), "exact": float(f"{i}.1"), "text": f"text {i}",
            "id": f"{i:08x}-0002-0003-0000-000000000000", "when": f"2026-01-01T00:00:00.{i:07}Z", "colour": 1 << i % 3,
            "no": i % 3 == 0},
        "Request/Start": {"i": i, "path": f"/page/{i}"},
        "Request/Stop": {"i": i},
        "Nothing": {},
        "Handover/Transfer": {"i": i},
        # of EventSource.Write(): a Boolean has one byte, a decimal is a double
        "Order": {
            "Paid": i % 2 == 0, "Number": i, "Price": i + 0.25, "Letter": chr(ord("a") + i % 26), "Item": f"item {i} \u20ac",
            "To": {"Street": f"street {i}", "House": -i, "Far": i % 3 == 0}, "Last": i % 5 == 0},
    }


def check_sent(checks, name, path, count):
    events = [event for event in lines_of([CLRPERF, "report", path, "events", "--json", "--provider", "Samples-*"])]
    expected = [(kind, fields) for i in range(count) for kind, fields in sent(i).items()]
    wrong = [(event["event"], event["fields"], kind, fields) for event, (kind, fields) in zip(events, expected)
             if (event["event"], event["fields"]) != (kind, fields) or not event["stack"] or "cut" in event]
    checks.check(f"{name}_sent", len(events) == len(expected) and not wrong,
                 str(wrong[:1]) if wrong else f"{len(events)} events")


def trace_sources(path, target, providers):
    """By dotnet-trace. What went wrong, or ""."""
    before = sessions(target.pid)
    with subprocess.Popen([*tool_command("dotnet-trace"), "collect", "-p", str(target.pid), "-o", path, "--providers", providers,
                           "--duration", "00:00:00:05"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as recording:
        wait_for(lambda: sessions(target.pid) > before or recording.poll() is not None, "the recorder begins")
        target.truth()  # a round
        _, errors = recording.communicate(timeout=60)
    return " ".join(errors.decode().split())[-300:] or "it failed" if recording.returncode else ""


def record_sources(path, target, providers):
    """By us: a runtime may have two sessions of ours, and when both have begun is ours to say."""
    recording = Recording(path, "-p", target.pid, "--providers", providers)
    target.truth()  # a round
    recording.stop()
    return ""


def check_sources(checks, variant):
    providers = f"Samples-Sources:{ALL_BITS},Samples-Self:{ALL_BITS}"
    with Work() as work, Target([*sample_command(variant, "sources"), "0", "asked"]) as target:
        for recorder, file in ((trace_sources, "sent.nettrace"), (record_sources, "sent.clrperf")):
            path = work.file(file)
            failure = recorder(path, target, providers)
            if checks.check(f"{variant}_{file}_recorded", not failure, failure):
                check_sent(checks, f"{variant}_{file}", path, EVENTS_PER_ROUND)


def record_all(checks, variant, work):
    """By dotnet-trace, of one process: the names of the recordings, and their files."""
    tool = tool_command("dotnet-trace")
    # there is no ASP.NET Core of 3.1 to be had
    program = ["runtimework", "0"] if variant == "3.1" else ["webapi", "0", "--urls", "http://127.0.0.1:0"]
    command = [*sample_command(variant, program[0]), *program[1:]]
    with Target(command) as target:
        target.load = Load(target.url, PATHS) if target.url else None
        target.wait_busy(2)
        for name, options in RECORDINGS.items():
            if name in LEFT_OUT.get(variant, ()):
                continue
            path = work.file(f"{name}.nettrace")
            done = subprocess.run([*tool, "collect", "-p", str(target.pid), "-o", path, "--duration",
                                   f"00:00:00:{SECONDS.get(name, 1):02}", *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False, timeout=120)
            recorded = done.returncode == 0 and target.alive()
            if checks.check(f"{variant}_{name}_recorded", recorded, "" if recorded else " ".join(done.stdout.split())[-300:]):
                yield name, path


def check_variant(checks, variant):
    """All is recorded before anything is compared: the program and who asks it take half of the machine."""
    oracle = oracle_command("events")
    with Work() as work:
        for name, path in list(record_all(checks, variant, work)):
            check_file(checks, f"{variant}_{name}", path, oracle)
            os.remove(path)


def main():
    checks = Checks()
    checks.run("comparing", check_comparing)
    for variant in sys.argv[1:] or ["10"]:
        if variant != "3.1":
            checks.run(f"sources_{variant}", check_sources, variant)
        checks.run(f"events_{variant}", check_variant, variant)
    checks.exit()


main()
