#!/usr/bin/env python3
"""loss_test.py: what a frozen reader loses is counted to the sample: attempted = kept + lost."""
import os
import signal

from live import Checks, Recording, Watch, Work, busy, cpu_clock_ns, dump, report, wait_cpu

# Each CPU's ring holds about a second of samples at this rate; frozen for so much of the targets' CPU time, they overflow.
RATE = 4999
FROZEN_CPU_S = min(30, 3 * (os.cpu_count() or 1))


def freeze(checks, work):
    out = work.file("frozen.clrperf")
    with busy() as one, busy() as two, busy() as three:
        pids = [one.pid, two.pid, three.pid]
        with Watch(lambda: {"cpu": sum(cpu_clock_ns(pid) for pid in pids) / 1e9}, 0.005) as cpu:
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
        cpu_s = cpu.between(start, start + int(summary["duration_s"] * 1e9))["cpu"]
    attempted, kept, lost = summary["attempted"], summary["samples"], summary["lost"]
    checks.check("samples were lost, and it is said", lost > 0, f"{lost} of {attempted}")
    off = attempted / (RATE * cpu_s) - 1
    # a timer that comes late skips the ticks it missed, the more of them the busier the machine; what nobody counted
    # would be most of the samples
    checks.check("kept and lost together are rate x CPU seconds within 10 %", attempted == kept + lost and abs(off) <= 0.1,
                 f"{kept} + {lost} for {cpu_s:.2f} s, {100 * off:+.2f} %")
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
