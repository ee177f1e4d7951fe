"""What the live tests share: samples that run, recordings of them, and TAP lines about both."""
import http.client
import json
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def default_binary():
    for build in ("build-test", "build"):
        path = os.path.join(ROOT, build, "src/cli/clrperf")
        if os.path.exists(path):
            return path
    return "clrperf"


CLRPERF = os.path.abspath(os.environ.get("CLRPERF") or default_binary())
# The one that people run, and whichever is the faster one: for what is not seen in time with sanitizers on a slow machine.
RELEASE = os.path.join(ROOT, "build/src/cli/clrperf")
FASTER = RELEASE if os.access(RELEASE, os.X_OK) else CLRPERF
# The test programs in C of the same build.
HELPERS = os.environ.get("CLRPERF_TEST_HELPERS") or os.path.join(os.path.dirname(CLRPERF), "../../tests/live")
# Targets get nothing but this: no variable of ours, and none that .NET knows.
PLAIN_ENVIRONMENT = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.environ.get("HOME", "/")}
# In front of a command that must get its CPU on a crowded machine too, as far as we may.
FAVOURED = ["nice", "-n", "-10"] if os.geteuid() == 0 else []


class Skip(Exception):
    """This machine lacks what the test needs."""


class Checks:
    """Prints one TAP line for each check."""

    def __init__(self):
        self.failed = self.skipped = self.passed = 0
        self.lock = threading.Lock()

    def line(self, text):
        with self.lock:
            print(text, flush=True)

    def check(self, name, condition, detail=""):
        """`detail` says what was seen; it is printed with either outcome."""
        if condition:
            self.passed += 1
            self.line(f"ok {name}" + (f" # {detail}" if detail else ""))
        else:
            self.failed += 1
            self.line(f"not ok {name} - {detail}")
        return bool(condition)

    def skip(self, name, why):
        self.skipped += 1
        self.line(f"skip {name} - {why}")

    def run(self, name, body, *arguments):
        """Runs a group of checks; an exception in it is a failure of its own."""
        try:
            body(self, *arguments)
        except Skip as why:
            self.skip(name, str(why))
        except Exception as error:  # one broken group must not hide the others
            self.failed += 1
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            text = " ".join(str(error).split())[-600:]
            self.line(f"not ok {name} - {type(error).__name__} at line {where.tb_lineno}: {text}")

    def exit(self):
        if self.failed:
            sys.exit(1)
        sys.exit(77 if self.skipped and not self.passed else 0)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")


def need_command(name):
    if not shutil.which(name):
        raise Skip(f"{name} is not on PATH")


