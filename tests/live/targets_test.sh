#!/usr/bin/env bash
# Finds real .NET processes: of root, of an ordinary user, in other namespaces, with hostile names.
# Usage: targets_test.sh CLRPERF. Prints TAP; ends with 77 where .NET or the rights are missing.
set -u
# shellcheck source=live.sh
. "$(dirname "$0")/live.sh"
clrperf=${1:-$here/../../build/src/cli/clrperf}
[ "$(id -u)" = 0 ] || skip "needs root, to start processes of several users"

children_of() {
    cat /proc/"$1"/task/*/children 2>/dev/null
}
# the target itself: what a wrapper such as unshare started
innermost() {
    local pid=$1 child
    for child in $(children_of "$pid"); do
        innermost "$child"
        return
    done
    echo "$pid"
}
cleanup() { # instead of live.sh's
    local pid
    for pid in "${started[@]}"; do
        kill -KILL "$(innermost "$pid")" "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    rm -rf "$work"
}

check() { # check WHAT COMMAND...
    local what=$1 status
    shift
    "$@" >"$work/log" 2>&1
    status=$?
    outcome $status "$what"
    [ $status = 0 ] || sed 's/^/# /' "$work/log"
}
# exits WANTED COMMAND...
exits() {
    local wanted=$1
    shift
    "$@"
    local got=$?
    [ "$got" = "$wanted" ] || { echo "exit code $got, wanted $wanted: $*"; return 1; }
}
# says TEXT COMMAND...: on stdout or stderr
says() {
    local text=$1
    shift
    local out
    out=$("$@" 2>&1)
    grep -qF -- "$text" <<<"$out" || { echo "no '$text' in: $out"; return 1; }
}
# json EXPRESSION COMMAND...: a Python expression; `ps` is {pid: process}, `doc` the document
json() {
    local expression=$1
    shift
    "$@" >"$work/out.json" || [ $? = 4 ] || return 1
    python3 - "$expression" "$work/out.json" <<'PY'
import json, sys
doc = json.load(open(sys.argv[2]))
ps = {p["pid"]: p for p in doc.get("processes", [])}
checks = {c["name"]: c for c in doc.get("checks", [])}
if not eval(sys.argv[1]):
    sys.exit(f"false: {sys.argv[1]}\n{json.dumps(doc, indent=1)[:6000]}")
PY
}

mkdir "$work/app" "$work/shared" "$work/nobody" "$work/oldproc"
cat >"$work/app/Napper.csproj" <<'XML'
<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><OutputType>Exe</OutputType>
<TargetFramework>$(BundledNETCoreAppTargetFrameworkVersion)</TargetFramework></PropertyGroup></Project>
XML
sed -i "s/\$(Bundled[A-Za-z]*)/net$(dotnet --version | cut -d. -f1,2)/" "$work/app/Napper.csproj"
echo 'System.Console.WriteLine("ready"); System.Threading.Thread.Sleep(System.TimeSpan.FromMinutes(10));' \
    >"$work/app/Program.cs"
dotnet build -m:1 -c Release -o "$work/out" "$work/app" >"$work/build.log" 2>&1 || {
    sed 's/^/# /' "$work/build.log"
    skip "the test program does not build"
}
cp "$clrperf" "$work/clrperf"
chmod 755 "$work" "$work/clrperf"
chmod -R a+rX "$work/out"
chown 65534:65534 "$work/nobody"
clrperf=$work/clrperf
as_nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"

# start NAME COMMAND...: waits for "ready", sets pid_NAME
start() {
    local name=$1
    shift
    "$@" >"$work/$name.log" 2>&1 &
    local pid=$!
    started+=("$pid")
    wait_for 60 grep -q ready "$work/$name.log" || outcome 1 "$name starts: $(tail -n 1 "$work/$name.log")"
    declare -g "pid_$name=$(innermost "$pid")"
}

start root dotnet "$work/out/Napper.dll"
start user $as_nobody env TMPDIR="$work/nobody" "$work/out/Napper"
start box1 unshare -p -f --mount-proc env TMPDIR="$work/shared" dotnet "$work/out/Napper.dll"
start box2 unshare -p -f --mount-proc env TMPDIR="$work/shared" dotnet "$work/out/Napper.dll"
start oldproc unshare -p -f --kill-child env TMPDIR="$work/oldproc" dotnet "$work/out/Napper.dll"
start tmpfs unshare -m bash -c "mount -t tmpfs none /var/tmp && exec env TMPDIR=/var/tmp dotnet $work/out/Napper.dll"
start deaf env DOTNET_EnableDiagnostics=0 dotnet "$work/out/Napper.dll"
evil=$work/out/$'x\e[31m) R 1 (\n'
cp "$work/out/Napper" "$evil"
start evil "$evil"
start crash dotnet "$work/out/Napper.dll"
sleep 600 &
pid_native=$!
started+=("$pid_native")

version='[0-9]+\.[0-9]+\.[0-9]+'
p="ps[$pid_root]"
check "ps: schema" json 'doc["schema"] == "clrperf.ps/1"' "$clrperf" ps --json
check "ps: every key of the contract" json \
    "set('pid ns_pid uid user name command_line entry_assembly runtime container started_s socket can'.split()) <= set($p) and set($p['runtime']) == {'kind','version','single_file','image'} and set($p['can']) == {'sample','events','memory'}" \
    "$clrperf" ps --json
check "ps: runtime" json "__import__('re').fullmatch(r'$version', $p['runtime']['version']) and $p['runtime']['kind'] == 'coreclr' and $p['runtime']['image'].endswith('/libcoreclr.so')" \
    "$clrperf" ps --json
check "ps: names" json "$p['name'] == 'dotnet' and $p['entry_assembly'] == 'Napper' and 'Napper.dll' in $p['command_line']" \
    "$clrperf" ps --json
check "ps: start time" json "abs(__import__('time').time() - $p['started_s']) < 300" "$clrperf" ps --json
check "ps: root may do everything" json "all(ps[int(i)]['can'][w]['ok'] for i in '$pid_root $pid_user $pid_box1 $pid_tmpfs'.split() for w in ('sample','events','memory'))" \
    "$clrperf" ps --json
check "ps: an apphost of another user, TMPDIR elsewhere" json \
    "ps[$pid_user]['uid'] == 65534 and ps[$pid_user]['entry_assembly'] == 'Napper' and ps[$pid_user]['socket'].startswith('$work/nobody/dotnet-diagnostic-$pid_user-')" \
    "$clrperf" ps --json
check "ps: two pid namespaces with one folder, both pid 1" json \
    "ps[$pid_box1]['ns_pid'] == 1 == ps[$pid_box2]['ns_pid'] and ps[$pid_box1]['socket'] != ps[$pid_box2]['socket'] and all('/dotnet-diagnostic-1-' in ps[i]['socket'] for i in ($pid_box1, $pid_box2))" \
    "$clrperf" ps --json
check "ps: a new pid namespace that sees the old /proc: its socket has another process's start time" json \
    "ps[$pid_oldproc]['ns_pid'] == 1 and ps[$pid_oldproc]['socket'].endswith('/dotnet-diagnostic-1-%s-socket' % open('/proc/1/stat').read().rsplit(')', 1)[1].split()[19])" \
    "$clrperf" ps --json
check "its runtime events" exits 0 "$clrperf" record -e gc -d 1 -p "$pid_oldproc" -o "$work/oldproc.clrperf"
check "ps: another mount namespace" json "ps[$pid_tmpfs]['socket'].startswith('/var/tmp/dotnet-diagnostic-')" "$clrperf" ps --json
check "ps: diagnostics switched off" json \
    "ps[$pid_deaf]['socket'] is None and 'DOTNET_EnableDiagnostics=0' in ps[$pid_deaf]['can']['events']['reason'] and ps[$pid_deaf]['can']['sample']['ok']" \
    "$clrperf" ps --json
check "ps: a hostile name" json "ps[$pid_evil]['name'].startswith('x\x1b[31m) R 1 (\n') and ps[$pid_evil]['uid'] == 0" "$clrperf" ps --json
check "ps: no control byte reaches the terminal" exits 1 bash -c "'$clrperf' ps | grep -q \$'\e'"
check "ps: a native program is none" json "$pid_native not in ps" "$clrperf" ps --json
check "ps: what an ordinary user sees" json \
    "ps[$pid_user]['can']['sample']['ok'] and not $p['can']['sample']['ok'] and not $p['can']['memory']['ok'] and 'uid 0' in $p['can']['events']['reason'] and $p['can']['events']['fix'] and ps[$pid_user]['runtime']['version']" \
    $as_nobody "$clrperf" ps --json
check "ps: nothing else on stderr" exits 1 bash -c "'$clrperf' ps --json 2>&1 >/dev/null | grep -q ."

kill -KILL "$pid_crash"
wait "$pid_crash" 2>/dev/null
check "ps: a crashed process is gone" json "$pid_crash not in ps" "$clrperf" ps --json
check "ps --stale: its socket is left" json "any(s['pid'] == $pid_crash for s in doc['stale']) and not any(s['pid'] == $pid_root and not s['pid_reused'] for s in doc['stale'])" \
    "$clrperf" ps --json --stale
rm -f /tmp/dotnet-diagnostic-"$pid_crash"-*-socket

check "doctor: schema and keys" json "doc['schema'] == 'clrperf.doctor/1' and all(set(c) == {'name','ok','detail','lost','fix'} for c in doc['checks'])" \
    "$clrperf" doctor --json -p "$pid_root"
check "doctor: its layout, and that nearly all methods agree" json "doc['walk']['way'] in ('descriptor', 'table', 'derived') and doc['walk']['checked'] >= 50 and doc['walk']['agreed'] >= doc['walk']['checked'] * 0.99 and doc['walk']['methods'] > 0" \
    "$clrperf" doctor --json -p "$pid_root"
check "doctor: how to get the symbols of its runtime" json "not checks['target_symbols']['ok'] and checks['target_symbols']['fix'].startswith('clrperf symbols fetch -p $pid_root ')" \
    "$clrperf" doctor --json -p "$pid_root"
check "doctor: root may sample" exits 0 "$clrperf" doctor -p "$pid_user"
check "doctor: a user may sample its own" exits 0 $as_nobody "$clrperf" doctor -p "$pid_user"
check "doctor: a user may not sample root's" exits 4 $as_nobody "$clrperf" doctor -p "$pid_root"
check "doctor: says why and how to fix it" json "not checks['target_sample']['ok'] and 'uid 0' in checks['target_sample']['detail'] and checks['target_sample']['fix'] and checks['target_sample']['lost']" \
    $as_nobody "$clrperf" doctor --json -p "$pid_root"
check "doctor: container's process" exits 0 "$clrperf" doctor -p "$pid_box1"

check "no such process: 3" exits 3 "$clrperf" doctor -p 2147483647
check "a process that ended: 3" exits 3 "$clrperf" doctor -p "$pid_crash"
check "a thread is named as one" says "is a thread, not a process" "$clrperf" doctor -p "$(ls /proc/"$pid_root"/task | tail -1)"
check "ambiguous: 3" exits 3 "$clrperf" doctor -n Napper
check "ambiguous: lists them" says "$pid_root (Napper)" "$clrperf" doctor -n 'nap*'
check "no such name: 3" exits 3 "$clrperf" doctor -n 'nobody-is-called-this'
check "no number: 2" exits 2 "$clrperf" doctor -p Napper
check "unknown option: 2" exits 2 "$clrperf" ps --jsn
check "unknown option: a suggestion" says "did you mean --json?" "$clrperf" ps --jsn
check "unknown verb: 2" exits 2 "$clrperf" docter
check "unknown verb: a suggestion" says "did you mean 'doctor'?" "$clrperf" docter
for what in "record -e gc -d 1s -o $work/none.clrperf" "record -d 1s -o $work/none.nettrace" "trace -d 1s" "trace gc -d 1s"; do
    check "nothing to listen to, $what: 5" exits 5 "$clrperf" $what -p "$pid_deaf"
    check "... and what there is without" says "clrperf stack do not need" "$clrperf" $what -p "$pid_deaf"
    check "no runtime at all, $what: 5" exits 5 "$clrperf" $what -p "$pid_native"
    check "no right, $what: 4" exits 4 $as_nobody env --chdir="$work/nobody" "$clrperf" ${what//"$work/none"/none} -p "$pid_root"
done
check "no file is left" exits 2 ls "$work/none.clrperf" "$work/none.nettrace"
check "a native process may be chosen by pid" exits 0 "$clrperf" doctor -p "$pid_native"
check "orientation lists the processes" says "Napper" "$clrperf"
check "... and says how to choose one of several" says "record -p PID -d 10s" "$clrperf"
check "a full disk is noticed" exits 1 bash -c "'$clrperf' ps --json >/dev/full"
ln -s "$clrperf" "$work/dotnet-clrperf"
check "answers to dotnet-clrperf" says "usage: dotnet clrperf ps" "$work/dotnet-clrperf" ps --help

echo "1..$count"
exit $failed
