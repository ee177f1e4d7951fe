#!/usr/bin/env python3
"""map_test.py VARIANT: what `clrperf map` writes makes stock perf name managed frames, and `clrperf addr` agrees."""
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

from live import (CLRPERF, PLAIN_ENVIRONMENT, Checks, Load, Target, Work, clrperf, cpu_clock_ns, need_command,
                  need_root, sample_command, succeeded)

RATE = 499
CPU_S = 2.0
PATHS = {"/on-cpu": 1, "/dict/7": 1, "/alloc/64": 1, "/exception/5": 1, "/log": 1}
NOBODY = 65534
# Code that methods lie in: .NET assemblies, the runtime's memory file, memory of no file.
MANAGED = re.compile(r"\.dll$|^/?memfd:doublemapper|^//anon|^/tmp/perf-\d+\.map$")
ANONYMOUS = re.compile(r"^//anon|^/tmp/perf-\d+\.map$")
OUR_MARK = (0, 1, "[clrperf map]")
GENERATED = re.compile(r"^/?memfd:doublemapper|/jitted-\d+-\d+\.so$|^jitted-")
LINE = re.compile(r"\s+([0-9a-f]+) (.*) \(((?:[^()]|\(deleted\))*)\)$")


def webapi(variant, environment=None, **options):
    return Target([*sample_command(variant, "webapi"), "600", "--urls", "http://127.0.0.1:0"],
                  env={**PLAIN_ENVIRONMENT, **(environment or {})}, **options)


def warm(target):
    target.load = Load(target.url, PATHS)
    target.wait_busy(8, at_most_s=60)


