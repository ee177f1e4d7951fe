#!/usr/bin/env bash
# What the runtimes tell of their jitted methods, against their own perf maps.
# Usage: eventpipe_test.sh EVENTPIPE_METHODS [VARIANT...]. Prints TAP; ends with 77 where .NET is missing.
set -u
# shellcheck source=live.sh
. "$(dirname "$0")/live.sh"
methods=${1:-$here/../../build-test/tests/live/eventpipe_methods}
shift
[ $# -gt 0 ] || set -- 10 9 8 3.1

for variant; do
    publish "$variant" jitty "$variant" || continue
    # shellcheck disable=SC2086
    run $command 0
    outcome $? "$variant: the target is ready"
    # until the GC has freed methods of collectible assemblies, which takes longer on a busy machine
    for seconds in 2 10 40; do
        "$methods" "$pid" $seconds >"$work/events" 2>"$work/summary"
        status=$?
        if [ $status != 0 ] || grep -q '^unload .*::Spin' "$work/events"; then
            break
        fi
    done
    outcome $status "$variant: $(tail -n 1 "$work/summary")"
    kill -TERM "$pid"
    outcome $? "$variant: the target lives on"
    wait "$pid"
    outcome $? "$variant: the target ends well"
    # its map is complete now
    result=$(python3 "$here/eventpipe_check.py" "$work/events" "$(perf_map)")
    outcome $? "$variant: $result"
    forget
done
echo "1..$count"
exit $failed
