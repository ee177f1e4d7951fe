#!/usr/bin/env python3
"""experiment_test.py: who waits does not show up as CPU, and a large capture is small.

webapi under 5 + 5 connections: /on-cpu burns 100 ms, /off-cpu waits as long. In the CPU report the first must hold
the samples. Then the same service at full load and 9,999 samples a second: bytes a sample, names included.
"""
from live import Checks, Load, Target, Work, folded, record_busy, report, sample_command, wait_for

CPU_S = 6
# Until its 30th call the action's loop is an OSR method, whose caller frame-pointer stacks miss; nobody else calls it.
OSR_CALLS = 30
ON_CPU = ("OnCpuController.OnCpu", "WebApi.Burner.Burn")
OFF_CPU = ("OffCpuController.OffCpu",)
RATE = 9999
SAMPLES_MANY = 100_000
BYTES_A_SAMPLE = 24


def on_and_off(checks, work):
    with Target(sample_command("10", "webapi") + ["0", "--urls", "http://127.0.0.1:0"]) as target:
        target.load = Load(target.url, {"/on-cpu": 5, "/off-cpu": 5})
        wait_for(lambda: target.load.requests["/on-cpu"] >= 2 * OSR_CALLS, "requests are served", 180)
        before = dict(target.load.requests)
        out = work.file("experiment.clrperf")
        record_busy(out, target.pid, 499, CPU_S, 120)
        requests = {path: count - before[path] for path, count in target.load.requests.items()}
    stacks = folded(out)
    weights = {actions: sum(weight for stack, weight in stacks if any(frame.endswith(actions) for frame in stack))
               for actions in (ON_CPU, OFF_CPU)}
    both = sum(weights.values())
    on, off = (weight / max(1, both) for weight in weights.values())
    detail = f"{100 * on:.2f} % and {100 * off:.2f} %, after {requests}"
    checks.check("/on-cpu's action holds at least 95 % of the two actions' samples", both and on >= 0.95, detail)
    checks.check("/off-cpu's action holds at most 2 %", both and off <= 0.02, detail)
    checks.check("both were asked for", min(requests.values()) > 10, str(requests))


def bytes_a_sample(checks, work):
    with Target(sample_command("10", "webapi") + ["0", "--urls", "http://127.0.0.1:0"]) as target:
        target.load = Load(target.url, {"/on-cpu": 4, "/dict/7": 2, "/alloc/64": 1, "/exception/3": 1, "/log": 1})
        target.wait_age(5)
        out = work.file("large.clrperf")
        # the sanitized program cannot unwind 20,000 stacks a second; what is stored is the same
        summary = record_busy(out, target.pid, RATE, 1.05 * SAMPLES_MANY / RATE, options=["--frame-pointers"])
    each = summary["bytes"] / max(1, summary["samples"])
    totals = report(out, "--top", "1")["totals"]
    stacks = len(folded(out))
    detail = (f"{summary['bytes']} bytes, {summary['samples']} samples, {stacks} stacks: {each:.2f}; "
              f"{summary['self']['cpu_s'] * 1e6 / max(1, summary['samples']):.2f} us of CPU a sample")
    # names and stacks are stored once: the fewer samples this machine gave, the more each one has to carry
    checks.check(f"a sample takes at most {BYTES_A_SAMPLE} bytes, names included",
                 summary["samples"] > SAMPLES_MANY / 4 and each <= BYTES_A_SAMPLE, detail)
    checks.check("at most 1 % was lost, and the capture knows", summary["lost"] <= 0.01 * summary["attempted"]
                 and totals["lost"] == summary["lost"], str(summary["lost_by"]))


def main():
    checks = Checks()
    with Work() as work:
        checks.run("experiment", on_and_off, work)
        checks.run("bytes", bytes_a_sample, work)
    checks.exit()


if __name__ == "__main__":
    main()
