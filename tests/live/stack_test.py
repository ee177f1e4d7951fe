#!/usr/bin/env python3
"""stack_test.py VARIANT: `clrperf stack` tells what every thread does, of processes that do not help and of cores."""
import json
import os
import re
import signal
import subprocess
import sys
import time

from live import (CLRPERF, FASTER, PLAIN_ENVIRONMENT, ROOT, Checks, Skip, Target, Work, clrperf, comes_true, core_dumps, need_command,
                  oracle_command, sample_command, succeeded, thread_states, wait_at_rest, wait_for)

OFF = {**PLAIN_ENVIRONMENT, "DOTNET_EnableDiagnostics": "0"}
MANAGED = ("jit", "r2r", "dynamic")
# Of samples/positions: the methods on the stacks of threads with such a name, the leaf's first.
POSITION_METHODS = {
    "sleep-": ["Thread.Sleep", "Program.Sleep"],
    "monitor-": ["Monitor.Wait|Condition.Wait", "Program.WaitInMonitor"],  # from .NET 11 on it jumps to the other
    "native-": ["poll", "Program.WaitInNative"],
    "callback-": ["Program.Rest", "WaitInCallback lambda", "msort_with_tmp|qsort_r", "Program.WaitInCallback"],
    "filter-": ["Program.Rest", "Program.RestInFilter", "Program.Throw", "Program.WaitInFilter"],
    "finally-": ["Program.Rest", "Program.ThrowAndClean", "Program.WaitInFinally"],
    "deep-": ["Program.Rest", *["Program.WaitDeep", "Program.Leaf"] * 20, "Program.WaitDeep"],
    "task-": ["GetResult", "Program.WaitForTask"],
}
POSITIONS = tuple(POSITION_METHODS)
NAME_CUT = "by-signal-that-never-comes"  # of samples/deadlock; the kernel has 15 bytes of it
LOOKS = 150  # at a program that locks at full speed


def look(*arguments):
    return json.loads(succeeded(clrperf("stack", "--json", *arguments)).stdout)


def by_name(view):
    return {thread["name"]: thread for thread in view["threads"]}


def waiting(view):
    """Of the program's own threads."""
    return {t["name"]: t["waiting_on"] for t in view["threads"] if t["name"].startswith(("cycle-", "lock-", "by-"))}


def functions(thread):
    return [frame["function"] for frame in thread["frames"]]


def line_of(thread, method):
    """Of the first frame of the sample's whose name ends so."""
    return next((frame["line"] for frame in thread["frames"] if frame["function"].endswith(method)
                 and frame["line_is"] == "statement"), None)


def entering_line():
    """Where a thread of a cycle of monitors waits."""
    with open(os.path.join(ROOT, "samples/deadlock/Program.cs"), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if "lock (next)" in line)


def states(pid):
    return {state for _, state, _ in thread_states(pid)}


def is_left_alone(pid):
    return {tracer for _, _, tracer in thread_states(pid)} == {0} and not states(pid) & {"t", "T"}


def positions(variant):
    """Two hundred threads that rest where their names say."""
    return Target(sample_command(variant, "positions") + ["0"], env=OFF)


def deadlocked(variant, mode, **options):
    """The threads of a cycle say `ready` before they block for good."""
    return Target(sample_command(variant, "deadlock") + ["0", mode], env=OFF, **options)


def in_circle(pid, count):
    view = look("-p", pid)
    return len(view["deadlocks"] or []) == 1 and len(view["deadlocks"][0]) == count


