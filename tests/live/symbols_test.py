#!/usr/bin/env python3
"""symbols_test.py: symbols are found, fetched from servers of both protocols, and name what was nameless before.

The images are a small C library without symbols and a .NET assembly without its PDB; the servers run here.
"""
import json
import os
import re
import shutil
import signal
import stat
import subprocess

from live import (CLRPERF, PLAIN_ENVIRONMENT, Checks, Target, Work, clrperf, need_command, record, report, run,
                  sample_command, succeeded)
from symbol_server import SymbolServer

LIBRARY = """
static unsigned state = 1;
__attribute__((noinline)) static void burn_some(unsigned times) {
    for (unsigned i = 0; i < times; i++) /* the hot line */
        state = state * 1664525u + 1013904223u;
    __asm__ volatile("" : : "r"(state) : "memory");
}
__attribute__((noinline)) static unsigned burn_much(void) {
    for (int i = 0; i < 1000; i++)
        burn_some(100000);
    return state;
}
unsigned library_run(void) { return burn_much(); }
"""
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
unsigned library_run(void);
int main(void) {
    printf("ready %d\\n", getpid());
    fflush(stdout);
    for (;;)
        library_run();
}
"""
HOT = "burn_some"


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", path)).group(1)


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Native:
    """A program that burns in a library whose symbols are only in `debug`."""

    def __init__(self, work):
        need_command("gcc")
        need_command("objcopy")
        os.mkdir(work.file("app"))
        for name, text in (("burn.c", LIBRARY), ("main.c", PROGRAM)):
            with open(work.file(name), "w", encoding="utf-8") as file:
                file.write(text)
        self.library, self.debug = work.file("app/libburn.so"), work.file("libburn.debug")
        self.program = work.file("app/burner")
        whole = work.file("whole.so")
        run("gcc", "-g", "-O1", "-fPIC", "-shared", "-Wl,--build-id", "-o", whole, work.file("burn.c"))
        run("objcopy", "--only-keep-debug", whole, self.debug)
        run("objcopy", "--strip-all", whole, self.library)
        run("gcc", "-O1", "-o", self.program, work.file("main.c"), self.library)
        self.id = build_id(self.library)
        self.symbols = content(self.debug)

    def target(self):
        return Target([self.program])

    def ssqp(self):
        return {f"_.debug/elf-buildid-sym-{self.id}/_.debug": self.symbols}

    def debuginfod(self):
        return {f"buildid/{self.id}/debuginfo": self.symbols}


class Cache:
    """A folder of this test's for what is fetched, and the environment that names it."""

    def __init__(self, work, name="cache"):
        self.path = work.file(name)
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        self.environment = {**PLAIN_ENVIRONMENT, "CLRPERF_SYMBOLS": self.path}

    def files(self):
        return sorted(os.listdir(self.path))

    def symbols(self, *arguments, env=None, **options):
        return clrperf("symbols", *arguments, env={**self.environment, **(env or {})}, **options)

    def images(self, *arguments):
        return json.loads(succeeded(self.symbols("list", "--json", *arguments)).stdout)["images"]


def names(done_report):
    return {row["name"] for row in done_report["rows"]}


def check_find(checks, native, cache):
    """Nothing was fetched yet."""
    with native.target() as target:
        images = {os.path.basename(image["path"]): image for image in cache.images("-p", target.pid)}
        library = images["libburn.so"]
        checks.check("list: the library is missing, with the build id that readelf tells",
                     library["symbols"] == "missing" and library["build_id"] == native.id and not library["found"],
                     str(library))
        checks.check("list: the program has its symbols inside", images["burner"]["symbols"] == "inside")
        done = cache.symbols("path", "-p", target.pid, "libburn.so")
        checks.check("path: exit code 1 and nothing on stdout", done.returncode == 1 and not done.stdout, done.stderr)
        text = cache.symbols("list", "-p", target.pid)
        checks.check("list: says the command that fetches",
                     f"clrperf symbols fetch -p {target.pid} --server URL" in text.stderr, text.stderr)
    done = cache.symbols("fetch", native.library)
    checks.check("fetch: without a server it is a usage error, and none is asked", done.returncode == 2, done.stderr)
    checks.check("list of the stripped file alone", cache.images(native.library)[0]["symbols"] == "missing")


