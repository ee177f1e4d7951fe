#!/usr/bin/env python3
"""Runs each case of this folder and compares what it prints with what is kept.

A case is a folder: `command` (arguments of clrperf, run inside the folder), `expected` (standard output),
and where they matter `errors` (standard error) and `status` (the exit code, else 0). `piped` names a file that comes
through a pipe as standard input. `columns` makes standard output a terminal of so many columns.
`run.py CLRPERF --keep` writes down what is printed now; read the difference before you commit it.
"""
import fcntl
import os
import pathlib
import pty
import shlex
import struct
import subprocess
import sys
import termios

here = pathlib.Path(__file__).resolve().parent


def on_terminal(command, columns, **how):
    """Exit code and what the command printed on a terminal, and on standard error."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, **how)
    os.close(theirs)
    printed = b""
    try:
        while piece := os.read(ours, 65536):
            printed += piece
    except OSError:  # EIO: nobody has the other end open any more
        pass
    os.close(ours)
    errors = process.stderr.read()
    return process.wait(), printed.replace(b"\r\n", b"\n"), errors


def run_case(clrperf, case):
    command = shlex.split((case / "command").read_text())
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    columns = case / "columns"
    if columns.exists():
        status, printed, errors = on_terminal([clrperf] + command, int(columns.read_text()), cwd=case, env=environment,
                                              stdin=subprocess.DEVNULL)
        return {"expected": printed.decode(), "errors": errors.decode(), "status": f"{status}\n"}
    piped = case / "piped"
    given = {"input": (case / piped.read_text().strip()).read_bytes()} if piped.exists() else {"stdin": subprocess.DEVNULL}
    done = subprocess.run([clrperf] + command, cwd=case, capture_output=True, timeout=60, env=environment, **given)
    return {"expected": done.stdout.decode(), "errors": done.stderr.decode(), "status": f"{done.returncode}\n"}


def kept(case, name):
    path = case / name
    return path.read_text() if path.exists() else ("0\n" if name == "status" else "")


def keep(case, printed):
    for name, text in printed.items():
        path = case / name
        if text and not (name == "status" and text == "0\n"):
            path.write_text(text)
        elif path.exists():
            path.unlink()


def main():
    clrperf = str(pathlib.Path(sys.argv[1]).resolve())
    failed = 0
    for case in sorted(path.parent for path in here.glob("*/command")):
        printed = run_case(clrperf, case)
        if "--keep" in sys.argv:
            keep(case, printed)
        wrong = [name for name in printed if printed[name] != kept(case, name)]
        print(f"{'not ok' if wrong else 'ok'} {case.name}")
        for name in wrong:
            print(f"# {name} is\n{printed[name]}# wanted\n{kept(case, name)}")
        failed += bool(wrong)
    return 1 if failed else 0


sys.exit(main())
