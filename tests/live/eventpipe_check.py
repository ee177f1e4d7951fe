"""Compares what eventpipe_methods printed with the target's own perf map.

Usage: eventpipe_check.py EVENTS PERF_MAP. Every method told must stand in the map, with its size; unloads must fit
their loads; methods of collectible assemblies must end. Prints one line, and what differs; exit code 1 then.
"""
import re
import sys


def plain(name):
    """Type and method without signature and type arguments, which the two spell differently."""
    return re.sub(r'\[[^()]*?\]', '', name.split('(')[0])


def read_events(path):
    for line in open(path, encoding='utf-8'):
        parts = line.rstrip('\n').split(' ', 8)
        if not parts[0].startswith('module'):
            yield parts[0], int(parts[1]), int(parts[2], 16), int(parts[3], 16), plain(parts[8])


def read_map(path):
    methods = {}
    for line in open(path, encoding='utf-8', errors='replace'):
        match = re.match(r'(?:0x)?([0-9a-f]+) ([0-9a-f]+) (.*?)(?:\[[^\[\]]*\])?$', line, re.I)
        if not match:
            continue  # the runtime spoils lines with names that are not ASCII
        name = match[3]
        module = re.search(r'\[[^\[\]]+\] (?=[^ ]*::)', name)
        name = name[module.end():] if module else name
        methods.setdefault(int(match[1], 16), set()).add((plain(name), int(match[2], 16)))
    return methods


events = sorted(read_events(sys.argv[1]), key=lambda e: e[1])
methods = read_map(sys.argv[2])
unknown = [e for e in events if e[4].isascii() and (e[4], e[3]) not in methods.get(e[2], ())]
live, clashes = {}, []
for change, _, addr, size, name in events:
    if change == 'load':
        if addr in live:
            clashes.append(name)
        live[addr] = size, name
    elif change == 'unload' and live.pop(addr, (size, name)) != (size, name):
        clashes.append(name)
ended = sum(1 for e in events if e[0] == 'unload' and '::Spin' in e[4])
print(f'{len(events) - len(unknown)} of {len(events)} in the map, {len(clashes)} clashes, '
      f'{ended} collectible methods ended')
for event in unknown[:5]:
    print('not in the map:', event, methods.get(event[2]))
sys.exit(1 if unknown or clashes or not events or not ended else 0)
