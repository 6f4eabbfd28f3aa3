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

check 'list' 0 --device cpu --benchmark_list_tests=true
in_out '^softmax/V1/fp32/ieee/sim/N:32/C:1571/block:32/manual_time$'
rows=$("$bench" --device=cpu --benchmark_list_tests --benchmark_filter=V6 2>/dev/null | wc -l)
[ "$rows" -ge 1 ] && [ "$rows" -le 12 ] || complain "--benchmark_filter=V6 is $rows rows, not 1 to 12"

for time in nan -1 1e300; do
  check 'endless' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_min_time=$time
  in_err '0 to 3600 seconds'
done
"$bench" --device=cpu --benchmark_filter=/V6/ --benchmark_out="$tmp/pipe.json" 2>"$tmp/err" | head -n 1 >"$tmp/out"
python3 -m json.tool "$tmp/pipe.json" >/dev/null || complain 'a reader that goes away spoils the result file'

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
check 'bad suite' 2 --suite=everything
in_err 'everything: there are ladder, shapes'
printf 'dtype,N,C,mode\nfp32,2,70,cold\nfp32,1000000,1000,cold\n' >"$tmp/points.csv"
check 'points' 0 --points="$tmp/points.csv" --device=cpu --benchmark_filter=V8
in_err '1 points of more than a million'
sed -i 2d "$tmp/points.csv"
check 'endless points' 2 --points=/dev/zero --device=cpu
check 'large points' 2 --points="$tmp/points.csv" --device=cpu
in_err 'no point for the CPU device'
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

check 'sweep' 0 --device=cpu --sweep 'C=8:32:x2,N=3,block=64' --benchmark_filter=/V6/ --benchmark_out="$tmp/sweep.json"
[ "$(grep -cE '^3 x (8|16|32) fp32' "$tmp/out")" = 3 ] || complain 'not the three shapes of the sweep'
python3 - "$tmp/sweep.json" <<'PY' || complain 'the sweep is not in the JSON'
import json, sys
data = json.load(open(sys.argv[1]))
assert data["context"]["suite"] == "sweep" and data["context"]["sweep"] == "C=8:32:x2,N=3,block=64"
assert [(row["N"], row["C"], row["block"]) for row in data["benchmarks"]] == [(3, 8, 64), (3, 16, 64), (3, 32, 64)]
PY
check 'layouts' 0 --device=cpu --sweep='C=33,N=3,at=0.1,gap=0|2' --benchmark_filter=/V8/
in_out '^3 x 33 at 0.1 gap 2.2 fp32'
check 'sweep of a file' 0 --device=cpu --benchmark_filter=/V6/ --input="$tmp/rows.npy" --sweep=block=64 --benchmark_format=json
in_out '"input": "rows.npy"'
check 'too many' 2 --device=cpu --sweep=N=1:2,C=1:1000 --benchmark_filter=/V6/
in_err '12000 benchmarks: at most 10000 in a run'
check 'bad block' 2 --device=cpu --sweep=block=33
in_err 'block=33: kernels take 32, 64, '
check 'graph on the CPU device' 2 --device=cpu --sweep=mode=graph
in_err 'one mode, sim'

check 'metrics' 0 --device=cpu --metrics --benchmark_filter=/V6/.*block:32/
in_err 'counts anyway'
check 'profile' 2 --device=cpu --profile
in_err 'no profiler looks into the CPU device'

check 'a key of ours' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_context=mine=1,device=x
in_err '--benchmark_context=device=...: '
check 'a key of the library' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_context=date=x
check 'a key of the user' 0 --device=cpu --benchmark_filter=/V6/ --benchmark_context=mine=1 --benchmark_format=json
in_out '"mine": "1"'
check 'a folder' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_out="$tmp"
in_err 'a folder'
check 'below a file' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_out="$tmp/bad.npy/x.json"
in_err 'Not a directory'
check 'nowhere' 2 --device=cpu --benchmark_filter=/V6/ --benchmark_out=/proc/x.json
[ -s "$tmp/out" ] && complain 'measured, and then had nowhere to write'
if [ -e /dev/full ]; then
  check 'full disk' 1 --device=cpu --benchmark_filter=/V6/ --benchmark_out=/dev/full
  in_err '/dev/full could not be written'
