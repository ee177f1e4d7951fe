#!/usr/bin/env python3
"""Runs the live tests: real processes, real runtimes, real kernel.

    run.py [--strict] [--sdk] [--remember] [--list] [NAME...]      NAME: of a test, or its beginning; without one all run

A test prints `ok NAME`, `not ok NAME - why` and `skip NAME - why` lines and ends with 0, 1 or 77 (nothing could be
tested). --strict: where a .NET SDK is there, a skip is a failure. --sdk: leaves out what repeats a test on another runtime
than the SDK's. --remember: leaves out what passed before, with the same program, tests, samples and SDK, on the same
kernel; it is counted as passed, and the line says when that was. CLRPERF is the binary; without it that is build-test's, with
sanitizers, and build's, the one that people run, for what repeats a test on another runtime. CLRPERF_TEST_CACHE keeps what was
built for the tests, JOBS is how many tests run at once (default 2). CLRPERF_TESTS_UNTIL, a time as `date +%s` has it: what
repeats a test on another runtime comes last, and is left out when it would begin later; the summary counts it as skipped.

A test that failed is run once more, alone, and what it says then counts: other work on the machine, or beside it on its
host, can spoil what it measures. Both runs are shown, and the summary names it.
"""
import hashlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

from live import CLRPERF, HELPERS, HERE, RELEASE, ROOT

JOBS = int(os.environ.get("JOBS", "2"))
AGAIN_MAX = 4  # more tests than that do not fail by chance
UNTIL_S = float(os.environ.get("CLRPERF_TESTS_UNTIL", "inf"))


class Test:
    """A program, and how much of the machine it wants."""

    def __init__(self, name, *command, seconds, alone=False, sdk=True):
        self.name, self.command, self.seconds, self.alone, self.sdk = name, command, seconds, alone, sdk
        self.lines, self.code, self.took, self.left_out = [], None, 0.0, False
        own = "CLRPERF" in os.environ or sdk or not os.access(RELEASE, os.X_OK)
        self.binary = CLRPERF if own else RELEASE


