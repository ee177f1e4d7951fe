#!/usr/bin/env python3
"""crossing.py CLRPERF [RELEASE]: every question and export with every option, over files of every kind.

With RELEASE, a build without sanitizers, where it exists: it runs each option with three of the files, and CLRPERF with one; both
run each file with no option. What an answer says is other tests' business. Here each must end in an orderly way: with one of the
documented exit codes, without a crash or a finding of a sanitizer, with JSON where that was asked for, and with a reason where
there is no answer.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"  # a third of a start; others look for them
HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ["capture/webapi.clrperf", "told/gc.clrperf", "nettrace/primes.nettrace", "nettrace/primes-v6.nettrace",
         "nettrace/primes.netperf", "perf_data/small.perf.data", "export/nasty.folded", "export/small.perf.txt"]
# An option that takes a word, with words that mean something and one that does not.
WORDS = {"top": ["0", "2"], "by": ["thread", "type", "nothing"], "strict": ["0"], "callers": ["Main"], "callees": ["Main"],
         "event": ["cpu", "GC*"], "time": ["0-0.5", "9-1"], "include": ["a", "["], "exclude": ["a"], "group": ["runtime", "x"],
         "provider": ["*"], "process": ["1"], "thread": ["1"], "text": ["!a"], "where": ["Count>0", "="], "columns": ["Count,Depth"],
         "title": ["A <title>"]}
# They take a file's name or say what is done anyway.
LEFT_OUT = {"help", "force", "output", "format"}
ORDERLY = {0, 1, 2, 5, 6}  # of docs/man/clrperf.1; the others are of targets


def said(clrperf, *words):
    return subprocess.run([clrperf, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False).stdout


def options_of(clrperf, verb):
    """[] and each option in turn, with each of its words."""
    yield []
    for name, word in re.findall(r"^  (?:-\w, |    )--([a-z-]+)( [A-Z])?", said(clrperf, verb, "--help"), re.M):
        if name in LEFT_OUT:
            continue
        if word and name not in WORDS:
            raise RuntimeError(f"--{name} of '{verb}' takes a word, and this test knows none")
        for value in WORDS[name] if word else [None]:
            yield [f"--{name}"] + ([value] if value else [])


def questions_of(clrperf):
    text = said(clrperf, "report", "--help")
    return [""] + re.findall(r"^  ([a-zA-Z-]+)  ", text[text.index("questions:"):text.index("options:")], re.M)


def is_json(text):
    """One object, or an object in each line."""
    try:
        json.loads(text)
    except ValueError:
        try:
            for line in text.splitlines():
                json.loads(line)
        except ValueError:
            return False
    return True


def check(command):
    """What is wrong with a run, or ""."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=100, check=False)
    except subprocess.TimeoutExpired:
        return "no end"
    errors = done.stderr.decode(errors="replace")
    if done.returncode not in ORDERLY or "Sanitizer" in errors or "runtime error" in errors:
        return f"exit {done.returncode}: {errors[-300:]}"
    if done.returncode in (1, 2, 5) and not re.search("^error: ", errors, re.M):
        return f"exit {done.returncode} without a reason: {errors[-200:]}"
    if "--json" in command and done.returncode in (0, 6) and not is_json(done.stdout.decode()):
        return f"no JSON: {done.stdout[:100]}"
    if done.returncode == 0 and not done.stdout and not {"events", "folded"} & set(command):
        return "neither an answer nor a reason"
    return ""


def verbs(clrperf):
    """Words before the file, and after it; the options."""
    for question in questions_of(clrperf):
        for options in options_of(clrperf, "report"):
            yield ["report"], [question] if question else [], options
    for name in said(clrperf, "__complete", "--", "export", "--format", "").split():
        for options in options_of(clrperf, "export") if name in ("svg", "folded") else [[]]:
            yield ["export"], ["-o", "-", "--format", name], options


def commands(clrperf, files, at_most):
    """What has no option with all files, each option with some of them, others each time."""
    for turn, (before, after, options) in enumerate(verbs(clrperf)):
        count = min(at_most, len(files)) if options else len(files)
        for i in range(count):
            yield [clrperf, *before, files[(turn + i * len(files) // count) % len(files)], *after, *options]


def main():
    clrperf, release = (list(map(os.path.abspath, sys.argv[1:])) + [""])[:2]
    files = [os.path.join(HERE, file) for file in FILES]
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)  # nothing is found beside the files, and nothing is left
        fast = os.access(release, os.X_OK)
        todo = list(commands(clrperf, files, 1 if fast else 3)) + (list(commands(release, files, 3)) if fast else [])
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as lanes:
            wrong = [(command, why) for command, why in zip(todo, lanes.map(check, todo)) if why]
    for command, why in wrong[:20]:
        print(f"not ok {' '.join(command)}\n  {why}")
    print(f"{len(todo)} runs, {len(wrong)} wrong")
    return 1 if wrong or len(todo) < 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
