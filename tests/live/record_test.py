#!/usr/bin/env python3
"""record_test.py [GROUP...|PART/PARTS]: what `record` does about commands, signals, rights, and targets that come and go."""
import collections
import contextlib
import glob
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from live import (CLRPERF, FASTER, PLAIN_ENVIRONMENT, Checks, Recording, Skip, Target, Work, busy, clrperf, comes_true, cpu_clock_ns, dump, folded, helper, need_command,
                  need_root, record, report, sample_command, sessions, succeeded, wait_cpu, wait_for)

NOBODY_ID = 65533  # a user of this test's own: that of others may run programs that could be listened to
NOBODY = ["setpriv", f"--reuid={NOBODY_ID}", f"--regid={NOBODY_ID}", "--clear-groups"]

def switches(pid):
    """How often a process of one thread left its CPU."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)


# 300 threads, each of which runs for 0.2 ms ten times a second
MOMENTS = """
import threading, time
def run():
    while True:
        end = time.perf_counter() + 0.0002
        while time.perf_counter() < end:
            pass
        time.sleep(0.1)
for _ in range(300):
    threading.Thread(target=run).start()
"""


# a thousand children that run for a millisecond each, until all have used 0.3 s of CPU time
CHILDREN = ["sh", "-c", "while set -- $(tail -n 1 /proc/$$/stat) && [ $((${16} + ${17})) -lt 30 ]; do /bin/true; done"]
# The same until they have used so much outside the kernel, which is all that an ordinary user's samples can be of.
USER_CHILDREN = [*CHILDREN[:2], CHILDREN[2].replace("$((${16} + ${17}))", "${16}")]


def command(checks, work):
    out = work.file("command.clrperf")
    for script, code in (("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 128 + signal.SIGTERM)):
        done = clrperf("record", "-q", "--force", "-o", out, "--", "sh", "-c", script)
        checks.check(f"a command's exit code: {script}", done.returncode == code, f"{done.returncode} {done.stderr}")
    done = clrperf("record", "-q", "--force", "-o", out, "--", "sh", "-c", "cat; echo problem >&2", stdin=None,
                   input="hello")
    checks.check("a command's input and output pass through", done.stdout == "hello" and done.stderr == "problem\n",
                 repr((done.stdout, done.stderr)))
    done = clrperf("record", "--json", "--force", "-o", out, "--", "sh", "-c", "echo hello")
    checks.check("with --json the result is alone on stdout", "schema" in json.loads(done.stdout) and "hello\n" in done.stderr,
                 repr((done.stdout, done.stderr)))
    with open(out, "rb") as file:
        before = file.read()
    done = clrperf("record", "-q", "--force", "-o", out, "--", "/nonexistent/program")
    checks.check("a command that is not there fails", done.returncode == 1 and "cannot run" in done.stderr, done.stderr)
    with open(out, "rb") as file:
        checks.check("a recording that does not begin leaves the file that it would have overwritten",
                     file.read() == before)


# where nobody has mounted tracefs, as many machines
WITHOUT_TRACEFS = ["unshare", "--mount", "sh", "-c",
                   'for at in /sys/kernel/debug/tracing /sys/kernel/debug /sys/kernel/tracing; do '
                   '! mountpoint -q $at || umount -l $at || exit; done; exec "$0" "$@"']


def command_of_moments(checks, work):
    """Inheritance would begin each with a whole period, and see next to nothing."""
    need_root()
    need_command("unshare")
    out = work.file("moments.clrperf")
    for where, prefix in (("", []), (", without tracefs", WITHOUT_TRACEFS)):
        done = subprocess.run([*prefix, CLRPERF, "record", "--json", "--force", "-F", "499", "-o", out, "--", *CHILDREN],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
        summary = json.loads(done.stdout)
        checks.check("children that run for a moment have their samples" + where,
                     summary["samples"] > 75 and summary["cpu_missed_s"] == 0, f"{summary}")
        checks.check("each child is known" + where, summary["processes"] > 30, f"{summary}")


def command_killed(checks, work):
    """What a runtime had not sent yet is lost with it, and that is said; so it is where the rate is too low to see anything."""
    script = "exec " + shlex.join(sample_command("10", "throws")) + " 0"
    for suffix in ("clrperf", "nettrace"):
        done = clrperf("record", "--force", "-e", "exceptions", "-o", work.file(f"killed.{suffix}"), "--",
                       "sh", "-c", f"(sleep 1; kill -KILL $$) & {script}")
        checks.check(f"a command that is killed, to .{suffix}", done.returncode == 128 + signal.SIGKILL and
                     "was ended by a signal (Killed)" in done.stderr, f"{done.returncode} {done.stderr}")
    with busy() as target:
        done = clrperf("record", "--force", "-F", "1", "-d", "200ms", "-p", target.pid, "-o", work.file("low.clrperf"))
        checks.check("a rate that sees nothing", "at 1 Hz one stands for 1.00 s" in done.stderr and "or not at all" not in done.stderr, done.stderr)


def command_beside(checks, work):
    """As `perf record -p PID -- sleep 10`: the command is not recorded, the recording ends with it."""
    with busy() as target:
        out = work.file("beside.clrperf")
        done = clrperf("record", "--json", "-p", target.pid, "-o", out, "--", "sh", "-c", "sleep 1; exit 3")
        summary = json.loads(done.stdout)
        checks.check("a recording of a process ends with the command beside it",
                     done.returncode == 3 and 1 <= summary["duration_s"] < 10, f"{done.returncode} {done.stdout} {done.stderr}")
        checks.check("that command is not in it", summary["processes"] == 1 and summary["samples"] > 0, done.stdout)
        done = clrperf("record", "-p", target.pid, "-o", work.file("beside2.clrperf"), "--", "/nonexistent/program")
        checks.check("a command beside it that is not there fails",
                     done.returncode == 1 and "cannot run" in done.stderr and not os.path.exists(work.file("beside2.clrperf")), done.stderr)
        checks.check("the target lives on", target.alive(), "")


def command_ends(checks, work):
    """A runtime that told of each method as it came has no list to write at its end, which takes a composite one its time."""
    out = work.file("ends.clrperf")
    done = clrperf("record", "-q", "-F", 999, "-e", "cpu,gc", "-o", out, "--", *sample_command("10-composite", "r2rhot"), "1")
    every, last = (report(out, "--top", "1", *options)["totals"]["samples"] for options in ((), ("--include", "coreclr_shutdown")))
    checks.check("a command's end is not held up", done.returncode == 0 and "warning" not in done.stderr and last < 0.05 * every,
                 f"{last} of {every} samples; {done.stderr}")


def command_is_short(checks, work):
    """Its memory is asked while it is there, of its first managed frame, too: none is found by frame pointers for want of it."""
    out = work.file("short.clrperf")
    clrperf("record", "-q", "-F", 1999, "-o", out, "--", *sample_command("10", "primes"), "0.4")
    totals = report(out, "--top", "1")["totals"]["frames"]
    found = totals["found_by"]
    checks.check("the frames of a short program are not guessed",
                 found["unwind_info"] > 200 and found.get("frame_pointer", 0) <= 0.002 * sum(found.values()), f"{found}")
    frames = []
    for _ in range(3):
        clrperf("record", "-q", "--force", "-F", 999, "-o", out, "--", *sample_command("10", "primes"), "0.01")
        frames.append(report(out, "--top", "1")["totals"]["frames"])
    checks.check("those of one that is gone at once have names",
                 sorted(f["unnamed"] / f["user"] for f in frames)[1] <= 0.005, f"{frames}")


def command_names(checks, work):
    out = work.file("start.clrperf")
    done = clrperf("record", "-q", "-F", 999, "-g", "-e", "cpu-clock", "-o", out, "--", *sample_command("10", "primes"), "6")
    checks.check("a .NET command runs as it would alone", done.returncode == 0 and '"sample":"primes"' in done.stdout,
                 done.stdout[-200:] + done.stderr[-200:])
    totals = report(out, "--top", "1")["totals"]["frames"]
    share = totals["unnamed"] / max(1, totals["user"])
    checks.check("from the first frames on, all have names", share <= 0.01,
                 f"{100 * share:.2f} % of {totals['user']} unnamed {totals['unnamed_by']}")
    frames = {frame for stack, _ in folded(out) for frame in stack}
    checks.check("the program's start is in it", any(frame.startswith("hostfxr_main") for frame in frames), "")
    checks.check("the program itself is in it", "Primes.Program.CountPrimes" in frames, "")


def closed_descriptors(checks, work):
    """As by who starts us without a terminal: what is opened next must not get our messages."""
    out = work.file("closed.clrperf")
    with busy() as target:
        done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', CLRPERF, "record", "-p", str(target.pid), "-d", "0.5", "-o", out],
                              check=False)
    seen = clrperf("report", out)
    checks.check("a recorder without standard descriptors records", done.returncode == 0 and seen.returncode == 0 and
                 "damaged" not in seen.stderr, f"{done.returncode} {seen.stderr}")


def signals(checks, work):
    with busy() as target:
        for number in (signal.SIGINT, signal.SIGTERM):
            out = work.file(f"{number.name}.clrperf")
            recording = Recording(out, "-p", target.pid)
            wait_cpu([target.pid], 0.5)
            summary = recording.stop(number)
            checks.check(f"{number.name} ends a recording in order",
                         summary["ended_by"] == "signal" and summary["samples"] > 0, f"{summary} {recording.errors()}")
            seen = clrperf("report", out)
            checks.check(f"the capture after {number.name} is complete", seen.returncode == 0 and not seen.stderr,
                         seen.stderr)


POOL_BYTES = 8 << 20  # of locked memory, as ordinary users have it


def check_rings(checks, command):
    """Rings of all CPUs share the pool. At 999 Hz more is asked for: what the first gets more the others get less."""
    recording = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sizes, end = [], time.monotonic() + 2
    while time.monotonic() < end:
        with open(f"/proc/{recording.pid}/maps", encoding="utf-8") as maps:
            rings = [line.split()[0].split("-") for line in maps if "[perf_event]" in line]
        sizes = [int(last, 16) - int(first, 16) for first, last in rings] or sizes
        time.sleep(0.1)
    recording.wait()
    checks.check("rings of all CPUs are equally large, and half of the pool is used", len(set(sizes)) == 1 and sum(sizes) >= POOL_BYTES / 2, sizes)


def ordinary_user(checks, work):
    need_root()
    need_command("setpriv")
    words = sample_command("10", "primes")
    home = shutil.copytree(os.path.dirname(words[-1]), work.file("primes"))
    binary = shutil.copy(CLRPERF, work.file("clrperf"))
    os.chmod(binary, 0o755)
    os.mkdir(work.file("own"))
    os.chown(work.file("own"), NOBODY_ID, NOBODY_ID)
    for path, _, files in os.walk(home):
        os.chmod(path, 0o755)
        for name in files:
            os.chmod(os.path.join(path, name), 0o755)
    with Target(NOBODY + words[:-1] + [os.path.join(home, "primes.dll"), "0"]) as target:
        target.wait_busy(1)
        out = os.path.join(work.file("own"), "own.clrperf")
        done = subprocess.run([*NOBODY, binary, "record", "-p", str(target.pid), "-d", "2", "-o", out],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        checks.check("an ordinary user records an own process", done.returncode == 0, done.stderr[-400:])
        checks.check("it is said once that there are no kernel frames", done.stderr.count("user frames only") == 1, done.stderr)
        checks.check("of a thread that runs on nothing is missed", "samples stand for" not in done.stderr, done.stderr)
        check_rings(checks, ["prlimit", f"--memlock={POOL_BYTES}", *NOBODY, binary, "record", "-p", str(target.pid), "-F", "999", "-d", "3", "-q",
                             "-o", f"{out}-rings"])
        for tries in range(3):  # nobody who is an ordinary user gets a CPU at once where others want it
            done = subprocess.run([*NOBODY, "prlimit", "--memlock=65536", binary, "record", "-p", str(target.pid), "-F", "20000",
                                   "--frame-pointers", "-d", "2", "--json", "-q", "-o", f"{out}-fast{tries}"],
                                  capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, timeout=60)
            fast = json.loads(done.stdout)
            if fast["lost"] * 50 < fast["attempted"]:
                break
        checks.check("rings that the kernel grants smaller are read before they are full", fast["attempted"] > 10000 and
                     fast["lost"] * 50 < fast["attempted"], f"{fast['lost']} of {fast['attempted']} lost")
    kinds = {row["kind"] or "unknown" for row in report(out, "--top", "0")["rows"]}
    checks.check("an ordinary user's capture has managed and no kernel frames", "jit" in kinds and "kernel" not in kinds,
                 str(sorted(kinds)))
    with Target([*NOBODY, sys.executable, "-c", MOMENTS], ready=False) as target:
        wait_cpu([target.pid], 0.5)
        for seconds in (2, 8):  # where the machine is crowded they do not get to run much
            done = subprocess.run([*NOBODY, binary, "record", "-p", str(target.pid), "-d", str(seconds), "-o", f"{out}{seconds}"],
                                  capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
            if "samples stand for" in done.stderr:
                break
        checks.check("that many threads ran too briefly for an ordinary user's samples is said", done.returncode == 0 and
                     "samples stand for" in done.stderr and "or not at all" not in done.stderr, done.stderr)
    done = subprocess.run([*NOBODY, binary, "record", "--json", "-o", out + "-children", "--", *USER_CHILDREN],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    missed = json.loads(done.stdout)["cpu_missed_s"]
    checks.check("that children ran too briefly for an ordinary user's samples is said", missed > 0.1 and
                 "samples stand for" in done.stderr, f"{missed} {done.stderr}")
    with busy() as target:
        done = subprocess.run([*NOBODY, binary, "record", "-p", str(target.pid), "-d", "1", "-o", out + "-other"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
        checks.check("somebody else's process: exit 4, with a way out", done.returncode == 4 and "try:" in done.stderr,
                     f"{done.returncode} {done.stderr}")


def events_without_rights(checks, work):
    """Nobody to listen to is no recording of 0 events, but an error with its reason."""
    need_root()
    need_command("setpriv")
    binary = shutil.copy(CLRPERF, work.file("clrperf"))
    os.chmod(binary, 0o755)
    os.mkdir(work.file("theirs"))
    os.chown(work.file("theirs"), NOBODY_ID, NOBODY_ID)

    def try_it(user, name, *words):
        return subprocess.run([*user, binary, "record", "-q", "-e", "gc", "-d", "1", "-o", work.file(f"theirs/{name}"),
                               *map(str, words)], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=60)

    with Target(sample_command("10", "primes") + ["0"]) as target:
        target.wait_age(2)
        done = try_it(NOBODY, "one.clrperf", "-p", target.pid)
        checks.check("events of somebody else's runtime: exit 4, with a way out",
                     done.returncode == 4 and "cannot get runtime events" in done.stderr and "try:" in done.stderr,
                     f"{done.returncode} {done.stderr}")
        checks.check("at once, and no file is left behind", not os.path.exists(work.file("theirs/one.clrperf")), "")
        done = try_it(NOBODY, "all.clrperf", "-a")
        checks.check("nor of all runtimes of others", done.returncode == 4 and "try:" in done.stderr, f"{done.returncode} {done.stderr}")
        plain = subprocess.Popen(["sleep", "60"])
        done = try_it([], "plain.clrperf", "-p", plain.pid)
        checks.check("events of a process without a runtime: exit 5, and no empty file", done.returncode == 5 and
                     "no .NET runtime" in done.stderr and not os.path.exists(work.file("theirs/plain.clrperf")),
                     f"{done.returncode} {done.stderr}")
        done = try_it([], "both.clrperf", "-p", f"{plain.pid},{target.pid}")
        checks.check("one of several that can be listened to is enough", done.returncode == 0, f"{done.returncode} {done.stderr}")
        done = try_it([], "cpu.clrperf", "-e", "cpu,gc", "-p", plain.pid)
        checks.check("beside samples it is said, and no error", done.returncode == 0 and "no .NET runtime told" in done.stderr,
                     f"{done.returncode} {done.stderr}")
        plain.kill()
        plain.wait()
    done = subprocess.run([CLRPERF, "record", "-q", "-e", "gc", "-o", work.file("sh.clrperf"), "--", "sh", "-c", "exit 7"],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60)
    checks.check("a command without a runtime keeps its exit code", done.returncode == 7, f"{done.returncode} {done.stderr}")


def no_rights(checks, work):
    need_command("strace")
    with busy() as target:
        for code in ("EACCES", "EPERM"):
            done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"inject=perf_event_open:error={code}", CLRPERF,
                                   "record", "-p", str(target.pid), "-d", "1", "-o", work.file("no.clrperf")],
                                  capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=60,
                                  env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
            if "ptrace" in done.stderr and "strace" in done.stderr:
                raise Skip("strace may not trace here")
            checks.check(f"no right to perf events ({code}): exit 4, with a way out",
                         done.returncode == 4 and "try:" in done.stderr, f"{done.returncode} {done.stderr}")
        checks.check("no file is left behind then", not os.path.exists(work.file("no.clrperf")), "")


def targets(checks, work):
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = clrperf("record", "-p", gone.pid, "-d", 1, "-o", work.file("gone.clrperf"))
    checks.check("a pid that is not there: exit 3", done.returncode == 3 and "error:" in done.stderr,
                 f"{done.returncode} {done.stderr}")
    done = clrperf("record", "-n", "no such program", "-d", 1, "-o", work.file("gone.clrperf"))
    checks.check("a name that nobody has: exit 3", done.returncode == 3, f"{done.returncode} {done.stderr}")
    with busy() as one, busy() as two:
        out = work.file("two.clrperf")
        summary = record(out, "-p", f"{one.pid},{two.pid}", "-d", 2)
        pids = {int(pid) for _, pid, _, _ in dump(out)["sample"]}
        checks.check("several processes in one capture", pids == {one.pid, two.pid}, f"{pids} {summary['processes']}")


def all_processes(checks, work):
    need_root()
    with Target(sample_command("10", "primes") + ["0"]) as target:
        target.wait_busy(1)
        out = work.file("all.clrperf")
        summary = record(out, "-a", "-d", 2)
        pids = {int(pid) for _, pid, _, _ in dump(out)["sample"]}
        checks.check("-a sees all CPUs", target.pid in pids and summary["samples"] > 100,
                     f"{summary['samples']} samples, {summary['processes']} processes")
        checks.check("-a names managed frames", any("Primes.Program.CountPrimes" in stack for stack, _ in folded(out)), "")
        without = {**os.environ, "DOTNET_EnableDiagnostics": "0"}
        with Target(sample_command("10", "primes") + ["0"], env=without) as mute:
            wait_for(lambda: time.monotonic() - mute.started > 13, "it is old enough to have its socket")
            done = succeeded(clrperf("record", "--json", "-a", "-e", "cpu,gc", "-d", 2, "-o", work.file("all_gc.clrperf")))
        ended_ms = json.loads(done.stdout)["self"]["rundown_ms"]
        checks.check("-a waits for no runtime longer than it has something to tell", ended_ms < 3000, f"{ended_ms} ms")
        checks.check("-a says why a runtime tells nothing", f"events of process {mute.pid} are missing" in done.stderr and
                     "DOTNET_EnableDiagnostics=0" in done.stderr, done.stderr)
    forks_of_the_unseen(checks, work.file("forks.clrperf"))


def ended_are_let_go(checks, work):
    """A recording of hours must not keep what each program took that ran meanwhile."""
    out, line = work.file("ended.clrperf"), " ".join(shlex.quote(word) for word in sample_command("10", "primes") + ["1"])
    command = [CLRPERF, "record", "-q", "--force", "-o", out, "--", "sh", "-c", f"{line}; {line}; {line}; echo ended; exec sleep 60"]
    recorder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while recorder.stdout.readline() != "ended\n":
            pass
        held = pidfds_of_dead(recorder.pid)
        let_go = comes_true(lambda: pidfds_of_dead(recorder.pid) == 0, 15)
    finally:
        recorder.terminate()
        recorder.communicate()
    checks.check("what ended is let go", held > 0 and let_go, f"{held} held at first")
    named = sum(count for stack, count in folded(out) if "Primes.Program.CountPrimes" in stack)
    checks.check("and has its names", named > 100, f"{named} samples")


def pidfds_of_dead(pid):
    dead = 0
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(path, encoding="ascii") as info:
                dead += "\nPid:\t-1\n" in info.read()
        except OSError:
            continue  # it was closed
    return dead


def forks_of_the_unseen(checks, out):
    """Processes that are gone at once, of one that nobody has seen: it does nothing but start them."""
    line = "sleep 1; while :; do (n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done) & echo $!; wait; done"
    with open(out + ".pids", "w", encoding="ascii") as pids:
        loop = subprocess.Popen(["sh", "-c", line], start_new_session=True, stdout=pids)
        try:
            record(out, "-a", "-F", "999", "-d", 3)
        finally:
            os.killpg(loop.pid, signal.SIGKILL)
            loop.wait()
    with open(out + ".pids", encoding="ascii") as pids:
        forked = {int(line) for line in pids.read().splitlines()}
    names = [process["name"] for process in report(out, "--top", "1")["processes"] if process["pid"] in forked]
    checks.check("processes that are gone at once are called like who started them",
                 len(names) >= 5 and all(name in ("sh", "dash") for name in names), str(collections.Counter(names)))


LATECOMERS = """
import os, sys, threading
def burn():
    while True: pass