# The slowest first; the seconds are for a test that hangs, so they hold the builds of a first run on a busy machine.
# `alone`: what it measures would suffer from a neighbour. `sdk`: it is not a repetition on another runtime than the SDK's.
# What is made of events is asked of 8 and 10; that those of 9 are read alike events_9 and record_events_9 say.
TESTS = [
    # there is no ASP.NET Core for 3.1 to be had
    Test("names_10-composite", "names_test.py", "10-composite", "r2rhot", seconds=1800, sdk=False),
    *(Test(f"events_{variant}", "events_test.py", variant, seconds=900, sdk=variant == "10") for variant in ("10", "9", "8", "3.1")),
    *(Test(f"names_{variant}", "names_test.py", variant, seconds=1200, sdk=variant == "10") for variant in ("10", "9", "8")),
    Test("names_10-single", "names_test.py", "10-single", "r2rhot", "pinvoke", "webapi", seconds=1200, sdk=False),
    Test("names_10-single-compressed", "names_test.py", "10-single-compressed", "r2rhot", seconds=1200, sdk=False),
    Test("names_11", "names_test.py", "11", "primes", "r2rhot", "pinvoke", "shapes", seconds=1200, sdk=False),
    Test("names_3.1", "names_test.py", "3.1", "primes", "r2rhot", "pinvoke", "shapes", seconds=1200, sdk=False),
    *(Test(f"stacks_{variant}", "stacks_test.py", variant, seconds=900, sdk=variant == "10") for variant in ("10", "10-musl", "9", "8")),
    Test("perf_dwarf", "perf_dwarf_test.py", "10", seconds=600),
    *(Test(f"record_{part}", "record_test.py", f"{part}/2", seconds=600) for part in (1, 2)),
    Test("capture", "capture_test.py", seconds=600),
    Test("collect", "collect_test.py", "10", seconds=600),
    *(Test(f"trace_{variant}", "trace_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "8")),
    *(Test(f"record_events_{variant}", "record_events_test.py", variant, "beside", seconds=600, sdk=variant == "10") for variant in ("10", "9", "8")),
    *(Test(f"record_events_alone_{variant}", "record_events_test.py", variant, "alone", seconds=600, alone=True, sdk=variant == "10")
      for variant in ("10", "8")),
    *(Test(f"map_{variant}", "map_test.py", variant, seconds=900, sdk=variant == "10") for variant in ("10", "8")),
    *(Test(f"async_{variant}", "async_test.py", variant, seconds=900, sdk=variant == "10") for variant in ("10", "11", "11-async", "9", "8")),
    *(Test(f"stack_{variant}", "stack_test.py", variant, seconds=900, sdk=variant == "10") for variant in ("10", "10-musl", "11", "9", "8")),
    *(Test(f"addr_{variant}", "addr_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "9", "8")),
    Test("oracle_10", "oracle_test.py", "10", seconds=900),
    Test("oracle_8", "oracle_test.py", "8", seconds=900, sdk=False),
    *(Test(f"runtime_work_{variant}", "runtime_work_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "11", "8")),
    *(Test(f"lines_{variant}", "lines_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "11", "9", "8")),
    Test("lines_10-r2r", "lines_test.py", "10-r2r", "precompiled", seconds=600),
    *(Test(f"aot_{variant}", "aot_test.py", f"{variant}-aot", seconds=900, sdk=variant == "10") for variant in ("10", "9", "8")),
    *(Test(f"nettrace_{variant}", "nettrace_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "8")),
    *(Test(f"questions_{variant}", "questions_test.py", variant, seconds=600, sdk=variant == "10") for variant in ("10", "8")),
    Test("languages", "languages_test.py", seconds=600),
    Test("symbols", "symbols_test.py", seconds=600),
    Test("inlined", "inlined_test.py", seconds=300),
    Test("targets", "targets_test.sh", CLRPERF, seconds=600),
    Test("eventpipe", "eventpipe_test.sh", os.path.join(HELPERS, "eventpipe_methods"), "10", "8", seconds=600),
    # of samples that free no code: its place could be used again between what is compared
    Test("code_walk", "code_walk_test.sh", HELPERS, "10 shapes", "11 shapes", "8 shapes", "10-debug shapes",
         "10 shapes DOTNET_TC_QuickJitForLoops=0", "10 shapes DOTNET_TieredCompilation=0", seconds=900),
    Test("walk_builds", "walk_test.py", "unknown", *(f"{build} jitty" for build in ("8.0.29", "8.0.33", "9.0.18", "9.0.22",
                                                                       "10.0.11", "10.0.14")), seconds=900, sdk=False),
    Test("walk_settings", "walk_test.py", "events 10 jitty", "10-trimmed shapes", "10 jitty DOTNET_EnableDiagnostics=0",
         "10 jitty DOTNET_EnableWriteXorExecute=0", "10 shapes DOTNET_TieredCompilation=0",
         "10 shapes DOTNET_TieredPGO=0 DOTNET_gcServer=1", "9 shapes DOTNET_gcServer=1", "8 shapes DOTNET_gcServer=1",
         "8 jitty DOTNET_EnableWriteXorExecute=0", "10 webapi DOTNET_ReadyToRun=0", seconds=900, alone=True, sdk=False),
    Test("r2r_jitdump", "r2r_jitdump.sh", CLRPERF, seconds=600),
    Test("experiment", "experiment_test.py", seconds=600, alone=True),
    Test("loss", "loss_test.py", seconds=600, alone=True),
]


class Run:
    """Hands tests to lanes; one that wants to be alone waits until all lanes are free."""

    def __init__(self, tests):
        self.todo = sorted(tests, key=lambda test: (not test.sdk and UNTIL_S < math.inf, test.alone))
        self.changed, self.running, self.done = threading.Condition(), [], []

    def take(self):
        with self.changed:
            while True:
                while self.todo and not self.todo[0].sdk and time.time() > UNTIL_S:
                    self.todo.pop(0).left_out = True
                if not self.todo:
                    return None
                crowded = any(test.alone for test in self.running) or (self.todo[0].alone and self.running)
                if not crowded:
                    self.running.append(self.todo.pop(0))
                    return self.running[-1]
                self.changed.wait()

    def lane(self):
        for test in iter(self.take, None):
            run(test)
            with self.changed:
                self.running.remove(test)
                self.done.append(test)
                self.changed.notify_all()
                show(test)

    def all(self):
        lanes = [threading.Thread(target=self.lane) for _ in range(JOBS)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()


def left_behind(session):
    """Processes of a test's session, by pid."""
    pids = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == session:
                pids.append(int(name))
        except OSError:
            pass
    return pids


def run(test):
    begin = time.monotonic()
    program = os.path.join(HERE, test.command[0])
    if not os.path.exists(program):
        program = os.path.join(HELPERS, test.command[0])
    words = [sys.executable, program] if program.endswith(".py") else [program]
    process = subprocess.Popen([*words, *test.command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                               env={**os.environ, "CLRPERF": test.binary, "CLRPERF_TEST_HELPERS": HELPERS})
    reader = threading.Thread(target=lambda: test.lines.extend(process.stdout), daemon=True)
    reader.start()
    try:
        test.code = process.wait(timeout=test.seconds)
    except subprocess.TimeoutExpired:
        test.lines.append(f"not ok {test.name} - it did not end within {test.seconds} s\n")
        test.code = -1
    for pid in left_behind(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()
    reader.join(5)
    test.took = time.monotonic() - begin


def count(test):
    """Passed, failed, skipped."""
    if test.left_out:
        return 0, 0, 0
    passed = sum(bool(re.match(r"ok\b(?!.*# SKIP)", line)) for line in test.lines)
    failed = sum(line.startswith("not ok") for line in test.lines)
    skipped = sum(bool(re.match(r"skip\b|ok\b.*# SKIP|1\.\.0 # SKIP|skipped:", line)) for line in test.lines)
    if test.code == 77 and not skipped:
        skipped = 1
    elif test.code not in (0, 77) and not failed:
        failed = 1
    elif test.code == 0 and not passed and not failed and not skipped:
        passed = 1
    return passed, failed, skipped


def show(test):
    passed, failed, skipped = count(test)
    print(f"# {test.name}: {passed} passed, {failed} failed, {skipped} skipped in {test.took:.0f} s", flush=True)
    if failed:
        print("".join(line if line.endswith("\n") else line + "\n" for line in test.lines), end="", flush=True)
    elif skipped:
        print("".join(line for line in test.lines if re.match(r"skip|1\.\.0|ok.*# SKIP", line)), end="", flush=True)


def run_again(tests):
    """Runs what failed once more, with the machine to itself; those that pass now."""
    failed = [test for test in tests if count(test)[1]]
    if len(failed) > AGAIN_MAX:
        return []
    for test in failed:
        print(f"# {test.name}: once more, alone", flush=True)
        test.lines, test.code = [], None
        run(test)
        show(test)
    return [test.name for test in failed if not count(test)[1]]


def build_samples(tests):
    """All that are wanted of a runtime in one go, where several tests want them: a fifth of what one after the other takes."""
    if not shutil.which("dotnet"):
        return
    wanted = [variant for variant in ("10", "8", "9", "11") if sum(variant in test.command for test in tests) > 2]
    if wanted:  # what does not come of it the tests build themselves, and say what is wrong
        subprocess.run([os.path.join(HERE, "runtimes", "build.sh"), "fill", *wanted], stdin=subprocess.DEVNULL, check=False)


class Memory:
    """What passed before, by test: with what it passed, and what it said."""

    def __init__(self):
        self.folder = os.path.join(HELPERS, "passed")
        digest = hashlib.sha256(f"{os.uname()} {os.geteuid()}".encode())
        digest.update(subprocess.run(["dotnet", "--version"], capture_output=True, check=False).stdout
                      if shutil.which("dotnet") else b"")
        for path in [CLRPERF, *sorted(self.inputs())]:
            with open(path, "rb") as file:
                digest.update(path.encode() + file.read())
        self.key = digest.hexdigest()

    @staticmethod
    def inputs():
        """The helpers in C, and the tests and samples as git sees them, with what is not committed yet."""
        for name in os.listdir(HELPERS):
            path = os.path.join(HELPERS, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                yield path
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "tests", "samples"],
                                cwd=ROOT, capture_output=True, text=True, check=True).stdout
        yield from filter(os.path.isfile, (os.path.join(ROOT, name) for name in listed.split("\0")))

    def recall(self, test):
        """Fills in a test that need not run; False when it must."""
        try:
            with open(os.path.join(self.folder, test.name), encoding="utf-8") as file:
                key, when, *lines = file.readlines()
        except (OSError, ValueError):
            return False
        if key.strip() != self.key:
            return False
        test.code, test.lines = 0, lines
        print(f"# {test.name}: {count(test)[0]} passed {when.strip()}, nothing it depends on changed since", flush=True)
        return True

    def keep(self, test):
        passed, failed, skipped = count(test)
        if test.code == 0 and passed and not failed and not skipped:
            os.makedirs(self.folder, exist_ok=True)
            with open(os.path.join(self.folder, test.name), "w", encoding="utf-8") as file:
                file.write(f"{self.key}\n{time.strftime('%Y-%m-%d %H:%M')}\n{''.join(test.lines)}")


def memory():
    """None without git, or without a build of the tests: then all run."""
    try:
        return Memory()
    except (OSError, subprocess.CalledProcessError) as why:
        print(f"# what passed before cannot be told: {why}")
        return None


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    options = set(sys.argv[1:]) - set(words)
    if options - {"--strict", "--sdk", "--remember", "--list"}:
        print(__doc__)
        return 2
    tests = [test for test in TESTS if not words or any(test.name.startswith(word) for word in words)]
    tests = [test for test in tests if test.sdk or "--sdk" not in options]
    if "--list" in options or not tests:
        print("\n".join(test.name for test in (tests or TESTS)))
        return 0 if tests else 2
    begin = time.monotonic()
    print(f"# {CLRPERF}", flush=True)
    known = memory() if "--remember" in options else None
    todo = [test for test in tests if not (known and known.recall(test))]
    build_samples(todo)
    Run(todo).all()
    unsteady = run_again(todo) if len(tests) > 1 else []
    if known:
        for test in todo:
            known.keep(test)
    passed, failed, skipped = (sum(column) for column in zip(*map(count, tests)))
    strict = "--strict" in options and shutil.which("dotnet")
    print(f"# {time.monotonic() - begin:.0f} s" + (", skips count as failures" if strict and skipped else ""))
    left_out = [test.name for test in tests if test.left_out]
    if left_out:
        print(f"# left out, the time was over: {' '.join(left_out)}")
    if unsteady:
        print(f"# failed at first, passed alone: {' '.join(unsteady)}")
    for test in filter(lambda test: count(test)[1], tests):
        wrong = [line for line in test.lines if line.startswith("not ok")] or [f"ended with {test.code}\n"]
        print("".join(f"# {test.name}: {line}" for line in wrong), end="")
    print(f"{passed} passed, {failed} failed, {skipped + len(left_out)} skipped")
    return 1 if failed or (strict and skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
