#!/usr/bin/env bash
# Names, starts and ends of precompiled methods, compared with what the runtime itself writes to a jitdump.
# Usage: r2r_jitdump.sh [CLRPERF]. Prints TAP; ends with 77 where .NET is missing.
set -u
# shellcheck source=live.sh
. "$(dirname "$0")/live.sh"
clrperf=$(readlink -f "${1:-$here/../../build/src/cli/clrperf}")
[ -x "$clrperf" ] || skip "no clrperf at '$clrperf'"

mkdir "$work/app"
cat >"$work/app/app.csproj" <<'XML'
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net10.0</TargetFramework>
    <ImplicitUsings>enable</ImplicitUsings>
    <InvariantGlobalization>true</InvariantGlobalization>
  </PropertyGroup>
</Project>
XML
cat >"$work/app/Program.cs" <<'CS'
using System.Text.Json;
using System.Text.RegularExpressions;
var words = Enumerable.Range(0, 200).Select(i => new { Name = "w" + i % 7, Value = i * 1.5m }).ToList();
var json = JsonSerializer.Serialize(words);
var groups = words.GroupBy(w => w.Name).ToDictionary(g => g.Key, g => g.Sum(w => w.Value));
Console.WriteLine(Regex.Replace(json, "w(\\d)", m => m.Groups[1].Value).Length + groups.Count);
await Task.Run(async () => { await Task.Delay(1); throw new InvalidOperationException(); })
    .ContinueWith(t => Console.WriteLine(t.Exception!.ToString().Length));
Console.WriteLine("done");
Console.ReadLine(); // all that was mapped stays so until the input ends
CS
if ! dotnet build -m:1 -c Release -o "$work/out" "$work/app" >"$work/build.log" 2>&1; then
    skip "the sample does not build: $(grep -m1 error "$work/build.log")"
fi

# Stub granularity 2: with whole blocks the runtime's dump ends early.
PYTHONPATH=$here python3 - "$clrperf" "$work" <<'PY'
import glob, os, re, struct, subprocess, sys
from live import as_told

clrperf, work = sys.argv[1:3]
env = dict(os.environ, DOTNET_PerfMapEnabled="2", DOTNET_PerfMapStubGranularity="2",
           DOTNET_PerfMapJitDumpPath=work, DOTNET_TieredCompilation="0")
child = subprocess.Popen(["dotnet", work + "/out/app.dll"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
for line in child.stdout:
    if line == "done\n":
        break
mapped = set()  # executable mappings of assemblies: start, end, file offset, path
with open(f"/proc/{child.pid}/maps") as file:
    for line in file:
        fields = line.rstrip("\n").split(None, 5)
        if len(fields) == 6 and fields[1].startswith("r-xp") and fields[5].endswith(".dll"):
            start, end = (int(x, 16) for x in fields[0].split("-"))
            mapped.add((start, end, int(fields[2], 16), fields[5]))
child.communicate()  # the dump is complete when it has ended

records = []  # address, size, name of each precompiled method that was prepared
dumps = glob.glob(work + "/jit-*.dump")
dump = open(dumps[0], "rb").read() if dumps else b""
at = 40
while at + 16 <= len(dump):
    kind, size = struct.unpack_from("<II", dump, at)
    if size < 16 or at + size > len(dump):
        break
    if kind == 0:
        _, _, _, address, code_size, _ = struct.unpack_from("<IIQQQQ", dump, at + 16)
        name = dump[at + 56:dump.index(b"\0", at + 56)].decode()
        if name.endswith("[PreJIT]"):
            records.append((address, code_size, name[:-len("[PreJIT]")]))
    at += size

lists = {}  # path: {start in the file: (size, module, type::method)}
def methods_of(path):
    if path not in lists:
        out = subprocess.run([clrperf, "r2rmap", "--file-offsets", "--raw-names", path], capture_output=True, text=True)
        found = {}
        for line in out.stdout.splitlines():
            start, size, rest = line.split(" ", 2)
            name, module = rest[:-1].rsplit(" [", 1)
            found[int(start, 16)] = (int(size, 16), module, name.split("(")[0])
        lists[path] = found
    return lists[path]

wrong = {"name": [], "module": [], "start": [], "size": []}
checked = 0
owner = re.compile(r"\[([A-Za-z0-9_.\-]+)\] ")  # in front of the declaring type; those of parameters lack the blank
for address, size, name in records:
    home = next((m for m in mapped if m[0] <= address < m[1]), None)
    match = owner.search(name)
    if not home or not match:
        continue
    checked += 1
    there = methods_of(home[3]).get(address - home[0] + home[2])
    if not there:
        wrong["start"].append(name)
        continue
    if as_told(there[2]) != name[match.end():].split("(")[0]:
        wrong["name"].append((name, there))
    if there[1] != match.group(1):
        wrong["module"].append((name, there))
    if there[0] != size:
        wrong["size"].append((name, there, size))

def report(number, ok, what):
    print(f"{'ok' if ok else 'not ok'} {number} - {what}")
    return ok
print("1..5")
good = report(1, checked >= 500, f"{checked} of {len(records)} precompiled methods of the dump are in mapped assemblies")
for number, what in enumerate(wrong, 2):
    good &= report(number, not wrong[what], f"{what}: {checked - len(wrong[what])} of {checked} equal")
    for item in wrong[what][:5]:
        print("#", item)
sys.exit(0 if good else 1)
PY