sys.stdin.readline()
child = os.fork()
if child == 0:
    burn()
print(child, flush=True)
threading.Thread(target=burn).start()
"""


def latecomers(checks, work):
    with Target([sys.executable, "-c", LATECOMERS], ready=False, start_new_session=True) as target:
        try:
            out = work.file("deaf_late.clrperf")
            recording = Recording(out, "-p", target.pid)
            target.process.stdin.write(b"\n")
            target.process.stdin.flush()
            child = int(target.process.stdout.readline())
            wait_cpu([child], 0.5)
            wait_cpu([target.pid], 0.5)
            recording.stop()
            samples = dump(out)["sample"]
            checks.check("a process born later is sampled", any(int(pid) == child for _, pid, _, _ in samples), "")
            threads = {tid for _, pid, tid, _ in samples if int(pid) == target.pid}
            checks.check("a thread born later is sampled", any(int(tid) != target.pid for tid in threads), str(threads))
        finally:
            os.killpg(target.pid, signal.SIGKILL)


def target_exits(checks, work):
    with Target(sample_command("10", "primes") + ["0"]) as target:
        out = work.file("exits.clrperf")
        recording = Recording(out, "-p", target.pid)
        wait_cpu([target.pid], 2)
        begin = time.monotonic()
        target.process.terminate()
        summary = recording.end()
        checks.check("a target that exits ends the recording", summary["ended_by"] == "target_exit"
                     and time.monotonic() - begin < 60, f"{summary['ended_by']}, {time.monotonic() - begin:.1f} s")
        checks.check("and that it did is said", "the process ended after" in recording.errors(), recording.errors())
        checks.check("what it did until then has names", any("Primes.Program.CountPrimes" in stack for stack, _ in folded(out)),
                     "")


# Its first thread ends when it is told to, and another one goes on.
HEADLESS = """
import ctypes, sys, threading
def burn():
    while True: pass
