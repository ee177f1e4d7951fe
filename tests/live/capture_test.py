#!/usr/bin/env python3
"""capture_test.py [GROUP...]: a capture survives a killed recorder and a full disk, and harms no other file."""
import contextlib
import json
import os
import random
import resource
import stat
import subprocess
import sys
import threading
import time

from live import Checks, Recording, Target, Watch, Work, busy, clrperf, cpu_clock_ns, dump, folded, need_root, report, sample_command

KILLS = 50
AT_ONCE = 5
# Of the target's CPU time: a second, and what the recorder's ticks and flushes are apart.
MISSING_S = 1.25
ROOM_BYTES = 64 << 10
STREAM_ROOM_BYTES = 256 << 10


def queued_ns(pid):
    """How long a thread was ready and got no CPU."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1])
    except FileNotFoundError:
        return 0


def one_kill(pid, cpu, out, delay_s, results):
    """What the target burned before the kill, and is not in the file, must be younger than a second."""
    recording = Recording(out, "-F", "499", "-p", pid)
    queued = queued_ns(recording.pid)
    time.sleep(delay_s)
    queued = (queued_ns(recording.pid) - queued) / 1e9
    recording.process.kill()
    killed = time.monotonic_ns()
    recording.process.wait()
    seen = clrperf("report", "--json", out)
    if seen.returncode:
        results.append(f"report: exit {seen.returncode}: {seen.stderr[-200:]}")
        return
    tables = dump(out)
    newest = max((int(row[0]) for row in tables["sample"]), default=0)
    last = max(newest, int(tables["fact"].get("started_monotonic_ns", 0)), killed - int(delay_s * 1e9))
    missing_s = cpu.between(last, killed)["cpu"]
    # without the CPU nobody writes anything
    results.append(f"the last {missing_s:.2f} s are missing after {delay_s:.2f} s, {queued:.2f} s of them without a CPU"
                   if missing_s > MISSING_S + queued else None)


def kills(checks, work):
    results, seed = [], random.randrange(1 << 30)
    chance = random.Random(seed)
    delays = [chance.uniform(0, 3) for _ in range(KILLS)]
    with busy() as target, Watch(lambda: {"cpu": cpu_clock_ns(target.pid) / 1e9}, 0.01) as cpu:

        def work_off(lane):
            for i in range(lane, KILLS, AT_ONCE):
                try:
                    one_kill(target.pid, cpu, work.file(f"kill{i}.clrperf"), delays[i], results)
                except (RuntimeError, OSError) as error:
                    results.append(str(error))

        lanes = [threading.Thread(target=work_off, args=(lane,)) for lane in range(AT_ONCE)]
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join()
    failures = [what for what in results if what]
    checks.check(f"after {KILLS} kills everything older than a second is readable",
                 len(results) == KILLS and not failures, f"seed {seed}: " + "; ".join(failures[:4]))


def killed_names(checks, work):
    """The target is gone, too, when the file is looked at: what it says it has of itself."""
    out = work.file("killed.clrperf")
    with Target(sample_command("10", "primes") + ["0"]) as target:
        target.wait_busy(1)
        recording = Recording(out, "-p", target.pid)
        time.sleep(5)
        recording.process.kill()
        recording.process.wait()
    rows = report(out, "--top", "5")["rows"]
    checks.check("a method in the file of a killed recorder has its name and its assembly",
                 (rows[0]["name"], rows[0]["module"]) == ("Primes.Program.CountPrimes", "primes"), str(rows[:2]))


def killed_export(checks, work):
    """An export is written at the end: until then its file says so."""
    out = work.file("killed.html")
    with busy() as target:
        recording = Recording(out, "-p", target.pid)
        recording.process.kill()
        recording.process.wait()
        with open(out, encoding="utf-8") as file:
            told = file.read()
        checks.check("the export of a killed recorder says what it is", "it was killed before that" in told, told[:200])
        done = clrperf("record", "-q", "-p", target.pid, "-d", "300ms", "--force", "-o", out)
    with open(out, encoding="utf-8") as file:
        told = file.read()
    checks.check("in an export that was written nothing of that is left", done.returncode == 0 and told.startswith("<!DOCTYPE html>")
                 and "killed" not in told[:4096], told[:200])


def full_disk(checks, work):
    out = work.file("limited.clrperf")
    with busy() as target:
        # room for more than the first flush, however late that is; the time is only there to end
        arguments = ("record", "-F", 9999, "-d", 120, "-p", target.pid, "-o")
        done = clrperf(*arguments, out, "--json", timeout=240,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, ROOM_BYTES)))
        checks.check("a file that may not grow: exit 1, and it is said", done.returncode == 1 and "cannot write" in done.stderr,
                     f"{done.returncode} {done.stderr}")
        checks.check("the summary is there, and says that an error ended it", json.loads(done.stdout)["ended_by"] == "error", done.stdout)
        kept, told = report(out)["totals"]["samples"], json.loads(done.stdout)
        checks.check("what fits is readable", kept > 0, f"{os.path.getsize(out)} bytes")
        checks.check("what did not fit is lost, and the summary says so", told["samples"] == kept and told["lost_by"].get("write", 0) > 0 and
                     told["attempted"] == kept + told["lost"], f"{kept} samples, told {told}")
        with small_disk(work, ROOM_BYTES) as disk:
            out = os.path.join(disk, "full.clrperf")
            done = clrperf(*arguments, out, timeout=240)
            check_full(checks, "a full disk", out, done)
            checks.check("what was written before is readable", report(out)["totals"]["samples"] > 0,
                         f"{os.path.getsize(out)} bytes")


def full_disk_stream(checks, work):
    with small_disk(work, STREAM_ROOM_BYTES) as disk, Target([*sample_command("10", "throws"), "0"]) as target:
        out = os.path.join(disk, "full.nettrace")
        done = clrperf("record", "-p", target.pid, "-e", "exceptions", "-d", "60s", "-o", out, "--json", "--format", "Speedscope")
        check_full(checks, "a .nettrace file on a full disk", out, done)
        checks.check("of a stream that was not written nobody says that it has no end", "no end" not in done.stderr, done.stderr)
        checks.check("the summary of the stream says that an error ended it", json.loads(done.stdout)["ended_by"] == "error", done.stdout)
        read = json.loads(clrperf("report", out, "exceptions", "--json").stdout)
        checks.check("what was written of the stream before is readable", read["totals"]["count"] > 0, f"{os.path.getsize(out)} bytes")
        checks.check("the second file is not left behind empty", os.listdir(disk) == ["full.nettrace"], str(os.listdir(disk)))
        checks.check("the program lives", target.alive())


@contextlib.contextmanager
def small_disk(work, room_bytes):
    need_root()
    disk = work.file("disk")
    os.makedirs(disk, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={room_bytes}", "tmpfs", disk], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def check_full(checks, name, out, done):
    checks.check(f"{name}: exit 1, and it is said", done.returncode == 1 and f"error: '{out}'" in done.stderr and
                 "No space left" in done.stderr and "try:" in done.stderr, f"{done.returncode} {done.stderr}")


def files(checks, work):
    with busy() as target:
        def attempt(out, *options, **settings):
            return clrperf("record", "-q", "-d", "0.2", "-p", target.pid, "-o", out, *options, **settings)

        out, other = work.file("file.clrperf"), work.file("other")
        old_mask = os.umask(0)
        attempt(out)
        os.umask(old_mask)
        mode = stat.S_IMODE(os.stat(out).st_mode)
        checks.check("a capture is its owner's alone", mode == 0o600, oct(mode))
        before = os.stat(out)
        done = attempt(out)
        checks.check("a file that is there is not overwritten", done.returncode == 1 and "--force" in done.stderr
                     and os.stat(out).st_mtime_ns == before.st_mtime_ns, f"{done.returncode} {done.stderr}")
        os.chmod(out, 0o644)
        done = attempt(out, "--force")
        mode = stat.S_IMODE(os.stat(out).st_mode)
        checks.check("--force overwrites, and closes it to others", done.returncode == 0 and mode == 0o600, oct(mode))
        for path in (other, work.file("nothing")):
            link = work.file("link.clrperf")
            if path == other:
                with open(other, "w", encoding="ascii") as file:
                    file.write("precious")
            os.symlink(path, link)
            for options in ((), ("--force",)):
                done = attempt(link, *options)
                checks.check(f"a link is not followed {' '.join(options)}", done.returncode != 0 and os.path.islink(link),
                             f"{done.returncode} {done.stderr}")
            os.unlink(link)
        with open(other, encoding="ascii") as file:
            checks.check("what it led to is untouched", file.read() == "precious" and not os.path.exists(work.file("nothing")),
                         "")
        os.mkfifo(work.file("fifo"))
        done = attempt(work.file("fifo"), "--force", timeout=20)
        checks.check("a FIFO is refused at once", done.returncode != 0, f"{done.returncode} {done.stderr}")
        if os.geteuid() == 0:
            attempt(work.file("sudo.clrperf"), env={**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"})
            owner = os.stat(work.file("sudo.clrperf")).st_uid
            checks.check("a capture made with sudo belongs to who asked", owner == 65534, str(owner))


def exports(checks, work):
    """Recorded as an export it shows what the same recording shows when it is exported."""
    with Target([*sample_command("10", "throws"), "0"]) as target:
        for event in ("exceptions", "context-switches"):
            out = work.file(f"{event}.folded")
            done = clrperf("record", "-q", "-p", target.pid, "-e", event, "-d", "1s", "-o", out)
            with open(out, encoding="utf-8") as file:
                stacks = file.read().splitlines()
            checks.check(f"record -e {event} -o x.folded has their stacks", done.returncode == 0 and
                         any("Throws.Program." in line for line in stacks), f"{len(stacks)} stacks {done.stderr}")
        path = work.file("thrown.clrperf")
        clrperf("record", "-q", "-p", target.pid, "-e", "exceptions", "-d", "1s", "-o", path)
        totals = json.loads(clrperf("report", path, "exceptions", "--json").stdout)["totals"]
        thrown = totals["count"] + totals["rethrown"]  # those that an await passes on, too
        shown = sum(weight for _, weight in folded(path))
        checks.check("export of a capture of exceptions shows each", shown == thrown > 0, f"{shown} of {thrown}")


GROUPS = (kills, killed_names, killed_export, full_disk, full_disk_stream, files, exports)


def main():
    checks = Checks()
    with Work() as work:
        for group in GROUPS:
            if not sys.argv[1:] or group.__name__ in sys.argv[1:]:
                checks.run(group.__name__, group, work)
    checks.exit()


if __name__ == "__main__":
    main()
