#!/usr/bin/env bash
# shellcheck disable=SC2034 # who sources it uses them
# live: what the live tests in shell share. Sourced; gives them a folder of their own, $work, and TAP lines.

skip() { # WHY
    echo "1..0 # SKIP $1"
    exit 77
}

for needed in dotnet python3; do
    command -v "$needed" >/dev/null || skip "$needed is not on PATH"
done

export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/clrperf-live-XXXXXX")
started=() # what is still running
cleanup() {
    [ ${#started[@]} = 0 ] || kill -KILL "${started[@]}" 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT

count=0 failed=0
outcome() { # STATUS WHAT: one check, passed when the status is 0
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=1
    fi
}

# wait_for SECONDS COMMAND...: until it succeeds
wait_for() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}

# publish VARIANT PROGRAM NAME: the sample's command line in $command; false when it cannot be had, which is told
publish() {
    command=$("$here/runtimes/build.sh" publish "$1" "$2" 2>"$work/build")
    local status=$?
    if [ $status = 77 ]; then
        count=$((count + 1))
        echo "ok $count - $3 # SKIP $(tail -n 1 "$work/build")"
        return 1
    fi
    outcome $status "$3: the sample builds"
    return $status
}

# run COMMAND...: in the background as $pid, its output in $work/out, its perf map in the new folder $work/run; waits
# until it says that it is ready
run() {
    rm -rf "$work/run"
    mkdir "$work/run"
    : >"$work/out"
    env TMPDIR="$work/run" DOTNET_PerfMapEnabled=3 DOTNET_PerfMapJitDumpPath="$work/run" COMPlus_PerfMapEnabled=1 \
        "$@" >"$work/out" 2>&1 &
    pid=$!
    started=("$pid")
    wait_for 60 grep -q '^ready' "$work/out"
}

# Where the perf map of $pid is: older runtimes know one place only.
perf_map() {
    local map
    for map in "$work/run/perf-$pid.map" "/tmp/perf-$pid.map"; do
        [ ! -e "$map" ] || { echo "$map"; return; }
    done
    echo /dev/null
}

# forget: $pid has ended
forget() {
    started=()
    rm -f "/tmp/perf-$pid.map" "/tmp/perfinfo-$pid.map"
}
