"""Tests of analysis/: python -m pytest analysis"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import results
import update_ladder

HERE = results.ROOT / "analysis"
README = results.ROOT / "README.md"
COPY_US = 800.0


def row(version="V6", math="ieee", mode="cold", block=32, us=1000.0, shape=(8192, 50257), **more):
    """One benchmark as Google Benchmark 1.7.1 writes it."""
    n, c = shape
    at = f"/block:{block}" if block else ""
    name = f"softmax/{version}/fp32/{math}/{mode}/N:{n}/C:{c}{at}/manual_time"
    entry = {"name": name, "run_name": name, "run_type": "iteration", "iterations": 1}
    entry |= {"real_time": us, "cpu_time": us, "time_unit": "us", "label": f"idea of {version}"}
    entry |= {"us": us, "us/token": us / n, "GB/s": 8 * n * c / us / 1e3, "N": n, "C": c}
    if mode != "sim":
        entry["%copy"] = 100 * COPY_US / us
    if block:
        entry |= {"block": block, "version": int(version[1:]), "regs": 32}
    return entry | more


def failed(version="V7", **more):
    zero = {"us": 0.0, "us/token": 0.0, "%copy": 0.0}
    why = {"error_occurred": True, "error_message": "INCORRECT: row 3"}
    return row(version, **more) | zero | why


def write(path, rows, **context):
    """A results file; `context` overrides, None leaves a key out."""
    gpu = {"device": "NVIDIA H200", "device_id": "gpu", "simulated": "false"}
    build = {"schema": "1", "git_sha": "abc1234", "git_dirty": "false"}
    context = gpu | build | {"date": "2026-11-29T20:00:00+00:00", "input": "noise"} | context
    path.parent.mkdir(parents=True, exist_ok=True)
    context = {key: value for key, value in context.items() if value is not None}
    path.write_text(json.dumps({"context": context, "benchmarks": rows}))
    return path


def write_sim(path, **context):
    cpu = {"device": "CPU device", "device_id": "cpu", "simulated": "true"}
    return write(path, [row(mode="sim")], **cpu, **context)


def write_ladder(folder, faster=1.0, **context):
    """A whole ladder, V1 to V8 in both maths."""
    for math, factor in (("ieee", 1.0), ("fast", 0.9)):
        rows = [row("copy", math, block=None, us=COPY_US)]
        for version in range(1, 9):
            for block in [32] if version == 3 else [32, 256, 1024]:
                us = 8000 * block / 32 if version == 1 else 4000 / version + 10000 / block
                rows.append(row(f"V{version}", math, block=block, us=us * factor / faster))
        write(folder / f"ladder-{math}.json", rows, math=math, **context)


def counted(version, block, **more):
    """Counters of a row at 16 x 1571, V1 and V5 with a thread a row; see results/README.md."""
    alone = version in ("V1", "V5")
    passes = 2 if int(version[1:]) >= 5 else 3
    each = 32 if alone else 4.5
    asked = {"ld": 4 * 1571 * passes, "st": 4 * 1571}
    entry = {"barriers": float(version == "V2") * 13, "shuffles": 12.0 * (not alone)}
    sectors = {op: bytes / 128 * each for op, bytes in asked.items()}
    for op, bytes in asked.items():
        entry[f"smsp__sass_data_bytes_mem_global_op_{op}"] = bytes
        entry[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}"] = sectors[op]
        entry[f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}"] = 0.5
    entry["bytes_transferred"] = 32 * sum(sectors.values())
    entry |= {"x_min": entry["bytes_transferred"] / 8 / 1571, "traced_rows": 16.0}
    return row(version, mode="sim", block=block, shape=(16, 1571), **entry, **more)


def write_counted(folder, **context):
    """The ladder of the CPU device, V1 to V8, with counters."""
    blocks = {3: [32]}
    rows = [counted(f"V{v}", b) for v in range(1, 9) for b in blocks.get(v, [32, 256])]
    rows.append(row(mode="sim", shape=(16, 128), label="idea of V6 @ scores.npy"))
    cpu = {"device": "CPU device", "device_id": "cpu", "simulated": "true"}
    return write(folder / "ladder-ieee.json", rows, **cpu, **context)


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project of eight kernels, two READMEs with markers, and one folder of GPU results."""
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for version in range(1, 9):
        (kernels / f"v{version}_name.cu").write_text(
            "// Idea: __syncthreads() in a comment is none.\n\nvoid k() {\n  __syncthreads();\n}\n"
            f'SOFTMAX_KERNEL({version}, "v{version}_name", "idea | of {version}", launch)\n'
        )
    (kernels / "README.md").write_text("before\n<!-- ladder -->\nold\n<!-- /ladder -->\nafter\n")
    (tmp_path / "README.md").write_text("a\n<!-- ladder-short -->\n<!-- /ladder-short -->\nb\n")
    write_ladder(tmp_path / "results" / "nvidia-h200" / "2026-11-29-abc1234")
    write_counted(tmp_path / "results" / "cpu-device" / "2026-11-29-abc1234")
    monkeypatch.setenv("SOFTMAX_RESULTS", str(tmp_path / "results"))
    return tmp_path


