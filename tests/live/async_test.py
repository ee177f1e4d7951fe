#!/usr/bin/env python3
"""async_test.py VARIANT: `clrperf stack --async` tells the chains of waiting async methods, of processes that do not help and of cores."""
import collections
import json
import os
import re
import signal
import subprocess
import sys

from live import (PLAIN_ENVIRONMENT, Checks, Load, Skip, Target, Work, clrperf, comes_true, oracle_command, sample_command,
                  succeeded, thread_states, wait_for)

OFF = {**PLAIN_ENVIRONMENT, "DOTNET_EnableDiagnostics": "0"}
LOOKS = 20  # at a program that allocates at full speed

LOOP = ("EachAsync", "System.Threading.Tasks.Parallel.ForEachAsync lambda", "Task", "LoopAsync")
AS_TASK = ("BoxedAsync", "ValueTask.AsTask", "AsTaskAsync")
EACH_END = ("SemaphoreAsync", "Task.WhenEach", "System.Threading.Tasks.Task.WhenEachState.Iterate<Task>", "EachEndAsync")  # from 9 on

# What samples/asyncchain says of itself: how often, what for, and who awaits whom, the innermost first.
CHAINS = collections.Counter({
    ("Task.Delay", ("InnerAsync", "MidAsync", "Task.WhenAll", "OuterAsync")): 8,
    ("SemaphoreSlim.WaitAsync", ("SemaphoreAsync",)): 3,
    ("Task", ("SharedAsync",)): 2,
    ("Task", ("SharedAsync", "Task.ContinueWith", "ContinuedAsync")): 1,
    ("Task.Delay", ("PooledAsync", "ValueAsync", "UsesValueAsync")): 1,
    ("Task", ("StepsAsync", "SumAsync")): 1,
    ("Task", ("GenericAsync<string>",)): 1,
    ("Task", ("GenericAsync<object>", "ClassBasedAsync<object>")): 1,
    ("Task", ("DeepAsync",) * 41): 1,
    ("Task", ("UnwrappedAsync", "Task.Unwrap")): 1,
    ("Task", ("Start lambda",)): 1,
    ("circle", ("CircleAAsync", "CircleBAsync")): 1,
    ("Task", ("DirectInnerAsync", "DirectMidAsync", "DirectAsync")): 1,
    ("Task", LOOP): 2,
    ("Channel", ("ChannelAsync",)): 1,
    ("Socket", ("SocketAsync",)): 1,
    ("PeriodicTimer.WaitForNextTickAsync", ("TimerAsync",)): 1,
    ("Channel.WriteAsync", ("FullAsync",)): 1,
    ("Socket", ("SenderAsync",)): 1,
    ("SemaphoreSlim.WaitAsync", AS_TASK): 1,
    ("SemaphoreSlim.WaitAsync", EACH_END): 2,
})


# The runtime of .NET 11 suspends the framework's methods itself: their local variables have no names, and whose worker it is is not known.
CHAINS_11 = CHAINS - collections.Counter({("Task", LOOP): 2}) + collections.Counter({("Task", LOOP[:2]): 2, ("Task", LOOP[3:]): 1})

# Where it does so with the program's, code is shared by instantiations, and tells no type arguments; and AsTask returns the method's own Task.
SUSPENDED_CHAINS = collections.Counter()
for (_wait, _frames), _count in CHAINS_11.items():
    if _frames == AS_TASK:
        _frames = (AS_TASK[0], AS_TASK[2])
    SUSPENDED_CHAINS[_wait, tuple(frame if "Iterate" in frame else re.sub("<.*>", "<T>", frame) for frame in _frames)] += _count


def chains_expected(variant):
    chains = {"11": CHAINS_11, "11-async": SUSPENDED_CHAINS}.get(variant, CHAINS)
    return chains - collections.Counter({("SemaphoreSlim.WaitAsync", EACH_END): 2}) if variant == "8" else chains


def look(*arguments):
    return json.loads(succeeded(clrperf("stack", "--async", "--json", *arguments)).stdout)["async"]


def short(frame):
    if frame["kind"] == "task":
        return frame["function"]
    return re.sub(r"^AsyncChain\.\w+\.", "", frame["function"]).replace(" (async)", "")