threading.Thread(target=burn).start()
sys.stdin.readline()
ctypes.CDLL(None).syscall(60 if sys.argv[1] == "x86_64" else 93, 0)
"""


def main_thread_exits(checks, work):
    """A process ends with its last thread, not with its first."""
    with Target([sys.executable, "-c", HEADLESS, os.uname().machine], ready=False, start_new_session=True) as target:
        try:
            out = work.file("headless.clrperf")
            recording = Recording(out, "-p", target.pid)
            wait_cpu([target.pid], 0.5)
            target.process.stdin.write(b"\n")
            target.process.stdin.flush()
            wait_for(lambda: open(f"/proc/{target.pid}/stat", encoding="utf-8").read().split(") ")[-1][0] == "Z",
                     "the first thread does not end")
            ended_ns = time.monotonic_ns()
            wait_cpu([target.pid], 1)
            os.killpg(target.pid, signal.SIGKILL)
            summary = recording.end()
            samples = dump(out)["sample"]
            after_ns = [int(sample[0]) - ended_ns for sample in samples if int(sample[1]) == target.pid]
            late = sum(after > 300_000_000 for after in after_ns)
            checks.check("a process whose first thread has ended is sampled on", late > 50, f"{late} of {len(after_ns)}")
            checks.check("and its end ends the recording", summary["ended_by"] == "target_exit", summary["ended_by"])
        finally:
            if target.alive():
                os.killpg(target.pid, signal.SIGKILL)


def short_lived(checks, work):
    """Programs that are gone before anybody looked at them: their files are told by who started them."""
    line = " ".join(f"'{word}'" for word in sample_command("10", "primes")) + " 0.01 >/dev/null"
    out = work.file("short.clrperf")
    for _ in range(3):  # in which one was gone early for sure
        done = clrperf("record", "-q", "--force", "-o", out, "--", "sh", "-c", "; ".join([line] * 4))
        totals = report(out, "--top", "1")["totals"]
        frames, stacks = totals["frames"], totals["stacks"]
        unnamed = frames["unnamed"] - frames["unnamed_by"].get("jit_unknown", 0)
        if not checks.check("stacks of programs that are gone at once are whole, and what their files name has a name",
                            done.returncode == 0 and stacks["broken"] <= 0.02 * totals["samples"] > 0 and
                            unnamed <= 0.01 * frames["user"], f"{stacks} {frames}"):
            break
    checks.check("nobody complains of them", "denied" not in done.stderr, done.stderr)
    if os.geteuid() != 0:
        return
    loop = subprocess.Popen(["sh", "-c", f"while :; do {line}; done"], start_new_session=True)
    try:  # whose parent has no sample: nobody has heard of it
        done = clrperf("record", "-q", "--force", "-a", "-d", "4s", "-o", out, binary=FASTER)
    finally:
        os.killpg(loop.pid, signal.SIGKILL)
        loop.wait()
    stacks = [stack for stack, _ in folded(out) if stack[0] in ("primes", "dotnet")]
    broken = [stack for stack in stacks if "[broken]" in stack]
    checks.check("neither do programs that come and go beside a recording of the machine have broken stacks", done.returncode == 0 and
                 len(stacks) > 50 and len(broken) <= 0.02 * len(stacks), f"{len(broken)} of {len(stacks)} {done.stderr}")


BINDS = r"""
#include <ctype.h>
#include <stdlib.h>
#include <time.h>
static volatile int sink;
__attribute__((noinline)) int inner(const char *s) { int t = 0; for (int i = 0; i < 50; i++) t += toupper(s[i % 5]) + atoi(s); return t + 1; }
__attribute__((noinline)) int outer(const char *s) { return inner(s) * 2 + 1; }
int main(void) { for (time_t end = time(0) + 2; time(0) < end;) sink = outer("12345abc"); }
"""


def lazy_binding(checks, work):
    """A call that the dynamic linker has to bind: its callers are found though it aligns its stack, and there are no frame pointers."""
    need_command("gcc")
    with open(work.file("binds.c"), "w", encoding="utf-8") as source:
        source.write(BINDS)
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,-z,lazy", "-o", work.file("binds"),
                    work.file("binds.c")], check=True)
    out = work.file("binds.clrperf")
    done = clrperf("record", "-q", "--force", "-F", "499", "-o", out, "--", "env", "LD_BIND_NOT=1", work.file("binds"))
    # the resolver and what it calls, which only the C library's debug file names
    stacks = [(stack, count) for stack, count in folded(out, "--modules") if sum(frame.startswith("ld-") for frame in stack) >= 2]
    through = sum(count for _, count in stacks)
    whole = sum(count for stack, count in stacks if "[broken]" not in stack)
    named = sum(count for stack, count in stacks if ("binds!outer", "binds!inner") in zip(stack, stack[1:]))
    checks.check("stacks through the dynamic linker's resolver are whole, and have what called", done.returncode == 0 and through >= 40 and
                 whole >= 0.995 * through and named >= 0.8 * through, f"{whole}, {named} of {through}: {stacks[:3]}")


def own_build(pid, address):
    """Of the assembly that the code there is of."""
    return json.loads(succeeded(clrperf("addr", "-p", pid, address, "--json")).stdout)["rows"][0]["mvid"]


def own_code(pid):
    """The address of a call in the program's own method, and its assembly's build."""
    threads = json.loads(succeeded(clrperf("stack", "-p", pid, "--json")).stdout)["threads"]
    address = next(frame["address"] for thread in threads for frame in thread["frames"] if frame["function"] == "Primes.Program.Main")
    return address, own_build(pid, address)


def target_updated(checks, work):
    """Its folder holds another build now, with another runtime: what runs is what was there when it began."""
    need_root()
    folder, newer = work.file("service"), work.file("newer")
    for variant, copy in (("9", folder), ("8", newer)):
        shutil.copytree(os.path.dirname(sample_command(variant, "primes")[0]), copy)
    with Target([os.path.join(folder, "primes"), "0"]) as target:
        wait_cpu([target.pid], 0.5)
        place, build = own_code(target.pid)
        os.rename(folder, work.file("gone"))
        shutil.rmtree(work.file("gone"))
        os.rename(newer, folder)
        path = work.file("updated.clrperf")
        said = record(path, "-p", target.pid, "-e", "cpu,gc", "-d", "2s")
        seen = report(path, "--top", "0")
        totals = seen["totals"]
        checks.check("an updated service: its stacks", totals["stacks"]["whole"] > 0.9 * totals["samples"] > 0, str(totals["stacks"]))
        checks.check("an updated service: its names", totals["frames"]["unnamed"] < 0.01 * totals["frames"]["user"], str(totals["frames"]))
        checks.check("an updated service: its runtime", seen["processes"][0]["runtime_version"].startswith("9."),
                     f"{seen['processes'][0]['runtime_version']}, {said['events']} events")
        told = own_build(target.pid, place)
        checks.check("an updated service: no other build of its assembly is believed", told in (build, None), f"{told}, {build}")
        threads = json.loads(clrperf("stack", "-p", target.pid, "--json").stdout)["threads"]
        checks.check("an updated service: where it stands", all(thread["end"] == "whole" for thread in threads),
                     str(collections.Counter(thread["end"] for thread in threads)))


def target_chrooted(checks, work):
    """What the kernel says of its files begins at another root than its own."""
    need_root()
    need_command("unshare")
    root = work.file("root")
    os.mkdir(root)
    with Target(["unshare", "-m", "sh", "-c", 'mount --rbind / "$0" && exec chroot "$0" "$@"', root,
                 *sample_command("9", "primes"), "0"]) as target:
        wait_cpu([target.pid], 0.5)
        path = work.file("chrooted.clrperf")
        record(path, "-p", target.pid, "-e", "cpu,gc", "-d", "2s")
        seen = report(path, "--top", "0")
        totals = seen["totals"]
        checks.check("a target behind a chroot: its stacks", totals["stacks"]["whole"] > 0.9 * totals["samples"] > 0, str(totals["stacks"]))
        checks.check("a target behind a chroot: its names", totals["frames"]["unnamed"] < 0.01 * totals["frames"]["user"],
                     str(totals["frames"]))
        checks.check("a target behind a chroot: its runtime", seen["processes"][0]["runtime_version"].startswith("9."),
                     seen["processes"][0]["runtime_version"])


def target_execs(checks, work):
    now = work.file("exec-now")
    with Target(["sh", "-c", 'while [ ! -e "$0" ]; do :; done; exec "$1" -c "while True: pass"', now, sys.executable],
                ready=False) as target:
        out = work.file("execs.clrperf")
        recording = Recording(out, "-p", target.pid)
        wait_cpu([target.pid], 0.5)
        image = os.readlink(f"/proc/{target.pid}/exe")
        with open(now, "w", encoding="ascii"):
            pass
        wait_for(lambda: os.readlink(f"/proc/{target.pid}/exe") != image, "the shell does not become Python")
        wait_cpu([target.pid], 0.5)
        recording.stop()
        modules = {row["name"] for row in report(out, "--by", "module", "--top", "0")["rows"]}
        checks.check("a target that execs is followed, with its new image's names",
                     any(name.startswith(("python", "libpython")) for name in modules) and
                     any(name in modules for name in ("dash", "bash", "sh")), str(sorted(modules)))


def target_stopped(checks, work):
    with Target(sample_command("10", "primes") + ["0"]) as target:
        target.wait_busy(1)
        os.kill(target.pid, signal.SIGSTOP)
        out, begin = work.file("stopped.clrperf"), time.monotonic()
        done = clrperf("record", "-p", target.pid, "-d", 2, "-o", out)
        took = time.monotonic() - begin
        with Target(sample_command("10", "primes") + ["0"]) as other:
            other.wait_busy(1)
            listed = clrperf("record", "--json", "-e", "cpu,gc", "-p", f"{target.pid},{other.pid}", "-d", 1, "-o", work.file("one_stopped.clrperf"))
        silent = clrperf("trace", "-p", target.pid, "-d", 1)
        deaf = clrperf("record", "-e", "gc", "-p", target.pid, "-d", 1, "-o", work.file("deaf.clrperf"))
        doctor = clrperf("doctor", "-p", target.pid).stdout
        os.kill(target.pid, signal.SIGCONT)
        for what, text in (("trace", silent.stderr), ("record -e gc", deaf.stderr), ("doctor", doctor)):
            checks.check(f"{what} says that a stopped runtime does not answer",
                         "stopped" in text and f"kill -CONT {target.pid}" in text, text)
        checks.check("and that it is not supported", silent.returncode == deaf.returncode == 5, f"{silent.returncode}, {deaf.returncode}")
        checks.check("a target that stands still cannot hold us up", done.returncode == 0 and took < 60, f"{took:.1f} s")
        checks.check("its silence costs no names, as its memory tells them", "warning:" not in done.stderr, done.stderr)
        checks.check("one of two that is stopped is not waited for", listed.returncode == 0 and json.loads(listed.stdout)["samples"] > 0 and
                     listed.stderr.count("is stopped") == 1 and f"kill -CONT {target.pid}" in listed.stderr, listed.stderr)
        checks.check("that it is stopped is said", f"process {target.pid} is stopped" in done.stderr, done.stderr)
        threading.Timer(1.5, os.kill, (target.pid, signal.SIGSTOP)).start()
        done = clrperf("record", "-p", target.pid, "-d", 3, "-o", work.file("stops_midway.clrperf"))
        os.kill(target.pid, signal.SIGCONT)
        checks.check("so it is when it has samples from before", f"process {target.pid} is stopped" in done.stderr and
                     "no samples since then" in done.stderr and report(work.file("stops_midway.clrperf"), "--top", "1")["totals"]["samples"] > 0, done.stderr)
        time.sleep(0.5)
        checks.check("the target lives on", target.alive(), "")

        out = work.file("stops.clrperf")
        recording = Recording(out, "-p", target.pid)
        wait_cpu([target.pid], 0.5)
        os.kill(target.pid, signal.SIGSTOP)
        summary = recording.stop()
        errors, waited_ms = recording.errors(), summary["self"]["rundown_ms"]
        os.kill(target.pid, signal.SIGCONT)
        checks.check("one that stops while we record cannot either", waited_ms < 10_000, f"{waited_ms:.0f} ms")
        checks.check("its methods have names all the same, from its memory",
                     "warning:" not in errors and report(out)["totals"]["frames"]["unnamed"] == 0, errors)
        checks.check("the capture holds what there was", summary["samples"] > 0
                     and report(out)["totals"]["samples"] == summary["samples"], str(summary["samples"]))
        time.sleep(0.5)
        checks.check("that target lives on too", target.alive() and record(work.file("after.clrperf"), "-p", target.pid,
                                                                           "-d", 1)["samples"] > 0, "")


def thread_names(checks, work):
    """The kernel keeps 15 bytes of a thread's name: what these two have in common."""
    for version in ("10", "8"):
        out = work.file(f"threads{version}.clrperf")
        with Target(sample_command(version, "asyncchain") + ["0", "churn"]) as target:
            wait_cpu([target.pid], 0.5)
            record(out, "-p", target.pid, "-d", 2)
        names = {row["name"] for row in report(out, "threads")["rows"]}
        checks.check(f"{version}: threads have the names that the program gave them",
                     {"churns-at-full-speed-0", "churns-at-full-speed-1"} <= names, names)


