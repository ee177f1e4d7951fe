#!/usr/bin/env python3
"""What `clrperf trace` shows live, against programs that count for themselves.

    trace_test.py VARIANT
"""
import collections
import json
import signal
import subprocess
import sys
import urllib.request

from live import CLRPERF, Checks, Target, sample_command, sessions, wait_for

RSS_MB_MAX = 20 * (4 if "build-test" in CLRPERF else 1)  # with sanitizers it takes more


def trace(*arguments, at_most_s=240):
    """Its lines and its exit code."""
    done = subprocess.run([CLRPERF, "trace", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          check=False, timeout=at_most_s)
    return done.stdout.splitlines(), done.returncode


class Listening:
    """`clrperf trace` at work, from the moment it listens until it is told to stop."""

    def __init__(self, pid, *arguments):
        before = sessions(pid)
        self.process = subprocess.Popen([CLRPERF, "trace", "-p", str(pid), *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        try:
            wait_for(lambda: sessions(pid) > before, "its runtime has a session")
        except BaseException:
            self.process.kill()
            self.process.communicate()
            raise

    def stop(self):
        """Its lines and its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=240)[0].splitlines(), self.process.returncode


def is_again(exception):
    return "ReThrown" in exception["fields"]["ExceptionFlags"]


def check_exceptions(checks, command, variant):
    """The program says how many it threw, and how many again."""
    with Target([*command, "0", "asked"]) as target:
        listening = Listening(target.pid, "exceptions", "--json")
        for _ in range(3):
            counts = target.truth()["counts"]
        lines, code = listening.stop()
        listening = Listening(target.pid, "--json")
        target.truth()
        kinds = {json.loads(line)["event"] for line in listening.stop()[0][:-1]}
    checks.check(f"{variant}: nothing but what was asked for", "Exception/Start" in kinds and
                 all(kind == "Exception/Start" or kind.startswith("GC/") for kind in kinds), str(kinds))
    events, summary = [json.loads(line) for line in lines[:-1]], json.loads(lines[-1])
    lines = collections.Counter(is_again(event) for event in events if event["event"] == "Exception/Start")
    # later runtimes do not tell; of awaits none does
    again = sum(count for name, count in counts.items() if name.startswith("rethrown")) if variant == "8" else 0
    awaited = sum(count for name, count in counts.items() if name.startswith("awaited"))
    told, true = summary["exceptions"], counts["thrown"]
    checks.check(f"{variant}: every exception is a line", code == 0 and lines[False] == true + awaited > 0,
                 f"{lines[False]} of {true} and {awaited}")
    checks.check(f"{variant}: and counted", summary["lost"] == 0 and told["count"] == true, f"{told['count']}, {summary['lost']} lost")
    checks.check(f"{variant}: those thrown again apart, by awaits too", lines[True] == again and
                 told["rethrown"] == again + awaited > 0,
                 f"{lines[True]} lines, {told['rethrown']} counted, of {again} and {awaited}")


def check_flood(checks, command, variant):
    """Exceptions as fast as they can be thrown: what came is shown and counted."""
    with Target([*command, "0"]) as target:
        lines, code = trace("-p", target.pid, "exceptions", "--json", "-d", "2s")
        events, summary = [json.loads(line) for line in lines[:-1]], json.loads(lines[-1])
        thrown = [event for event in events if event["event"] == "Exception/Start" and not is_again(event)]
        types = {row["name"]: row["count"] for row in summary["exceptions"]["top"]}
        told = summary["exceptions"]
        awaited = told["rethrown"] - sum(map(is_again, (event for event in events if event["event"] == "Exception/Start")))
        checks.check(f"{variant}: a flood of exceptions", code == 0 and len(thrown) == told["count"] + awaited > 0,
                     f"{len(thrown)} lines, {summary['lost']} lost")
        checks.check(f"{variant}: of which awaits threw some again", 0 < awaited < len(thrown) / 4, f"{awaited}")
        named = sum(bool(event["thread"] and event["comm"]) for event in thrown)  # some threads had ended before anybody looked
        checks.check(f"{variant}: most with their thread and its name", named > len(thrown) / 2, f"{named} of {len(thrown)}")
        seen = collections.Counter(event["fields"]["ExceptionType"] for event in thrown)
        seen["System.IO.InvalidDataException"] -= awaited
        checks.check(f"{variant}: and counted by type", sum(types.values()) == told["count"] and
                     all(types[name] == seen[name] for name in types), str(types))
        checks.check(f"{variant}: the program lives", target.alive())


def check_collections(checks, command, variant):
    with Target([*command, "0"]) as target:
        lines, code = trace("-p", target.pid, "gc", "alloc", "--json", "-d", "2s")
        times = [json.loads(line)["time_s"] for line in lines[:-1]]
        checks.check(f"{variant}: in the order of their time", code == 0 and times and times == sorted(times), f"{len(times)} lines")
        rss_mb = json.loads(lines[-1])["self"]["peak_rss_bytes"] / 2**20
        checks.check(f"{variant}: in bounded memory", rss_mb < RSS_MB_MAX, f"{rss_mb:.1f} MB")
        lines, code = trace("-p", target.pid, "gc", "heap", "alloc", "-d", "3s", "-i", "1s")
        shown = [line for line in lines if len(line) > 12 and line[12:].startswith("gc ")]
        heaps = [line for line in lines if len(line) > 12 and line[12:].startswith("heap")]
        rates = [line for line in lines if len(line) > 12 and line[12:].startswith("alloc")]
        head = [line for line in lines if line.startswith("collections")]
        said = int("".join(c for c in head[0].split(":")[0] if c.isdigit())) if head else -1
        checks.check(f"{variant}: each collection is a line", code == 0 and said == len(shown) > 0, f"{len(shown)} lines, {said} in the summary")
        checks.check(f"{variant}: the heap after each", abs(len(heaps) - len(shown)) <= 3, f"{len(heaps)}")
        checks.check(f"{variant}: what is allocated, every second", 1 <= len(rates) <= 4, f"{len(rates)} lines")
        checks.check(f"{variant}: no collection without a pause", not any("paused 0 ns" in line for line in shown), "")


def check_requests(checks, command, variant):
    """Each request is a line with its path and how long it took; so are the exceptions it threw."""
    requests, thrown = 40, 3
    with Target([*command, "120", "--urls", "http://127.0.0.1:0"]) as target:
        urllib.request.urlopen(f"{target.url}/exception/1").read()
        listening = Listening(target.pid, "http", "exceptions")
        for _ in range(requests):
            urllib.request.urlopen(f"{target.url}/exception/{thrown}").read()
        lines, code = listening.stop()
    served = [line for line in lines if line[12:].startswith("http ") and f"GET /exception/{thrown}, took " in line]
    exceptions = [line for line in lines if line[12:].startswith("exception ")]
    checks.check(f"{variant}: each request is a line", code == 0 and len(served) == requests, f"{len(served)} of {requests}")
    checks.check(f"{variant}: and each exception in them", len(exceptions) == requests * thrown, str(len(exceptions)))
    checks.check(f"{variant}: requests are summed up", any(line.startswith(f"requests    {requests}, mean ") for line in lines),
                 " / ".join(lines[-3:]))


def check_reader_that_goes(checks, command, variant):
    with Target([*command, "0"]) as target:
        process = subprocess.Popen([CLRPERF, "trace", "-p", str(target.pid), "exceptions"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.stdout.close()
        process.wait(60)
        checks.check(f"{variant}: who is not read any more ends", process.returncode == 0,
                     f"{process.returncode} {process.stderr.read()[-200:]}")
        process.stderr.close()


def check_program(checks, check, program, variant):
    check(checks, sample_command(variant, program), variant)


def main():
    variant = sys.argv[1]
    checks = Checks()
    for check, program in ((check_exceptions, "throws"), (check_flood, "throws"), (check_collections, "gcstorm"),
                           (check_requests, "webapi"), (check_reader_that_goes, "throws")):
        checks.run(f"{variant}: {check.__name__}", check_program, check, program, variant)
    checks.exit()


if __name__ == "__main__":
    main()
