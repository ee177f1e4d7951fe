#!/bin/bash
# What dotnet-trace says about the experiment of experiment_test.py: webapi under 5 connections that burn and 5 that
# wait. Prints its top methods, the size of its file, and what it took. Not part of the tests: it is the comparison.
# Usage: experiment_dotnet_trace.sh [SECONDS]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
clrperf=${CLRPERF:-$here/../../build/src/cli/clrperf}
seconds=${1:-10}
read -ra webapi <<<"$("$here/runtimes/build.sh" publish 10 webapi)"
tracer=$("$here/runtimes/build.sh" tool dotnet-trace)
work=$(mktemp -d)
started=()
cleanup() {
    kill "${started[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

took() { # NAME COMMAND...: runs it, says what it cost
    local name=$1 TIMEFORMAT
    shift
    TIMEFORMAT="$name: %R s, %U s of CPU in user mode, %S s in the kernel"
    time "$@"
}

"${webapi[@]}" 0 --urls http://127.0.0.1:0 >"$work/out" &
started+=($!)
pid=$!
until grep -q ready "$work/out"; do sleep 0.2; done
url=$(awk '{print $3; exit}' "$work/out")
for path in on-cpu off-cpu; do
    for _ in 1 2 3 4 5; do
        (while curl -s -o /dev/null "$url/$path"; do :; done) &
        started+=($!)
    done
done
sleep 15 # until the action is at tier 1

echo "== clrperf"
took record "$clrperf" record -q -p "$pid" -d "$seconds" -o "$work/c.clrperf"
took report "$clrperf" report "$work/c.clrperf" -n 12 -i --include 'Controller\.(OnCpu|OffCpu)'
ls -l "$work/c.clrperf" | awk '{print "file: " $5 " bytes"}'
echo "== dotnet-trace"
took collect "$tracer" collect -p "$pid" --duration "00:00:$(printf %02d "$seconds")" -o "$work/t.nettrace" >"$work/log" ||
    { tail -5 "$work/log"; exit 1; }
ls -l "$work/t.nettrace" | awk '{print "file: " $5 " bytes"}'
took "report topN" "$tracer" report "$work/t.nettrace" topN -n 12
took "report topN --inclusive" "$tracer" report "$work/t.nettrace" topN -n 30 --inclusive
