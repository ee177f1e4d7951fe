#!/usr/bin/env python3
"""Measures clrperf against its peers and its bars, in one run: see README.md."""

import argparse
import collections
import contextlib
import datetime
import json
import mmap
import os
import pathlib
import platform
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
PERF_PYTHON = "scripts/python/stackcollapse.py"

Cost = collections.namedtuple("Cost", "cpu_s wall_s rss_mb status")
Line = collections.namedtuple("Line", "row what peer ours figure must aim verdict note")


class Bench:
    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(options.work)
        self.work.mkdir(parents=True, exist_ok=True)
        self.clrperf = pathlib.Path(options.build).resolve() / "src/cli/clrperf"
        self.perf = shutil.which("perf")
        self.lines = []
        self.notes = []

    def compile(self, name, *extra):
        out = self.work / name
        subprocess.run(["cc", "-O2", "-std=gnu17", str(BENCH / (name + ".c")), "-o", str(out), *map(str, extra)],
                       check=True)
        return out

    def cost(self, command, output="/dev/null", env=None, interrupt_after_s=None):
        """Runs a command; a list, or text for the shell. Its output goes to a file."""
        argv = ["bash", "-o", "pipefail", "-c", command] if isinstance(command, str) else [str(a) for a in command]
        result = self.work / "cost.txt"
        result.unlink(missing_ok=True)
        started = subprocess.Popen([self.work / "measure", result, output, *argv], stderr=subprocess.PIPE,
                                   stdin=subprocess.DEVNULL, env=env, text=True, start_new_session=True)
        if interrupt_after_s:
            time.sleep(interrupt_after_s)
            os.killpg(started.pid, signal.SIGINT)
        said = started.communicate()[1]
        user_us, sys_us, wall_ns, rss_kb, status = map(int, result.read_text().split())
        if status not in (0, 130 if interrupt_after_s else 0):
            raise RuntimeError(f"{' '.join(argv)[:200]} ended with {status}: {said[-300:]}")
        return Cost((user_us + sys_us) / 1e6, wall_ns / 1e9, rss_kb / 1024, status)

    def show(self, row, what, peer, ours, note):
        """A figure without a bar."""
        self.lines.append(Line(row, what, peer, ours, "", "", "", "", note))
        print(f"{row:4} {what}: {peer} | {ours} {note}", flush=True)

    def add(self, row, what, peer, ours, figure, must, aim, note="", bigger=False):
        """`figure` is compared with the bars: at least them when bigger is better, else at most."""
        ok = (lambda bar: figure >= bar) if bigger else (lambda bar: figure <= bar)
        verdict = "aim" if ok(aim[0]) else "must" if ok(must[0]) else "MISSED"
        self.lines.append(Line(row, what, peer, ours, shown(figure, must[1]), shown(*must), shown(*aim), verdict, note))
        print(f"{row:4} {what}: {peer} | {ours} | {shown(figure, must[1])} must {shown(*must)} aim {shown(*aim)}"
              f" -> {verdict} {note}", flush=True)

    def skip(self, row, why):
        self.lines.append(Line(row, "not run", "", "", "", "", "", "not run", why))
        print(f"{row:4} not run: {why}", flush=True)


def shown(value, unit):
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{'' if unit == 'x' else ' '}{unit}"


def median(costs, field="cpu_s"):
    return statistics.median(getattr(c, field) for c in costs)


def pairs(count, a, b):
    """A B, B A, A B ...: what drifts on the machine meets both."""
    costs = [], []
    for i in range(count):
        for side in (0, 1) if i % 2 == 0 else (1, 0):
            costs[side].append((a, b)[side]())
    return costs


def ratio_of(peer, ours, field="cpu_s"):
    return statistics.median(getattr(p, field) / max(getattr(o, field), 1e-6) for p, o in zip(peer, ours))


def folded_counts(path):
    counts = collections.Counter()
    with open(path, "rb") as lines:
        for line in lines:
            stack, _, count = line.rstrip(b"\n").rpartition(b" ")
            counts[stack] += int(count)
    return counts


def report_folded_counts(path):
    """`perf report -g folded,0,caller,count`: 'COUNT a;b;c' lines; counts only, its chains leave the comm out."""
    counts = collections.Counter()
    with open(path, "rb") as lines:
        for line in lines:
            count, _, stack = line.strip().partition(b" ")
            if stack and count.isdigit():
                counts[stack] += int(count)
    return counts


# C1: a perf.data to a flame graph.

def make_perf_data(b, samples):
    generate = b.compile("generate")
    program, data = b.work / "workload", b.work / f"typical-{samples}.data"
    if not data.exists():
        source = b.work / "workload.c"
        with open(source, "wb") as out:
            subprocess.run([generate, "source"], stdout=out, check=True)
        subprocess.run(["cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", source, "-o", program],
                       check=True)
        symbols = subprocess.run(["nm", "-S", "--defined-only", program], check=True, capture_output=True).stdout
        with open(data, "wb") as out:
            subprocess.run([generate, "perf-data", str(samples), program], input=symbols, stdout=out, check=True)
    subprocess.run(["cat", data], stdout=subprocess.DEVNULL, check=True)
    return data


