#!/usr/bin/env python3
"""Compares names and tiers from memory (code_walk_live) with the runtime's own events and its perf map.

Usage: code_walk_check.py WALK EVENTS PERF_MAP VARIANT PROGRAM [NAME=VALUE...], the latter as in code_walk_test.sh.
Events: eventpipe_methods' output. What came or went between the two is left out by comparing only addresses that
both know with the same size; dynamic methods by name and address. Tiers are compared of code that has the right name.
"""
import re
import sys

from live import as_told


def read_walk(path):
    found = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        fields = line.rstrip("\n").split("\t")
        addr, size, kind, tier, token, name = fields[0].split(" ", 5)
        found[int(addr, 16)] = (int(size, 16), kind, tier, int(token, 16), as_told(name))
    return found


def read_events(path):
    exists = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        fields = line.rstrip("\n").split(" ", 8)
        if fields[0] == "exists" and "j" in fields[5]:
            exists[int(fields[2], 16)] = (int(fields[3], 16), fields[4], "d" in fields[5], int(fields[7], 16), fields[8])
    return exists


def read_map(path):
    methods = {}
    for line in open(path, encoding="utf-8", errors="replace"):
        match = re.match(r"(?:0x)?([0-9a-fA-F]+) ([0-9a-f]+) (.*)", line)
        if match and "::" in match[3]:
            methods[int(match[1], 16)] = (int(match[2], 16), match[3])
    return methods


def may_be_unknown(variant, settings, walked):
    """Tiers that memory does not tell: all of 3.1; on 8 those of methods that may be compiled again."""
    major = variant.split("-")[0].split(".")[0]
    return major == "3" or (major == "8" and "DOTNET_TieredCompilation=0" not in settings and walked[1] == "method")


# Of the sample's methods that are compiled once, in every way that a method can ask for it: tier and variants.
SHAPES = {"Shapes.Members::AsWritten(int32)": ("tier0", ("8", "9", "10")),
          "Shapes.Members::Eager(int32)": ("optimized", ("9", "10"))}


def check_shapes(variant, tiers):
    """Number of those that were not found with their tier."""
    wrong = 0
    for name, (tier, variants) in SHAPES.items():
        if variant in variants and tier not in tiers.get(name, ()):
            wrong += 1
            print(f"{name}: {tiers.get(name)}, not {tier}", file=sys.stderr)
    return wrong


TIERS = {"tier0": "tier0", "tier0_instrumented": "tier0i", "tier1": "tier1", "osr": "osr", "optimized": "optimized"}

walk, events, perf = read_walk(sys.argv[1]), read_events(sys.argv[2]), read_map(sys.argv[3])
code = {a: w for a, w in walk.items() if w[1] != "stub"}
# 3.1 writes the handles of types in signatures in another way
spelled = lambda name: re.sub(r"pMT: (0x)?0*([0-9a-fA-F]+)", lambda m: "pMT: " + m[2].lower(), name)
right = wrong = unnamed = gone = missing = tier_right = tier_unknown = tier_missing = 0
variant, program, settings = sys.argv[4], sys.argv[5], sys.argv[6:]
tiers = {}
tier_wrong = {}
for addr, (size, tier, dynamic, token, name) in sorted(events.items()):
    if addr not in code:
        new = bool(perf) and addr not in perf  # jitted after the walk
        gone += dynamic or new
        if not dynamic and not new:
            missing += 1
            print("missing", hex(addr), name, file=sys.stderr)
        continue
    w = code[addr]
    if dynamic != (w[1] == "dynamic") or (dynamic and w[0] != size):
        gone += 1  # its place was used again
        continue
    if w[4] == "":
        unnamed += 1
        print("unnamed", hex(addr), name, file=sys.stderr)
    elif spelled(w[4]) == spelled(name) and w[0] == size and (dynamic or w[3] == token):
        right += 1
        tiers.setdefault(name, set()).add(w[2])
        if w[2] == "-":
            tier_unknown += 1
            tier_missing += not may_be_unknown(variant, settings, w)
        elif TIERS.get(tier, tier) == w[2]:
            tier_right += 1
        else:
            tier_wrong[(tier, w[2])] = tier_wrong.get((tier, w[2]), 0) + 1
            print("tier", hex(addr), tier, w[2], name, file=sys.stderr)
    elif dynamic and name.split("(")[0] != w[4].split("(")[0]:
        gone += 1
    else:
        wrong += 1
        print("wrong", hex(addr), size, w[0], hex(token), repr(name), repr(w[4]), file=sys.stderr)
extra = [a for a in code if a not in events and code[a][1] == "method"]
in_map = sum(1 for a in code if a in perf and perf[a][0] == code[a][0])
by_map = 0
for addr, (size, text) in perf.items():
    w = code.get(addr)
    if w and w[0] == size:
        method = re.sub(r"\(.*", "", w[4]).split("::")[-1] if w[4] else ""
        by_map += method != "" and "::" + method + "(" in text
        if method and "::" + method + "(" not in text:
            print("map says", hex(addr), text, "walk", w[4], file=sys.stderr)
print(f"{len(events)} told by events, {len(code)} found: {right} right, {wrong} wrong, {unnamed} unnamed, {missing} missing, "
      f"{gone} dynamic ones gone, {len(extra)} only found; perf map: {by_map} of {in_map} by name, {len(perf)} lines; "
      f"tiers {tier_right} right, {tier_unknown} unknown, {tier_missing} of them without a reason, wrong {tier_wrong}")
# the target was stopped while two of its threads at most were jitting: the map may lack the line of what they just made,
# and have one of what was freed there; the tier of that may not be noted yet
JITTING = 2
bad_tiers = sum(tier_wrong.values()) > JITTING or tier_missing > 0 or (tier_right == 0) != (variant == "3.1")
bad_shapes = program == "shapes" and check_shapes(variant, tiers) > 0
sys.exit(1 if wrong or missing or unnamed or in_map - by_map > JITTING or not in_map or not right or bad_tiers or bad_shapes
         else 0)
