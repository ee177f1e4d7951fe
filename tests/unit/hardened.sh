#!/bin/sh
# Is the program built the way its flags ask for? Usage: hardened.sh PROGRAM
command -v readelf >/dev/null || exit 77
failed=0
expect() { # WHAT PATTERN, in what readelf says
    readelf -W -h -l -d "$program" | grep -qE "$2" || { echo "$program: $1"; failed=1; }
}
program=$1
expect "is not position independent" 'Type: +DYN'
expect "has relocations that stay writable" 'GNU_RELRO'
expect "binds late" 'BIND_NOW|FLAGS.*NOW'
expect "says nothing about its stack" 'GNU_STACK'
readelf -W -l "$program" | grep -E 'GNU_STACK.*E' && { echo "$program: has an executable stack"; failed=1; }
exit $failed
