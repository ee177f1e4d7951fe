#!/usr/bin/env python3
"""A script that calls `dotnet-trace collect` works when the name is replaced: same files, same codes.

    collect_test.py [VARIANT]
"""
import collections
import json
import os
import subprocess
import sys

from live import CLRPERF, Checks, Target, Work, clrperf, report, sample_command, succeeded, tool_command

# Both listen to one program at the same time. Events by the thousand must be in both files; rare ones may have
# happened before the other was there.
FREQUENT = 200
TRIES = 3
LINES = [
    "",
    "--profile dotnet-common",
    "--profile gc-verbose --rundown false",
    "--profile gc-collect",
    "--profile dotnet-sampled-thread-time,gc-verbose",
    "--clrevents gc+exception+contention --clreventlevel informational",
    "--clrevents gc+gchandle --clreventlevel 5 --buffersize 64 --buffering-mode Drop",
    "--providers Microsoft-Windows-DotNETRuntime:0x8001:4 --rundown true",
    "--providers Microsoft-Windows-DotNETRuntime:4c14fccbd:5",
    "--providers Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:8000:2",
    "--providers System.Runtime:0:1:EventCounterIntervalSec=1",
]
WRONG = ["--profile nope", "--clrevents nope", "--providers :1:4", "--providers A:1:bogus", "--clreventlevel 5 --clrevents"]


def counts(path):
    seen = collections.Counter()
    for row in report(path, "events", "--counts")["rows"]:
        seen[(row["provider"], row["id"], row["version"])] += row["count"]
    return seen


def start(tool, pid, line, path):
    return subprocess.Popen([*tool, "collect", "-p", str(pid), "-o", path, "--duration", "00:00:00:02", *line.split()],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def differences(theirs, ours):
    """Kinds of events that only one of them has, and those of which one has far too few."""
    often = [{kind for kind in seen if seen[kind] >= FREQUENT} for seen in (theirs, ours)]
    lacking = (often[0] - set(ours)) | (often[1] - set(theirs))
    far = {kind: (theirs[kind], ours[kind]) for kind in often[0] & often[1] if not 0.3 < theirs[kind] / ours[kind] < 3}
    return lacking, far


def check_line(checks, work, tool, target, number, line):
    name = line or "(nothing)"
    # on a crowded machine the two can have different seconds of the program: who leaves events out does so each time
    for tries in range(TRIES):
        paths = [work.file(f"{number}-{tries}.theirs.nettrace"), work.file(f"{number}-{tries}.ours.nettrace")]
        both = [start(one, target.pid, line, path) for one, path in zip((tool, [CLRPERF]), paths)]
        texts = [process.communicate(timeout=120)[0].decode(errors="replace") for process in both]
        codes = [process.returncode for process in both]
        if codes != [0, 0]:
            break
        theirs, ours = map(counts, paths)
        lacking, far = differences(theirs, ours)
        if not lacking and not far:
            break
    if not checks.check(f"{name}: ends well", codes == [0, 0], f"{codes} {texts[1][-200:] if codes[1] else ''}"):
        return
    checks.check(f"{name}: the same events", not lacking and not far and set(ours) & set(theirs),
                 f"{sum(ours.values())} events of {len(ours)} kinds; only in one: {sorted(lacking)}, too few in one: {far}")
    done = subprocess.run([*tool, "convert", paths[1], "--format", "Speedscope", "-o", work.file(f"{number}")],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    checks.check(f"{name}: dotnet-trace reads it", done.returncode == 0, done.stdout[-200:] if done.returncode else "")


def collect(target, path, *options):
    return clrperf("collect", "-p", target.pid, "-o", path, "-d", "2s", "--json", *options)


def content(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_second_file(checks, work, target):
    """--format: what `export` of the same file makes."""
    for name, ending in (("Speedscope", "speedscope.json"), ("Chromium", "chromium.json")):
        path, second, exported = (work.file(f"{name}{end}") for end in (".nettrace", f".{ending}", f".again.{ending}"))
        done = collect(target, path, "--format", name, "--profile", "dotnet-sampled-thread-time", "--clrevents", "gc+exception",
                       "--clreventlevel", "informational")
        succeeded(clrperf("export", path, "-o", exported))
        told = content(second)
        checks.check(f"--format {name} writes what export does", done.returncode == 0 and told == content(exported),
                     f"{len(told)} and {os.path.getsize(exported)} bytes")
        if name == "Chromium":
            checks.check("with exceptions besides samples", "System.FormatException: not a price" in told and "Throws.Program" in told)
    path, second = work.file("there.nettrace"), work.file("there.speedscope.json")
    with open(second, "w", encoding="ascii") as file:
        file.write("precious")
    done = collect(target, path, "--format", "Speedscope")
    checks.check("a second file that is there: refused before anything is recorded", done.returncode == 1 and "--force" in done.stderr
                 and content(second) == "precious" and not os.path.exists(path), f"{done.returncode} {done.stderr}")
    with open(path, "w", encoding="ascii") as file:
        file.write("precious, too")
    done = clrperf("collect", "-o", path, "--format", "Speedscope", "--force", "--", "/nonexistent/program")
    checks.check("--force keeps both files when the command cannot be run", done.returncode != 0 and
                 (content(path), content(second)) == ("precious, too", "precious"), done.stderr)
    # nothing to be shown is no failure, as of dotnet-trace
    path, second = work.file("none.nettrace"), work.file("none.speedscope.json")
    done = collect(target, path, "--format", "Speedscope", "--providers", "Nobody-Of-That-Name:1:1", "--rundown", "false")
    checks.check("a second file without anything in it: said, and no failure", done.returncode == 0 and f"'{second}' is empty" in done.stderr
                 and json.loads(content(second))["shared"]["frames"] == [] and json.loads(done.stdout)["file"] == path, done.stdout + done.stderr)


def check_wrong(checks, work, tool, target):
    for line in WRONG:
        codes = []
        for one in (tool, [CLRPERF]):
            process = start(one, target.pid, line, work.file("wrong.nettrace"))
            process.communicate(timeout=60)
            codes.append(process.returncode)
        checks.check(f"{line}: refused by both", codes[0] != 0 and codes[1] == 2, str(codes))


def check_all(checks, work, variant):
    tool = tool_command("dotnet-trace")
    with Target([*sample_command(variant, "throws"), "0"]) as target:
        for number, line in enumerate(LINES):
            checks.run(line or "(nothing)", check_line, work, tool, target, number, line)
        checks.run("a second file", check_second_file, work, target)
        checks.run("wrong lines", check_wrong, work, tool, target)
        checks.check("the program lives", target.alive())


def main():
    checks = Checks()
    with Work() as work:
        checks.run("collect", check_all, work, sys.argv[1] if len(sys.argv) > 1 else "10")
    checks.exit()


if __name__ == "__main__":
    main()
