"""What other people's readers call managed code, in the form in which all can be compared."""
import re
import subprocess


def plain(name):
    """Without type arguments and their number: each tool has its own way to write those."""
    name = re.sub(r"`\d+", "", name)
    while True:
        less = re.sub(r"\[[^\[\]]*\]", "", name)
        if less == name:
            break
        name = less
    kept, at = "", 0
    while at < len(name):
        end = at + 1
        if name[at] == "<":
            depth = 1
            while depth and end < len(name):
                depth += (name[end] == "<") - (name[end] == ">")
                end += 1
        # names that compilers make begin with a bracket; arguments come behind a word
        if name[at] != "<" or not re.search(r"[\w|$]$", kept):
            kept += name[at:end]
        at = end
    return kept


def ours(raw):
    """`Ns.Type`1[Args]::Method[Args](Parameters)` as type and method."""
    owner, _, rest = raw.partition("::")
    method = rest[:rest.index("(", 1)] if "(" in rest[1:] else rest
    return plain(owner), plain(method)


def last(name):
    """ClrMD leaves out the interface of an explicit implementation."""
    owner, method = name
    return owner, method if method.startswith(".") else method.rpartition(".")[2]


def ask_clrmd(command, pid, addresses):
    text = "".join(f"{address:x}\n" for address in addresses)
    done = subprocess.run([*command, str(pid)], input=text, capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        raise RuntimeError(f"names: {done.stderr[-300:]}")
    answers = {}
    for line in done.stdout.splitlines():
        address, owner, *rest = line.split("\t")
        answers[int(address, 16)] = last((plain(owner), plain(rest[0]))) if rest else None
    return answers
