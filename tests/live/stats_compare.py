"""What `report FILE.nettrace gc` and `jit` say, against TraceEvent's GCStats and JITStats of the same file."""
import collections
import json
import subprocess

from live import oracle_command, report

KINDS = {"NonConcurrentGC": "blocking", "BackgroundGC": "background", "ForegroundGC": "foreground"}
# what TraceEvent 4.0.0 has no name for
REASONS = {"17": "InducedAggressive"}
TIERS = {"MinimumJitted": "tier0", "QuickJitted": "tier0", "QuickJittedInstrumented": "tier0_instrumented",
         "OptimizedTier1": "tier1", "OptimizedTier1OSR": "osr", "OptimizedTier1Instrumented": "tier0_instrumented",
         "Optimized": "optimized"}
# it ends a pause when the threads have been let go, clrperf when that begins: on a crowded machine that takes a while
LETTING_GO_MS = 20
JIT_CLOSE_MS = 0.001  # its times are differences of rounded ones
CLOSE_MS = 0.05


def peer(path):
    done = subprocess.run([*oracle_command("stats"), path], stdout=subprocess.PIPE, check=True, timeout=120)
    return json.loads(done.stdout)["processes"]


def compare_gc(path):
    """Differences as texts, and how many collections were compared; those that turned blocking apart."""
    theirs = {(process["pid"], gc["number"]): gc for process in peer(path) for gc in process["gcs"]}
    rows = report(path, "gc")["rows"]
    ours = {(row["pid"], row["number"]): row for row in rows}
    different = [f"only there: {key}" for key in theirs.keys() - ours.keys()]
    different += [f"only here: {key}" for key in ours.keys() - theirs.keys()]
    previous = {}
    for key in sorted(theirs.keys() & ours.keys()):
        their, our = theirs[key], ours[key]
        seen = gc_row(our)
        wanted = gc_row_of_peer(their, our, previous.get(key[0]))
        different += [f"{key} {name}: {seen[name]}, there {wanted[name]}" for name in wanted if not same(name, seen[name], wanted[name])]
        previous[key[0]] = our
    return different, len(ours), [row for row in rows if row["turned_blocking"]]


def same(name, seen, wanted):
    if wanted is None or name == "pause_ms" and seen is None:
        return True
    if name == "pause_ms":
        return -CLOSE_MS <= wanted - seen <= LETTING_GO_MS
    if name.endswith("_ms"):
        return seen is not None and abs(seen - wanted) <= CLOSE_MS
    if name.endswith("survival_percent"):
        return seen is not None and abs(seen - wanted) <= 2  # of each heap it is cut to an integer there
    return seen == wanted


def gc_row(our):
    row = {"generation": our["generation"], "type": our["type"], "reason": our["reason"], "pause_ms": our["pause_ms"],
           "suspend_ms": our["suspend_ms"], "duration_ms": our["duration_ms"], "after": our["heap_after_bytes"],
           "before": our["heap_before_bytes"], "promoted": our["promoted_bytes"], "pinned": our["pinned"],
           "heaps": our["heap_count"]}
    for i, gen in enumerate(our["gen"]):
        for name in ("before", "after", "in", "out", "fragmentation", "budget"):
            row[f"gen{i} {name}"] = gen[name]
        row[f"gen{i} survival_percent"] = None if gen["survival_share"] is None else gen["survival_share"] * 100
    return row


def gc_row_of_peer(their, our, previous):
    split = previous is not None and our["start_s"] < previous["start_s"] + previous["pause_ms"] / 1000 + 1e-6
    turned = our["turned_blocking"]
    row = {"generation": their["generation"], "type": None if turned else KINDS[their["type"]],
           "reason": REASONS.get(their["reason"], their["reason"]),
           # known to be wrong there: a collection that turned blocking, and two in one pause
           "pause_ms": None if turned or split or our["type"] == "background" else their["pause_ms"],
           "suspend_ms": None if split or our["type"] == "background" else their["suspend_ms"],
           "duration_ms": their["duration_ms"], "after": their["after"], 
           # estimated where the heaps told after the end, as those of a server do of one in the background
           "before": their["before"] if their["gen"] else None,
           "promoted": their["promoted"], "pinned": their["pinned"], "heaps": their["heaps"]}
    for i, gen in enumerate(their["gen"]):
        for name in ("before", "after", "in", "out", "fragmentation", "budget"):
            row[f"gen{i} {name}"] = gen[name]
        survival = gen["survival_percent"]  # there more than 100 where what came meanwhile survived, too
        row[f"gen{i} survival_percent"] = None if survival is None else min(survival, 100)
    return row


def compare_jit(path):
    """Methods by what they are made of, where and how long: how names are spelled differs."""
    theirs, ours = collections.defaultdict(list), collections.defaultdict(list)
    for process in peer(path):
        for jit in process["jits"]:
            theirs[jit["il"], jit["native"], TIERS.get(jit["tier"]), jit["thread"]].append(jit["time_ms"])
    rows = report(path, "jit")["rows"]
    for row in rows:
        ours[row["il_bytes"], row["native_bytes"], row["tier"], row["thread"]].append(row["time_ms"] or 0)
    different = []
    for key in theirs.keys() | ours.keys():
        there, here = sorted(theirs[key]), sorted(ours[key])
        if len(there) != len(here) or any(abs(a - b) > JIT_CLOSE_MS for a, b in zip(there, here)):
            different.append(f"{key}: {here}, there {there}")
    return different, len(rows)