fi
check 'bad filter' 2 --device=cpu '--benchmark_filter=('
in_err '--benchmark_filter=\('
check 'csv' 0 --device=cpu --benchmark_filter=/V6/ --benchmark_format=csv
in_out '^name,iterations,'

# Progress is for a terminal that can take a line back, and never in what is not one.
if script -qec true /dev/null >/dev/null 2>&1; then
  on_terminal() { script -qec "env TERM=$1 '$bench' --device=cpu --benchmark_filter=/V6/.*C:1571/ ${2-}" /dev/null </dev/null >"$tmp/out" 2>"$tmp/err"; }
  line=$'\r\\[[0-9]+/6\\] V6 32 x 1571 block [0-9]+(, [0-9]+ s left)?\e\\[K'
  on_terminal xterm
  [ "$(grep -cE "$line" "$tmp/out")" = 6 ] || complain 'no progress on a terminal'
  # What is left to see: each table line whole, no progress.
  sed -E $'s/.*\e\\[K//' "$tmp/out" | tr -d '\r' >"$tmp/seen"
  [ "$(grep -cE '^  V6 +[0-9]+ +100 ' "$tmp/seen")" = 6 ] || complain 'progress spoils the table'
  for quiet in dumb 'xterm --benchmark_format=json'; do
    # shellcheck disable=SC2086
    on_terminal $quiet
    grep -q $'\e' "$tmp/out" && complain "progress with $quiet"
  done
  on_terminal xterm ">$tmp/table"
  grep -qE "$line" "$tmp/out" || complain 'no progress beside a table in a file'
  grep -q $'\e' "$tmp/table" && complain 'progress in a file'
fi

# Ctrl-C after the first row: the files hold what is done, and nothing else.
for run in 'SIGINT 130 json' 'SIGTERM 143 json' 'SIGINT 130 console'; do
  read -r signal status format <<<"$run"
  python3 - "$bench" "$tmp/cut.json" "$signal" "$status" "$format" 2>"$tmp/err" <<'PY' || complain "$run: an interrupted run is not kept"
import json, re, signal, subprocess, sys
bench, path, name, status, format = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
run = subprocess.Popen([bench, "--device=cpu", "--sweep=N=8,C=1:1000", "--benchmark_filter=/V6/", "--benchmark_out=" + path,
                        "--benchmark_format=" + format], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
out = ""
while not re.search(r"^ +V6 +32|real_time", out, re.M):
    line = run.stdout.readline()
    assert line, "it ended too early"
    out += line
run.send_signal(getattr(signal, name))
if name == "SIGTERM":  # as `timeout` does
    run.send_signal(signal.SIGTERM)
out += run.stdout.read()
err = run.stderr.read()
assert run.wait(60) == int(status), run.returncode
def no_constant(text): raise ValueError(text + " in JSON")
rows = json.load(open(path), parse_constant=no_constant)["benchmarks"]
done, total = map(int, re.search(r"^bench: interrupted: (\d+) of (\d+) measured$", err, re.M).groups())
assert 1 <= len(rows) == done < total == 1000 * 6, (len(rows), done, total)
assert all(row["us"] > 0 and "error_message" not in row for row in rows)
if format == "json":
    assert json.loads(out)["benchmarks"] == rows
else:
    assert len(re.findall(r"^  V6 ", out, re.M)) == done and "ERROR" not in out
PY
done

"$bench" --device=gpu --benchmark_list_tests >"$tmp/out" 2>"$tmp/err"
case $? in
  0) in_out '/cold/' ;;
  2) in_err '--device=gpu: .*; possible here: cpu' ;;
  *) complain '--device=gpu neither works nor says why not' ;;
esac

exit "$failed"
