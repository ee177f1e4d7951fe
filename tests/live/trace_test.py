#!/usr/bin/env python3
"""trace_test.py VARIANT: `clrperf trace` tells of each thing that a program does, once, while it does it."""
import json
import subprocess
import sys
import threading
import urllib.request

import live
from live import Checks, Target, sample_command, wait_for

REQUESTS, THROWN = 40, 3


class Trace:
    """A running `clrperf trace`, and the lines it printed so far."""

    def __init__(self, pid, *arguments):
        self.process = subprocess.Popen([live.CLRPERF, "trace", "-p", str(pid), *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        # it says so when it listens
        self.process.stderr.readline()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def end(self):
        self.process.send_signal(2)
        self.thread.join(30)
        self.process.stderr.close()
        return self.process.wait(30)


def count_of(lines, topic):
    return sum(f" s  {topic} " in line for line in lines)


def check_requests(checks, target, base):
    trace = Trace(target.pid, "http", "exceptions")
    for _ in range(REQUESTS):
        urllib.request.urlopen(f"{base}/exception/{THROWN}").read()
    wait_for(lambda: count_of(trace.lines, "http") >= REQUESTS, "the requests", 20)
    checks.check("lines come while it runs", trace.process.poll() is None)
    status = trace.end()
    checks.check("Ctrl-C ends it well", status == 0, str(status))
    checks.check("each request is told once", count_of(trace.lines, "http") == REQUESTS, str(count_of(trace.lines, "http")))
    checks.check("each exception is told once", count_of(trace.lines, "exception") == REQUESTS * THROWN,
                 str(count_of(trace.lines, "exception")))
    checks.check("the sums are those of the lines",
                 any(line.split() == ["exceptions", str(REQUESTS * THROWN)] for line in trace.lines)
                 and any(line.startswith("requests") and line.split()[1] == f"{REQUESTS};" for line in trace.lines),
                 " / ".join(trace.lines[-6:]))


def check_json(checks, target, base):
    trace = Trace(target.pid, "http", "exceptions", "--json")
    for _ in range(REQUESTS):
        urllib.request.urlopen(f"{base}/exception/{THROWN}").read()
    thrown = lambda: [line for line in trace.lines if '"event":"Exception/Start"' in line]
    wait_for(lambda: len(thrown()) >= REQUESTS * THROWN, "the exceptions", 20)
    trace.end()
    events = [json.loads(line) for line in trace.lines]
    thrown = [event for event in events if event["event"] == "Exception/Start"]
    checks.check("JSON: each exception is a line", len(thrown) == REQUESTS * THROWN, str(len(thrown)))
    checks.check("JSON: with its fields, its process and its thread's name",
                 all(event["fields"]["ExceptionType"] == "System.InvalidOperationException" and event["process"] == target.pid
                     and event["comm"] for event in thrown), str(thrown[:1]))


def check_collections(checks, variant):
    with Target(sample_command(variant, "gcstorm") + ["30"]) as target:
        trace = Trace(target.pid, "gc", "heap", "alloc", "-d", "6s")
        trace.thread.join(60)
        status = trace.process.wait(30)
        trace.process.stderr.close()
        told = count_of(trace.lines, "gc")
        summed = next((line.split() for line in trace.lines if line.startswith("collections")), [])
        checks.check("collections are told", status == 0 and told > 50, f"{status}, {told}")
        said = "".join(summed[1:summed.index("gen")]).rstrip(":") if "gen" in summed else ""  # "1 234:"
        checks.check("each collection is told once, and summed", said == str(told), f"{told}, {summed}")
        checks.check("sizes follow", count_of(trace.lines, "heap") == told, str(count_of(trace.lines, "heap")))
        checks.check("types that are allocated", any("System.Byte[]" in line for line in trace.lines if " alloc " in line))


def main():
    checks, variant = Checks(), sys.argv[1]
    with Target(sample_command(variant, "webapi") + ["120", "--urls", "http://127.0.0.1:0"]) as target:
        base = target.url
        urllib.request.urlopen(f"{base}/exception/1").read()
        checks.run("requests and exceptions", check_requests, target, base)
        checks.run("JSON", check_json, target, base)
    checks.run("collections", check_collections, variant)
    checks.exit()


if __name__ == "__main__":
    main()