def stackcollapse_script():
    for base in sorted(pathlib.Path("/usr").glob("lib*/perf-core")) + sorted(pathlib.Path("/usr/libexec").glob("perf-core")):
        if (base / PERF_PYTHON).exists():
            return base / PERF_PYTHON
    return None


def row_c1(b):
    if not b.perf:
        return b.skip("C1", "perf is not installed")
    script = stackcollapse_script()
    data = make_perf_data(b, b.options.samples)
    ours_svg, ours_folded, peer_folded = b.work / "ours.svg", b.work / "ours.folded", b.work / "peer.folded"
    report_text = b.work / "report.folded"

    def ours():
        return b.cost([b.clrperf, "export", data, "-o", ours_svg, "--force"])

    def report():
        return b.cost([b.perf, "report", "-i", data, "--no-children", "-g", "folded,0,caller,count", "--stdio"], report_text)

    def collapse():
        script_cost = b.cost([b.perf, "script", "-i", data, "-s", script], peer_folded)
        svg_cost = b.cost([b.clrperf, "export", peer_folded, "-o", b.work / "peer.svg", "--force"])
        return Cost(script_cost.cpu_s + svg_cost.cpu_s, script_cost.wall_s + svg_cost.wall_s,
                    max(script_cost.rss_mb, svg_cost.rss_mb), 0)

    b.cost([b.clrperf, "export", data, "-o", ours_folded, "--force"])
    wanted = folded_counts(ours_folded)
    if sum(wanted.values()) != b.options.samples:
        raise RuntimeError(f"C1: {sum(wanted.values())} samples instead of {b.options.samples}")
    first = report()
    unrooted = collections.Counter()
    for stack, count in wanted.items():
        unrooted[stack.partition(b";")[2]] += count
    agreed = report_folded_counts(report_text) == unrooted
    ours()
    theirs, mine = pairs(b.options.pairs, report, ours) if b.options.pairs > 1 else ([first], [ours()])
    b.add("C1", "perf.data to flame graph, CPU, against perf report -g folded",
          f"{median(theirs):.2f} s, {median(theirs, 'rss_mb'):.0f} MB", f"{median(mine):.3f} s, {median(mine, 'rss_mb'):.0f} MB",
          ratio_of(theirs, mine), (20, "x"), (40, "x"),
          "same folded counts" if agreed else "VOID: folded counts differ", bigger=True)
    if not script:
        return b.skip("C1", "perf has no stackcollapse script")
    theirs, mine = pairs(b.options.slow_pairs, collapse, ours)
    agreed = folded_counts(peer_folded) == wanted
    b.add("C1", "perf.data to flame graph, CPU, against perf script + stackcollapse + SVG",
          f"{median(theirs):.1f} s", f"{median(mine):.3f} s", ratio_of(theirs, mine), (100, "x"), (400, "x"),
          ("same folded counts" if agreed else "VOID: folded counts differ") + f"; {b.options.slow_pairs} pair(s)", bigger=True)


# Recording rows: webapi under load.

class WebApi:
    """The sample service, on a free port, with requests that burn, allocate, look up and throw."""

    def __init__(self, b, **settings):
        found = sorted((ROOT / "samples/webapi/bin").glob("*/*/webapi.dll"))
        if not found:
            raise FileNotFoundError("samples/webapi is not built (dotnet build -c Release samples/webapi)")
        self.log = open(b.work / "webapi.log", "wb")
        environment = dict(os.environ, DOTNET_gcServer="0", **settings)
        home = b.work / "webapi"  # which it watches for changes: nothing else is written there
        home.mkdir(exist_ok=True)
        self.process = subprocess.Popen(["dotnet", found[-1], "0", "--urls", "http://127.0.0.1:0"], cwd=home,
                                        stdout=subprocess.PIPE, stderr=self.log, env=environment)
        self.over, self.resting = threading.Event(), threading.Event()
        words = self.process.stdout.readline().decode().split()  # ready PID URL
        if len(words) != 3:
            self.close()
            raise RuntimeError(f"samples/webapi did not start: see {self.log.name}")
        self.url = words[2]
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        for path in ("/on-cpu", "/on-cpu", "/dict/7", "/alloc/64"):
            threading.Thread(target=self.drive, args=(path,), daemon=True).start()
        time.sleep(5)

    def drive(self, path):
        while not self.over.is_set():
            if self.resting.is_set():
                time.sleep(0.05)
                continue
            try:
                urllib.request.urlopen(self.url + path, timeout=10).read()
            except OSError:
                time.sleep(0.01)

    @contextlib.contextmanager
    def idle(self):
        """Nobody asks it for anything meanwhile: its threads wait."""
        self.resting.set()
        time.sleep(1)
        try:
            yield
        finally:
            self.resting.clear()

    @contextlib.contextmanager
    def at_rest(self):
        """It stands still meanwhile: its load is none of what is measured of files."""
        with self.idle():
            self.process.send_signal(signal.SIGSTOP)
            try:
                yield
            finally:
                self.process.send_signal(signal.SIGCONT)

    def close(self):
        self.over.set()
        self.process.terminate()
        self.process.wait()
        self.log.close()