def chains_of(view):
    found = collections.Counter()
    for chain in view["chains"]:
        waits = (chain["waiting_on"] or chain["wait"]).split(".ReadAsync")[0]  # of a channel, from 10 on
        frames = tuple(map(short, chain["frames"]))
        if waits == "circle":
            frames = tuple(sorted(frames))
        found[waits, frames] += chain["count"]
    return found


def waiting(variant, *arguments, **options):
    return Target(sample_command(variant, "asyncchain") + ["0", *arguments], **{"env": OFF, **options})


def check_chains(checks, variant, name, view):
    found, expected = chains_of(view), chains_expected(variant)
    checks.check(f"{variant} {name}: the chains are the program's", found == expected,
                 f"missing {dict(expected - found)}, more {dict(found - expected)}; {view['problem']}")


def check_lines(checks, variant):
    with waiting(variant) as target:
        view = look("-p", target.pid)
        lines = {key[5:]: line for key, line in target.truth()["counts"].items() if key.startswith("line ")}
    check_chains(checks, variant, "running", view)
    checks.check(f"{variant}: the whole heap was seen", view["complete"] and view["missed_bytes"] == 0 and view["objects"] > 500,
                 f"{view['objects']} objects, {view['missed_bytes']} bytes missed")
    wrong, seen = [], 0
    for chain in view["chains"]:
        for frame in chain["frames"]:
            method = re.sub("<.*>", "", short(frame)).replace("Start lambda", "lambda")
            if frame["kind"] == "task" or frame["module"] != "asyncchain" or (method == "DeepAsync" and frame["state"] == 0):
                continue
            seen += 1
            if frame["line"] != lines[method] or not frame["file"].endswith(".cs"):
                wrong.append(f"{method}: {frame['file']}:{frame['line']}, not {lines[method]}")
    checks.check(f"{variant}: each awaits at the line that it says", seen >= 60 and not wrong, f"{seen} frames; " + "; ".join(wrong[:3]))


def check_stopped(checks, variant):
    with waiting(variant) as target:
        os.kill(target.pid, signal.SIGSTOP)
        wait_for(lambda: {state for _, state, _ in thread_states(target.pid)} == {"T"}, "it is stopped")
        check_chains(checks, variant, "stopped", look("-p", target.pid))
        still = comes_true(lambda: {state for _, state, _ in thread_states(target.pid)} == {"T"}, 5)  # once each gets a CPU
        checks.check(f"{variant}: a stopped process stays stopped", still, str(thread_states(target.pid)))


