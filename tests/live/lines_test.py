#!/usr/bin/env python3
"""lines_test.py VARIANT [PRECOMPILED]: the source lines of a report are those the program's text has.

With PRECOMPILED the lines of ReadyToRun code are judged too.
"""
import os
import re
import subprocess
import sys

from live import CLRPERF, PLAIN_ENVIRONMENT, ROOT, Checks, Target, Work, need_command, record_busy, report, sample_command

RATE = 999
CPU_S = 2.0
METHOD_LINES = 30
# Loops of lambdas that were inlined are of no statement of the method they are in.
KNOWN_SHARE = 0.9
IN_NO_FILE = "Shapes.Loaded.Spin"


def source(path):
    """The lines of a sample's file, from 1 on, wherever it was compiled."""
    with open(os.path.join(ROOT, "samples", path.rpartition("/samples/")[2]), encoding="utf-8-sig") as file:
        return ["", *file.read().splitlines()]


def share_of_lines(rows, texts):
    """How much of the rows' own weight is on lines with one of these texts."""
    weight = sum(row["self"] for row in rows)
    right = sum(row["self"] for row in rows if row["line_is"] == "statement" and
                any(text in source(row["file"])[row["line"]] for text in texts))
    return right / max(1, weight)


def check_primes(checks, variant, name, environment):
    with Work() as work, Target(sample_command(variant, "primes") + ["0"], env=environment) as target:
        target.wait_busy(1.5)
        record_busy(work.file("c"), target.pid, RATE, CPU_S)
        rows = [row for row in report(work.file("c"), "--lines", "--top", "0")["rows"] if row["module"] == "primes"]
    hot = [row for row in rows if row["name"].endswith("CountPrimes")]
    share = share_of_lines(hot, ("for (int divisor = 2;", "prime = candidate % divisor != 0;"))
    checks.check(f"{name}: the time of CountPrimes is on the two lines of its inner loop", share >= 0.95,
                 f"{100 * share:.1f} %")
    modulo = max(hot, key=lambda row: row["self"])
    checks.check(f"{name}: most of it on one with a division or a product",
                 modulo["line_is"] == "statement" and re.search("[%*]", source(modulo["file"])[modulo["line"]]),
                 f"line {modulo['line']}")
    callers = [row for row in rows if row["name"].endswith("Program.Main")]
    caller = max(callers, key=lambda row: row["total"])
    text = source(caller["file"])[caller["line"]]
    checks.check(f"{name}: Main calls it where its text does", "CountPrimes(" in text, text.strip())


def method_of(name):
    """The plain name of a method, or None for what the compiler or the language names."""
    last = re.sub(r"<.*>", "", name).rpartition(".")[2]
    return last if re.fullmatch(r"\w+", last) and last not in ("get", "set", "add", "remove", "Finalize", "ctor", "cctor") else None


def is_in(lines, line, method):
    """Whether the method's name stands in front of its line, not further off than the longest of the samples is long."""
    name = re.compile(rf"\b{re.escape(method)}\b")
    return any(name.search(text) for text in lines[max(0, line - METHOD_LINES):line + 1])


def check_shapes(checks, variant, name, precompiled):
    with Work() as work, Target(sample_command(variant, "shapes") + ["0"]) as target:
        target.wait_busy(1.0)
        record_busy(work.file("c"), target.pid, RATE, CPU_S)
        rows = [row for row in report(work.file("c"), "--lines", "--top", "0")["rows"] if row["module"] == "shapes"]
    loaded = [row for row in rows if row["name"] == IN_NO_FILE]
    managed = [row for row in rows if row["kind"] in ("jit", "r2r") and row["name"] != IN_NO_FILE]
    checks.check(f"{name}: an assembly that was loaded from an array of bytes has no lines",
                 loaded and all(row["file"] is None for row in loaded), f"{len(loaded)} rows")
    known = [row for row in managed if row["line_is"] == "statement"]
    weight = sum(row["self"] for row in managed)
    share = sum(row["self"] for row in known) / max(1, weight)
    checks.check(f"{name}: the line is known of nearly all time in the program's own methods", share >= KNOWN_SHARE,
                 f"{100 * share:.2f} %")
    if precompiled:
        checks.check(f"{name}: also of precompiled ones", any(row["kind"] == "r2r" for row in known))
    judged = [(row, method_of(row["name"])) for row in known]
    judged = [(row, method) for row, method in judged if method]
    wrong = [f"{row['name']} {row['line']}" for row, method in judged
             if not is_in(source(row["file"]), row["line"], method)]
    checks.check(f"{name}: every line is in its method", len(judged) >= 20 and not wrong,
                 f"{len(judged)} judged" + (f", not {', '.join(wrong[:8])}" if wrong else ""))


def check_method_lines(checks, variant, name):
    """Without the memory of the target a line is its method's, and says so."""
    need_command("strace")
    with Work() as work, Target(sample_command(variant, "primes") + ["0"]) as target:
        target.wait_busy(1.0)
        unreadable = ["strace", "-f", "-o", "/dev/null", "-e", "trace=process_vm_readv", "-e", "inject=process_vm_readv:error=EPERM"]
        done = subprocess.run([*unreadable, CLRPERF, "record", "-q", "-F", str(RATE), "-p", str(target.pid), "-d", str(int(2 * CPU_S)),
                               "-o", work.file("c")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True, timeout=120,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})  # which needs to trace us itself
        checks.check(f"{name}: what is lost without the memory is said", "callers of leaf methods are missing" in done.stderr, done.stderr)
        rows = [row for row in report(work.file("c"), "--lines", "--top", "0")["rows"] if row["kind"] == "jit"]
    rows = [row for row in rows if row["name"].endswith("CountPrimes")]
    lines = source(rows[0]["file"]) if rows and rows[0]["file"] else []
    checks.check(f"{name}: without IL maps the line is the method's first, and marked",
                 lines and all(row["line_is"] == "method" and ("int primes = 0;" in lines[row["line"]] or "{" in lines[row["line"]])
                               for row in rows), str([(row["line_is"], row["line"]) for row in rows]))


def main():
    checks, variant, precompiled = Checks(), sys.argv[1], len(sys.argv) > 2
    checks.run(f"{variant} primes", check_primes, variant, f"{variant} primes", PLAIN_ENVIRONMENT)
    checks.run(f"{variant} shapes", check_shapes, variant, f"{variant} shapes", precompiled)
    if not precompiled:
        checks.run(f"{variant} silent primes", check_primes, variant, f"{variant} primes without diagnostics",
                   {**PLAIN_ENVIRONMENT, "DOTNET_EnableDiagnostics": "0"})
        checks.run(f"{variant} method lines", check_method_lines, variant, f"{variant} primes")
    checks.exit()


if __name__ == "__main__":
    main()
