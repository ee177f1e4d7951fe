#!/bin/sh
# Do the programs our exports are for read them, and do they see what we wrote?
#
#   exports_test.sh BASE...      BASE.json and any of BASE.folded .speedscope.json .pb.gz .perf.txt
#                                .firefox.json: exports of one profile, all samples taken at a rate
#   exports_test.sh              the hand-made profiles of tests/unit/export_fixture
#
# Readers: speedscope and profiler-cli from npm (profiler-cli wants Node 24, also from npm), go tool
# pprof. They are installed once into CLRPERF_TEST_CACHE. Exit 77 when none can be had, 1 when one of
# them disagrees; a reader that is missing is named.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${CLRPERF_TEST_CACHE:-$HOME/.cache/clrperf-tests}
modules=$cache/npm/node_modules
fixture=${CLRPERF_EXPORT_FIXTURE:-$here/../../build-test/tests/unit/export_fixture}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

skip() {
    echo "skipped: $1"
    exit 77
}

# npm's own messages only matter when it fails
install_readers() {
    [ -d "$modules/speedscope" ] && [ -d "$modules/ajv" ] && [ -x "$modules/.bin/profiler-cli" ] && return 0
    mkdir -p "$cache/npm"
    (cd "$cache/npm" && npm install --no-audit --no-fund speedscope ajv @firefox-devtools/profiler-cli \
        node@24) >"$work/npm.log" 2>&1 || { tail -5 "$work/npm.log"; return 1; }
}

read_speedscope() { # BASE: the importer goes by file names, so give them the ones it knows
    files=
    for pair in speedscope.json:speedscope.json chromium.json:chromium.json folded:collapsedstack.txt perf.txt:linux-perf.txt pb.gz:pb.gz; do
        from=$1.${pair%%:*} to=$work/read/p.${pair#*:}
        [ -f "$from" ] || continue
        cp "$from" "$to"
        files="$files $to"
    done
    # shellcheck disable=SC2086
    node "$here/speedscope_import.js" "$modules/speedscope" $files >"$work/read/speedscope.jsonl"
    [ ! -f "$1.speedscope.json" ] || node "$here/exports_schema.js" "$modules" "$1.speedscope.json"
}

read_pprof() {
    [ -f "$1.pb.gz" ] || return 0
    command -v go >/dev/null || { echo "no go: pprof is not checked"; return 0; }
    go tool pprof -raw "$1.pb.gz" >"$work/read/pprof.raw" 2>"$work/pprof.log" &&
        go tool pprof -top "$1.pb.gz" >/dev/null 2>>"$work/pprof.log" || { cat "$work/pprof.log"; return 1; }
}

favoured=
[ "$(id -u)" != 0 ] || favoured="nice -n -10"
firefox() {
    # shellcheck disable=SC2086
    HOME=$work $favoured "$modules/.bin/node" "$modules/.bin/profiler-cli" "$@"
}

# It gives its background process half a second to start, and leaves it behind when that was not enough.
load_firefox() {
    for try in 1 2 3 4 5 6 7 8; do
        firefox load "$1" --session check >"$work/firefox.log" 2>&1 && return 0
        left=$(sed -n 's/.*running as pid \([0-9]*\).*/\1/p' "$work/firefox.log")
        [ -z "$left" ] || kill "$left" 2>/dev/null || true
        sleep "$try"
    done
    return 1
}

markers() { # FILE THREADS: are all that we wrote there?
    written=$(grep -o '"type":"dotnet"' "$1" | wc -l) seen=0
    for i in $(seq 0 $(($2 - 1))); do
        found=$(firefox thread markers --thread "t-$i" --session check 2>/dev/null | sed -n 's/^Markers in .* \([0-9]*\) markers$/\1/p')
        seen=$((seen + ${found:-0}))
    done
    [ "$seen" = "$written" ] || { echo "Firefox Profiler: $seen markers instead of $written"; return 1; }
    echo "ok   Firefox Profiler: $seen markers"
}

read_firefox() { # BASE: our processed profile, and what its own reader of perf text makes of ours
    "$modules/.bin/node" --version >/dev/null 2>&1 || { echo "no Node 24: profiler-cli is not checked"; return 0; }
    for kind in firefox.json perf.txt; do
        [ -s "$1.$kind" ] || continue
        load_firefox "$1.$kind" || { cat "$work/firefox.log"; return 1; }
        firefox thread list --session check --json >"$work/read/$kind-threads.json"
        count=$(grep -c '"threadHandle"' "$work/read/$kind-threads.json") || count=0
        for i in $(seq 0 $((count - 1))); do
            firefox thread functions --thread "t-$i" --include-idle --limit 0 --session check --json \
                >"$work/read/$kind-$i.json" 2>/dev/null || rm -f "$work/read/$kind-$i.json"
        done
        [ "$kind" != firefox.json ] || markers "$1.$kind" "$count" || return 1
        firefox stop check >/dev/null 2>&1 || true
    done
}

check_one() {
    echo "== $1"
    rm -rf "$work/read"
    mkdir "$work/read"
    for reader in read_speedscope read_pprof read_firefox; do
        $reader "$1" || { echo "FAIL $reader"; failed=1; }
    done
    node "$here/exports_check.js" "$1" "$work/read" || failed=1
}

command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"
install_readers || skip "the readers cannot be installed from npm"
if [ $# -eq 0 ]; then
    [ -x "$fixture" ] || skip "no $fixture (make unit builds it)"
    for which in small nasty 3000; do
        set -- "$@" "$work/$which"
        "$fixture" "$which" "$work/$which.json" "$work/$which.folded" "$work/$which.speedscope.json" \
            "$work/$which.pb.gz" "$work/$which.perf.txt" "$work/$which.chromium.json" "$work/$which.firefox.json" 2>/dev/null
    done
fi
for base in "$@"; do
    check_one "$base"
done
[ $failed -eq 0 ] && echo "all readers agree"
exit $failed
