"""What clrperf and TraceEvent say about the same .nettrace, event by event and field by field."""
import collections
import json
import subprocess

# Fields TraceEvent makes of others, or of events before.
DERIVED = {
    "GC/HeapStats": {"TotalHeapSize", "TotalPromoted", "Depth"},
    "GC/PerHeapHistory": {"ConcurrentCompactMechanisms", "MemoryPressure"},
    "GC/FinalizeObject": {"TypeName"},
    "Type/BulkType": {"TypeID_0", "TypeName_0"},
}
DERIVED.update({f"Loader/Module{kind}": {"ModuleILFileName"} for kind in ("Load", "Unload", "DCStart", "DCStop")})

# What TraceEvent 4.0 has no name for.
NAMELESS = {"EventID(191)": "Method/TailCallFailed", "EventID(200)": "GC/IncreaseMemoryPressure",
            "EventID(201)": "GC/DecreaseMemoryPressure", "EventID(299)": "Profiler/ProfilerMessage"}
# Of the events of the GC's own kind TraceEvent shows what was in one before; those it knows get an id of its own.
RUNTIME = "Microsoft-Windows-DotNETRuntime"
DYNAMIC_EVENT, COMMITTED_USAGE = 39, 65524
# The version of an event that has these first; of older ones TraceEvent says that they are 0, or nothing.
SINCE = {"ReJITID": 2, "GenerationSize4": 2, "TotalPromotedSize4": 2, "ObjectSize": 4, "CondemnReasons0": 3,
         "CondemnReasons1": 3, "Count": 4}
ARRAYS = {"Values", "GenData", "ILOffsets", "NativeOffsets"}
TIME_ERROR_NS = 100  # TraceEvent tells time in milliseconds, as a double
MARK_TYPES = ["MarkStack", "MarkFQ", "MarkHandles", "MarkOlder", "MarkSizedRef", "MarkOverflow", "MarkDependentHandles",
              "MarkNewFQ", "MarkSteal", "MarkBGCRoots"]
LATER_REASONS = {14: "BgcTuningSOH", 15: "BgcTuningLOH", 16: "BgcStepping", 17: "InducedAggressive"}


def lines_of(command):
    """The objects a command prints, a line each."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in process.stdout:
            yield json.loads(line)
        error = process.stderr.read().decode()
        if process.wait():
            raise RuntimeError(f"{command[0]}: {error[-400:]}")


def by_thread(events, time_of, thread_of):
    """Events of a kind on a thread, in time order: both sides have the same of them."""
    groups = collections.defaultdict(list)
    for event in events:
        if event["id"] in (DYNAMIC_EVENT, COMMITTED_USAGE) and event["provider"] == RUNTIME:
            continue
        groups[event["provider"], event["id"], thread_of(event)].append((time_of(event), event))
    for group in groups.values():
        group.sort(key=lambda item: item[0])  # stable: those of one time stay as they came
    return groups


def number(value):
    """A number, also of an address's text; None of what is none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16)
    return None


def same_number(ours, theirs):
    if ours == theirs:
        return True
    if isinstance(ours, float) or isinstance(theirs, float):
        return abs(ours - theirs) <= 1e-15 * abs(theirs)
    # TraceEvent has most numbers signed
    return any((ours - theirs) % (1 << bits) == 0 and abs(ours - theirs) <= 1 << bits for bits in (16, 32, 64))


def same(ours, theirs):
    if isinstance(theirs, dict):
        if set(theirs) == {"name", "value"}:
            return ours == theirs["name"] or (number(ours) is not None and same_number(number(ours), theirs["value"]))
        if set(theirs) == {"bytes"}:
            return isinstance(ours, str) and len(ours) == 2 * theirs["bytes"]
        return isinstance(ours, dict) and set(ours) == set(theirs) and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, str):
        # an address of TraceEvent's is text
        return ours == theirs or (number(ours) is not None and number(theirs) == number(ours))
    if number(ours) is None or number(theirs) is None:
        return ours == theirs
    return same_number(number(ours), number(theirs))


def mechanism(raw):
    """TraceEvent shows which bit is set below the highest, which says that there is one."""
    return (raw & 0x7fffffff).bit_length() - 1 if raw & 0x80000000 else 0x400


def same_items(ours, theirs):
    """The first items of an array; of objects what both sides have."""
    def item(mine, other):
        if not isinstance(other, dict) or not isinstance(mine, dict):
            return same(mine, other)
        common = mine.keys() & other.keys()
        return len(common) >= 2 and all(same(mine[key], other[key]) for key in common)
    return isinstance(ours, list) and len(ours) >= len(theirs) and all(map(item, ours, theirs))