# The loader


def test_a_label_names_the_file_of_its_row(tmp_path):
    rows = [row(), row(shape=(16, 128), label="idea of V6 @ scores.npy")]
    frame = results.load(write(tmp_path / "x.json", rows))
    assert list(frame["input"]) == ["noise", "scores.npy"]


def test_load_gives_one_row_a_benchmark(tmp_path):
    path = write(tmp_path / "x.json", [row("V6", block=256), row("copy", block=None)])
    six, copy = results.load(path).to_dict("records")
    named = [six[key] for key in ("op", "version", "number", "dtype", "math", "mode")]
    assert named == ["softmax", "V6", 6, "fp32", "ieee", "cold"]
    assert (six["N"], six["C"], six["block"]) == (8192, 50257, 256)
    assert (six["us"], six["us/token"], six["%copy"], six["regs"]) == (1000, 1000 / 8192, 80, 32)
    assert (six["device"], six["git_sha"], six["error"]) == ("NVIDIA H200", "abc1234", None)
    assert six["date"].startswith("2026-11-29") and six["file"].endswith("x.json")
    assert copy["version"] == "copy" and np.isnan(copy["number"]) and np.isnan(copy["block"])


def test_load_leaves_aggregates_out_unless_asked(tmp_path):
    mean = row() | {"run_type": "aggregate", "aggregate_name": "mean"}
    mean["name"] += "_mean"
    path = write(tmp_path / "x.json", [row(), mean])
    assert len(results.load(path)) == 1
    assert list(results.load(path, aggregates=True)["aggregate"].dropna()) == ["mean"]


def test_load_keeps_rows_in_error_without_a_time(tmp_path):
    frame = results.load(write(tmp_path / "x.json", [row(), failed("V7")]))
    assert frame["error"].tolist() == [None, "INCORRECT: row 3"]
    assert frame.loc[1, ["us", "us/token", "%copy"]].isna().all()
    assert results.ladder(frame)["version"].tolist() == ["V6"]


def test_simulated_times_are_out_unless_asked(tmp_path):
    sim = write_sim(tmp_path / "sim.json")
    assert results.load(sim, simulated=True)["mode"].tolist() == ["sim"]
    with pytest.raises(results.ResultsError, match="only simulated"):
        results.load(sim)
    write(tmp_path / "gpu.json", [row()])
    assert results.load(tmp_path)["mode"].tolist() == ["cold"]
    with pytest.raises(results.ResultsError, match="never stand beside"):
        results.load(tmp_path, simulated=True)