def frame_pointers(checks, work):
    """Methods of stacks that the kernel found are named from memory, too: nobody has to list them all at the end."""
    out = work.file("pointers.clrperf")
    with Target([*sample_command("10", "throws"), "0"]) as target:
        target.wait_busy(1)
        recording = Recording(out, "-F", "999", "--frame-pointers", "-p", target.pid)
        wait_cpu([target.pid], 0.5)
        recording.stop()
        frames = report(out, "--top", "1")["totals"]["frames"]
        checks.check("--frame-pointers: names come from memory", frames["named_by"].get("memory", 0) > frames["named_by"].get("eventpipe", 0)
                     and frames["unnamed"] <= 0.01 * frames["user"], str(frames))
        checks.check("--frame-pointers: nothing is said to be missing", "warning" not in recording.errors(), recording.errors())


def beside_another(checks, work):
    """Two who sample switches at once: the kernel hands the second what it made for the first."""
    first, second = work.file("first.clrperf"), work.file("second.clrperf")
    options = ["-F", "499", "-e", "cpu,context-switches"]
    with Target([sys.executable, "-c", "import time\nwhile True: time.sleep(0.002)"], ready=False) as target:
        begin = switches(target.pid), cpu_clock_ns(target.pid)
        recording = Recording(first, "-p", target.pid, *options)
        other = Recording(second, "-p", target.pid, *options)
        wait_for(lambda: switches(target.pid) >= begin[0] + 1000, "it did not switch")
        other.stop()
        recording.stop()
        switched, ran_ns = switches(target.pid) - begin[0], cpu_clock_ns(target.pid) - begin[1]
    totals = {event: report(first, "--event", event)["totals"] for event in ("cpu", "context-switches")}
    told = totals["context-switches"]["samples"]
    cpu_ns = totals["cpu"]["samples"] * 1e9 / 499
    leaves = {event: of["frames"]["found_by"]["leaf"] for event, of in totals.items()}
    checks.check("how frames were found is told of each kind of samples",
                 all(0.9 * of["samples"] <= leaves[event] <= of["samples"] for event, of in totals.items()), f"{leaves} {totals}")
    checks.check("a recorder beside another: all switches are switches", 0.6 * switched <= told <= switched + 2, f"{told} of {switched}")
    checks.check("a recorder beside another: no switch is CPU time", cpu_ns <= 1.5 * ran_ns + 30e6,
                 f"{cpu_ns / 1e6:.0f} ms told, {ran_ns / 1e6:.0f} ms by the kernel's clock")