# How stacks are made, the option for it, and the bars of the peak RSS in MB.
STACKS = (("whole stacks", (), (24, 12)), ("frame pointers", ("--frame-pointers",), (16, 8)))


# Of a peer that misbehaves at times.
TRIES_MAX = 5


def record_command(b, pid, rate, file, *options):
    return [str(word) for word in (b.clrperf, "record", "-p", pid, "-F", rate, "-o", file, "--force", "--json", "-q", *options)]


def record_ours(b, pid, rate, seconds, file, *options):
    summary = b.work / "record.json"
    cost = b.cost(record_command(b, pid, rate, file, *options), summary, interrupt_after_s=seconds)
    return cost, json.loads(summary.read_text())


def record_perf(b, pid, rate, seconds, file):
    return b.cost([b.perf, "record", "-q", "-g", "-F", rate, "--no-bpf-event", "-p", pid, "-o", file], interrupt_after_s=seconds)


def record_perf_calm(b, pid, rate, seconds, file):
    """As record_perf(). Now and then perf spins in the kernel for the rest of its run: that is not what a recording costs."""
    least = None
    for _ in range(TRIES_MAX):
        cost = record_perf(b, pid, rate, seconds, file)
        least = cost if least is None or cost.cpu_s < least.cpu_s else least
        if least.cpu_s < least.wall_s / 4:
            break
    return least


def row_c4(b, web):
    closed, exports, rundowns = [], [], []
    file, html = b.work / "c4.clrperf", b.work / "c4.html"
    for _ in range(b.options.pairs):
        _, said = record_ours(b, web.process.pid, 99, b.options.seconds, file)
        closed.append(said["self"]["stop_to_closed_ms"])
        rundowns.append(said["self"]["rundown_ms"])
        exports.append(b.cost([b.clrperf, "export", file, "-o", html, "--force"]).wall_s * 1e3)
    total = statistics.median(c + e for c, e in zip(closed, exports))
    b.add("C4", f"Ctrl-C to finished capture and HTML, {b.options.seconds} s at 99 Hz, wall", "",
          f"{statistics.median(closed):.1f} ms to the closed file, {statistics.median(exports):.1f} ms to HTML",
          total, (100, "ms"), (15, "ms"), f"rundown apart: {statistics.median(rundowns):.0f} ms")


def row_b1(b, web):
    if not b.perf:
        return b.skip("B1", "perf is not installed")
    for way, option, rss_bars in STACKS:
        said = []

        def ours():
            cost, summary = record_ours(b, web.process.pid, 99, b.options.seconds, b.work / "b1.clrperf", *option)
            said.append(summary)
            return cost

        theirs, mine = pairs(b.options.pairs, lambda: record_perf_calm(b, web.process.pid, 99, b.options.seconds,
                                                                          b.work / "b1.data"), ours)
        samples = statistics.median(s["samples"] for s in said)
        lost = sum(s["lost"] for s in said)
        b.add("B1", f"collector's CPU, {way}, {b.options.seconds} s at 99 Hz, ours / perf record -g", f"{median(theirs) * 1e3:.0f} ms",
              f"{median(mine) * 1e3:.0f} ms", 1 / ratio_of(theirs, mine), (0.5, "x"), (0.1, "x"),
              f"{samples:.0f} samples, {lost} lost; ours names everything, perf nothing")
        b.add("B2", f"collector's peak RSS, {way}", f"{median(theirs, 'rss_mb'):.1f} MB", f"{median(mine, 'rss_mb'):.1f} MB",
              median(mine, "rss_mb"), *[(bar, "MB") for bar in rss_bars])


def process_cpu_ns(pid):
    """What it and the processes that it started have used so far."""
    threads = pathlib.Path(f"/proc/{pid}/task")
    children = {int(child) for thread in threads.iterdir() for child in (thread / "children").read_text().split()}
    own = sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir())
    return own + sum(map(process_cpu_ns, children))