# Mode, options, what the message says.
HOSTILE = [
    ("cut", [], "bytes remaining"),
    ("cut_unseen", [], "no symbols|cut at|not an ELF"),
    ("empty", [], "too short"),
    ("text", [], "too short|not an ELF"),
    ("slow", ["--timeout", "1s"], "timed out"),
    ("mute", ["--timeout", "1s"], "timed out"),
    ("endless", ["--max-size", "1M"], "larger than 1048576"),
    ("loop", [], "redirects"),
    ("to_file", [], "file"),
    ("busy", [], "503"),
]


def check_hostile(checks, native, cache):
    for mode, options, message in HOSTILE:
        with SymbolServer(native.ssqp(), mode) as server:
            done = cache.symbols("fetch", native.library, "--server", server.url, *options)
        checks.check(f"a server that is {mode}: exit code 1, the reason, and nothing is kept",
                     done.returncode == 1 and re.search(message, done.stderr) and not cache.files(),
                     f"{done.returncode} {done.stderr} {cache.files()}")
    with SymbolServer({}) as server:
        done = cache.symbols("fetch", native.library, "--server", server.url)
    checks.check("no server has it: exit code 1", done.returncode == 1 and "no server has" in done.stderr, done.stderr)
    checks.check("it was asked in both protocols", sorted(path.split("/")[0] for path in server.asked) ==
                 ["_.debug", "buildid", "libburn.so"], str(server.asked))


def check_lying(checks, native, cache, work):
    """Symbols of another build of the same library."""
    with open(work.file("burn.c"), "a", encoding="utf-8") as file:
        file.write("int another;\n")
    run("gcc", "-g", "-O1", "-fPIC", "-shared", "-Wl,--build-id", "-o", work.file("other.so"), work.file("burn.c"))
    other = {path: content(work.file("other.so")) for path in native.ssqp()}
    with SymbolServer(other) as liar:
        done = cache.symbols("fetch", native.library, "--server", liar.url)
        checks.check("a server that lies: refused with the id that came",
                     done.returncode == 1 and build_id(work.file("other.so")) in done.stderr and not cache.files(),
                     done.stderr)
        with SymbolServer(native.debuginfod()) as honest:
            done = cache.symbols("fetch", native.library, "--server", liar.url, "--server", honest.url)
        checks.check("the next server is asked then", done.returncode == 0 and cache.files() == [f"{native.id}.debug"],
                     done.stderr)
    shutil.rmtree(cache.path)
    os.mkdir(cache.path, 0o700)


def check_stop(checks, native, cache):
    with SymbolServer(native.ssqp(), "mute") as server:
        with subprocess.Popen([CLRPERF, "symbols", "fetch", native.library, "--server", server.url],
                              env=cache.environment, stderr=subprocess.PIPE, text=True) as process:
            server.wait_asked()
            process.send_signal(signal.SIGINT)
            errors = process.communicate(timeout=60)[1]
    checks.check("Ctrl-C ends it, and leaves nothing", process.returncode == 1 and "stopped" in errors and
                 not cache.files(), f"{process.returncode} {errors} {cache.files()}")


def record_native(work, native, cache, name):
    with native.target() as target:
        record(work.file(name), "-p", target.pid, "-d", "1.5s", "-F", "499", env=cache.environment)


def report_of(work, cache, name, *arguments):
    return report(work.file(name), "--top", "0", *arguments, env=cache.environment)


