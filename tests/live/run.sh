#!/bin/sh
# Runs the live tests: run.sh [--strict] [--list] [NAME...]; run.py says more.
command -v python3 >/dev/null || { echo "skip live tests - python3 is not on PATH"; echo "0 passed, 0 failed, 1 skipped"; exit 77; }
exec python3 "$(dirname "$0")/run.py" "$@"
