#!/usr/bin/env python3
"""loss_test.py: what a frozen reader loses is counted to the sample: attempted = kept + lost."""
import os
import signal

from live import Checks, Recording, Watch, Work, busy, cpu_clock_ns, dump, report, wait_cpu

# Each CPU's ring holds about a second of samples at this rate; frozen for so much of the targets' CPU time, they overflow.
RATE = 4999
FROZEN_CPU_S = min(30, 3 * (os.cpu_count() or 1))
# A full ring also loses what the kernel tells of processes that come and go, anywhere on the machine, and does not say which
# of its losses are samples: of one process its start, its end, and each of its mappings.
RECORDS_A_PROCESS = 150


def forks():
    with open("/proc/stat", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("processes "))


def freeze(checks, work):
    out = work.file("frozen.clrperf")
    with busy() as one, busy() as two, busy() as three:
        pids = [one.pid, two.pid, three.pid]
        with Watch(lambda: {"cpu": sum(cpu_clock_ns(pid) for pid in pids) / 1e9, "forks": forks()}, 0.005) as watch:
            recording = Recording(out, "-F", RATE, "-p", ",".join(map(str, pids)))
            wait_cpu(pids, 1)
            os.kill(recording.pid, signal.SIGSTOP)
            wait_cpu(pids, FROZEN_CPU_S)
            os.kill(recording.pid, signal.SIGCONT)
            wait_cpu(pids, 0.5)
            summary = recording.stop()
        checks.check("a frozen recorder goes on afterwards", summary["ended_by"] == "signal", summary["ended_by"])
        tables = dump(out)
        start = int(tables["fact"]["started_monotonic_ns"])
        seen = watch.between(start, start + int(summary["duration_s"] * 1e9))
    attempted, kept, lost = summary["attempted"], summary["samples"], summary["lost"]
    checks.check("samples were lost, and it is said", lost > 0, f"{lost} of {attempted}")
    ticks, others = RATE * seen["cpu"], RECORDS_A_PROCESS * seen["forks"]
    # a timer that comes late skips the ticks it missed, the more of them the busier the machine; what nobody counted
    # would be most of the samples
    checks.check("kept and lost together are rate x CPU seconds within 10 %",
                 attempted == kept + lost and 0.9 * ticks <= attempted <= 1.1 * ticks + others,
                 f"{kept} + {lost} for {seen['cpu']:.2f} s, {100 * (attempted / ticks - 1):+.2f} %, {seen['forks']:.0f} forks meanwhile")
    checks.check("the capture holds what was kept", len(tables["sample"]) == kept, str(len(tables["sample"])))
    in_rings = sum(int(count) for reason, count in tables["loss"] if reason == "ring")
    totals = report(out, "--top", "1")["totals"]
    checks.check("the capture says what was lost", totals["lost"] == lost and in_rings == lost
                 and totals["attempted"] == attempted, f"{totals['lost']} {totals['lost_by']}")


def main():
    checks = Checks()
    with Work() as work:
        checks.run("freeze", freeze, work)
    checks.exit()


if __name__ == "__main__":
    main()
