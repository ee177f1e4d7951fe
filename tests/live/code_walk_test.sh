#!/usr/bin/env bash
# Names and tiers from the memory of stopped processes, against the runtimes' own events and perf maps.
# Usage: code_walk_test.sh BUILD_DIR/tests/live [CASE...]. A case is "VARIANT PROGRAM [NAME=VALUE...]".
# Prints TAP; ends with 77 where .NET is missing.
set -u
# shellcheck source=live.sh
. "$(dirname "$0")/live.sh"
bin=${1:-$here/../../build-test/tests/live}
shift
[ $# -gt 0 ] || set -- "10 jitty" "9 jitty" "8 jitty" "3.1 jitty" "10 shapes" "9 shapes" "8 shapes" "3.1 shapes" \
    "10-single jitty" "8-single primes" "10 jitty DOTNET_EnableWriteXorExecute=0" "10 jitty DOTNET_TieredCompilation=0" \
    "9 jitty DOTNET_TieredCompilation=0" "8 jitty DOTNET_TieredCompilation=0" "10-debug shapes" "8-debug shapes" "10-debug jitty" \
    "10 shapes DOTNET_TC_QuickJitForLoops=0" "9 shapes DOTNET_TC_QuickJitForLoops=0" \
    "8 jitty DOTNET_EnableWriteXorExecute=0" "10 jitty DOTNET_EnableDiagnostics=0" "8 jitty DOTNET_EnableDiagnostics=0"

for case; do
    read -r variant program settings <<<"$case"
    publish "$variant" "$program" "$case" || continue
    # shellcheck disable=SC2086
    run env $settings $command 0
    outcome $? "$case: the target is ready"
    sleep 3 # it jits
    kill -STOP "$pid"
    cp "$(perf_map)" "$work/map"
    "$bin/code_walk_live" "$pid" >"$work/walk" 2>"$work/summary"
    outcome $? "$case: $(head -n 1 "$work/summary")"
    result=$("$bin/layout_ways" "$pid")
    outcome $? "$case: a layout derived from the process is the known one: $(tail -n 2 <<<"$result" | paste -sd ' ')"
    grep -E '^(error|missing|differs)' <<<"$result" | sed 's/^/# /'
    kill -CONT "$pid"
    "$bin/eventpipe_methods" "$pid" 0 >"$work/events" 2>/dev/null
    # shellcheck disable=SC2086
    result=$(python3 "$here/code_walk_check.py" "$work/walk" "$work/events" "$work/map" $case)
    outcome $? "$case: $result"
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    [ $? = 137 ] # by that signal, and no other before it
    outcome $? "$case: the target lives on"
    forget
done
echo "1..$count"
exit $failed