@pytest.mark.parametrize(
    "context, rows, message",
    [
        ({"schema": "99"}, [row()], "schema 99, known: 1"),
        ({"schema": None}, [row()], "schema missing"),
        ({"device": None}, [row()], "context lacks device"),
        ({}, [row() | {"name": "softmax/V6/cold"}], "bad name 'softmax/V6/cold'"),
        ({}, [row(mode="warm")], "bad name"),
        ({}, [row() | {"name": "softmax/V6/fp32/ieee/cold/N:1/block:32"}], "N: or C: is missing"),
        ({}, ["text"], "no Google Benchmark file"),
        ({}, [row(mode="sim")], "simulated: false"),
        ({"simulated": "true"}, [row()], "simulated: true"),
        ({}, [{"name": row()["name"]}], "no counter us"),
        ({}, [row() | {"us": float("nan")}], "NaN is no number"),
        ({}, [{}], "a benchmark without 'name'"),
        ({}, [], "no benchmark in 1 file"),
    ],
)
def test_bad_files_are_named_with_the_reason(tmp_path, context, rows, message):
    with pytest.raises(results.ResultsError, match="x.json: ") as error:
        results.load(write(tmp_path / "x.json", rows, **context))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text, message",
    [("{", "not JSON"), ("[]", "no Google Benchmark file"), ("{}", "no Google Benchmark file")],
)
def test_broken_json(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(results.ResultsError, match=f"x.json: {message}"):
        results.load(tmp_path / "x.json")


def test_no_file(tmp_path):
    with pytest.raises(results.ResultsError, match="No such file"):
        results.load(tmp_path / "x.json")
    with pytest.raises(results.ResultsError, match="no \\*.json in it"):
        results.load(tmp_path)


def test_latest_goes_by_the_dates_inside(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_RESULTS", str(tmp_path))
    with pytest.raises(results.ResultsError, match="no GPU results"):
        results.latest()
    write(tmp_path / "a100/2026-12-01-fff/x.json", [row()], date="2026-12-01T09:00:00+00:00")
    write(tmp_path / "h200/2026-12-01-zzz/x.json", [row()], date="2026-12-01T10:00:00+02:00")
    write(tmp_path / "h200/2026-12-01-yyy/x.json", [row()], date="2026-12-01T08:30:00+00:00")
    write(tmp_path / "h200/2026-11-30-aaa/ladder-ieee.json", [row()])
    write_sim(tmp_path / "cpu/2027-01-01-aaa/x.json", date="2027-01-01T09:00:00+00:00")
    assert results.latest().name == "2026-12-01-fff"
    assert results.latest("h200").name == "2026-12-01-yyy"
    assert results.latest(pattern="ladder-*.json").name == "2026-11-30-aaa"
    assert results.latest(simulated=True).name == "2027-01-01-aaa"
    with pytest.raises(results.ResultsError, match="no simulated results.*--device=cpu"):
        results.latest(pattern="ladder-*.json", simulated=True)


def test_ladder_takes_medians_and_one_device(tmp_path):
    def ladder(path):
        return results.ladder(results.load(path))

    rows = [row(us=1), row(us=2), row(us=9), row(us=1, shape=(8192, 1024))]
    assert ladder(write(tmp_path / "x.json", rows))["us"].tolist() == [2]
    with pytest.raises(results.ResultsError, match="no row of the ladder"):
        ladder(write(tmp_path / "y.json", rows, input="scores.npy"))
    write(tmp_path / "y.json", rows, device="NVIDIA A100")
    with pytest.raises(results.ResultsError, match="several: device NVIDIA A100, NVIDIA H200"):
        ladder(tmp_path)
    write(tmp_path / "y.json", rows, git_sha="def5678")
    with pytest.raises(results.ResultsError, match="several: git_sha abc1234, def5678"):
        ladder(tmp_path)


def test_counters_are_freed_of_the_size(tmp_path):
    file = write_counted(tmp_path)
    table = results.counters(results.load(file, simulated=True)).set_index(["version", "block"])
    assert len(table) == 15
    one, two = table.loc[("V1", 32)], table.loc[("V2", 256)]
    assert (one["reads"], one["writes"], one["x_min"]) == (3, 1, 16)  # 32 bytes for each element
    assert (one["sectors/128 bytes"], two["sectors/128 bytes"]) == (32, 4.5)
    assert (two["barriers"], two["shuffles"], two["conflicts"]) == (13, 12, 1)
    with pytest.raises(results.ResultsError, match="no row with counters"):
        results.counters(results.load(write_sim(tmp_path / "old" / "x.json"), simulated=True))
    write_counted(tmp_path / "other", git_sha="def5678")
    frame = results.load(tmp_path, simulated=True, pattern="ladder-*.json")
    with pytest.raises(results.ResultsError, match="several revisions: abc1234, def5678"):
        results.counters(frame)


def test_article_has_both_baselines():
    article = results.article().set_index(["version", "block"])
    assert article.loc["V1", "us/token"].to_dict() == {32: 7.53, 1024: 28.32}
    assert round(article.loc[("V6", 32), "x32"], 1) == 5.5  # its table
    assert round(article.loc[("V6", 32), "x1024"]) == 21  # its "about 20 times"


# The ladder's tables


def test_update_ladder_writes_and_checks(tree, capsys):
    root = ["--root", str(tree)]
    assert update_ladder.main([*root, "--check"]) == 1
    assert "old" in (tree / "kernels" / "README.md").read_text()  # --check writes nothing
    assert update_ladder.main(root) == 0
    assert update_ladder.main([*root, "--check"]) == 0
    text = (tree / "kernels" / "README.md").read_text()
    assert text.startswith("before\n<!-- ladder -->\n| ")
    assert text.endswith("<!-- /ladder -->\nafter\n")
    # V6 at block 1024: 4000 / 6 + 10000 / 1024 = 676 us; V1: 8000 us at block 32, 256000 at 1024.
    assert (
        "| [V6](v6_name.cu) | idea \\| of 6 | 0.0826 (1024) | 0.0743 (1024) | 118.3 | 11.8x | 378x "
        "| 1.37 (32) | 5.5x / 21x | 4 | 1 | 32 |"
    ) in text
    assert "7.53 (32); 28.32 (1024)" in text and "| copy | idea of copy | 0.0977 |" in text
    assert "2026-11-29-abc1234/ladder-ieee.json" in text and "H200, revision abc1234" in text
    assert "[V6](kernels/v6_name.cu)" in (tree / "README.md").read_text()
    newer = tree / "results" / "nvidia-h200" / "2026-11-30-def5678"
    write_ladder(newer, faster=2, date="2026-11-30T08:00:00+00:00")
    assert update_ladder.main([*root, "--check"]) == 1
    assert "out of date" in capsys.readouterr().out


def test_a_kernel_without_results_leaves_the_tables_alone(tree):
    assert update_ladder.main(["--root", str(tree)]) == 0
    registration = 'SOFTMAX_KERNEL(10, "v10_new", "two "\n  "parts", launch)\n'
    (tree / "kernels" / "v10_new.cu").write_text(registration)
    assert update_ladder.kernels(tree / "kernels")["V10"]["idea"] == "two parts"
    assert update_ladder.main(["--root", str(tree), "--check"]) == 0


def test_update_ladder_names_what_is_missing(tree, capsys):
    def fails_with(message):
        assert update_ladder.main(["--root", str(tree), "--check"]) == 2
        assert message in capsys.readouterr().err

    (tree / "kernels" / "README.md").write_text("no markers")
    fails_with("want <!-- ladder --> and <!-- /ladder -->")
    (tree / "kernels" / "v9_bad.cu").write_text("void k();")
    fails_with("v9_bad.cu: no SOFTMAX_KERNEL")
    shutil.rmtree(tree / "results")
    fails_with("no GPU results")


def test_committed_ladder_is_current(capsys):
    assert update_ladder.main(["--check"]) == 0, capsys.readouterr()


# Notebooks, README, data


def run(script, *arguments, **environment):
    command = [sys.executable, HERE / script, *arguments]
    environment = os.environ | environment
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=300)


def test_notebooks_run_and_draw(tree):
    done = run("run_notebooks.py", tree / "out", SOFTMAX_RESULTS=str(tree / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree / "out" / "ladder.ipynb").exists()
    for name in ("ladder", "counters"):
        assert f"{name}.ipynb: passed" in done.stdout
        assert 20_000 < (tree / "out" / f"{name}.png").stat().st_size < 300_000


def test_notebooks_fail_without_results(tmp_path):
    done = run("run_notebooks.py", tmp_path / "out", SOFTMAX_RESULTS=str(tmp_path))
    assert done.returncode == 1 and "ladder.ipynb: failed: ResultsError" in done.stdout
    assert "no GPU results" in done.stdout and "counters.ipynb: failed" in done.stdout


def test_counters_need_a_traced_ladder(tree):
    shutil.rmtree(tree / "results" / "cpu-device")
    done = run("run_notebooks.py", tree / "out", SOFTMAX_RESULTS=str(tree / "results"))
    assert done.returncode == 1 and "counters.ipynb: failed: ResultsError" in done.stdout
    assert "no simulated results" in done.stdout


def snippet(readme):
    """The Python block after `<!-- pandas -->`; AssertionError if there is none."""
    block = r"<!-- pandas -->\s*```python\n(.*?)```"
    match = re.search(block, readme.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"{readme.name} has no <!-- pandas --> followed by a python block"
    return match[1]


def test_three_lines_of_pandas_plot_a_file(tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    code = snippet(README)
    assert len(code.strip().splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    write_ladder(tmp_path)
    (tmp_path / "ladder-ieee.json").rename("x.json")
    exec(compile(code, "README.md", "exec"), {})
    lines = plt.gca().get_lines()
    assert [line.get_label() for line in lines] == [str(version) for version in range(1, 9)]
    assert all(np.isfinite(np.asarray(line.get_ydata(), float)).any() for line in lines)
    plt.close("all")


def test_pandas_marker_is_required(tmp_path):
    (tmp_path / "README.md").write_text("```python\nimport pandas\n```\n")
    with pytest.raises(AssertionError, match="pandas"):
        snippet(tmp_path / "README.md")


def test_sample_input():
    path = HERE / "data" / "attention-scores.npy"
    scores = np.load(path)
    assert scores.shape == (1536, 128) and scores.dtype == np.float32 and scores.flags.c_contiguous
    assert np.isfinite(scores).all() and path.stat().st_size <= 1 << 20
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest in (HERE / "data" / "README.md").read_text()


def test_make_input_names_what_is_wrong(tmp_path):
    def fails_with(message, *arguments):
        done = run("make_input.py", *arguments, "--out", tmp_path / "x.npy")
        assert done.returncode != 0 and message in done.stderr

    text = ["--text", HERE / "data" / "README.md"]
    fails_with("no such file", "attention", "--text", tmp_path / "none")
    fails_with("layers 0 to 5", "attention", "--layers", "6", *text)
    fails_with("takes 3 to 512", "logits", "--tokens", "513", *text)
