#!/bin/sh
# Are the counts of our folded stacks those of perf's own stackcollapse on the same perf.data?
#
#   folded_vs_perf.sh [PERF_DATA]
#
# Without a file one is recorded here. CLRPERF is the binary (build/src/cli/clrperf), CLRPERF_FOLD_OPTIONS what
# makes the thread's name the first frame, as perf has it (--threads). The sum and the sum of every
# thread name must be equal. Stacks perf names completely are compared one by one: names may differ
# there, ours being better, so their share is printed, and fails only below CLRPERF_FOLD_SHARE percent
# (default 0). Idle CPUs, perf's swapper, are not compared: they are no CPU time to us.
# Exit 77 without perf, its Python scripts, or an importer.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
clrperf=${CLRPERF:-$here/../../build/src/cli/clrperf}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() {
    echo "skipped: $1"
    exit 77
}

command -v perf >/dev/null || skip "no perf"
data=$(readlink -f "${1:-$work/perf.data}")
if [ $# -eq 0 ]; then
    perf record -q -e cpu-clock -F 499 -g -o "$data" -- sh -c \
        'i=0; while [ $i -lt 60000 ]; do i=$((i + 1)); done; find /usr/share -type f | sort | tail -1' \
        >/dev/null 2>"$work/log" || skip "perf record: $(tail -1 "$work/log")"
fi
# `report` hands no -i on: it reads perf.data where it stands
[ "$data" = "$work/perf.data" ] || ln -s "$data" "$work/perf.data"
(cd "$work" && perf script -f report stackcollapse) >"$work/theirs" 2>"$work/log" && [ -s "$work/theirs" ] ||
    skip "perf script report stackcollapse: $(tail -1 "$work/log")"
# shellcheck disable=SC2086
"$clrperf" export "$data" -o "$work/ours.folded" ${CLRPERF_FOLD_OPTIONS---threads} >"$work/log" 2>&1 || {
    echo "FAIL clrperf export:" && cat "$work/log"
    exit 1
}

awk -v least="${CLRPERF_FOLD_SHARE:-0}" '
    /^swapper[; ]/ { next }
    { count = $NF; line = $0; sub(/ [0-9]+$/, "", line); split(line, frame, ";"); root = frame[1] }
    FNR == NR { their[line] += count; their_root[root] += count; their_sum += count; next }
    { our[line] += count; our_root[root] += count; our_sum += count }
    END {
        bad = 0
        if (our_sum != their_sum) { print "FAIL sum: " our_sum ", perf has " their_sum; bad = 1 }
        for (root in their_root)
            if (our_root[root] != their_root[root]) {
                print "FAIL " root ": " our_root[root] + 0 ", perf has " their_root[root]; bad = 1
            }
        for (root in our_root)
            if (!(root in their_root)) { print "FAIL " root ": perf does not have it"; bad = 1 }
        for (line in their) {
            if (line ~ /\[unknown\]/) continue
            named++
            if (our[line] == their[line]) equal++
        }
        share = named ? 100 * equal / named : 100
        printf "%d samples; %d of %d stacks perf names completely are equal, count and all\n", our_sum, equal, named
        if (share < least) { print "FAIL share: " share " percent"; bad = 1 }
        exit bad
    }' "$work/theirs" "$work/ours.folded"