def output_of(script, *arguments):
    """The command line that one of our build scripts prints. Its exit code 77 means: not on this machine."""
    done = subprocess.run([script, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        raise Skip((done.stderr.strip().splitlines() or ["not available"])[-1])
    if done.returncode:
        raise RuntimeError(f"{os.path.basename(script)} {' '.join(arguments)}: {done.stderr[-400:]}")
    return shlex.split(done.stdout.splitlines()[-1])


def sample_command(variant, program):
    return output_of(os.path.join(HERE, "runtimes/build.sh"), "publish", variant, program)


def oracle_command(name):
    return output_of(os.path.join(ROOT, "tests/oracle/build.sh"), name)


def tool_command(name):
    """A tool of .NET's own, dotnet-trace for one."""
    return output_of(os.path.join(HERE, "runtimes/build.sh"), "tool", name)


def run(*command, **options):
    """What another program prints; it must work."""
    options = {"check": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    try:
        return subprocess.run([*map(str, command)], **options).stdout
    except subprocess.CalledProcessError as error:
        said = f"{error.stdout or ''} {error.stderr or ''}"
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {error.returncode}: {said[-400:]}") from error


def helper(name):
    path = os.path.join(HELPERS, name)
    if not os.path.exists(path):
        raise Skip(f"{name} is not built beside {CLRPERF}")
    return path


class Work:
    """A directory of this run's own, gone at its end."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="clrperf-live-")
        os.chmod(self.path, 0o755)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name):
        return os.path.join(self.path, name)


class Target:
    """A program that runs while the block lasts. A sample says `ready PID`; its last line is its truth."""

    def __init__(self, command, ready=True, **options):
        self.command, self.wait_ready, self.options = command, ready, options
        self.url = self.load = None

    def __enter__(self):
        options = {"stdin": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": PLAIN_ENVIRONMENT, **self.options}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, **options)
        self.pid = self.process.pid
        self.started = time.monotonic()
        if self.wait_ready:
            try:
                self.read_ready()
            except BaseException:
                self.__exit__()
                raise
        return self

    def read_ready(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while time.monotonic() - self.started < 60:
                if not selector.select(1):
                    continue
                line = self.process.stdout.readline().decode()
                if not line:
                    break
                words = line.split()
                if words and words[0] == "ready":
                    self.url = words[2] if len(words) > 2 else None
                    return
        raise RuntimeError(f"{self.command[-1]} did not say that it is ready")

    def wait_age(self, seconds):
        time.sleep(max(0.0, self.started + seconds - time.monotonic()))

    def alive(self):
        return self.process.poll() is None

    def wait_busy(self, cpu_s, at_most_s=30):
        """Waits until the process had that much CPU, as it soon has on a machine of its own."""
        while time.monotonic() - self.started < at_most_s and cpu_clock_ns(self.pid) < cpu_s * 1e9:
            time.sleep(0.1)

    def truth(self):
        """What the sample says about itself so far."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def __exit__(self, *_):
        if self.load:
            self.load.stop()
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdout, self.process.stdin):
            try:
                if stream:
                    stream.close()
            except OSError:
                pass
        self.process.wait()


def busy():
    """A target that only burns."""
    return Target(["sh", "-c", "while :; do :; done"], ready=False)


class Load:
    """Connections that ask for the same pages again and again."""

    def __init__(self, base, paths):
        self.stopped = threading.Event()
        self.requests = dict.fromkeys(paths, 0)
        self.threads = [threading.Thread(target=self.work, args=(base, path), daemon=True) for path in paths
                        for _ in range(paths[path])]
        for thread in self.threads:
            thread.start()

    def work(self, base, path):
        host = re.sub("^http://", "", base)
        connection = http.client.HTTPConnection(host, timeout=20)
        while not self.stopped.is_set():
            try:
                connection.request("GET", path)
                connection.getresponse().read()
                self.requests[path] += 1
            except (OSError, http.client.HTTPException):
                connection.close()
                if self.stopped.wait(0.1):
                    return

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(3)


def cpu_clock_ns(pid):
    """The CPU time of a process, as the kernel's own clock of it says."""
    return time.clock_gettime_ns((~pid << 3) | 2)  # CPUCLOCK_SCHED of all its threads, as clock_getcpuclockid() has it


def comes_true(condition, at_most_s=60):
    """Whether it is so after a while; no test knows how long that takes on a crowded machine."""
    end = time.monotonic() + at_most_s
    while not condition():
        if time.monotonic() >= end:
            return False
        time.sleep(0.02)
    return True


def wait_for(condition, what, at_most_s=60):
    if not comes_true(condition, at_most_s):
        raise RuntimeError(f"waited {at_most_s} s in vain: {what}")


def thread_states(pid):
    """(name, state, tracer) of each thread."""
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/status", encoding="utf-8", errors="replace") as file:
                fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        except OSError:
            continue  # it has ended
        found.append((fields["Name"], fields["State"][0], int(fields["TracerPid"])))
    return found


def wait_at_rest(pid):
    """Until each of its threads waits for something, and goes on waiting."""
    def resting():
        before = cpu_clock_ns(pid)
        for _ in range(5):
            time.sleep(0.1)
            if {state for _, state, _ in thread_states(pid)} != {"S"}:
                return False
        return cpu_clock_ns(pid) - before < 5_000_000
    wait_for(resting, "its threads come to rest")


def sessions(pid):
    """How many have a runtime tell them of events: it sends to each from a thread, once all providers are on."""
    return sum(name == ".NET EventPipe" for name, _, _ in thread_states(pid))


def wait_cpu(pids, cpu_s, at_most_s=60):
    """Waits until the processes had that much more CPU together, or the time is over."""
    def spent():
        return sum(cpu_clock_ns(pid) for pid in pids)

    enough, end = spent() + cpu_s * 1e9, time.monotonic() + at_most_s
    while spent() < enough and time.monotonic() < end:
        time.sleep(0.02)


class Watch(threading.Thread):
    """Asks for numbers again and again; tells what they were at any time in between."""

    def __init__(self, ask, every_s):
        super().__init__(daemon=True)
        self.ask, self.every_s = ask, every_s
        self.points, self.over = [], threading.Event()

    def look(self):
        before = time.monotonic_ns()
        values = self.ask()
        self.points.append(((before + time.monotonic_ns()) // 2, values))

    def run(self):
        while not self.over.wait(self.every_s):
            self.look()

    def between(self, start_ns, stop_ns):
        """How much each number grew from one time to the other."""
        first, last = self.at(start_ns), self.at(stop_ns)
        return {name: last[name] - first[name] for name in first}

    def bracket(self, when_ns):
        for before, after in zip(self.points, self.points[1:]):
            if before[0] <= when_ns <= after[0]:
                return before, after
        raise RuntimeError("nobody watched at that time")

    def around(self, when_ns):
        """What was read before, and what after."""
        (_, before), (_, after) = self.bracket(when_ns)
        return before, after

    def at(self, when_ns):
        (t0, v0), (t1, v1) = self.bracket(when_ns)
        return {name: v0[name] + (v1[name] - v0[name]) * (when_ns - t0) / max(1, t1 - t0) for name in v0}

    def __enter__(self):
        self.look()
        self.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()
        self.look()


def mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return [line.rstrip() for line in maps]


def core_dumps(work, pid, name):
    """Dumps of all kinds of a running process, as (kind, path); those that this machine can make."""
    runtime = [line.split(None, 5)[5] for line in mappings(pid) if line.endswith("/libcoreclr.so")]
    tool = os.path.join(os.path.dirname(runtime[0]), "createdump") if runtime else ""
    quiet = {"check": False, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dumps = []
    for kind, option in (("mini", "-n"), ("heap", "-h"), ("full", "-u")):
        path = work.file(f"{name}-{kind}.core")
        if os.path.exists(tool) and subprocess.run([tool, option, "-f", path, str(pid)], **quiet).returncode == 0:
            dumps.append((kind, path))
    path = work.file(f"{name}-gcore.{pid}")
    if shutil.which("gcore") and subprocess.run(["gcore", "-o", work.file(f"{name}-gcore"), str(pid)], **quiet).returncode == 0:
        dumps.append(("gcore", path))
    if not dumps:
        raise Skip("neither createdump nor gcore made a dump")
    return dumps


def clrperf(*arguments, timeout=120, binary=CLRPERF, **options):
    """Runs our binary to its end; never checks its exit code."""
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([binary, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, check=False, **options)


def succeeded(done):
    if done.returncode:
        raise RuntimeError(f"{' '.join(done.args[1:])}: exit {done.returncode}: {done.stderr[-400:]}")
    return done


def record(out, *arguments, **options):
    """A recording that must work. The summary it prints."""
    return json.loads(succeeded(clrperf("record", "-q", "--json", "-o", out, *arguments, **options)).stdout)


class Recording:
    """Our recorder at work, from the moment it says that it records until it is told to stop."""

    def __init__(self, out, *arguments):
        self.process = subprocess.Popen([*FAVOURED, CLRPERF, "record", "--json", "-o", out, *map(str, arguments)],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.begun, self.said = threading.Event(), []
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()
        if not self.begun.wait(90) or not any(map(self.is_start, self.said)):
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"record did not begin: {self.errors()}")

    @staticmethod
    def is_start(line):
        return line.startswith("recording ")

    def listen(self):
        for line in self.process.stderr:
            self.said.append(line)
            if self.is_start(line):
                self.begun.set()
        self.begun.set()

    def errors(self):
        """What it said on standard error, all of it once it has ended."""
        if self.process.poll() is not None:
            self.listener.join(10)
        return "".join(self.said)

    def end(self, timeout=120):
        """Waits for its end. The summary it prints."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        if self.process.returncode:
            raise RuntimeError(f"record: exit {self.process.returncode}: {self.errors()[-400:]}")
        return json.loads(self.process.stdout.read())

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.end()


def record_busy(out, pid, rate, cpu_s, at_most_s=60, options=()):
    """A recording that holds so much CPU time of the process: on a crowded machine that takes longer."""
    recording = Recording(out, "-F", rate, "-p", pid, *options)
    wait_cpu([pid], cpu_s, at_most_s)
    summary = recording.stop()
    for line in recording.errors().splitlines():
        if line.startswith("warning:"):
            print(f"# {os.path.basename(out)}: {line}", flush=True)
    return summary


def as_told(name):
    """A method's name in the runtime's spelling, as its events and perf map have it: without a generic method's own arguments."""
    head, paren, parameters = name.partition("(")
    at, depth = len(head), 0
    while head.endswith("]") and at:
        at -= 1
        depth += (head[at] == "]") - (head[at] == "[")
        if depth == 0:
            break
    owned = "::" in head[:at] and not head[:at].endswith("::")
    return (head[:at] if owned else head) + paren + parameters


def report(path, *arguments, **options):
    return json.loads(succeeded(clrperf("report", path, "--json", *arguments, **options)).stdout)


def folded(path, *arguments):
    """Stacks, root first, with their weights."""
    text = succeeded(clrperf("export", path, "-o", "-", "--format", "folded", *arguments)).stdout
    lines = (line.rpartition(" ") for line in text.splitlines())
    return [(stack.split(";"), int(weight)) for stack, _, weight in lines]


def events(path):
    """(time, pid, tid, provider, id, payload) of each event in a capture."""
    for line in run(helper("capture_dump"), path).splitlines():
        words = line.split("\t")
        if words[0] == "event":
            yield int(words[1]), int(words[2]), int(words[3]), words[4], int(words[5]), bytes.fromhex(words[7])


def dump(path):
    """A capture's own tables, see capture_dump.c: facts by key, all others as rows."""
    tables = {"fact": {}, "sample": [], "event": [], "told": [], "location": [], "loss": []}
    for line in run(helper("capture_dump"), path).splitlines():
        kind, *fields = line.split("\t")
        if kind == "fact":
            tables["fact"][fields[0]] = fields[1]
        else:
            tables[kind].append(fields)
    return tables