def known_to_differ(event, field, ours, value):
    """Where TraceEvent is known to be wrong, or to say less; each checked for what it should be."""
    mine = ours["fields"].get(field)
    if mine is None and value in (0, None) and ours["version"] < SINCE.get(field, 0):
        return True
    if field == "OptimizationTier":  # of precompiled code it knows none
        return value["name"] == "Unknown" and mine == "ReadyToRun" and "Jitted" not in ours["fields"]["MethodFlags"]
    if event == "GC/MarkWithType" and field == "Type":
        return mine == MARK_TYPES[value]
    if event == "GC/PerHeapHistory" and field in ("CompactMechanisms", "ExpandMechanisms"):
        return mechanism(number(mine)) == value["value"]
    if event == "RunningContinuationList" and field in ("Index", "Object"):  # described as ints, written as longs
        return True
    if event == "Method/MethodDetails":  # its values of these are those of the field before
        before = {"TypeParameterCount": None, "LoaderModuleID": ours["fields"]["TypeParameterCount"],
                  "TypeParameters": number(ours["fields"]["LoaderModuleID"])}
        return field in before and value == before[field]
    return isinstance(value, dict) and value.get("name") == str(value.get("value")) and \
        mine == LATER_REASONS.get(value["value"])


class Differences:
    """What differs, by event and field, with an example of each."""

    def __init__(self):
        self.counts, self.examples = collections.Counter(), {}
        self.events = self.fields = 0

    def add(self, kind, event, field, example):
        key = kind, event, field
        self.counts[key] += 1
        self.examples.setdefault(key, example)

    def compare(self, ours, theirs):
        name = NAMELESS.get(theirs["event"], theirs["event"])
        if set(theirs["fields"]) == {""}:  # the object of EventSource.Write(), without a name; clrperf looks into it
            theirs["fields"] = theirs["fields"][""]
        self.events += 1
        if ours["event"] != name:
            self.add("name", name, "", ours["event"])
        for key in ("activity", "related_activity"):
            if ours.get(key) != theirs.get(key):
                self.add(key, name, "", (ours.get(key), theirs.get(key)))
        if ours["version"] != theirs["version"]:
            self.add("version", name, "", (ours["version"], theirs["version"]))
        for field, value in theirs["fields"].items():
            if field in DERIVED.get(name, ()):
                continue
            self.fields += 1
            if known_to_differ(name, field, ours, value):
                continue
            if field not in ours["fields"]:
                self.add("missing", name, field, (value, ours["fields"]))
            elif isinstance(value, list) and field in ARRAYS:
                if not same_items(ours["fields"][field], value):
                    self.add("items", name, field, (ours["fields"][field][:3], value[:3]))
            elif not same(ours["fields"][field], value):
                self.add("value", name, field, (ours["fields"][field], value))


def compare_events(clrperf, oracle, path, *providers):
    """Both sides' events of the file, compared."""
    asked = [option for provider in providers for option in ("--provider", provider)]
    mine = by_thread(lines_of([clrperf, "report", path, "events", "--json", "--top", "0", *asked]),
                     lambda event: round(event["time_s"] * 1e9), lambda event: event["thread"])
    theirs = by_thread(lines_of([*oracle, path, *providers]), lambda event: event["ns"], lambda event: event["tid"] or None)
    found = Differences()
    for key in mine.keys() | theirs.keys():
        a, b = mine.get(key, []), theirs.get(key, [])
        if len(a) != len(b):
            found.add("count", key[0], key[1], (len(a), len(b)))
            continue
        for (our_ns, ours), (their_ns, their) in zip(a, b):
            if abs(our_ns - their_ns) > TIME_ERROR_NS:
                found.add("time", their["event"], "", (our_ns, their_ns))
            found.compare(ours, their)
    return found


def spelled(frame):
    """A frame of clrperf's --raw-names as TraceEvent writes it; "?" of one without a name."""
    module, _, method = frame.rpartition("!") if "::" not in frame else frame.partition("!")
    return f"{module}!{method.replace('::', '.', 1)}" if "::" in frame else "?"


# TraceEvent, where it makes stacks, takes these out of the stream. Few have one: code that is compiled before the thread goes on.
TAKEN_OUT = {("Microsoft-Windows-DotNETRuntime", 190)}  # Method/ILToNativeMap


def compare_stacks(clrperf, oracle, path):
    """Stacks of all events: depth, and the method at each place."""
    mine = by_thread((event for event in lines_of([clrperf, "report", path, "events", "--json", "--top", "0",
                                                   "--raw-names"])
                      if event["stack"] and (event["provider"], event["id"]) not in TAKEN_OUT),
                     lambda event: round(event["time_s"] * 1e9), lambda event: event["thread"])
    theirs = by_thread(lines_of([*oracle, "--stacks", path]), lambda event: event["ns"],
                       lambda event: event["tid"] or None)
    found = Differences()
    for key in theirs.keys() | mine.keys():
        a, b = mine.get(key, []), theirs.get(key, [])
        if len(a) != len(b):
            found.add("count", key[0], key[1], (len(a), len(b)))
            continue
        for (_, ours), (_, their) in zip(a, b):
            frames = [spelled(frame) for frame in reversed(ours["stack"])]
            found.events += 1
            found.fields += len(frames)
            if len(frames) != len(their["stack"]):
                found.add("depth", key[0], key[1], (frames, their["stack"]))
            for place, (x, y) in enumerate(zip(frames, their["stack"])):
                if x != y:
                    found.add("frame", key[0], key[1], (place, x, y))
    return found
