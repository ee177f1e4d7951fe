#!/usr/bin/env bash
# What the runtimes tell of their jitted methods, against their own perf maps.
# Usage: eventpipe_test.sh EVENTPIPE_METHODS [VARIANT...]. Prints TAP; ends with 77 where .NET is missing.
set -u
here=$(cd "$(dirname "$0")" && pwd)
methods=${1:-build/tests/live/eventpipe_methods}
shift
[ $# -gt 0 ] || set -- 10 9 8 3.1

skip() {
    echo "1..0 # SKIP $1"
    exit 77
}
command -v dotnet >/dev/null || skip "dotnet is not on PATH"
command -v python3 >/dev/null || skip "python3 is not on PATH"

work=$(mktemp -d /tmp/clrperf-eventpipe-XXXXXX)
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

for variant; do
    command=$("$here/runtimes/build.sh" publish "$variant" jitty 2>"$work/build")
    code=$?
    if [ $code = 77 ]; then
        count=$((count + 1))
        echo "ok $count - $variant # SKIP $(tail -n 1 "$work/build")"
        continue
    fi
    check $code "$variant: the sample builds"
    [ $code = 0 ] || continue
    mkdir "$work/$variant"
    # shellcheck disable=SC2086
    TMPDIR=$work/$variant DOTNET_PerfMapEnabled=3 DOTNET_PerfMapJitDumpPath=$work/$variant COMPlus_PerfMapEnabled=1 \
        $command 8 >"$work/out" 2>&1 &
    pid=$!
    sleep 2
    "$methods" "$pid" 2 >"$work/events" 2>"$work/summary"
    check $? "$variant: $(tail -n 1 "$work/summary")"
    kill -0 "$pid" 2>/dev/null
    check $? "$variant: the target lives on"
    map=$(ls "$work/$variant/perf-$pid.map" "/tmp/perf-$pid.map" 2>/dev/null | head -n 1)
    result=$(python3 "$here/eventpipe_check.py" "$work/events" "${map:-/dev/null}")
    check $? "$variant: $result"
    wait "$pid"
    check $? "$variant: the target ends well"
    rm -f "/tmp/perf-$pid.map" "/tmp/perfinfo-$pid.map"
    pid=
done
echo "1..$count"
exit $failed
