#!/bin/sh
# Makes the fixtures with Debian 12's gcc and binutils. They are committed: tests do not run this.
set -eu
cd "$(dirname "$0")"
flags="-O2 -fPIC -shared -nostdlib -fno-ident -Wl,--build-id -Wl,-z,noseparate-code -Wl,--hash-style=gnu"
# shellcheck disable=SC2086
gcc $flags sample.c -o sample.so
objcopy --only-keep-debug sample.so sample.debug
objcopy --strip-all --add-gnu-debuglink=sample.debug sample.so stripped.so
objcopy --strip-all sample.so bare.so
objcopy --only-keep-debug --keep-symbol=hidden_helper sample.so mini.debug
xz -0 -c mini.debug >mini.debug.xz
objcopy --add-section .gnu_debugdata=mini.debug.xz bare.so mini.so
# shellcheck disable=SC2086
gcc $flags -z now runtime.c -o runtime.so
strip --strip-all runtime.so
# shellcheck disable=SC2086
gcc $flags -z now fcalls.c -o fcalls.so
strip --strip-all fcalls.so
# shellcheck disable=SC2086
gcc $flags -fno-asynchronous-unwind-tables -fno-reorder-functions tableless.c -o tableless.so
strip --strip-all tableless.so
# shellcheck disable=SC2086
gcc $flags aot.c -o aot.so
# shellcheck disable=SC2086
gcc $flags -DKIND_BITS=8 aot.c -o aot8.so
strip --strip-all aot.so aot8.so
rm -f mini.debug mini.debug.xz