def check_deadlocks(checks, variant):
    modes = [("two", 2, "cycle-"), ("three", 3, "cycle-")] + ([("lock", 2, "lock-")] if variant != "8" else [])
    for mode, count, name in modes:
        with deadlocked(variant, mode) as target:
            checks.check(f"{variant} {mode}: a deadlock of {count} threads is found",
                         comes_true(lambda: in_circle(target.pid, count)), "")
            view = look("-p", target.pid)
            threads = {thread["tid"]: thread for thread in view["threads"]}
            members = [threads[tid] for tid in view["deadlocks"][0]]
            checks.check(f"{variant} {mode}: its threads are the right ones",
                         sorted(t["name"] for t in members) == [f"{name}{i}" for i in range(count)], str([t["name"] for t in members]))
            checks.check(f"{variant} {mode}: each waits for the next one",
                         all(t["lock"]["owner"] == members[(i + 1) % count]["tid"] for i, t in enumerate(members)), "")
            if mode != "lock":
                checks.check(f"{variant} {mode}: locks have their types",
                             {t["lock"]["type"] for t in members} == {"LockA", "LockB", "int[,]"} - ({"int[,]"} if count == 2 else set()),
                             str([t["lock"]["type"] for t in members]))
                checks.check(f"{variant} {mode}: each is at the line that enters",
                             all(line_of(t, "WaitForNext") == entering_line() for t in members),
                             str([line_of(t, "WaitForNext") for t in members]))
            checks.check(f"{variant} {mode}: stacks lead from the lock to Main's lambda",
                         all(any("WaitForNext" in f or "EnterNext" in f for f in functions(t)) for t in members), "")
            waiter = by_name(view)["by-waiter"]["lock"]
            checks.check(f"{variant} {mode}: who waits for a sleeper is in no deadlock",
                         waiter["owner"] == by_name(view)["by-holder"]["tid"], str(waiter))
            raw = look("-p", target.pid, "--raw-names")
            checks.check(f"{variant} {mode}: the runtime's spelling changes names, not what they wait for",
                         waiting(raw) == waiting(view) and len(raw["deadlocks"]) == 1, f"{waiting(raw)}, {waiting(view)}")
            one = succeeded(clrperf("stack", "--json", "-p", target.pid, "--thread", members[0]["tid"]))
            alone = json.loads(one.stdout)
            checks.check(f"{variant} {mode}: of one thread it is said who holds the lock, and nothing of deadlocks",
                         [t["lock"] for t in alone["threads"]] == [members[0]["lock"]] and alone["deadlocks"] is None and not one.stderr,
                         f"{alone['deadlocks']} {one.stderr}")
            text = succeeded(clrperf("stack", "-p", target.pid)).stdout
            checks.check(f"{variant} {mode}: people read of it first", f"\ndeadlock: {count} threads" in text[:300], text[:300])


def circle(view):
    """The names of the threads of the only deadlock, each before the one that it waits for; those of the pool aside."""
    names = {thread["tid"]: thread["name"] for thread in view["threads"]}
    circles = [[names[tid] for tid in tids] for tids in view["deadlocks"] or []]
    return [name for name in circles[0] if not name.startswith(".NET")] if len(circles) == 1 else circles


def check_abandoned(checks, variant, work):
    with deadlocked(variant, "abandoned") as target:
        names = ("waits-for-one-that-went", "waits-for-one-that-was-gone")

        def locks(view):
            threads = by_name(view)
            return [threads[name]["lock"] for name in names if name in threads and threads[name]["lock"]]

        checks.check(f"{variant}: who holds these locks has ended", comes_true(lambda: [
            lock["abandoned"] for lock in locks(look("-p", target.pid))] == [True, True]), str(locks(look("-p", target.pid))))
        checks.check(f"{variant}: they have their types, and are in no deadlock", [lock["type"] for lock in locks(look("-p", target.pid))] ==
                     ["LockB", "LockA"] and look("-p", target.pid)["deadlocks"] == [], str(locks(look("-p", target.pid))))
        waiter = by_name(look("-p", target.pid))["by-waiter"]["lock"]
        checks.check(f"{variant}: a lock whose owner lives is not called so", not waiter["abandoned"], str(waiter))
        text = succeeded(clrperf("stack", "-p", target.pid)).stdout
        checks.check(f"{variant}: people read that nobody will leave them", text.count("which has ended: nobody will leave it") == 2, "")
        for kind, path in core_dumps(work, target.pid, f"{variant}-abandoned"):
            if kind != "mini":
                checks.check(f"{variant} {kind}: the same in a dump", [lock["abandoned"] for lock in locks(look(path))] == [True, True],
                             str(locks(look(path))))


