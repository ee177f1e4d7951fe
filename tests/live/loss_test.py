#!/usr/bin/env python3
"""loss_test.py: what a frozen reader loses is counted to the sample: attempted = kept + lost."""
import json
import os
import signal
import subprocess
import time

from live import CLRPERF, Checks, Target, Watch, Work, cpu_clock_ns, dump, report

RATE = 19999
FROZEN_S = 3


def freeze(checks, work):
    out = work.file("frozen.clrperf")
    busy = ["nice", "-n", "-10" if os.geteuid() == 0 else "0", "sh", "-c", "while :; do :; done"]
    with Target(busy, ready=False) as one, Target(busy, ready=False) as two, Target(busy, ready=False) as three:
        pids = [one.pid, two.pid, three.pid]
        with Watch(lambda: {"cpu": sum(cpu_clock_ns(pid) for pid in pids) / 1e9}, 0.005) as cpu:
            recorder = subprocess.Popen([CLRPERF, "record", "-q", "--json", "-F", str(RATE), "-d", "5", "-o", out, "-p",
                                         ",".join(map(str, pids))], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
            time.sleep(1)
            os.kill(recorder.pid, signal.SIGSTOP)
            time.sleep(FROZEN_S)
            os.kill(recorder.pid, signal.SIGCONT)
            output, errors = recorder.communicate(timeout=60)
        if not checks.check("a frozen recorder goes on afterwards", recorder.returncode == 0, errors):
            return
        summary, tables = json.loads(output), dump(out)
        start = int(tables["fact"]["started_monotonic_ns"])
        cpu_s = cpu.between(start, start + int(summary["duration_s"] * 1e9))["cpu"]
    attempted, kept, lost = summary["attempted"], summary["samples"], summary["lost"]
    checks.check("samples were lost, and it is said", lost > 0, f"{lost} of {attempted}")
    off = attempted / (RATE * cpu_s) - 1
    checks.check("kept and lost together are rate x CPU seconds within 5 %", attempted == kept + lost and abs(off) <= 0.05,
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
