#!/usr/bin/env python3
"""aot_test.py VARIANT [SAMPLE...]: names of methods and threads in programs that were compiled ahead of time (Native AOT).

The judge is the linker's symbol table, which the compiler puts into a debug file beside the program: the program itself has
none, and is looked at without that file."""
import json
import os
import re
import shutil
import subprocess
import sys

from live import HELPERS, Checks, Target, Work, clrperf, core_dumps, need_command, run, sample_command, succeeded, wait_at_rest

# What the compiler makes besides methods: it has no names for stack traces.
MADE = re.compile(r"<unbox>|<DynamicInvoke>|GetFieldHelper|Thunk|__<Get[A-Za-z]+>|_MainMethodWrapper|__managed__")
# Methods that reflection may ask for: types can share a record, which says of none whose it is where the type is an instance
# of a generic one.
SHARED = re.compile(r"___ctor(_\d+)?$|__Invoke$")

# Where stacks begin, and what those begin with that tell of themselves that they do not.
STARTS = re.compile(r"_start$|clone3?$|\[truncated\]$|\[broken\]$|entry_SYSCALL")

FAULT = "System.Runtime.EH.RhThrowHwEx"
FAULTY = re.compile(r"\.(NullDereference|DivideByZero)$")

BUSY = ("throws",)  # the other one mostly waits


def words(text):
    return re.sub(r"[^A-Za-z0-9]", "_", text)


def managed_code(program):
    for line in run("readelf", "-SW", program).splitlines():
        row = line.replace("[ ", "[").split()
        if len(row) > 5 and row[1] == "__managedcode":
            return int(row[3], 16), int(row[3], 16) + int(row[5], 16)
    raise AssertionError(f"{program} has no __managedcode")


def symbols_of(debug, begin, end):
    found = {}
    for line in run("nm", debug).splitlines():
        row = line.split()
        if len(row) == 3 and row[1] in "tT" and begin <= int(row[0], 16) < end:
            found.setdefault(int(row[0], 16), []).append(row[2])
    return found


def names_of(program):
    found = {}
    for line in run(os.path.join(HELPERS, "aot_methods"), program).splitlines():
        addr, _, name = line.split(" ", 2)
        found[int(addr, 16)] = name
    return found


def agrees(name, symbols):
    """`Assembly!Ns.Outer+Type`1::Method` and a symbol like `Assembly_Ns_Outer_Type_1<Int32>__Method_0`."""
    owner, method = name.split("!", 1)[1].split("::", 1)
    last = re.split(r"[.+]", owner)[-1]
    return any(words(method) in words(symbol) and (words(last) in words(symbol) or owner.startswith("System."))
               for symbol in symbols)


def names(checks, program):
    symbols = symbols_of(program + ".dbg", *managed_code(program))
    found = names_of(program)
    wrong = [(name, symbols[addr]) for addr, name in found.items() if addr in symbols and not agrees(name, symbols[addr])]
    checks.check("no name is another method's", found and not wrong, f"{len(found)} names, wrong: {wrong[:5]}")
    methods = {addr: symbol[0] for addr, symbol in symbols.items() if not MADE.search(symbol[0])}
    missing = [symbol for addr, symbol in methods.items() if addr not in found and not SHARED.search(symbol)]
    checks.check("all methods but those whose type nobody tells", len(missing) * 50 <= len(methods),
                 f"{len(missing)} of {len(methods)} missing: {missing[:8]}")


def recording(checks, work, program, sample):
    alone = work.file(sample)
    shutil.copy(program, alone)
    out = work.file("aot.clrperf")
    succeeded(clrperf("record", "-q", "-F", 999, "-o", out, "--", alone, "3"))
    table = succeeded(clrperf("report", out, "--inclusive", "--top", "0")).stdout
    main = re.search(r"^ *[\d.]+ +([\d.]+) +\d+ +(\S+\.Main) +(\S+) +r2r ", table, re.M)
    checks.check("its entry point is named", main and main[3] == sample, main and main[0].strip())
    rows = re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\S.*?) +System\.\S+ +r2r ", table, re.M)
    checks.check("methods of the framework are named", len(rows) > 5, rows[:5])
    stack = succeeded(clrperf("report", out)).stdout
    whole = re.search(r"stacks +([\d.]+) % whole", stack)
    checks.check("stacks are whole", whole and float(whole[1]) >= 99.5, whole and whole[0])
    stacks = [line.split(";") for line in succeeded(clrperf("export", out, "-o", "-", "--format", "folded")).stdout.splitlines()]
    strays = [stack for stack in stacks if len(stack) > 1 and not STARTS.match(stack[1].split(" ")[0])]
    checks.check("and none ends in the middle of the program", len(stacks) > 50 and not strays,
                 f"{len(stacks)} stacks, {len(strays)} strays: {strays[:3]}")
    faults = [stack[stack.index(FAULT) - 2] for stack in stacks if FAULT in stack]
    checks.check("whose fault an exception is is in the stack", faults and all(FAULTY.search(method) for method in faults),
                 f"{len(faults)} stacks: {sorted(set(faults))}")


def thread_names(checks, work, program):
    """What the program called its threads: .NET 8 does not tell the kernel, which cuts what it is told, and no dump has it."""
    alone = work.file("deadlock")
    shutil.copy(program, alone)
    wanted = {"by-signal-that-never-comes", "by-holder", "by-thin", "by-waiter", "cycle-0", "cycle-1"}

    def look(*what):
        return json.loads(succeeded(clrperf("stack", "--json", *what)).stdout)

    def called(view):
        return {thread["name"] for thread in view["threads"]}

    with Target([alone, "0", "two"]) as target:
        wait_at_rest(target.pid)
        view = look("-p", target.pid)
        checks.check("threads have the names that the program gave them", wanted <= called(view), str(called(view)))
        [(_, path)] = core_dumps(work, target.pid, "aot")
    core = look(path)
    checks.check("in a dump, too", wanted <= called(core) and called(core) - wanted == {None}, str(called(core)))
    checks.check("of which it is told what it is of", core["runtime_version"] == view["runtime_version"] == "Native AOT",
                 f"{core['runtime_version']}, {view['runtime_version']}")


def main():
    checks = Checks()
    variant, samples = sys.argv[1], sys.argv[2:] or ["throws", "asyncchain"]

    def one(checks, sample):
        need_command("nm")
        program = sample_command(variant, sample)[-1]
        with Work() as work:
            names(checks, program)
            if sample in BUSY:
                recording(checks, work, program, sample)

    def threads(checks):
        with Work() as work:
            thread_names(checks, work, sample_command(variant, "deadlock")[-1])

    for sample in samples:
        checks.run(f"{variant} {sample}", one, sample)
    checks.run(f"{variant} threads", threads)
    checks.exit()


if __name__ == "__main__":
    main()