def check_collectors(checks, variant):
    """A heap in use, of each kind of GC: whenever it is looked at."""
    kinds = [("workstation", {}), ("server", {"DOTNET_gcServer": "1", "DOTNET_GCHeapCount": "2"})]
    if variant != "10":
        kinds.append(("segments", {"DOTNET_GCName": "libclrgc.so"}))
    for name, settings in kinds:
        with waiting(variant, "churn", env={**OFF, **settings}) as target:
            done = succeeded(clrperf("stack", "-p", target.pid, "--async", "--json", "--repeat", LOOKS, "--every", "20ms", timeout=300))
            views = [json.loads(line)["async"] for line in done.stdout.splitlines()]
            before = target.truth()["counts"]["allocated"]
            checks.check(f"{variant} {name}: the process goes on", comes_true(lambda: target.truth()["counts"]["allocated"] > before), "")
        walked = [view for view in views if not view["problem"]]
        wrong = [view for view in walked if chains_of(view) != chains_expected(variant)]
        missed = [view for view in walked if view["missed_bytes"]]
        checks.check(f"{variant} {name}: its heap can be walked", len(walked) >= LOOKS * 3 // 4,
                     f"{len(walked)} of {LOOKS}; {[view['problem'] for view in views if view['problem']][:1]}")
        checks.check(f"{variant} {name}: chains are right in each look that misses nothing", not [v for v in wrong if v not in missed],
                     f"{len(wrong)} of {len(walked)} differ, {len(missed)} missed something")
        checks.check(f"{variant} {name}: nearly all looks miss nothing", len(missed) <= LOOKS // 4, f"{len(missed)} of {len(walked)}")


def check_clrmd(checks, variant):
    oracle = oracle_command("names")
    with waiting(variant) as target:
        view = look("-p", target.pid, "--raw-names")
        done = subprocess.run([*oracle, str(target.pid), "--machines"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"names: {done.stderr[-300:]}")
    theirs, theirs_waiting = collections.Counter(), collections.Counter()
    for line in done.stdout.splitlines():
        name, state, count = line.split("\t")
        theirs[plain(name)] += int(count)
        theirs_waiting[plain(name)] += int(count) if int(state) >= 0 else 0
    mine, mine_waiting = collections.Counter(), collections.Counter()
    for method in view["methods"]:
        if not method["type"]:  # .NET 11 suspends it itself: it has no state machine
            continue
        mine[plain(method["type"])] += method["count"]
        mine_waiting[plain(method["type"])] += method["waiting"]
    checks.check(f"{variant} ClrMD: as many state machines of each type", mine == theirs and len(theirs) >= 20,
                 f"{sum(theirs.values())} of {len(theirs)} types; more {dict(mine - theirs)}, fewer {dict(theirs - mine)}")
    checks.check(f"{variant} ClrMD: as many of them wait", +mine_waiting == +theirs_waiting,
                 f"{sum(theirs_waiting.values())}; more {dict(mine_waiting - theirs_waiting)}, fewer {dict(theirs_waiting - mine_waiting)}")


def plain(name):
    """Without type arguments: `AsyncChain.Chains+<GenericAsync>d__12`."""
    name = name.replace("`1+", "+").replace("<System.Int32>+", "+")  # of a generic type around it
    return re.sub(r"(d__\d+|d)(`\d+|<|\[).*$", r"\1", name)


def createdump_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            if line.rstrip().endswith("/libcoreclr.so"):
                return os.path.join(os.path.dirname(line.split(None, 5)[5]), "createdump")
    raise Skip("no libcoreclr.so is mapped")


def check_cores(checks, variant, work):
    with waiting(variant) as target:
        tool = createdump_of(target.pid)
        if not os.path.exists(tool):
            raise Skip("no createdump beside the runtime")
        for kind, option in (("heap", "-h"), ("mini", "-n")):
            subprocess.run([tool, option, "-f", work.file(kind), str(target.pid)], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        subprocess.run(["gcore", "-o", work.file("gcore"), str(target.pid)], check=False, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        gcore = work.file(f"gcore.{target.pid}")
    check_chains(checks, variant, "heap dump", look(work.file("heap")))
    if os.path.exists(gcore):
        check_chains(checks, variant, "gcore", look(gcore))
    done = clrperf("stack", "--async", "--json", work.file("mini"))
    view = json.loads(succeeded(done).stdout)["async"]
    checks.check(f"{variant} mini dump: what it lacks is said", not view["chains"] and "heap" in (view["problem"] or "") and
                 "createdump" in done.stderr, f"{view['problem']}; {done.stderr[-200:]}")


def check_framework(checks, variant):
    """ASP.NET Core 11 is compiled without state machines, the one of 10 with them: chains are whole in both."""
    with Target(sample_command(variant, "webapi") + ["0", "--urls", "http://127.0.0.1:0"], env=PLAIN_ENVIRONMENT) as target:
        target.load = Load(target.url, {"/dict/5": 1})
        target.wait_busy(1.0)
        view = look("-p", target.pid)
        target.load.stop()
    chains = [[frame["function"].replace(" (async)", "") for frame in chain["frames"]] for chain in view["chains"]]
    # who waits for connections, from the socket to Kestrel
    accepting = [chain for chain in chains if any("ConnectionDispatcher" in name for name in chain)]
    checks.check(f"{variant} webapi: the listening chain is told", bool(accepting) and view["complete"] and view["missed_bytes"] == 0,
                 f"{chains[:4]}; {view['problem']}, {view['missed_bytes']} bytes missed")
    unnamed = [name for chain in chains for name in chain if name.startswith("0x") or not name]
    checks.check(f"{variant} webapi: every frame has a name", len(chains) >= 3 and not unnamed, f"{len(chains)} chains; {unnamed}")


def main():
    checks = Checks()
    variant = (sys.argv[1:] or ["10"])[0]
    own_machines = variant != "11-async"
    with Work() as work:
        checks.run("lines", check_lines, variant)
        checks.run("stopped", check_stopped, variant)
        checks.run("collectors", check_collectors, variant)
        if own_machines:
            checks.run("ClrMD", check_clrmd, variant)
        checks.run("cores", check_cores, variant, work)
        if own_machines:
            checks.run("framework", check_framework, variant)
    checks.exit()


if __name__ == "__main__":
    main()
