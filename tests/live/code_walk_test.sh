#!/usr/bin/env bash
# Names from the memory of stopped processes, against the runtimes' own events and perf maps.
# Usage: code_walk_test.sh BUILD_DIR/tests/live [CASE...]. A case is "VARIANT PROGRAM [NAME=VALUE...]".
# Prints TAP; ends with 77 where .NET is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
bin=${1:-build/tests/live}
shift
[ $# -gt 0 ] || set -- "10 jitty" "9 jitty" "8 jitty" "3.1 jitty" "10 shapes" "9 shapes" "8 shapes" "3.1 shapes" \
    "10-single jitty" "8-single primes" "10 jitty DOTNET_EnableWriteXorExecute=0" "10 jitty DOTNET_TieredCompilation=0" \
    "8 jitty DOTNET_EnableWriteXorExecute=0" "10 jitty DOTNET_EnableDiagnostics=0" "8 jitty DOTNET_EnableDiagnostics=0"

skip() {
    echo "1..0 # SKIP $1"
    exit 77
}
command -v dotnet >/dev/null || skip "dotnet is not on PATH"
command -v python3 >/dev/null || skip "python3 is not on PATH"

work=$(mktemp -d /tmp/clrperf-memory-XXXXXX)
pid=
cleanup() {
    [ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

count=0 failed=0
check() { # OK WHAT
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=1
    fi
}

for case; do
    read -r variant program settings <<<"$case"
    command=$("$here/runtimes/build.sh" publish "$variant" "$program" 2>"$work/build")
    code=$?
    if [ $code = 77 ]; then
        count=$((count + 1))
        echo "ok $count - $case # SKIP $(tail -n 1 "$work/build")"
        continue
    fi
    check $code "$case: the sample builds"
    [ $code = 0 ] || continue
    rm -rf "$work/run"
    mkdir "$work/run"
    # shellcheck disable=SC2086
    env TMPDIR="$work/run" DOTNET_PerfMapEnabled=3 DOTNET_PerfMapJitDumpPath="$work/run" COMPlus_PerfMapEnabled=1 \
        $settings $command 40 >"$work/out" 2>&1 &
    pid=$!
    sleep 3
    kill -STOP "$pid"
    map=$(ls "$work/run/perf-$pid.map" "/tmp/perf-$pid.map" 2>/dev/null | head -n 1)
    cp "${map:-/dev/null}" "$work/map"
    "$bin/code_walk_live" "$pid" >"$work/walk" 2>"$work/summary"
    check $? "$case: $(head -n 1 "$work/summary")"
    kill -CONT "$pid"
    "$bin/eventpipe_methods" "$pid" 0 >"$work/events" 2>/dev/null
    result=$(python3 "$here/code_walk_check.py" "$work/walk" "$work/events" "$work/map")
    check $? "$case: $result"
    kill -0 "$pid" 2>/dev/null
    check $? "$case: the target lives on"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    rm -f "/tmp/perf-$pid.map" "/tmp/perfinfo-$pid.map"
    pid=
done
echo "1..$count"
exit $failed
