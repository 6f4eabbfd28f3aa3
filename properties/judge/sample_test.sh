#!/bin/sh
# sample_test.sh STATUS PATTERN COMMAND...: the command must end with this status and print a line like this.
status=$1
pattern=$2
shift 2
report=$("$@" 2>&1)
got=$?
echo "$report"
[ "$got" = "$status" ] || { echo "exit status $got, not $status"; exit 1; }
echo "$report" | tail -n 1 | grep -q '^verdict: ' || { echo "the last line is no verdict"; exit 1; }
echo "$report" | grep -qE -- "$pattern" || { echo "no line is like '$pattern'"; exit 1; }