def ahead_of_time(checks, work):
    """A program of Native AOT has no libcoreclr.so, and tells its events all the same."""
    out = work.file("ahead.clrperf")
    environment = dict(os.environ, TMPDIR=work.path)
    program = subprocess.Popen([helper("fakert"), "ahead-of-time"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    try:
        program.stdout.readline()
        listed = [p for p in json.loads(clrperf("ps", "--json").stdout)["processes"] if p["pid"] == program.pid]
        checks.check("a program of Native AOT is listed", listed and listed[0]["runtime"]["kind"] == "nativeaot", str(listed))
        done = clrperf("record", "--json", "-p", program.pid, "-d", "1s", "-e", "cpu,gc", "-o", out)
        checks.check("its events are recorded", done.returncode == 0 and json.loads(done.stdout)["events"] > 0 and "warning" not in done.stderr,
                     f"{done.returncode} {done.stdout} {done.stderr}")
        shown = clrperf("report", out, "events").stdout
        checks.check("its kind is told instead of a version", ", .NET Native AOT" in shown, shown)
        done = clrperf("stack", "-p", program.pid)
        checks.check("nothing is missed of its stacks", done.returncode == 0 and "jitted" not in done.stderr, done.stderr)
        managed = clrperf("stack", "-p", program.pid, "--managed", "--idle")
        checks.check("--managed hides nothing of it, and says so", "--managed shows all" in managed.stderr and
                     "    main" in managed.stdout, managed.stdout + managed.stderr)
        checks.check("that it needs no map is said", "needs no map" in clrperf("map", "-p", program.pid).stderr, "")
        for socket in glob.glob(os.path.join(work.path, "dotnet-diagnostic-*")):
            os.unlink(socket)
        done = clrperf("record", "-p", program.pid, "-d", "1s", "-o", work.file("ahead2.clrperf"))
        checks.check("samples of it need no socket", done.returncode == 0 and "warning" not in done.stderr, done.stderr)
    finally:
        program.kill()
        program.wait()


def deaf_runtime(checks, work):
    """A runtime that takes connections and never answers does not prolong a recording; one that does later is heard."""
    options = {"-o deaf.clrperf": ("record",), "-e gc": ("record", "-e", "gc"), "-e cpu,gc": ("record", "-e", "cpu,gc"),
               ".nettrace": ("record", "--clrevents", "exception", "--format", "NetTrace"), "trace": ("trace",)}
    took = {}
    for mode in ("ahead-of-time", "ahead-of-time-never"):
        with Target([helper("fakert"), mode], env=dict(os.environ, TMPDIR=work.path)) as program:
            for name, what in options.items():
                out = ["--force", "-o", work.file("deaf")] if what[0] == "record" else []
                begin = time.monotonic()
                done = clrperf(*what, *out, "-p", program.pid, "-d", "2s")
                took[mode, name] = time.monotonic() - begin
                if mode == "ahead-of-time-never" and name != "-o deaf.clrperf":
                    checks.check(f"a runtime that never answers: {name} says so", "did not answer in time" in done.stderr, done.stderr)
    for name in options:
        usual, deaf = took["ahead-of-time", name], took["ahead-of-time-never", name]
        checks.check(f"a runtime that never answers: {name} ends within a second", deaf <= usual + 1, f"{deaf:.2f} s, else {usual:.2f} s")
    with Target([helper("fakert"), "ahead-of-time-late"], env=dict(os.environ, TMPDIR=work.path)) as program:
        done = clrperf("record", "-e", "gc", "--force", "-o", work.file("deaf"), "-p", program.pid, "-d", "1s")
        checks.check("a runtime that works at its list for 3 s is waited for", done.returncode == 0 and "warning" not in done.stderr, done.stderr)
    for mode, most_s, said in (("collect-never", 1.5, "did not answer in time"), ("stuck", 2.5, "did not list its methods in time")):
        with Target([helper("fakert"), f"ahead-of-time-{mode}"], env=dict(os.environ, TMPDIR=work.path)) as program:
            begin = time.monotonic()
            done = clrperf("record", "-e", "gc", "--force", "-o", work.file("deaf"), "-p", program.pid, "-d", "2s")
            deaf, usual = time.monotonic() - begin, took["ahead-of-time", "-e gc"]
            checks.check(f"a runtime that is {mode}: it is said", said in done.stderr, done.stderr)
            checks.check(f"a runtime that is {mode}: it ends within {most_s} s", deaf <= usual + most_s, f"{deaf:.2f} s, else {usual:.2f} s")
    with Target(sample_command("10", "primes") + ["0"]) as target:
        [path] = glob.glob(f"/tmp/dotnet-diagnostic-{target.pid}-*")
        held = socket.socket(socket.AF_UNIX)
        held.connect(path)
        held.send(b"DOTNET_IPC")  # half a request: its server waits for the rest, and hears nobody else
        recording = Recording(work.file("answers_late.clrperf"), "--providers", "System.Runtime:0:4:EventCounterIntervalSec=1", "-p", target.pid)
        held.close()
        wait_for(lambda: sessions(target.pid), "a runtime that answers late is asked again")
        time.sleep(2.5)
        said = recording.stop()
        checks.check("a runtime that answers later is heard", said["events"] > 0 and "missing" not in recording.errors(), f"{said} {recording.errors()}")


def is_running_child(child, pid):
    try:
        with open(f"/proc/{child}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except OSError:  # it is gone
        return False
    return int(parent) == pid and state not in "TZ"


def stop_children(pid, seconds):
    """What a process starts stands still at once, for so long."""
    end, stopped = time.monotonic() + seconds, set()
    while time.monotonic() < end:
        for child in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            if is_running_child(child, pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGSTOP)
                stopped.add(child)
    return stopped


def stalled_reader(checks, work):
    """Who reads the target's memory stood still for seconds, as on a machine that did: it is asked once more at the end."""
    with Target(sample_command("10", "primes") + ["0"], env={**PLAIN_ENVIRONMENT, "DOTNET_EnableDiagnostics": "0"}) as target:
        target.wait_busy(2)
        for what, seconds, length in (("at first", 4, 6), ("to the end", 8, 5)):
            out = work.file("stalled.clrperf")
            recording = subprocess.Popen([CLRPERF, "record", "--force", "-F", "499", "-d", str(length), "-p", str(target.pid), "-o", out],
                                         stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                         env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # which has a child of its own
            stopped = stop_children(recording.pid, seconds)
            said = recording.communicate(timeout=60)[1]
            frames = report(out, "--top", "1")["totals"]["frames"]
            unnamed = frames["unnamed"] / frames["user"]
            checks.check(f"who reads memory and stands still {what} is killed, again and again", len(stopped) >= 4, str(stopped))
            checks.check(f"{what}: names are there, or it is said that they are not",
                         unnamed < 0.01 or (what == "to the end" and "warning:" in said),
                         f"{unnamed:.2%} {said}")


def kernel_kept(checks, work):
    """The kernel's symbols are kept by the first recording; the second one has the same names by them."""
    with open("/proc/kallsyms") as file:
        lines = [line.split() for line in file]
    if not int(lines[0][0], 16):
        raise Skip("the kernel hides its addresses")
    environment = {**os.environ, "XDG_CACHE_HOME": work.file("cache")}
    os.mkdir(work.file("cache"), 0o700)
    kept = work.file("cache") + "/clrperf/kernel/list"
    names = []
    for which in ("first", "second"):
        out = work.file(f"kept-{which}.clrperf")
        succeeded(clrperf("record", "-q", "-o", out, "-F", "999", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000000",
                          env=environment))
        rows = [row for row in report(out, "--top", "0")["rows"] if row["kind"] == "kernel"]
        names.append({row["name"] for row in rows if row["total_share"] > 0.05})
        checks.check(f"the {which} recording leaves the kernel's symbols", os.path.getsize(kept) > 1 << 20)
        if which == "first":
            inode = os.stat(kept).st_ino
    checks.check("the second recording has kernel names that the first has, and did not write the list again",
                 len(names[0] & names[1]) >= 3 and names[1] <= {line[2] for line in lines} and os.stat(kept).st_ino == inode, names)


GROUPS = (kernel_kept, command, command_of_moments, command_killed, command_beside, command_ends, command_is_short, command_names, closed_descriptors, signals, ordinary_user, events_without_rights, no_rights, targets,
          all_processes, ended_are_let_go, latecomers, target_exits, main_thread_exits, short_lived, lazy_binding, target_updated,
          target_chrooted, target_execs, target_stopped, frame_pointers, beside_another, ahead_of_time, deaf_runtime, stalled_reader, thread_names)


def chosen(arguments):
    """All groups, those that are named, or a part of all: 1/2."""
    part = re.fullmatch(r"(\d+)/(\d+)", arguments[0]) if arguments else None
    if part:
        return GROUPS[int(part[1]) - 1::int(part[2])]
    return [group for group in GROUPS if not arguments or group.__name__ in arguments]


def main():
    checks = Checks()
    with Work() as work:
        for group in chosen(sys.argv[1:]):
            checks.run(group.__name__, group, work)
    checks.exit()


if __name__ == "__main__":
    main()