def check_fetch(checks, native, cache, work):
    before = sorted(os.listdir(work.file("app")))
    record_native(work, native, cache, "before")
    unnamed = names(report_of(work, cache, "before"))
    checks.check("a recording without symbols tells functions apart", HOT not in unnamed and
                 any(re.match(r"libburn\.so!0x\w+$", name) for name in unnamed), str(sorted(unnamed)))
    for variable, files in (("DEBUGINFOD_URLS", native.debuginfod()), ("_NT_SYMBOL_PATH", native.ssqp())):
        other = Cache(work, variable)
        with SymbolServer(files) as server:
            value = server.url if variable == "DEBUGINFOD_URLS" else f"cache*/tmp/x;srv*/tmp/y*{server.url}"
            done = other.symbols("fetch", native.library, env={variable: value})
        checks.check(f"{variable} names the server", done.returncode == 0 and other.files() == [f"{native.id}.debug"],
                     done.stderr + str(server.asked))
    with native.target() as target, SymbolServer(native.ssqp()) as server:
        done = cache.symbols("fetch", "-p", target.pid, "libburn.so", "--server", server.url)
        found = cache.symbols("path", "-p", target.pid, "libburn.so").stdout.strip()
        again = cache.symbols("fetch", "-p", target.pid, "libburn.so", "--server", server.url)
        asked = len(server.asked)
    checks.check("fetch -p: into the cache, named by the build id, byte by byte", done.returncode == 0 and
                 found == os.path.join(cache.path, f"{native.id}.debug") and content(found) == native.symbols,
                 f"{done.stderr} {found}")
    checks.check("fetched once", again.returncode == 0 and asked == 1, f"{again.stderr} {asked}")
    checks.check("only we may read it", stat.S_IMODE(os.stat(found).st_mode) == 0o600)
    checks.check("nothing was put beside the target", sorted(os.listdir(work.file("app"))) == before)
    late = names(report_of(work, cache, "before"))
    checks.check("the recording made before has names now", HOT in late and
                 not any(re.match(r"libburn\.so!0x", name) for name in late), str(sorted(late)))
    images = cache.images(work.file("before"), "libburn.so")
    checks.check("list of the capture tells where they are", images and images[0]["symbols"] == "cache", str(images))


def check_names(checks, native, cache, work):
    record_native(work, native, cache, "after")
    rows = report_of(work, cache, "after")
    hot = max(rows["rows"], key=lambda row: row["self"])
    checks.check("a recording made after has them", hot["name"] == HOT and hot["module"] == "libburn.so", hot["name"])
    callees = clrperf("report", work.file("after"), "--callers", HOT, env=cache.environment).stdout
    checks.check("its caller too", "burn_much" in callees, callees)
    lines = report_of(work, cache, "after", "--lines")["rows"]
    line = max(lines, key=lambda row: row["self"])
    checks.check("and source lines", line["file"] and line["file"].endswith("burn.c") and
                 re.search("state|hot", LIBRARY.splitlines()[line["line"] - 1]), str(line["line"]))
    with native.target() as target:
        stack = clrperf("stack", "-p", target.pid, env=cache.environment)
        checks.check("stack", "burn_much" in stack.stdout, stack.stdout + stack.stderr)
        maps = content(f"/proc/{target.pid}/maps").decode()
        start = next(int(line.split("-")[0], 16) for line in maps.splitlines() if line.endswith("/libburn.so"))
        offset = next(int(line.split()[0], 16) for line in run("nm", work.file("whole.so")).splitlines()
                      if line.endswith(" " + HOT))
        addr = clrperf("addr", "-p", target.pid, f"{start + offset + 4:x}", env=cache.environment)
        checks.check("addr, where nm has it", HOT + "+0x4" in addr.stdout, addr.stdout + addr.stderr)


def check_cache(checks, native, cache, work):
    """The limit of its size, and places that are not ours alone."""
    old = os.path.join(cache.path, "00" * 20 + ".debug")
    with open(old, "wb") as file:
        file.write(b"x" * 4096)
    os.utime(old, (1, 1))
    os.unlink(os.path.join(cache.path, f"{native.id}.debug"))
    with SymbolServer(native.ssqp()) as server:
        done = cache.symbols("fetch", native.library, "--server", server.url, "--cache-size", "4k")
    checks.check("of too much, what was used longest ago goes", cache.files() == [f"{native.id}.debug"], done.stderr)
    os.chmod(cache.path, 0o777)
    done = cache.symbols("list", native.library)
    checks.check("a cache into which others may write is not used", "others may write" in done.stderr and
                 "missing" in done.stdout, done.stderr)
    os.chmod(cache.path, 0o700)


def check_perf_data(checks, native, cache, work):
    """What perf recorded and could not name."""
    need_command("perf")
    with native.target() as target:
        run("perf", "record", "-q", "-o", work.file("perf.data"), "-e", "cpu-clock", "-F", "499", "-g", "-p", str(target.pid),
            "--", "sleep", "1")
    seen = names(report_of(work, cache, "perf.data"))
    checks.check("a perf.data has the names", HOT in seen, str(sorted(seen)))