def record_steady(b, pid, rate, seconds, file, *options):
    """CPU microseconds a sample while nothing but samples comes: from the fourth part of a recording to its end.

    Also what the whole of it used, and what it says.
    """
    with subprocess.Popen(record_command(b, pid, rate, file, *options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as recording:
        began = time.monotonic()
        used_ns, at_s = [], []
        for until_s in (seconds / 4, seconds):
            time.sleep(max(began + until_s - time.monotonic(), 0))
            used_ns.append(process_cpu_ns(recording.pid))
            at_s.append(time.monotonic() - began)
        recording.send_signal(signal.SIGINT)
        said = json.loads(recording.stdout.read())
        _, status, usage = os.wait4(recording.pid, 0)
        recording.returncode = os.waitstatus_to_exitcode(status)
    between = json.loads(subprocess.run([b.clrperf, "report", file, "--time", f"{at_s[0]:.3f}-{at_s[1]:.3f}", "--top", "1", "--json"],
                                        capture_output=True, check=True).stdout)["totals"]["samples"]
    return (used_ns[1] - used_ns[0]) / 1e3 / between, usage.ru_utime + usage.ru_stime, said


def row_b3(b, web):
    for (way, option, _), cpu_bars in zip(STACKS, ((8, 3), (0.6, 0.2))):
        bytes_each, cpu_each, whole_each, notes = [], [], [], ""
        for _ in range(b.options.pairs):
            each_us, cpu_s, said = record_steady(b, web.process.pid, 4999, b.options.seconds, b.work / "b3.clrperf", *option)
            bytes_each.append(said["bytes"] / said["samples"])
            cpu_each.append(each_us)
            whole_each.append(cpu_s * 1e6 / said["samples"])
            notes = f"{said['samples']:,} samples, {said['lost']:,} lost"
        b.add("B3", f"bytes a sample, {way}, {b.options.seconds} s at 4,999 Hz", "", f"{statistics.median(bytes_each):.1f} B",
              statistics.median(bytes_each), (24, "B"), (12, "B"), notes)
        b.add("B3", f"CPU a sample, {way}, from the fourth part of a recording to its end", "", f"{statistics.median(cpu_each):.2f} us",
              statistics.median(cpu_each), *[(bar, "us") for bar in cpu_bars],
              f"{statistics.median(whole_each):.2f} us with start, names and end")


# E4, E5: name tables. F4: start-up.

SYSTEM_LIBRARIES = ("-lzstd", "-lz", "-llzma", "-lxxhash", "-liberty", "-lm")


def libraries(b, *names):
    """Ours, of the build that is measured."""
    build = pathlib.Path(b.options.build).resolve() / "src"
    return [build / f"{name}/lib{name}.a" for name in names]


def names_program(b):
    return b.compile("names", "-I" + str(ROOT / "src"), *libraries(b, "symbolize", "clr", "trace", "read", "base"), *SYSTEM_LIBRARIES)


def names_figures(program, *arguments):
    text = subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
    return {key: (float(ms), int(count)) for key, ms, count, _ in map(str.split, text.splitlines())}


def row_e4(b):
    found = sorted(pathlib.Path(os.path.realpath(shutil.which("dotnet") or "/")).parent.glob(
        "shared/Microsoft.NETCore.App/*/System.Private.CoreLib.dll"))
    if not found:
        return b.skip("E4", "no .NET runtime is installed")
    said = names_figures(names_program(b), "image", found[-1])
    where = f"System.Private.CoreLib {found[-1].parent.name}"
    b.add("E4", f"{where}: 1,000 names, CPU", "", f"{said['thousand'][0]:.1f} ms", said["thousand"][0], (10, "ms"), (3, "ms"))
    b.add("E4", f"{where}: every function indexed, CPU", "", f"{said['index'][0]:.1f} ms", said["index"][0], (40, "ms"), (12, "ms"),
          f"to spell all {said['all'][1]:,} names as well: {said['all'][0]:.0f} ms")


def row_e5(b):
    path = b.work / "perf-1.map"
    with open(path, "w") as out:
        for i in range(200_000):
            out.write(f"{0x7f0000000000 + i * 96:x} 40 instance void [Orders.Service] Orders.Pricing.Engine{i % 977}::"
                      f"Compute{i}(int32,class System.String)[Tier{i % 2}]\n")
    said = names_figures(names_program(b), "map", path)
    if said["map"][1] != 1000:
        raise RuntimeError(f"E5: {said['map'][1]} of 1,000 addresses were named")
    b.add("E5", "perf map of 200,000 lines, 1,000 addresses, CPU", "", f"{said['map'][0]:.1f} ms", said["map"][0],
          (25, "ms"), (8, "ms"), f"{path.stat().st_size / 1e6:.0f} MB")


WALKS = 20
WALK_METHODS = 12_000  # what its bar is for; a service has more after a while
MAP_SYMBOLS = 120_000


def row_e6(b):
    """All code of the service is jitted, and it stands still, so that each walk finds the same."""
    web = WebApi(b, DOTNET_ReadyToRun="0")
    try:
        time.sleep(20)  # 12,000 methods take a while
        web.process.send_signal(signal.SIGSTOP)
        program = pathlib.Path(b.options.build) / "tests/live/code_walk_live"
        said = subprocess.run([program, str(web.process.pid), str(WALKS)], check=True, capture_output=True, text=True).stderr
    finally:
        web.process.send_signal(signal.SIGCONT)
        web.close()
    # the first also prints them
    walks = [re.match(r"walk: ([\d.]+) ms; (\d+) methods.* (\d+) pages", line) for line in said.splitlines()]
    walks = [found.groups() for found in walks if found][1:]
    methods = int(walks[0][1])
    walls = [float(ms) * WALK_METHODS / methods for ms, _, _ in walks]
    b.add("E6", f"names of {WALK_METHODS:,} jitted methods from a process's memory, wall", "",
          f"{statistics.median(walls):.1f} ms", statistics.median(walls), (25, "ms"), (10, "ms"),
          f"of {methods:,} methods, each walk scaled; median of {len(walls)}; fastest {min(walls):.1f} ms; "
          f"{int(walks[0][2]):,} pages of 4 KiB each")


def row_mp(b, web):
    """All code of the service: most of it is precompiled."""
    out = b.work / "webapi.map"
    costs = [b.cost([b.clrperf, "map", "-p", web.process.pid, "-o", out]) for _ in range(9)]
    with open(out, "rb") as lines:
        symbols = sum(1 for _ in lines)
    scaled = [c.wall_s * 1e3 * MAP_SYMBOLS / symbols for c in costs]
    b.add("MP", f"map of {MAP_SYMBOLS:,} symbols, wall", "", f"{statistics.median(scaled):.0f} ms", statistics.median(scaled),
          (1000, "ms"), (500, "ms"), f"of {symbols:,} symbols, scaled; median of {len(costs)}; CPU {median(costs) * 1e3:.0f} ms; "
          f"{median(costs, 'rss_mb'):.0f} MB")


# U1, U2: the unwinder alone.

def unwind_figures(b, *arguments):
    """What bench/unwind.c prints: KEY VALUE lines."""
    live = ROOT / "tests/live"
    program = b.compile("unwind", "-D_GNU_SOURCE", "-I" + str(ROOT / "src"), "-I" + str(live), live / "live_code.c",
                        *libraries(b, "collect", "unwind", "clr", "trace", "read", "base"), "-ldw", *SYSTEM_LIBRARIES, "-ljansson")
    text = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    return {key: float(value) for key, value in map(str.split, text.splitlines())}


def row_u1(b, web):
    """Samples as `record` takes them, each unwound after 8 MiB of other data went through the CPU's caches."""
    if not pathlib.Path("/usr/include/elfutils/libdwfl.h").exists():
        return b.skip("U1", "libdw-dev, the peer, is not installed")
    said = unwind_figures(b, "stacks", web.process.pid, 2000)
    if said["samples"] < 100:
        raise RuntimeError(f"U1: {said['samples']:.0f} samples of that depth")
    peer, ours = said["disturbed_peer_us"], said["disturbed_us"]
    b.add("U1", f"unwinding a stack of {said['depth']:.0f} frames, caches disturbed, CPU", f"libdw: {peer:.2f} us", f"{ours:.2f} us",
          ours, (8, "us"), (3, "us"), f"{said['samples']:.0f} samples, whole {said['whole_share']:.2%}; warm {said['warm_us']:.2f} us")
    b.add("U1", "the same, libdw / ours", f"{peer:.2f} us", f"{ours:.2f} us", peer / ours, (4, "x"), (12, "x"),
          f"warm {said['warm_peer_us'] / said['warm_us']:.1f}x; {said['equal_share']:.1%} of its stacks have our frames", bigger=True)


def row_u2(b, web):
    said = unwind_figures(b, "rows", web.process.pid)
    b.add("U2", f"unwind rows of all {said['images']:.0f} native images of webapi, CPU", "", f"{said['rows_ms']:.1f} ms", said["rows_ms"],
          (40, "ms"), (20, "ms"), f"{said['rows']:,.0f} rows; the largest image {said['largest_ms']:.1f} ms; fastest {said['fastest_ms']:.1f} ms")


SWITCH_MS = 3000


def cost_of_a_switch(b, tracer):
    """CPU nanoseconds of a context switch in a program that does nothing else, with `tracer` (command for a pid, or None)."""
    target = subprocess.Popen([b.work / "switches", str(SWITCH_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tracing = None
    try:
        pid = target.stdout.readline().split()[1]
        if tracer:
            tracing = subprocess.Popen(["taskset", "-c", "1", *map(str, tracer(pid))], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(1)
        said = target.communicate("go\n", timeout=60)[0]
    finally:
        target.kill()
        target.wait()
        if tracing:
            tracing.send_signal(signal.SIGINT)
            tracing.wait()
    return float(said.split()[1])


def row_u3(b):
    if not b.perf or os.cpu_count() < 2 or not shutil.which("taskset"):
        return b.skip("U3", "needs perf, taskset and two CPUs")
    b.compile("switches", "-D_GNU_SOURCE", "-pthread", "-fno-omit-frame-pointer")
    file = b.work / "u3"
    ways = {
        "alone": None,
        "perf -g": lambda pid: [b.perf, "record", "-q", "-g", "-e", "context-switches", "-c", "1", "-o", file, "-p", pid],
        "perf dwarf": lambda pid: [b.perf, "record", "-q", "--call-graph", "dwarf,16384", "-e", "context-switches", "-c", "1", "-o",
                                   file, "-p", pid],
        "whole": lambda pid: [b.clrperf, "record", "-q", "-e", "context-switches", "-p", pid, "-o", file, "--force"],
        "pointers": lambda pid: [b.clrperf, "record", "-q", "-e", "context-switches", "--frame-pointers", "-p", pid, "-o", file,
                                 "--force"],
    }
    runs = [{name: cost_of_a_switch(b, way) for name, way in ways.items()} for _ in range(b.options.pairs)]
    extra = {name: statistics.median(run[name] - run["alone"] for run in runs) / 1e3 for name in ways}
    b.show("U3", "what a context switch costs the target in addition, CPU",
           f"perf record -g {extra['perf -g']:.2f} us; with 16 KiB of stack {extra['perf dwarf']:.2f} us",
           f"{extra['whole']:.2f} us; with --frame-pointers {extra['pointers']:.2f} us",
           f"24 frames; a switch alone takes {statistics.median(run['alone'] for run in runs) / 1e3:.2f} us")


def row_f4(b):
    tiny = b.work / "tiny.folded"
    tiny.write_text("main;work 7\nmain;rest 3\n")
    for what, arguments in (("--help", ["--help"]), ("ps", ["ps"]), ("report of a tiny file", ["report", tiny])):
        costs = [b.cost([b.clrperf, *arguments]) for _ in range(20)]
        walls = [c.wall_s * 1e3 for c in costs]
        b.add("F4", f"{what}, wall, median of 20", "", f"{statistics.median(walls):.2f} ms", statistics.median(walls), (3, "ms"),
              (1, "ms"), f"fastest {min(walls):.2f} ms; CPU {median(costs) * 1e3:.1f} ms")


def stack_json(b, pid):
    return json.loads(subprocess.run([b.clrperf, "stack", "-p", str(pid), "--json"], capture_output=True, check=True).stdout)


def cost_in_warm_memory(b, argv):
    """A hypervisor takes memory back that was freed, and gives it page by page: that is neither's cost."""
    with mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for at in range(0, len(memory), mmap.PAGESIZE):
            memory[at] = 1
    return b.cost(argv)


def look_at_all(b, pid, what):
    gdb = ["gdb", "-p", pid, "-batch", "-ex", "set debuginfod enabled off", "-ex", "thread apply all bt"]
    theirs, mine = pairs(max(b.options.pairs, 15), lambda: cost_in_warm_memory(b, gdb),
                         lambda: cost_in_warm_memory(b, [b.clrperf, "stack", "-p", pid]))
    b.add("ST", what, f"{median(theirs, 'wall_s') * 1e3:.0f} ms", f"{median(mine, 'wall_s') * 1e3:.0f} ms",
          ratio_of(theirs, mine, "wall_s"), (20, "x"), (50, "x"),
          f"CPU {ratio_of(theirs, mine):.1f}x; {len(stack_json(b, pid)['threads'])} threads; ours names managed code too", bigger=True)


def row_st(b, web):
    if not shutil.which("gdb"):
        return b.skip("ST", "gdb is not installed")
    pid = web.process.pid
    look_at_all(b, pid, "stacks of all threads, wall, against gdb's thread apply all bt")
    with web.idle():
        look_at_all(b, pid, "the same of a service that waits")
    looks = [stack_json(b, pid) for _ in range(9)]
    longest = [look["stopped_max_ms"] for look in looks]
    b.add("ST", "longest that a thread stood still, median of 9 looks", "", f"{max(longest):.2f} ms at most", statistics.median(longest),
          (1, "ms"), (0.2, "ms"))


# Files of events.

def other_tool(*command):
    """What tests/ builds or installs, or RuntimeError."""
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(f"{command[-1]} cannot be had: {(built.stderr.strip().splitlines() or ['?'])[-1]}")
    return shlex.split(built.stdout)


def event_file(b, web, name, providers, seconds):
    """What dotnet-trace collects of webapi, which wrk, where it is there, asks as fast as it answers."""
    file = b.work / f"{name}.nettrace"
    if file.exists():
        return file
    unfinished = b.work / f"{name}.unfinished.nettrace"
    tracer = other_tool(ROOT / "tests/live/runtimes/build.sh", "tool", "dotnet-trace")
    wrk = shutil.which("wrk")
    load = subprocess.Popen([wrk, "-t1", "-c8", f"-d{seconds + 5}s", web.url + "/dict/5"], stdout=subprocess.DEVNULL) if wrk else None
    subprocess.run([*tracer, "collect", "-p", str(web.process.pid), "--buffersize", "1024", "--providers", providers, "--duration",
                    f"00:{seconds // 60:02}:{seconds % 60:02}", "-o", str(unfinished)], check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL)
    if load:
        load.wait()
    return unfinished.rename(file)


# Of webapi: what its threads do, a thousand times a second, and what its collector does.
THREAD_TIME = ("threads", "Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:0x100003801D:4", 240)


# What the bar of D1 was made from: TraceEvent's fourth pass over events of the second kind, on another machine.
FOUNDING_S, FOUNDING_BYTES = 0.51, 115.9e6


def count_events(b, made, what, founding=False):
    """How fast the events of a file are counted by kind, against TraceEvent."""
    file = b.work / "copy.nettrace"
    decode = other_tool(ROOT / "tests/oracle/build.sh", "decode")
    warm, cold, mine, read, counted = [], [], [], [], 0
    for _ in range(b.options.pairs):
        shutil.copyfile(made, file)
        passes = [line.split() for line in subprocess.run([*decode, str(file), "4"], capture_output=True, text=True,
                                                          check=True).stdout.splitlines()]
        cold.append(float(passes[0][1]))
        warm.append(float(passes[-1][1]))
        read.append(b.cost(["dd", f"if={file}", "of=/dev/null", "bs=256k", "status=none"]))
        said = b.work / "counts.json"
        mine.append(b.cost([b.clrperf, "report", file, "events", "--counts", "--json"], said))
        counted = sum(row["count"] for row in json.loads(said.read_text())["rows"])
    events, cpu_s, size = int(passes[0][0]), median(mine), file.stat().st_size
    file.unlink()
    void = "" if events == counted else f"VOID: {events} events with TraceEvent, {counted} with us; "
    what = f"{what} counted by kind, {events / 1e6:.1f} M, {size / 1e6:.0f} MB, CPU, against TraceEvent's warm pass"
    ratio = statistics.median(w / m.cpu_s for w, m in zip(warm, mine))
    scaled_s = cpu_s * FOUNDING_BYTES / size
    old = f"; the bar is of {FOUNDING_S} s for 116 MB, which take us {scaled_s * 1e3:.0f} ms: {FOUNDING_S / scaled_s:.0f}x" if founding else ""
    b.add("D1", what, f"{statistics.median(warm) * 1e3:.0f} ms", f"{cpu_s * 1e3:.0f} ms", ratio, (12, "x"), (40, "x"),
          f"{void}its first pass {statistics.median(cold) / cpu_s:.1f}x; {events / cpu_s / 1e6:.0f} M events/s; "
          f"dd reads the file in {median(read) * 1e3:.0f} ms{old}", bigger=True)
    b.add("D1", "the same, bytes of the file a second of CPU", "", f"{size / cpu_s / 1e9:.1f} GB/s", size / cpu_s / 1e9, (2, "GB/s"), (6, "GB/s"), bigger=True)
    rss = max(m.rss_mb for m in mine)
    b.add("D1", "the same, peak RSS", "", f"{rss:.1f} MB", rss, (32, "MB"), (16, "MB"))


def row_d1(b, web):
    every = ":0xFFFFFFFFFFFF:5,"
    thread_time = event_file(b, web, *THREAD_TIME)
    events = event_file(b, web, "events", "Microsoft-Windows-DotNETRuntime:0x4C14FCCBD:5,Microsoft-AspNetCore-Server-Kestrel" + every +
                        "System.Net.Sockets" + every + "System.Threading.Tasks.TplEventSource:0xFFFFFFFFFFFF:5", b.options.seconds)
    with web.at_rest():
        count_events(b, thread_time, "events of a thread-time .nettrace")
        count_events(b, events, "events with payloads", founding=True)


def close_to(theirs, mine):
    """dotnet-trace adds up in floats of 32 bits: of two million samples its total is 0.3 % off."""
    return abs(float(theirs) - mine) < 0.011 + 0.004 * mine


def row_d2(b, web):
    file = event_file(b, web, *THREAD_TIME)
    with web.at_rest():
        compare_d2(b, file)


def compare_d2(b, file):
    tracer = other_tool(ROOT / "tests/live/runtimes/build.sh", "tool", "dotnet-trace")
    size = f"{file.stat().st_size / 1e6:.0f} MB"
    theirs, mine = pairs(b.options.pairs, lambda: b.cost([*tracer, "report", file, "topN"], b.work / "topn.txt"),
                         lambda: b.cost([b.clrperf, "report", file, "topN", "--top", "5", "--json"], b.work / "topn.json"))
    shares = re.findall(r"([\d.]+)%\s+([\d.]+)%", (b.work / "topn.txt").read_text())
    ours = [(100 * row["inclusive_share"], 100 * row["exclusive_share"]) for row in json.loads((b.work / "topn.json").read_text())["rows"]]
    same = len(shares) == len(ours) > 0 and all(close_to(t, t2) and close_to(s, s2) for (t, s), (t2, s2) in zip(shares, ours))
    b.add("D2", f"topN of a thread-time .nettrace, {size}, CPU", f"{median(theirs) * 1e3:.0f} ms", f"{median(mine) * 1e3:.0f} ms", ratio_of(theirs, mine),
          (60, "x"), (250, "x"), ("" if same else f"VOID: {shares[:3]} and {ours[:3]}; ") + f"wall {ratio_of(theirs, mine, 'wall_s'):.0f}x; "
          f"peak RSS {median(theirs, 'rss_mb'):.0f} and {median(mine, 'rss_mb'):.0f} MB", bigger=True)
    theirs, mine = pairs(b.options.pairs, lambda: b.cost([*tracer, "convert", file, "--format", "Speedscope", "-o", b.work / "theirs"]),
                         lambda: b.cost([b.clrperf, "export", file, "-o", b.work / "ours.speedscope.json", "--force"]))
    b.add("D3", "the same file to speedscope, against dotnet-trace convert, CPU", f"{median(theirs) * 1e3:.0f} ms", f"{median(mine) * 1e3:.0f} ms",
          ratio_of(theirs, mine), (20, "x"), (80, "x"), f"wall {ratio_of(theirs, mine, 'wall_s'):.0f}x", bigger=True)


def version_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True).stdout.strip().splitlines()[0]
    except (OSError, IndexError):
        return "not there"


HEAD = ("| row | what | peer | ours | figure | must | aim | meets | note |", "|---|---|---|---|---|---|---|---|---|")
# A note on how rows were measured, over one line or more.
RUN_NOTE = re.compile(r"^- (?P<rows>[A-Z]+\d?(?:, [A-Z]+\d?)*): (?P<text>.*(?:\n  .*)*)\n", re.M)


def notes_kept(text, measured):
    """What an earlier RESULTS.md says of how its rows were measured, as far as they were not measured again."""
    kept = []
    for note in RUN_NOTE.finditer(text):
        rows = [row for row in note["rows"].split(", ") if row not in measured]
        if rows:
            kept.append(f"- {', '.join(rows)}: {note['text']}")
    return kept


def results_text(b, before):
    """The rows of this run, and of an earlier RESULTS.md those that were not measured now."""
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
    commit = version_of("git", "-C", str(ROOT), "describe", "--always", "--dirty")
    measured = list(dict.fromkeys(line.row for line in b.lines))
    lines = [(words[1].strip(), text) for text in before.splitlines() if (words := text.split("|"))[2:] and words[1].strip() in ORDER]
    lines = [line for line in lines if line[0] not in measured] + [(line.row, "| " + " | ".join(line) + " |") for line in b.lines]
    out = [
        "# Results", "", "Made by `bench/run.py`; how to read it is in `README.md`.", "",
        f"- {cpu}, {os.cpu_count()} CPUs, Linux {platform.release().split('-')[0]}",
        *notes_kept(before, measured),
        f"- {', '.join(measured)}: clrperf {commit}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC, load {b.load[0]:.1f} at the start,"
        f" {os.getloadavg()[0]:.1f} at the end; {b.options.pairs} pairs, {b.options.slow_pairs} of what takes minutes;\n"
        f"  {version_of('perf', '--version').replace('version ', '')}; .NET SDK {version_of('dotnet', '--version')};"
        f" recordings of {b.options.seconds} s" + (f"; {b.options.samples:,} samples in C1" if "C1" in measured else ""),
        "", *HEAD,
    ]
    out += [text for _, text in sorted(lines, key=lambda line: ORDER.index(line[0]))]
    return "\n".join(out) + "\n"


ROWS = {"F4": (row_f4, False), "E4": (row_e4, False), "E5": (row_e5, False), "E6": (row_e6, False), "C1": (row_c1, False), "C4": (row_c4, True),
        "B1": (row_b1, True), "B3": (row_b3, True), "ST": (row_st, True), "D1": (row_d1, True), "D2": (row_d2, True), "U1": (row_u1, True), "U2": (row_u2, True), "U3": (row_u3, False),
        "MP": (row_mp, True)}
# Rows that come with another one.
BROUGHT_BY = {"B2": "B1", "D3": "D2"}
ORDER = ["F4", "E4", "E5", "C1", "C4", "B1", "B2", "B3", "D1", "D2", "D3", "U1", "U2", "U3", "ST", "E6", "MP"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which, of " + " ".join(ORDER) + " (B1 brings B2, D2 brings D3)")
    parser.add_argument("--build", default=ROOT / "build", help="the build to measure")
    parser.add_argument("--work", default=ROOT / "build/bench", help="folder for workloads and outputs; needs 3 GB")
    parser.add_argument("--samples", type=int, default=1_115_000, help="of C1's perf.data")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--slow-pairs", type=int, default=1, help="of peers that take minutes")
    parser.add_argument("--seconds", type=int, default=20, help="of each recording")
    parser.add_argument("--results", default=BENCH / "RESULTS.md", help="file to write, in which other rows stay as they are; - for none")
    options = parser.parse_args()
    rows = list(dict.fromkeys(BROUGHT_BY.get(row, row) for row in options.rows.split(",")))
    unknown = set(rows) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(ORDER)}")
    b = Bench(options)
    b.load = os.getloadavg()
    b.compile("measure")
    web = None
    try:
        for name in rows:
            run, wants_web = ROWS[name]
            try:
                if wants_web and not web:
                    web = WebApi(b)
                run(b, web) if wants_web else run(b)
            except (RuntimeError, OSError, subprocess.CalledProcessError) as e:
                b.skip(name, str(e))
    finally:
        if web:
            web.close()
    results = None if str(b.options.results) == "-" else pathlib.Path(b.options.results)
    text = results_text(b, results.read_text() if results and results.exists() else "")
    if results:
        results.write_text(text)
    print("\n" + text)
    return 1 if any(line.verdict in ("MISSED", "not run") or line.note.startswith("VOID") for line in b.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
