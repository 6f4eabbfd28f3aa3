"""Tests of validate_counters.py: python -m pytest analysis"""

import csv
import stat

import pytest

import results
import tables
import validate_counters as vc

OPCODES = vc.OPCODES
PLAN = """[ RUN      ] CounterGate/Gpu.launches/V6_gpu
@launch,v6_cooperative,V6,64,1024,32
==PROF== Profiling "softmax_v6" - 0: 0%....50%....100% - 5 passes
@launch,v6_cooperative,V6,64,1024,128
@launch,v60_split,V60,64,1024,64
@launch,pattern_stride1,pattern,4,0,128
"""
LD = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
READ = "dram__bytes_read.sum"


def launch(name, block, sectors, opcodes="36 (BAR: 12; SHFL: 24)", read="0.00"):
    return [name, f"({block}, 1, 1)", "(64, 1, 1)", sectors, opcodes, read]


LAUNCHES = [
    launch("softmax_v6", 32, "1,024", "10 (SHFL: 1,010; BAR: 0)"),
    launch("softmax_v6", 128, "2,048.00"),
    launch("softmax_v60_first", 64, "5"),
    launch("softmax_v60_second", 64, "6", read="2.50"),
    launch("<unnamed>::pattern_stride1(const float *, float *)", 128, "64", "8"),
]


def ncu_csv(launches, unit="Kbyte"):
    """As ncu writes it: talk, a row of names, a row of units, a row a launch."""
    head = ["ID", "Kernel Name", "Block Size", "Grid Size", LD, OPCODES, READ]
    rows = [head, ["", "", "", "", "sector", "inst", unit]]
    rows += [[str(i), *row] for i, row in enumerate(launches)]
    table = "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    return f"==PROF== Connected to process 12\n{table}\n==PROF== Disconnected\n"


def test_ncu_is_parsed():
    first, *_, split, pattern = vc.parse_ncu(ncu_csv(LAUNCHES))
    assert (first["kernel"], first["block"]) == ("softmax_v6", 32)
    assert first["metrics"][LD] == 1024
    assert first["metrics"][f"{OPCODES}:SHFL"] == 1010 and first["metrics"][f"{OPCODES}:BAR"] == 0
    assert split["metrics"][READ] == 2500
    assert pattern["kernel"] == "pattern_stride1"
    with pytest.raises(vc.ValidationError, match="ERR_NVGPUCTRPERM"):
        vc.parse_ncu("==ERROR== ERR_NVGPUCTRPERM")


def test_launches_are_assigned_by_order_and_name():
    rows = vc.assign(vc.parse_plan(PLAN), vc.parse_ncu(ncu_csv(LAUNCHES)))
    found = {(row["kernel"], row["block"]): row["value"] for row in rows if row["metric"] == LD}
    assert found == {
        ("v6_cooperative", 32): "1024",
        ("v6_cooperative", 128): "2048",
        ("v60_split", 64): "11",  # two functions a launch
        ("pattern_stride1", 128): "64",
    }


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda rows: rows[1:], "v6_cooperative: 2 launches announced, 1 profiled"),
        (lambda rows: rows[:-1], "pattern_stride1: 1 launches announced, 0 profiled"),
        (lambda rows: [*rows, launch("softmax_v7", 32, "1")], "1 profiled launches that nobody"),
        (lambda rows: [rows[1], rows[0], *rows[2:]], "a block of 32 announced, of 128 profiled"),
    ],
)
def test_launches_that_do_not_fit_are_refused(change, message):
    with pytest.raises(vc.ValidationError, match=message):
        vc.assign(vc.parse_plan(PLAN), vc.parse_ncu(ncu_csv(change(LAUNCHES))))


FAKE_NCU = """#!/bin/sh
if [ "$1" = --query-metrics ]; then
  printf 'l1tex__t_sectors_pipe_lsu_mem_global_op_ld  Counter\\ndram__bytes_read  Counter\\n'
  exit
fi
while [ $# -gt 0 ]; do
  case $1 in
    --log-file) log=$2 ;;
    --metrics) metrics=$2 ;;
  esac
  shift
done
case $metrics in
  *dram*) echo "==ERROR== Failed to find metric dram__bytes_read.sum" >"$log"; exit 1 ;;
esac
cat "$(dirname "$0")/plan"
cat "$(dirname "$0")/log" >"$log"
"""


def test_record_drops_what_ncu_does_not_know(tmp_path, capsys):
    ncu, out = tmp_path / "ncu", tmp_path / "out.csv"
    ncu.write_text(FAKE_NCU)
    ncu.chmod(ncu.stat().st_mode | stat.S_IEXEC)
    (tmp_path / "plan").write_text(PLAN)
    (tmp_path / "log").write_text(ncu_csv(LAUNCHES))
    assert vc.main(["--record", "program", str(out), "--ncu", str(ncu)]) == 0
    said = capsys.readouterr().err
    assert "does not know dram__bytes_read.sum" in said  # it listed that, then refused it
    assert "does not know smsp__inst_executed_op_shared_ld.sum" in said and LD not in said
    assert list(vc.read_csv(out)[0]) == vc.COLUMNS
    (tmp_path / "plan").write_text("")
    assert vc.main(["--record", "program", str(out), "--ncu", str(ncu)]) == 2
    assert vc.main(["--record", "program", str(out), "--ncu", str(tmp_path / "none")]) == 2


