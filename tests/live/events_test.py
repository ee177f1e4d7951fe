#!/usr/bin/env python3
"""events_test.py VARIANT...: dotnet-trace records a web service with each of its profiles, and with providers that say
more; `clrperf report FILE.nettrace events` must find in these files what TraceEvent finds: the same events at the same
times, their names, their fields, their stacks frame by frame."""
import json
import os
import subprocess
import sys

from events_compare import compare_events, compare_stacks, lines_of
from live import CLRPERF, HERE, Checks, Load, Target, Work, clrperf, oracle_command, output_of, sample_command, succeeded

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
PATHS = {"/exception/3": 1, "/alloc/200": 1, "/dict/5": 1, "/off-cpu": 1}


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


def check_variant(checks, variant):
    oracle = oracle_command("events")
    tool = output_of(os.path.join(HERE, "runtimes/build.sh"), "tool", "dotnet-trace")
    command = sample_command(variant, "webapi")
    with Work() as work, Target([*command, "0", "--urls", "http://127.0.0.1:0"]) as target:
        target.load = Load(target.url, PATHS)
        target.wait_busy(2)
        for name, options in RECORDINGS.items():
            path = work.file(f"{name}.nettrace")
            done = subprocess.run([*tool, "collect", "-p", str(target.pid), "-o", path, "--duration", "00:00:00:02", *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  check=False, timeout=120)
            recorded = done.returncode == 0 and target.alive()
            if checks.check(f"{variant}_{name}_recorded", recorded, "" if recorded else " ".join(done.stdout.split())[-300:]):
                check_file(checks, f"{variant}_{name}", path, oracle)
            os.remove(path)


def main():
    checks = Checks()
    for variant in sys.argv[1:] or ["10"]:
        checks.run(f"events_{variant}", check_variant, variant)
    checks.exit()


main()
