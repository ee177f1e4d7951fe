#!/bin/bash
# Builds an oracle unless it is up to date, and prints the command line that runs it.
#
#   build.sh names      what ClrMD calls code addresses of a process or a core
#   build.sh events     what TraceEvent finds in the events of a .nettrace file
#   build.sh stats      TraceEvent's GCStats and JITStats of a .nettrace file
#   build.sh decode     how many events TraceEvent finds in a .nettrace file, and how long it takes
#   build.sh methods    what TraceEvent finds about methods in a .nettrace file
#
# The cache is $CLRPERF_TEST_CACHE, or ~/.cache/clrperf-tests. Exit code 77: not to be had on this machine, the reason
# is on stderr. Exit code 1: our sources do not build.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=${CLRPERF_TEST_CACHE:-$HOME/.cache/clrperf-tests}
oracle=${1-}
if [[ $# != 1 || ! -f $here/$oracle/$oracle.csproj ]]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi

export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1 DOTNET_CLI_USE_MSBUILD_SERVER=0
if ! command -v dotnet >/dev/null; then
    echo "the .NET SDK is missing" >&2
    exit 77
fi

out=$cache/oracle/$oracle work=$cache/work/oracle-$oracle
now=$({
    dotnet --version
    cat "$0" "$here/Directory.Build.props" "$here/$oracle"/*.cs "$here/$oracle"/*.csproj
} | sha256sum | cut -c1-32)
mkdir -p "$cache/oracle" "$cache/work"
exec 9>"$cache/lock"
flock 9
if [[ $(cat "$out/.fingerprint" 2>/dev/null) != "$now" ]]; then
    rm -rf "$out" "$out.new" "$work"
    mkdir -p "$work"
    if ! dotnet build "$here/$oracle/$oracle.csproj" -c Release -o "$out.new" -p:OracleOut="$work" -m:1 \
        -p:UseSharedCompilation=false -nologo -v quiet >"$work.log" 2>&1; then
        tail -n 15 "$work.log" >&2
        grep -q 'error CS' "$work.log" && exit 1
        echo "the build failed, perhaps because a package cannot be had: $work.log" >&2
        exit 77
    fi
    rm -rf "$work"
    echo "$now" >"$out.new/.fingerprint"
    mv "$out.new" "$out"
fi
printf 'dotnet %q\n' "$out/$oracle.dll"