def check_task_deadlocks(checks, variant, work):
    """Who holds a lock waits for a task of which another thread that waits for that lock runs a part."""
    for mode, count in (("task", 2), ("async", 2), ("all", 2), ("each", 2), ("ring", 4)):
        with deadlocked(variant, mode) as target:
            checks.check(f"{variant} {mode}: a deadlock of {count} threads is found",
                         comes_true(lambda: in_circle(target.pid, count)), "")
            view = look("-p", target.pid)
            threads = {thread["tid"]: thread for thread in view["threads"]}
            members = view["deadlocks"][0]
            own = sorted(f"task-{i}" for i in range(count // 2))
            checks.check(f"{variant} {mode}: of the right threads", sorted(circle(view)) == own, str(circle(view)))
            kinds = [threads[tid]["lock"]["kind"] for tid in members]
            checks.check(f"{variant} {mode}: tasks and monitors by turns", {*kinds[::2]} | {*kinds[1::2]} == {"task", "monitor"} and
                         len({*kinds[::2]}) == 1, str(kinds))
            checks.check(f"{variant} {mode}: each waits for the next one",
                         all(threads[tid]["lock"]["owner"] == members[(i + 1) % count] for i, tid in enumerate(members)), "")
            text = succeeded(clrperf("stack", "-p", target.pid)).stdout
            checks.check(f"{variant} {mode}: people read of it", " waits for the task " in text and " that needs thread " in text, text[:400])
            if mode == "ring":
                for kind, path in core_dumps(work, target.pid, f"{variant}-ring"):
                    if kind != "mini":
                        checks.check(f"{variant} {kind}: a dump tells it, too", sorted(circle(look(path))) == own, "")
    with deadlocked(variant, "free") as target:
        wants = {"cancelled", "any", "by-source"}
        checks.check(f"{variant}: whose lock is waited for by their tasks", comes_true(lambda: wants <= owners(look("-p", target.pid))), "")
        time.sleep(0.2)
        views = [look("-p", target.pid) for _ in range(3)]
        checks.check(f"{variant}: no deadlock where the wait can be cancelled, or something else can end it",
                     all(view["deadlocks"] == [] for view in views), str([circle(view) for view in views]))
        joins = by_name(views[0])["joins"]
        checks.check(f"{variant}: it is not the thread that wants what is held whose end is waited for",
                     joins["lock"] is None or waits_of(views[0])[joins["lock"]["owner"]].startswith("Thread.Sleep"), str(joins["lock"]))


def check_join_deadlock(checks, variant, work):
    """Who holds a lock waits for the end of a thread that wants it."""
    with deadlocked(variant, "join") as target:
        checks.check(f"{variant} join: a deadlock of 2 threads is found", comes_true(lambda: in_circle(target.pid, 2)), "")
        view = look("-p", target.pid)
        threads = {thread["tid"]: thread for thread in view["threads"]}
        joins, wants = sorted((threads[tid] for tid in view["deadlocks"][0]), key=lambda thread: thread["name"])
        checks.check(f"{variant} join: of who waits for the end of a thread, and that thread", joins["name"] == "join-0" and
                     (joins["lock"]["kind"], joins["lock"]["type"], joins["lock"]["owner"]) == ("thread", "Thread", wants["tid"]) and
                     wants["lock"]["owner"] == joins["tid"], f"{joins['lock']} {wants['lock']}")
        text = succeeded(clrperf("stack", "-p", target.pid)).stdout
        checks.check(f"{variant} join: people read of it", f"waits for the end of thread {wants['tid']}\n" in text and
                     f"in Thread.Join until the end of thread {wants['tid']} (" in text, text[:400])
        alone = look("-p", target.pid, "--thread", joins["tid"], "--raw-names")["threads"][0]
        checks.check(f"{variant} join: of one thread, and by the runtime's names, too", alone["lock"] == joins["lock"], str(alone["lock"]))
        for kind, path in core_dumps(work, target.pid, f"{variant}-join"):
            if kind != "mini":
                checks.check(f"{variant} {kind}: a dump tells of the thread, too", sorted(circle(look(path))) == sorted(circle(view)), str(circle(look(path))))


def waits_of(view):
    return {thread["tid"]: thread["waiting_on"] for thread in view["threads"]}


def owners(view):
    names = {thread["tid"]: thread["name"] for thread in view["threads"]}
    return {names.get(thread["lock"]["owner"]) for thread in view["threads"] if (thread["lock"] or {}).get("kind") == "monitor"}


def check_whole(checks, variant):
    with deadlocked(variant, "two") as target:
        wait_for(lambda: in_circle(target.pid, 2), "two threads in a circle")
        wait_at_rest(target.pid)
        view = look("-p", target.pid)
        ends = [thread["end"] for thread in view["threads"]]
        frames = [frame for thread in view["threads"] for frame in thread["frames"]]
        checks.check(f"{variant}: every stack is whole", set(ends) == {"whole"}, str(ends))
        checks.check(f"{variant}: every frame has a name", len(frames) > 50 and all(f["function"] for f in frames), f"{len(frames)} frames")
        checks.check(f"{variant}: sleeping is told", "Thread.Sleep" in by_name(view)["by-holder"]["waiting_on"], "")
        checks.check(f"{variant}: a name is whole where the kernel's is cut", NAME_CUT in by_name(view), str(sorted(map(str, by_name(view)))))
        checks.check(f"{variant}: idle threads are folded", "idle thread" in clrperf("stack", "-p", target.pid).stdout, "")
        one = look("-p", target.pid, "--thread", by_name(view)["by-thin"]["tid"], "--managed")
        checks.check(f"{variant}: one thread, managed frames only", len(one["threads"]) == 1 and
                     {f["kind"] for f in one["threads"][0]["frames"]} <= set(MANAGED) and one["threads"][0]["frames"], "")
        named = look("-p", target.pid, "--thread", "BY-*")
        bystanders = [name for name in by_name(view) if name.startswith("by-")]
        checks.check(f"{variant}: threads by name, with what they wait for", sorted(by_name(named)) == sorted(bystanders) and
                     named["whole"] == len(bystanders) and waiting(named) == {name: waiting(view)[name] for name in bystanders}, str(waiting(named)))
        text = clrperf("stack", "-p", target.pid, "--thread", "by-signal-that-never-comes").stdout
        checks.check(f"{variant}: of others nothing is printed", ": 1 thread, 1 stack whole" in text and len(re.findall("^thread ", text, re.M)) == 1, text[:300])
        text = clrperf("stack", "-p", target.pid, "--thread", "cycle-1").stdout
        checks.check(f"{variant}: but for a deadlock that one is in", text.count("\nthread ") == 2 and "\ndeadlock: 2 threads" in text, text[:300])
        missing = clrperf("stack", "-p", target.pid, "--thread", "nobody")
        checks.check(f"{variant}: a name that no thread has is an error", missing.returncode == 3 and "'nobody'" in missing.stderr, missing.stderr)
        missing = clrperf("stack", "-p", target.pid, "--thread", 1)
        checks.check(f"{variant}: a thread that is not there is an error", missing.returncode == 3, missing.stderr)


def check_left_alone(checks, variant):
    """A stopped process stays stopped, a running one runs on, whatever becomes of us."""
    with deadlocked(variant, "busy") as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_for(lambda: states(target.pid) == {"T"}, "it is stopped")
        view = look("-p", target.pid)
        checks.check(f"{variant}: a stopped process shows whole stacks", {t["end"] for t in view["threads"]} == {"whole"} and
                     {t["state"] for t in view["threads"]} == {"stopped"}, "")
        # a thread that was let go of stops again once it gets a CPU
        checks.check(f"{variant}: and stays stopped", comes_true(lambda: states(target.pid) == {"T"}, 5), str(states(target.pid)))
        os.kill(target.pid, signal.SIGCONT)
        before = target.truth()["counts"]["rounds"]
        for delay in (0.05, 0.1, 0.2, 0.3, 0.5):
            looking = subprocess.Popen([CLRPERF, "stack", "-p", str(target.pid), "--json", "--repeat", "100000", "--every", "1ms"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            looking.kill()
            looking.wait()
        checks.check(f"{variant}: after we were killed nobody holds its threads",
                     comes_true(lambda: is_left_alone(target.pid)), str(thread_states(target.pid)))
        checks.check(f"{variant}: and it works on", comes_true(lambda: target.truth()["counts"]["rounds"] > before), "")


# Holds all threads of a process for so long. A debugger lets go of them when it has read symbols, which takes as long as it likes.
HOLDER = """
import ctypes, os, sys, time
ptrace = ctypes.CDLL(None, use_errno=True).ptrace
ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT = 0x4206, 0x4207
for tid in os.listdir(f"/proc/{sys.argv[1]}/task"):
    ptrace(SEIZE, int(tid), None, None), ptrace(INTERRUPT, int(tid), None, None)
time.sleep(float(sys.argv[2]))
"""


def check_at_once(checks, variant):
    """Only one can trace a thread: who comes second waits for the first."""
    with positions(variant) as target:
        wait_at_rest(target.pid)
        looking = [subprocess.Popen([CLRPERF, "stack", "-p", str(target.pid), "--json", "--async", "--repeat", "5", "--every", "1ms"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(3)]
        views = [json.loads(line) for process in looking for line in process.communicate(timeout=100)[0].splitlines()]
        lost = [t["problem"] for view in views for t in view["threads"] if t["problem"]]
        unread = [view["async"]["problem"] for view in views if view["async"]["problem"]]
        checks.check(f"{variant}: three at once lose no thread, and all read the heap", len(views) == 15 and not lost and not unread,
                     f"{len(views)} looks; {lost[:2]} {unread[:2]}")
        for seconds, ok in (("0.3", True), ("3", False)):
            with subprocess.Popen([sys.executable, "-c", HOLDER, str(target.pid), seconds], stdin=subprocess.DEVNULL) as debugger:
                wait_for(lambda: states(target.pid) == {"t"}, "it is held")
                done = clrperf("stack", "-p", target.pid)
                debugger.wait()
            if ok:
                checks.check(f"{variant}: a debugger that lets go soon is waited for", done.returncode == 0 and "no stack:" not in done.stdout,
                             done.stderr)
            else:
                checks.check(f"{variant}: one that stays is named", done.returncode == 4 and
                             f"is traced by process {debugger.pid}," in done.stderr, done.stderr)


def check_hasty(checks, variant):
    for mode, kind in (("hasty", "task"), ("joins", "thread")):
        with deadlocked(variant, mode) as target:
            done = succeeded(clrperf("stack", "-p", target.pid, "--json", "--repeat", LOOKS, "--every", "1ms", timeout=300,
                                     binary=FASTER))
            views = [json.loads(line) for line in done.stdout.splitlines()]
            locks = [thread["lock"] for view in views for thread in view["threads"] if thread["lock"]]
            checks.check(f"{variant} {mode}: no false deadlock in {LOOKS} looks", len(views) == LOOKS and
                         all(view["deadlocks"] == [] for view in views), "")
            owners_of_kind = [lock["owner"] for lock in locks if lock["kind"] == kind]
            checks.check(f"{variant} {mode}: somebody waits for a {kind}, and it is known what thread that needs",
                         owners_of_kind and all(owners_of_kind), f"{len(owners_of_kind)} of {len(locks)} waits")


def check_busy(checks, variant):
    with deadlocked(variant, "busy") as target:
        done = succeeded(clrperf("stack", "-p", target.pid, "--json", "--repeat", LOOKS, "--every", "1ms", timeout=300))
        views = [json.loads(line) for line in done.stdout.splitlines()]
        threads = [thread for view in views for thread in view["threads"]]
        whole = sum(thread["end"] == "whole" for thread in threads)
        checks.check(f"{variant}: no false deadlock in {LOOKS} looks", len(views) == LOOKS and
                     all(view["deadlocks"] == [] for view in views), "")
        checks.check(f"{variant}: stacks of a busy program are whole", whole >= 0.999 * len(threads), f"{whole} of {len(threads)}")
        checks.check(f"{variant}: somebody waits for a monitor",
                     any((t["lock"] or {}).get("kind") == "monitor" for t in threads), "")


def check_vdso(checks):
    """What the kernel maps into a process has names, too: there the clock is read."""
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.monotonic()"]) as reader:
        try:
            done = succeeded(clrperf("stack", "-p", reader.pid, "--json", "--repeat", LOOKS, "--every", "1ms", timeout=300))
        finally:
            reader.kill()
    frames = [f for line in done.stdout.splitlines() for t in json.loads(line)["threads"] for f in t["frames"] if f["module"] == "[vdso]"]
    checks.check("the vdso's functions have names", frames and all("clock" in (f["function"] or "") for f in frames),
                 f"{len(frames)} frames, {frames[:1]}")


def check_clrmd(checks, variant, started, stacks, frames_least):
    """Every managed frame, in order."""
    oracle = oracle_command("names")
    with started as target:
        wait_at_rest(target.pid)
        view = look("-p", target.pid)
        done = subprocess.run([*oracle, str(target.pid), "--threads"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=120)
        if done.returncode:
            raise RuntimeError(f"names: {done.stderr[-300:]}")
    aside = {int(f["address"], 16) for t in view["threads"] for f in t["frames"] if f["kind"] not in ("jit", "r2r")}
    theirs = {}
    for line in done.stdout.splitlines():
        tid, address, name = line.split("\t")
        # a method that is written in C++ has a frame there whose address is the native leaf's, an imported one its stub's
        if int(address, 16) in aside:
            continue
        stack = theirs.setdefault(int(tid), [])
        if stack and stack[-1][0] == int(address, 16):
            stack.pop()  # a native function that is called straight from the method has a frame of its own there
        stack.append((int(address, 16), name))
    mine = {thread["tid"]: managed_part(thread) for thread in view["threads"]}
    # while an exception is handled ClrMD leaves out what lies between the handler and the method it belongs to
    handling = {thread["tid"] for thread in view["threads"] if (thread["name"] or "").startswith(("filter-", "finally-"))}
    differ = [tid for tid in theirs if not (holds_managed if tid in handling else same_managed)(mine.get(tid, []), theirs[tid])]
    frames = sum(len(stack) for stack in theirs.values())
    checks.check(f"{variant}: ClrMD sees stacks", len(theirs) >= stacks and frames >= frames_least,
                 f"{len(theirs)} threads, {frames} frames")
    checks.check(f"{variant}: managed frames are ClrMD's, every one, in order", not differ,
                 "; ".join(f"{tid}: ours {mine.get(tid)}, theirs {theirs[tid]}" for tid in differ[:2]))


def check_positions(checks, variant):
    """The methods that a thread rests in, by its name."""
    with positions(variant) as target:
        wait_at_rest(target.pid)
        view = look("-p", target.pid)
    threads = [thread for thread in view["threads"] if (thread["name"] or "").startswith(POSITIONS)]
    wrong = []
    for thread in threads:
        shown = iter(functions(thread))
        wanted = POSITION_METHODS[thread["name"].rpartition("-")[0] + "-"]
        if thread["end"] != "whole" or not all(any(re.search(method, name) for name in shown) for method in wanted):
            wrong.append(f"{thread['name']}: {functions(thread)}")
    checks.check(f"{variant} positions: 200 threads are where they say, on whole stacks", len(threads) == 200 and not wrong,
                 f"{len(threads)} threads, {len(wrong)} wrong; " + "; ".join(wrong[:2]))


def managed_part(thread):
    """Address, name, and whether it called native code: of those ClrMD says where the runtime noted it, in the same method."""
    found, before = [], True
    for frame in thread["frames"]:
        if frame["kind"] in ("jit", "r2r"):
            found.append((int(frame["address"], 16), frame["function"], before))
        before = frame["kind"] not in ("jit", "r2r")
    return found


def same_frame(ours, other):
    method = other[1].rpartition(".")[2]
    return ours[0] == other[0] or (ours[2] and (method in ours[1] or "<" in method))


def same_managed(mine, theirs):
    return len(mine) == len(theirs) and all(map(same_frame, mine, theirs))


def holds_managed(mine, theirs):
    """All of theirs are there, in order."""
    rest = iter(mine)
    return all(any(same_frame(ours, other) for ours in rest) for other in theirs)


def gdb_stacks(pid):
    done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "set debuginfod enabled off", "-ex", "thread apply all bt"],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120)
    stacks, tid = {}, None
    for line in done.stdout.splitlines():
        head = re.match(r"Thread \d+ .*LWP (\d+)", line)
        frame = re.match(r"#\d+ +0x([0-9a-f]+) in ", line)
        if head:
            tid = int(head.group(1))
            stacks[tid] = []
        elif frame and tid:
            stacks[tid].append(int(frame.group(1), 16))
    return stacks


def native_part(thread):
    """Up to the first managed frame: gdb finds no way past it."""
    addresses = []
    for frame in thread["frames"]:
        if frame["kind"] not in ("native", "runtime"):
            break
        if not frame["inlined"]:  # else it is at the next one's address
            addresses.append(int(frame["address"], 16))
    return addresses


def check_gdb(checks, variant, started, names, stacks, frames_least):
    need_command("gdb")
    with started as target:
        wait_at_rest(target.pid)
        view = look("-p", target.pid)
        theirs = gdb_stacks(target.pid)
    if not theirs:
        raise Skip("gdb says nothing")
    compared, threads, differ = 0, 0, []
    for thread in view["threads"]:
        if not thread["name"].startswith(names):
            continue  # the runtime's own threads do not rest
        threads += 1
        mine, other = native_part(thread), theirs.get(thread["tid"], [])
        compared += len(mine)
        # gdb leaves out the leaf's address at the start of a line, and makes up frames for the leaf's tail calls
        at = other.index(mine[1]) if len(mine) > 1 and mine[1] in other else 0
        if len(mine) > 1 and (at > 2 or other[at:at + len(mine) - 1] != mine[1:]):
            differ.append(f"{thread['tid']}: ours {[hex(a) for a in mine]}, gdb {[hex(a) for a in other]}")
    checks.check(f"{variant}: native frames are gdb's", threads >= stacks and compared >= frames_least and not differ,
                 f"{compared} frames of {threads} threads, {len(differ)} differ; " + "; ".join(differ[:2]))


def check_cores(checks, variant, work):
    with deadlocked(variant, "two") as target:
        wait_for(lambda: in_circle(target.pid, 2), "two threads in a circle")
        wait_at_rest(target.pid)
        # the runtime's own threads come and go
        now = look("-p", target.pid)
        name = now["process_name"]
        names = {t["tid"]: t["name"] for t in now["threads"] if t["name"].startswith(("cycle-", "by-"))}
        live = {t["tid"]: functions(t) for t in now["threads"] if t["tid"] == target.pid or t["tid"] in names}
        dumps = core_dumps(work, target.pid, variant)
    for kind, path in dumps:
        view = look(path)
        checks.check(f"{variant} {kind}: has the runtime's version", view["runtime_version"] == now["runtime_version"],
                     f"{view['runtime_version']}, {now['runtime_version']}")
        checks.check(f"{variant} {kind}: has the name of the process", view["process_name"] == name, f"{view['process_name']}, {name}")
        core = {t["tid"]: functions(t) for t in view["threads"]}
        called = {t["tid"]: t["name"] for t in view["threads"] if t["tid"] in names}
        # a small dump lacks some
        checks.check(f"{variant} {kind}: threads have the names that the program gave them",
                     any(called.values()) and {**names, **{tid: name for tid, name in called.items() if name or kind != "mini"}} == names,
                     f"{called}, {names}")
        shown = [t["tid"] for t in view["threads"] if not t["managed"] and not t["idle"]]
        checks.check(f"{variant} {kind}: threads of the runtime are told as such, without their names",
                     not shown and not any(t["idle"] for t in view["threads"] if t["tid"] in live), f"at work: {shown}")
        differ = [tid for tid in live if core.get(tid) != live[tid]]
        checks.check(f"{variant} {kind}: stacks are those of the process", len(live) == 7 and not differ,
                     f"{len(live)} threads; " + "; ".join(f"{tid}: {core.get(tid)} live {live[tid]}" for tid in differ[:1]))
        if kind != "mini":
            checks.check(f"{variant} {kind}: the deadlock is found", [len(c) for c in view["deadlocks"] or []] == [2],
                         str(view["deadlocks"]))
        else:
            said = clrperf("stack", path).stderr
            found = view["deadlocks"] is not None  # who holds a lock may lie beside what such a dump is made of
            right = [len(c) for c in view["deadlocks"]] == [2] if found else "does not say who holds" in said
            checks.check(f"{variant} {kind}: the deadlock is found, or that it does not tell of deadlocks is said", right,
                         f"{view['deadlocks']} {said} {[(t['lock'], t['waiting_on']) for t in view['threads'] if t['waiting_on']]}")
    kind, path = dumps[0]
    with open(path, "rb") as whole, open(work.file("cut.core"), "wb") as cut:
        cut.write(whole.read(os.path.getsize(path) // 3))
    done = clrperf("stack", work.file("cut.core"))
    checks.check(f"{variant} {kind}: a cut dump is said to be cut", done.returncode == 0 and "the dump is cut" in done.stderr, done.stderr[-300:])


def crash(variant, path, mode):
    heap = {"DOTNET_DbgEnableMiniDump": "1", "DOTNET_DbgMiniDumpType": "2", "DOTNET_DbgMiniDumpName": path}
    with Target(sample_command(variant, "crashes") + ["0", mode], env={**PLAIN_ENVIRONMENT, **heap},
                stderr=subprocess.DEVNULL) as target: # .NET 9 tells of all frames of a stack that is full
        target.process.stdin.write(b"go\n")
        target.process.stdin.flush()
        wait_for(lambda: not target.alive(), "the end of the program")
    return os.path.exists(path)


def dump_of_crash(variant, work, mode):
    """That the runtime fails at it now and then is not what is tested."""
    path = work.file(f"{variant}-{mode}.dmp")
    if not any(crash(variant, path, mode) for _ in range(2)):
        raise Skip("the runtime made no dump")
    return path


def check_crashes(checks, variant, work):
    """The runtime makes a dump on a stack of its own; what crashed is on another."""
    callers = ["Crashes.Program.AskNative", "Crashes.Program.Crash", "Crashes.Program.Main lambda"]
    view = look(dump_of_crash(variant, work, "native"))
    crashed = [t for t in view["threads"] if callers[0] in functions(t)]
    found = [f for f in functions(crashed[0]) if f.startswith("Crashes.")] if crashed else []
    checks.check(f"{variant} native: the stack that crashed is whole", found == callers and crashed[0]["end"] == "whole",
                 f"{found} {[t['end'] for t in view['threads']]}")
    died = {t["tid"]: (t["died_of"], t["fault_address"]) for t in view["threads"] if t["died_of"]}
    checks.check(f"{variant} native: what it died of", died == {t["tid"]: ("SIGSEGV", "0x0") for t in crashed}, str(died))
    checks.check(f"{variant} native: no exception of the program's", crashed[0]["exceptions"] == [], str(crashed[0]["exceptions"]))
    view = look(dump_of_crash(variant, work, "throw"))
    thrown = [[(e["type"], e["message"]) for e in t["exceptions"]] for t in view["threads"] if t["exceptions"]]
    checks.check(f"{variant} throw: what was thrown, and why", thrown == [
        [("System.InvalidOperationException", "the order is broken"), ("System.ArgumentException", "no such customer")]], str(thrown))
    overflow = dump_of_crash(variant, work, "overflow")
    view = look(overflow)
    depths = [functions(t).count("Crashes.Program.Recurse") for t in view["threads"]]
    checks.check(f"{variant} overflow: the recursion is seen", max(depths) > 300, str(depths))
    thrown = [e["type"] for t in view["threads"] for e in t["exceptions"] or []]
    checks.check(f"{variant} overflow: its exception", thrown == ["System.StackOverflowException"], str(thrown))
    died = [(t["died_of"], functions(t)) for t in view["threads"] if t["died_of"]]
    checks.check(f"{variant} overflow: who died", len(died) == 1 and "Crashes.Program.Recurse" in died[0][1], str([d[0] for d in died]))
    text = succeeded(clrperf("stack", overflow)).stdout.splitlines()
    checks.check(f"{variant} overflow: people read of it first", text[2].startswith("ended by SIG"), text[2])
    folded = [line for line in text if "Crashes.Program.Recurse" in line]
    checks.check(f"{variant} overflow: as few lines", 0 < len(folded) < 10 and any(" times)" in line for line in folded),
                 " / ".join(folded[:12]))


def main():
    checks = Checks()
    variant = (sys.argv[1:] or ["10"])[0]
    with Work() as work:
        checks.run("deadlocks", check_deadlocks, variant)
        checks.run("deadlocks of tasks", check_task_deadlocks, variant, work)
        if variant != "11":  # there a monitor's owner is known by a number that the next thread gets
            checks.run("abandoned", check_abandoned, variant, work)
        checks.run("deadlocks of joins", check_join_deadlock, variant, work)
        checks.run("whole", check_whole, variant)
        checks.run("left alone", check_left_alone, variant)
        checks.run("at once", check_at_once, variant)
        checks.run("busy", check_busy, variant)
        checks.run("vdso", check_vdso)
        checks.run("hasty", check_hasty, variant)
        checks.run("positions", check_positions, variant)
        checks.run("crashes", check_crashes, variant, work)
        if variant.endswith("-musl"):
            checks.exit()  # the other tools find no way through musl's C library
        checks.run("ClrMD", check_clrmd, variant, deadlocked(variant, "three"), 7, 20)
        # from .NET 11 on, threads wait in managed code that calls the system itself
        native_least = (10, 300) if variant == "11" else (40, 1000)
        checks.run("gdb", check_gdb, variant, deadlocked(variant, "two"), ("cycle-", "by-"), 6, native_least[0])
        checks.run("positions ClrMD", check_clrmd, variant, positions(variant), 200, 1500)
        checks.run("positions gdb", check_gdb, variant, positions(variant), POSITIONS, 200, native_least[1])
        checks.run("cores", check_cores, variant, work)
    checks.exit()


if __name__ == "__main__":
    main()
