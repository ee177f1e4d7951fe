#!/usr/bin/env python3
"""oracle_test.py VARIANT: ClrMD and TraceEvent call sampled managed code what we call it.

Neither shares code with us. ClrMD reads the memory of the stopped process, TraceEvent the runtime's events.
"""
import bisect
import signal
import subprocess
import sys

from live import (PLAIN_ENVIRONMENT, Checks, Load, Target, Work, dump, oracle_command, record_busy, sample_command,
                  sessions, tool_command, wait_for)
from oracle import ask_clrmd, last, ours, plain

ADDRESSES = 2000
# Recordings to find so many in: how much of its CPU time the service spends in few loops depends on the machine.
RECORDINGS = 8
PATHS = ("/on-cpu", "/mini/on-cpu", "/exception/3", "/alloc/64", "/dict/1", "/dict/77", "/log", "/truth", "/nowhere")


def managed(tables, pid):
    """Code addresses that we named as managed code: what we say, by address. A call is before where it returns to."""
    found = {}
    for owner, address, _, kind, _, is_return, name, _ in tables["location"]:
        if int(owner) == pid and kind in ("jit", "r2r"):
            found[int(address, 16) - int(is_return)] = (kind, name)
    return found


def compare(checks, name, pairs, enough):
    wrong = [f"{address:x}: ours {mine}, theirs {theirs}" for address, mine, theirs in pairs if mine != theirs]
    checks.check(f"{name}: {enough} addresses were compared", len(pairs) >= enough, str(len(pairs)))
    checks.check(f"{name}: all names are equal", pairs and not wrong, f"{len(wrong)} differ: " + "; ".join(wrong[:5]))


def ask_trace_event(command, path):
    """Code ranges by start: where each ends, and the name."""
    done = subprocess.run([*command, path], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"methods: {done.stderr[-300:]}")
    ranges = {}
    for line in done.stdout.splitlines():
        start, size, owner, method, _, _, _, event = line.split("\t")
        if event != "unload":
            ranges[int(start, 16)] = (int(start, 16) + int(size), (plain(owner), plain(method)))
    return ranges


def check_oracles(checks, variant, work):
    names, methods = oracle_command("names"), oracle_command("methods")
    tracer = tool_command("dotnet-trace")
    with Target(sample_command(variant, "webapi") + ["0", "--urls", "http://127.0.0.1:0"]) as target:
        target.load = Load(target.url, dict.fromkeys(PATHS, 1))
        target.wait_age(5)
        target.wait_busy(2)
        nettrace, before = work.file("trace.nettrace"), sessions(target.pid)
        trace = subprocess.Popen([*tracer, "collect", "-p", str(target.pid), "-o", nettrace, "--providers",
                                  "Microsoft-Windows-DotNETRuntime:0x18:5"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=PLAIN_ENVIRONMENT,
                                 # a shell's background job starts with SIGINT ignored, and SIGINT ends this tool
                                 preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        wait_for(lambda: sessions(target.pid) > before or trace.poll() is not None, "dotnet-trace does not begin")
        mine = {}
        for number in range(RECORDINGS):
            capture = work.file(f"oracle{number}.clrperf")
            record_busy(capture, target.pid, 4999, 4)
            mine.update(managed(dump(capture), target.pid))
            if len(mine) >= ADDRESSES and sum(kind == "jit" for kind, _ in mine.values()) >= ADDRESSES // 2:
                break
        target.load.stop()
        trace.send_signal(signal.SIGINT)
        trace.wait(timeout=120)
        theirs = ask_clrmd(names, target.pid, sorted(mine))
        checks.check(f"{variant}: the target lives on", target.alive(), "")
    compare(checks, f"{variant} ClrMD", [(address, last(ours(mine[address][1])), theirs.get(address))
                                         for address in sorted(mine)], ADDRESSES)
    ranges = ask_trace_event(methods, nettrace)
    starts = sorted(ranges)
    pairs = []
    for address in sorted(mine):
        at = bisect.bisect_right(starts, address) - 1
        if at >= 0 and address < ranges[starts[at]][0]:
            pairs.append((address, ours(mine[address][1]), ranges[starts[at]][1]))
    compare(checks, f"{variant} TraceEvent", pairs, ADDRESSES // 4)


def main():
    checks = Checks()
    with Work() as work:
        checks.run("oracle", check_oracles, (sys.argv[1:] or ["10"])[0], work)
    checks.exit()


if __name__ == "__main__":
    main()
