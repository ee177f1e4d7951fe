"""Compares what memory_methods told of a process's code with what its runtime announced meanwhile.

Usage: memory_check.py EVENTS MEMORY. Events: eventpipe_methods' output, of a session that began before and ended after.
Code comes and goes: a record from memory is right when the runtime had announced that method with that size at that
place for some of the time in question, and wrong when it announced other methods there only. A runtime under load leaves
announcements out, so that two cases are not judged: a method that it never announced anywhere, though others of that kind;
and, where there are such, one that it announced elsewhere meanwhile, as code is compiled again, while what it announced
here was gone before the time in question was over. Prints one line, and what is wrong; exit code 1 then, or when there
was too little to compare.
"""
import re
import sys

from live import as_told

# Between two looks; a record is of the time before the look that found it.
LOOK_NS = 2_000_000_000
COMPARED_MIN = 100


def read(path):
    for line in open(path, encoding="utf-8", errors="replace"):
        if line.startswith("module"):
            continue
        change, time_ns, addr, size, _, _, _, _, name = line.rstrip("\n").split(" ", 8)
        yield change, int(time_ns), int(addr, 16), int(size, 16), as_told(name)


def announced(path):
    """By address: (from, to, size, name) of what lived there."""
    lives, open_lives = {}, {}
    for change, time_ns, addr, size, name in sorted(read(path), key=lambda event: event[1]):
        if change == "load":
            open_lives[addr] = [time_ns, None, size, name]
            lives.setdefault(addr, []).append(open_lives[addr])
        elif change == "unload":
            if addr in open_lives:
                open_lives.pop(addr)[1] = time_ns
            else:
                lives.setdefault(addr, []).append([0, time_ns, size, name])
        elif addr not in open_lives:  # it was there before, and is at the end
            lives.setdefault(addr, []).append([0, None, size, name])
    return lives


def lived(life, from_ns, to_ns):
    return life[0] <= to_ns and (life[1] is None or life[1] >= from_ns)


def kind(name):
    return re.sub(r"[0-9]+", "0", name)


lives = announced(sys.argv[1])
names = {}
for place, there in lives.items():
    for life in there:
        names.setdefault(life[3], []).append([*life, hex(place)])
kinds = {kind(name) for name in names}
right = unknown = 0
wrong, doubtful = [], []
for _, time_ns, addr, size, name in read(sys.argv[2]):
    end_ns = time_ns + LOOK_NS
    there = [life for life in lives.get(addr, ()) if lived(life, time_ns, end_ns)]
    if not there or (name not in names and kind(name) in kinds):
        unknown += 1  # it was gone before the session began, or between two looks
    elif any(life[2:] == [size, name] for life in there):
        right += 1
    elif all(life[1] and life[1] < end_ns for life in there) and any(lived(life, time_ns, end_ns) for life in names.get(name, ())):
        doubtful.append((hex(addr), size, name, time_ns, there[:3]))  # another version of it, whose announcement is missing
    else:
        wrong.append((hex(addr), size, name, time_ns, there[:3]))
if unknown:  # announcements are missing
    unknown += len(doubtful)
else:
    wrong += doubtful
reused = sum(len({life[3] for life in there}) > 1 for there in lives.values())
print(f"{right} right, {len(wrong)} wrong, {unknown} not announced; {reused} places had more than one method")
for record in wrong[:5]:
    print("wrong:", record, "announced:", names.get(record[2], [])[:3])
sys.exit(1 if wrong or right < COMPARED_MIN or unknown * 5 > right else 0)