def perf(*arguments):
    return subprocess.run(["perf", *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False, timeout=300)


def perf_record(work, pid, *options, and_of="", at_end=None):
    """Ends once the process had CPU_S of CPU time since perf began: on a crowded machine that takes longer."""
    path = work.file("perf.data")
    asked, ask = os.pipe()
    answer, answered = os.pipe()
    with subprocess.Popen(["perf", "record", "-q", "-g", "-F", str(RATE), *options, "-p", f"{pid}{and_of}", "-o", path,
                           "--control", f"fd:{asked},{answered}"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, pass_fds=(asked, answered)) as recorder:
        os.close(asked)
        os.close(answered)
        os.write(ask, b"ping\n")
        os.read(answer, 16)  # begun, or ended
        enough, end = cpu_clock_ns(pid) + CPU_S * 1e9, time.monotonic() + 60
        while time.monotonic() < end and cpu_clock_ns(pid) < enough and recorder.poll() is None:
            time.sleep(0.1)
        if at_end:
            at_end()
        recorder.send_signal(signal.SIGINT)
        text = recorder.communicate(timeout=60)[0]
    os.close(ask)
    os.close(answer)
    if not os.path.exists(path):
        raise RuntimeError(f"perf record: {text[-300:]}")
    return path


def managed_frames(path, *arguments, which=MANAGED):
    """How many managed frames perf has names for, and how many not."""
    named = unnamed = 0
    for line in perf("script", "-f", "-i", path, "-F", "ip,sym,dso", *arguments).stdout.splitlines():
        match = LINE.match(line)
        if match and which.search(match[3]):
            if match[2] == "[unknown]":
                unnamed += 1
            else:
                named += 1
    return named, unnamed


def read_map(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            start, size, name = line.rstrip("\n").split(" ", 2)
            rows.append((int(start, 16), int(size, 16), name))
    return rows[1:] if rows[0] == OUR_MARK else rows


def share(named, unnamed):
    return f"{100 * unnamed / max(1, named + unnamed):.2f} % of {named + unnamed}"


def check_perf(checks, work, target, variant):
    path = perf_record(work, target.pid)
    before = managed_frames(path)
    summary = json.loads(succeeded(clrperf("map", "-p", target.pid, "--elf", work.file("elf"), "--json")).stdout)
    named, unnamed = managed_frames(path, "--symfs", work.file("elf"))
    checks.check(f"{variant}: perf with --elf leaves at most 1 % of the managed frames unnamed",
                 named + unnamed > 500 and unnamed <= 0.01 * (named + unnamed),
                 f"{share(named, unnamed)}; before {share(*before)}")
    checks.check(f"{variant}: the summary counts what was written",
                 summary["jitted"] > 500 and summary["precompiled"] > 10000 and summary["images"] > 20
                 and summary["unreadable_images"] == 0 and summary["elf_files"] >= summary["images"],
                 f"{summary['jitted']} jitted, {summary['precompiled']} precompiled, {summary['stubs']} stubs")
    readelf = subprocess.run(["readelf", "-W", "-s", *elf_files(work.file("elf"))[:5]], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, check=False)
    checks.check(f"{variant}: readelf reads the symbol files", readelf.returncode == 0
                 and not readelf.stderr and " FUNC " in readelf.stdout, readelf.stderr[-200:])


def check_jitdump(checks, work, variant):
    """Of a program that compiles no more: where a code heap grows later, perf takes the names of what is in it away."""
    with Target([*sample_command(variant, "primes"), "600"]) as target:
        target.wait_busy(3)
        judge_jitdump(checks, work, target, variant)


def judge_jitdump(checks, work, target, variant):
    """As people do it: perf watches who calls clrperf, too, and so sees it map the dump."""
    def write():
        summary.update(json.loads(succeeded(clrperf("map", "-p", target.pid, "--jitdump", work.file("jit"), "-o", work.file("map"),
                                                    "--json")).stdout))
    summary = {}
    path = perf_record(work, target.pid, "-k", "mono", and_of=f",{os.getpid()}", at_end=write)
    before = managed_frames(path, "--pid", target.pid, which=GENERATED)
    done = perf("inject", "--jit", "-i", path, "-o", work.file("jit.data"))
    checks.check(f"{variant}: perf inject takes the jitdump", done.returncode == 0 and not done.stderr.strip(), done.stderr[-300:])
    named, unnamed = managed_frames(work.file("jit.data"), "--pid", target.pid, which=GENERATED)
    checks.check(f"{variant}: with the jitdump perf leaves at most 1 % of the jitted frames unnamed",
                 named > 200 and unnamed <= 0.01 * (named + unnamed), f"{share(named, unnamed)}; before {share(*before)}")
    checks.check(f"{variant}: it has the code of every jitted method, and lines",
                 0 <= summary["jitted"] - summary["jitdump_methods"] <= 5 and summary["jitdump_lines"] > 10,
                 f"{summary['jitdump_methods']} methods of {summary['jitted']}, {summary['jitdump_lines']} with lines")
    text = perf("annotate", "-l", "-i", work.file("jit.data"), "--stdio", "-s", "Primes.Program.CountPrimes").stdout
    instructions = re.findall(r"^ +([0-9.]+) +: +[0-9a-f]+: ", text, re.M)
    checks.check(f"{variant}: perf annotate shows its instructions and lines",
                 len(instructions) > 10 and sum(map(float, instructions)) > 50 and re.search(r"Program\.cs:\d+", text),
                 f"{len(instructions)} instructions; {text[:100]!r}")


def managed_ranges(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        lines = [line.split(None, 5) for line in file]
    return [tuple(int(end, 16) for end in words[0].split("-")) for words in lines
            if "x" in words[1] and len(words) > 5 and re.search(r"\.dll$|doublemapper", words[5].strip())]


def bpftrace_frames(pid):
    """Managed frames with and without a name, after a new map."""
    succeeded(clrperf("map", "-p", pid))
    program = f"profile:hz:99 /pid == {pid}/ {{ @[ustack(perf, 100)] = count(); }} interval:s:4 {{ exit(); }}"
    done = subprocess.run(["bpftrace", "-e", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=200,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                          env={**os.environ, "BPFTRACE_CACHE_USER_SYMBOLS": "1"})
    ranges = managed_ranges(pid)
    frames = [(int(match[1], 16), match[2]) for match in re.finditer(r"^\t([0-9a-f]+) (.*)$", done.stdout, re.M)]
    managed = [text for addr, text in frames if any(begin <= addr < end for begin, end in ranges)]
    unnamed = sum("([unknown])" in text for text in managed)
    return len(managed) - unnamed, unnamed, done.stdout[-100:]


def check_bpftrace(checks, target, variant):
    """It finds everything in the map, also code of .dll files; but it reads the map early, so a program that still
    compiles gets several tries. Where it is missing perf alone judges the map."""
    name = f"{variant}: bpftrace leaves at most 1 % of the managed frames unnamed"
    if not shutil.which("bpftrace"):
        checks.line("# bpftrace is not on PATH: it was not asked")
        return
    for _ in range(6):
        named, unnamed, text = bpftrace_frames(target.pid)
        if named and unnamed <= 0.01 * (named + unnamed):
            break
    os.unlink(f"/tmp/perf-{target.pid}.map")
    if not named + unnamed:
        checks.line(f"# bpftrace takes no samples here: {text.strip()}")
        return
    checks.check(name, named and unnamed <= 0.01 * (named + unnamed), share(named, unnamed))


def elf_files(folder):
    return [os.path.join(path, name) for path, _, names in os.walk(folder) for name in names
            if not os.path.islink(os.path.join(path, name))]


# Runs a program that may not read other processes' memory (x86-64: process_vm_readv is 310).
WITHOUT_MEMORY = """
import ctypes, os, struct, sys
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 310), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
rules = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(rules)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


def for_all_arguments(name):
    """Without a generic method's own arguments, which the runtime does not tell."""
    at, depth = len(name), 0
    while name.endswith(">") and at:
        at -= 1
        depth += (name[at] == ">") - (name[at] == "<")
        if depth == 0:
            return name[:at]
    return name


def check_runtime_tells(checks, work, target, variant):
    """Without a right to the memory the runtime tells the methods, and gives them the same names, but for instances of generic methods."""
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY, CLRPERF, "map", "-p", str(target.pid), "--json", "-o",
                           work.file("told.map")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"map without memory: exit {done.returncode}: {done.stderr[-300:]}")
    succeeded(clrperf("map", "-p", target.pid, "-o", work.file("read.map")))
    told, read = ({row[0]: row[2] for row in read_map(work.file(name))} for name in ("told.map", "read.map"))
    both = [addr for addr in told if addr in read and told[addr][0] != "["]
    differ = [(told[addr], read[addr]) for addr in both if for_all_arguments(told[addr]) != for_all_arguments(read[addr])]
    # a dynamic method's place may have been used again between the two
    checks.check(f"{variant}: what the runtime tells and what its memory holds have the same names",
                 json.loads(done.stdout)["resolver"] == "eventpipe" and len(both) > 10000 and len(differ) <= 5,
                 f"{len(both)} in both, {len(differ)} differ: {differ[:3]}")


def check_file(checks, work, target, variant):
    """Of a stopped process: nothing changes between two looks."""
    place = f"/tmp/perf-{target.pid}.map"
    victim = work.file("victim")
    with open(victim, "w", encoding="ascii") as file:
        file.write("mine")
    if os.path.lexists(place):
        os.unlink(place)
    os.symlink(victim, place)
    before = leftovers()
    os.kill(target.pid, signal.SIGSTOP)
    try:
        succeeded(clrperf("map", "-p", target.pid))
        rows, status = read_map(place), os.lstat(place)
        succeeded(clrperf("map", "-p", target.pid, "-o", work.file("again.map")))
        check_rows(checks, variant, rows)
        with open(place, "rb") as one, open(work.file("again.map"), "rb") as two:
            checks.check(f"{variant}: the map of a stopped process is the same twice", one.read() == two.read())
        os.mkfifo(work.file("fifo"))
        done = clrperf("map", "-p", target.pid, "-o", work.file("fifo"))
        checks.check(f"{variant}: what is no regular file is not replaced",
                     done.returncode == 2 and not os.path.isfile(work.file("fifo")), done.stderr.strip())
        with open(victim, encoding="ascii") as file:
            checks.check(f"{variant}: a link in its place is replaced, not followed",
                         file.read() == "mine" and not os.path.islink(place))
        checks.check(f"{variant}: the map is root's and nobody else writes it",
                     status.st_uid == 0 and status.st_mode & 0o137 == 0, oct(status.st_mode))
        left = leftovers() - before
        checks.check(f"{variant}: nothing else is left in /tmp", not left, left)
        check_addr(checks, target, variant, rows)
    finally:
        os.kill(target.pid, signal.SIGCONT)
        os.unlink(place)


def leftovers():
    """Of writers, ours or one that was killed long ago."""
    return {name for name in os.listdir("/tmp") if name.startswith(".clrperf-")}


def check_rows(checks, variant, rows):
    overlaps = sum(a[0] + a[1] > b[0] for a, b in zip(rows, rows[1:]))
    strange = [name for _, _, name in rows if not name or re.search(r"[\x00-\x1f\x7f]", name)]
    checks.check(f"{variant}: the map is sorted and nothing overlaps", rows == sorted(rows) and overlaps == 0,
                 f"{len(rows)} rows, {overlaps} overlaps")
    checks.check(f"{variant}: every name is one line", not strange, f"{strange[:3]}")
    names = {name for _, _, name in rows}
    checks.check(f"{variant}: jitted, precompiled and stub names are there",
                 {"WebApi.Burner.Burn", "System.String.Concat"} <= names and any(n[0] == "[" for n in names))


def check_addr(checks, target, variant, rows):
    """A tenth of the questions are about where a method ends: addr must say the same as the map."""
    some = random.Random(4).sample(rows, 500)
    asked = [(start + (size - 1 if i % 10 == 0 else size // 2), start, name) for i, (start, size, name) in
             enumerate(some)]
    done = succeeded(clrperf("addr", "-p", target.pid, "--json", "-", stdin=None,
                             input="\n".join(f"{addr:x}" for addr, _, _ in asked)))
    answers = json.loads(done.stdout)["rows"]
    wrong = [(name, row["function"]) for (addr, start, name), row in zip(asked, answers)
             if not agrees(name, start, addr, row)]
    checks.check(f"{variant}: addr and the map agree on {len(asked)} addresses",
                 len(answers) == len(asked) and not wrong, f"{len(wrong)} differ: {wrong[:3]}")
    methods = [row for row in answers if row["kind"] in ("r2r", "jit")]
    checks.check(f"{variant}: addr knows mapping, image, MVID and resolver of every method",
                 methods and all(row["mapping"] and row["image"] and row["resolver"] and row["mvid"] for row in methods),
                 f"{len(methods)} methods")
    nothing = json.loads(succeeded(clrperf("addr", "-p", target.pid, "--json", "10")).stdout)["rows"][0]
    checks.check(f"{variant}: where nothing is, everything is null",
                 all(value is None for key, value in nothing.items() if key not in ("address", "inlined")))


def agrees(name, start, addr, row):
    if name[0] == "[" and row["kind"] in ("stub", None):  # a piece of data or padding between stubs may have no name
        return row["function"] is None or row["function"].startswith("[")
    return row["function"] == name and (row["offset"] is None or row["offset"] == addr - start)


def check_plain_map(checks, work, variant):
    """Without W^X jitted code is in memory of no file: perf looks into the map alone."""
    with webapi(variant, {"DOTNET_EnableWriteXorExecute": "0"}) as target:
        warm(target)
        path = perf_record(work, target.pid)
        succeeded(clrperf("map", "-p", target.pid))
        try:
            named, unnamed = managed_frames(path, which=ANONYMOUS)
            checks.check(f"{variant}: without W^X the map alone names jitted frames for perf",
                         named > 500 and unnamed <= 0.01 * (named + unnamed), share(named, unnamed))
        finally:
            os.unlink(f"/tmp/perf-{target.pid}.map")


def copied(work, command):
    """The program in a place that everybody can read."""
    folder = os.path.dirname(command[-1])
    shutil.copytree(folder, work.file("program"))
    subprocess.run(["chmod", "-R", "a+rX", work.file("program")], check=True)
    return [word.replace(folder, work.file("program")) for word in command]


def check_other_user(checks, variant):
    """perf takes a map that is root's; the process's group may read it."""
    need_root()
    with Work() as work, Target([*copied(work, sample_command(variant, "primes")), "60"], ready=False, user=NOBODY,
                                group=NOBODY, extra_groups=[],
                                env={**PLAIN_ENVIRONMENT, "HOME": "/tmp"}) as target:
        place = f"/tmp/perf-{target.pid}.map"
        end = time.monotonic() + 60
        done = clrperf("map", "-p", target.pid)
        while done.returncode and time.monotonic() < end and target.alive():  # the runtime is on its way
            time.sleep(0.5)
            done = clrperf("map", "-p", target.pid)
        succeeded(done)
        status = os.lstat(place)
        os.unlink(place)
        checks.check(f"{variant}: the map of another user's process is root's, for its group to read",
                     (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, NOBODY, 0o640), oct(status.st_mode))


def check_errors(checks):
    checks.check("a process without .NET is told so", clrperf("map", "-p", os.getpid()).returncode == 5)
    checks.check("a process that is not there", clrperf("addr", "-p", 4194303, "10").returncode == 3)
    checks.check("what is no address is a usage error", clrperf("addr", "-p", os.getpid(), "main").returncode == 2)
    native = json.loads(succeeded(clrperf("addr", "-p", os.getpid(), "--json", f"{own_libc():x}")).stdout)["rows"][0]
    checks.check("addr also serves a process without .NET",
                 native["image"] is not None and native["mapping"] is not None,
                 f"{native['image']}, {native['function']}")


def own_libc():
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if "libc" in line and " r-xp " in line:
                return int(line.split("-")[0], 16) + 0x1000
    raise RuntimeError("no libc is mapped")


def check_variant(checks, variant):
    need_root()
    need_command("perf")
    with Work() as work, webapi(variant) as target:
        warm(target)
        check_perf(checks, work, target, variant)
        check_bpftrace(checks, target, variant)
        check_runtime_tells(checks, work, target, variant)
        check_file(checks, work, target, variant)
    with Work() as work:
        check_jitdump(checks, work, variant)
    with Work() as work:
        check_plain_map(checks, work, variant)


def main():
    checks, variant = Checks(), sys.argv[1]
    checks.run(f"map {variant}", check_variant, variant)
    checks.run(f"map of another user {variant}", check_other_user, variant)
    checks.run("map errors", check_errors)
    checks.exit()


if __name__ == "__main__":
    main()
