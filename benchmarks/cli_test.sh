#!/usr/bin/env bash
# The command line of the benchmark program, on the CPU device: cli_test.sh <bench>
set -u
bench=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0

# check <what> <expected status> <arguments...>: runs the program; its output is then in $tmp/out and $tmp/err.
check() {
  local what=$1 want=$2 status
  shift 2
  "$bench" "$@" >"$tmp/out" 2>"$tmp/err"
  status=$?
  [ "$status" = "$want" ] || complain "$what: exit status $status, not $want"
}
complain() {
  failed=1
  printf 'FAILED %s\n' "$1"
  sed 's/^/  | /' "$tmp/err" | head -n 5
}
in_out() { grep -qE -- "$1" "$tmp/out" || complain "no '$1' on standard output"; }
in_err() { grep -qE -- "$1" "$tmp/err" || complain "no '$1' on standard error"; }

check 'help' 0 --help
in_out '--device=gpu\|cpu'
in_out '--benchmark_filter'
[ "$(wc -l <"$tmp/out")" -le 28 ] || complain 'help is more than a screen'

check 'table' 0 --device=cpu --benchmark_filter=/V6/
in_out '^32 x 1571 fp32, ieee, sim, '
in_out '^  V6 +32 '
in_err 'say nothing about a GPU'
LC_ALL=C grep -q '[^ -~]' "$tmp/out" && complain 'the table is not ASCII'

check 'explain' 0 --explain --benchmark_filter=/V1/
in_out '^  V1 +1024 '
in_out '^V1 at 32 x 1571, block [0-9]+; the same at block'
in_out '^ +[0-9]+  for .* max = fmaxf\(max, x\[i\]\);$'
in_out 'global load .*<- uncoalesced: [0-9.]+ sectors a request, [0-9]+ would do$'
awk 'length($0) > 120 && !/idea|safe/ { exit 1 }' "$tmp/out" || complain '--explain is wider than 120 columns'
check 'explain and json' 0 --explain --benchmark_filter=/V1/.*block:32/ --benchmark_format=json
python3 -m json.tool "$tmp/out" >/dev/null || complain '--explain spoils the JSON'
in_err 'uncoalesced'
check 'explain on a GPU' 2 --explain --device=gpu
in_err 'exclude each other: only the CPU device counts'

check 'list' 0 --device cpu --benchmark_list_tests=true
in_out '^softmax/V1/fp32/ieee/sim/N:32/C:1571/block:32/manual_time$'
rows=$("$bench" --device=cpu --benchmark_list_tests --benchmark_filter=V6 2>/dev/null | wc -l)
[ "$rows" -ge 1 ] && [ "$rows" -le 12 ] || complain "--benchmark_filter=V6 is $rows rows, not 1 to 12"

check 'nothing matches' 1 --device=cpu --benchmark_filter=nothing
in_err 'nothing matches --benchmark_filter=nothing; [0-9]+ benchmarks exist'

check 'unknown flag' 2 --device=cpu --frobnicate=1
in_err 'unknown flag --frobnicate=1'
check 'bad library flag' 2 --device=cpu --benchmark_repetitions=many
in_err '--benchmark_repetitions=many'
check 'bad format' 2 --device=cpu --benchmark_format=xml
in_err 'xml: there are console, json and csv'
check 'no repetition' 2 --device=cpu --benchmark_repetitions=0
in_err 'at least 1'
check 'bad device' 2 --device=tpu
in_err 'tpu: there are gpu and cpu'
check 'bad suite' 2 --suite=everything
in_err 'everything: there are ladder, shapes'
check 'missing value' 2 --device
in_err '--device needs a value'
check 'no such file' 2 --device=cpu --input="$tmp/none.npy"
in_err 'none.npy: No such file'
echo 'no array' >"$tmp/bad.npy"
check 'bad file' 2 --device=cpu --input "$tmp/bad.npy"
in_err 'bad.npy: not a .npy file'

check 'json' 0 --device=cpu --benchmark_filter=/V6/ --benchmark_format=json --benchmark_repetitions=2 --benchmark_out="$tmp/out.json"
cp "$tmp/out" "$tmp/stdout.json"
check 'table and file' 0 --device=cpu --benchmark_filter=/V6/ --benchmark_out="$tmp/file.json"
python3 - "$tmp/stdout.json" "$tmp/out.json" "$tmp/file.json" <<'PY' || complain 'the JSON is wrong'
import json, math, sys
def no_constant(text): raise ValueError(text + " in JSON")
for path in sys.argv[1:]:
    data = json.load(open(path), parse_constant=no_constant)
    assert data["context"]["schema"] == "2" and data["context"]["simulated"] == "true", path
    rows = [row for row in data["benchmarks"] if "/V6/" in row["name"] and row["run_type"] == "iteration"]
    assert rows, path
    for row in rows:
        for key in ("us/token", "GB/s", "us", "n", "bytes", "bytes_moved", "max_ulp", "version", "N", "C", "block"):
            assert math.isfinite(row[key]), (path, row["name"], key)
        assert math.isclose(row["real_time"], row["us"]), row["name"]
        assert "%copy" not in row and "error_message" not in row, row["name"]
PY

python3 - "$tmp/rows.npy" <<'PY'
import struct, sys
header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }".ljust(117) + "\n"
values = [0.5 * i for i in range(15)]
open(sys.argv[1], "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack("<15f", *values))
PY
check 'input' 0 --device=cpu --benchmark_filter=/V6/ --input="$tmp/rows.npy"
in_out '^3 x 5 fp32'
in_out '@ rows.npy'

"$bench" --device=gpu --benchmark_list_tests >"$tmp/out" 2>"$tmp/err"
case $? in
  0) in_out '/cold/' ;;
  2) in_err '--device=gpu: .*; possible here: cpu' ;;
  *) complain '--device=gpu neither works nor says why not' ;;
esac

exit "$failed"