def check_certificate(checks, native, work):
    """A server that nobody vouches for."""
    need_command("openssl")
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-keyout",
        work.file("key"), "-out", work.file("certificate"))
    cache = Cache(work, "secure")
    with SymbolServer(native.ssqp(), certificate=(work.file("certificate"), work.file("key"))) as server:
        done = cache.symbols("fetch", native.library, "--server", server.url)
    checks.check("https: a certificate that is not trusted is refused", done.returncode == 1 and
                 "certificate" in done.stderr and not server.asked and not cache.files(), done.stderr)


def without_pdb(work):
    """The sample's folder without the PDB, which the assembly must not find where it was built either."""
    command = sample_command("10", "primes")
    place = next(i for i, word in enumerate(command) if word.endswith("primes.dll"))
    folder = work.file("primes")
    shutil.copytree(os.path.dirname(command[place]), folder)
    assembly = os.path.join(folder, "primes.dll")
    symbols = content(os.path.join(folder, "primes.pdb"))
    os.unlink(os.path.join(folder, "primes.pdb"))
    built = re.search(rb"/[^\0]*/primes\.pdb\0", content(assembly)).group()
    with open(assembly, "r+b") as file:
        file.seek(content(assembly).index(built))
        file.write(b"/" + b"x" * (len(built) - len(b"//primes.pdb\0")) + b"/primes.pdb\0")
    return [*command[:place], assembly, *command[place + 1:]], assembly, symbols


def check_managed(checks, work):
    command, assembly, symbols = without_pdb(work)
    cache = Cache(work, "managed")
    wanted = cache.images(assembly)[0]
    checks.check("an assembly's PDB is missing", wanted["symbols"] == "missing" and wanted["pdb"] == "primes.pdb",
                 str(wanted))
    guid = bytes.fromhex(wanted["pdb_id"])[:16]
    text = (guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]).hex()
    files = {f"primes.pdb/{text}FFFFFFFF/primes.pdb": symbols}
    with Target(command + ["0"]) as target:
        listed = {os.path.basename(image["path"]): image for image in cache.images("-p", target.pid)}
        checks.check("list -p: also code that is jitted only", listed["primes.dll"]["symbols"] == "missing",
                     str(listed.get("primes.dll")))
        checks.check("list -p: the runtime's libraries and assemblies", listed["libcoreclr.so"]["build_id"] and
                     listed["System.Private.CoreLib.dll"]["pdb"] == "System.Private.CoreLib.pdb")
        with SymbolServer({path: symbols[:-64] for path in files}) as server:
            done = cache.symbols("fetch", "-p", target.pid, "primes.dll", "--server", server.url)
        checks.check("a cut PDB is refused", done.returncode == 1 and not cache.files(), done.stderr)
        with SymbolServer(files) as server:
            done = cache.symbols("fetch", "-p", target.pid, "primes.dll", "--server", server.url)
        checks.check("fetch: the PDB", done.returncode == 0 and cache.files() == [wanted["pdb_id"] + ".pdb"],
                     f"{done.stderr} {server.asked} {cache.files()}")
        target.wait_busy(1.0)
        record(work.file("primes.clrperf"), "-p", target.pid, "-d", "2s", "-F", "499", env=cache.environment)
    rows = [row for row in report_of(work, cache, "primes.clrperf", "--lines")["rows"] if row["module"] == "primes"]
    checks.check("source lines by the PDB that was fetched",
                 any(row["line_is"] == "statement" and row["file"].endswith("Program.cs") for row in rows),
                 str([(row["name"], row["line"]) for row in rows[:5]]))


def check_native(checks):
    with Work() as work:
        native, cache = Native(work), Cache(work)
        check_find(checks, native, cache)
        check_hostile(checks, native, cache)
        check_lying(checks, native, cache, work)
        check_stop(checks, native, cache)
        check_fetch(checks, native, cache, work)
        check_names(checks, native, cache, work)
        check_cache(checks, native, cache, work)
        checks.run("perf.data", check_perf_data, native, cache, work)
        checks.run("certificate", check_certificate, native, work)


def main():
    checks = Checks()
    checks.run("symbols of native code", check_native)
    with Work() as work:
        checks.run("symbols of assemblies", check_managed, work)
    checks.exit()


if __name__ == "__main__":
    main()