@pytest.fixture
def tree(tmp_path):
    """A project with V6 at one shape and a pattern, and an H200 that counts as we do."""

    def write(path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    keys = ",".join(vc.SHORT)
    counts = {key: i for i, key in enumerate(vc.SHORT)}
    row = ",".join(str(n) for n in counts.values())
    write(tmp_path / "properties/golden/v6_cooperative.csv",
          f"# g++ 12\nrows,cols,block,{keys}\n64,1024,128,{row}\n16,4008,128,{row}\n")
    write(tmp_path / "properties/counters/patterns.csv",
          f"pattern,blocks,block,{keys}\nstride1,4,128,{row}\n")
    write(tmp_path / "properties/counters/causes.csv", "kernel,metric,cause\n")
    write(tmp_path / "kernels/COUNTERS.md", "a\n<!-- counters -->\n<!-- /counters -->\nb\n")

    def measured(folder="2026-11-30-abc1234", **changed):
        opcodes = {"atomics": "RED", "barriers": "BAR", "shuffles": "SHFL", "votes": "VOTE"}
        lines = [",".join(vc.COLUMNS)]
        for at in ("v6_cooperative,V6,64,1024,128", "pattern_stride1,pattern,4,0,128"):
            for key, n in (counts | changed).items():
                name = f"{OPCODES}:{opcodes[key]}" if key in opcodes else f"{key}.sum"
                n *= 4 if key == "barriers" else 1  # one for each warp of 128 threads
                lines.append(f"{at},{name},{n}")
        write(tmp_path / f"results/nvidia-h200/{folder}/ncu.csv", "\n".join(lines) + "\n")

    measured()
    return tmp_path, measured


def test_equal_counts_need_no_cause(tree):
    root, _ = tree
    at = ["--root", str(root), "--results", str(root / "results")]
    assert vc.main(["--check", *at]) == 1  # not written yet
    assert vc.main(["--table", *at]) == 0
    assert vc.main(["--check", *at]) == 0
    text = (root / "kernels/COUNTERS.md").read_text()
    assert text.startswith("a\n<!-- counters -->\n32 of 32 counts are the hardware's")
    assert "| v6_cooperative |" in text and "| pattern_stride1 |" in text
    assert "**" not in text.split("|", 1)[1]
    assert "results/nvidia-h200/2026-11-30-abc1234/ncu.csv" in text


def test_a_deviation_needs_a_cause_and_a_cause_a_deviation(tree, capsys):
    root, measured = tree
    at = ["--root", str(root), "--results", str(root / "results")]
    measured("2026-12-01-def5678", shuffles=20)  # newer, and 14 here
    assert vc.main(["--table", *at]) == 1
    assert "v6_cooperative, shuffles: hardware has 20, we 14" in capsys.readouterr().out
    causes = root / "properties/counters/causes.csv"
    causes.write_text("kernel,metric,cause\n*,shuffles,they shuffle more\n")
    assert vc.main(["--table", *at]) == 0
    assert vc.main(["--check", *at]) == 0
    text = (root / "kernels/COUNTERS.md").read_text()
    assert "| v6_cooperative: `shuffles` | they shuffle more | 14 | 20 | 1.429 |" in text
    assert "**14 / 20**" in text
    causes.write_text("kernel,metric,cause\n*,shuffles,they shuffle more\nv1,votes,none\n")
    capsys.readouterr()
    assert vc.main(["--check", *at]) == 1
    assert "v1, votes explains no deviation" in capsys.readouterr().out


def test_a_small_deviation_of_the_sum_does_not_hide_a_launch():
    one, two = {"shuffles": 100}, {"shuffles": 1000}
    found = vc.compare({"k": {(1, 1, 32): one, (2, 2, 32): two}},
                       {"k": {(1, 1, 32): {"shuffles": 110}, (2, 2, 32): two}})
    assert found == [("k", "shuffles", 1100, 1110, pytest.approx(0.1))]
    assert vc.explain(found, [])[0] == [("k", "shuffles", 1100, 1110, None)]


def test_the_committed_table_is_current(capsys):
    try:
        tables.newest("ncu.csv", vc.ROOT / "results")
    except results.ResultsError as error:
        pytest.skip(str(error))
    assert vc.main(["--check", "--results", str(vc.ROOT / "results")]) == 0, capsys.readouterr()


def test_causes_are_three_columns():
    with (vc.ROOT / "properties/counters/causes.csv").open(encoding="utf-8", newline="") as file:
        assert all(len(row) == 3 for row in csv.reader(file))
