"""Tests of analysis/: python -m pytest analysis"""

import hashlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

import results
import timing
import update_ladder
from testing import row, write, write_counted, write_ladder

HERE = results.ROOT / "analysis"
README = results.ROOT / "README.md"


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
    shutil.copytree(results.ROOT / "results" / "accuracy", tree / "results" / "accuracy")
    done = run("run_notebooks.py", tree / "out", SOFTMAX_RESULTS=str(tree / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree / "out" / "ladder.ipynb").exists()
    for name in ("ladder", "counters", "accuracy"):
        assert f"{name}.ipynb: passed" in done.stdout
        assert 20_000 < (tree / "out" / f"{name}.png").stat().st_size < 320_000


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


def test_four_lines_of_pandas_plot_a_file(tmp_path, monkeypatch):
    """The widest shape of two, the mean of the repetitions, and none of their aggregates."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    code = snippet(README)
    assert len(code.strip().splitlines()) == 4
    monkeypatch.chdir(tmp_path)
    rows = [row(f"V{v}", block=b, us=1000.0 * v + b) for v in (6, 7) for b in (32, 256)]
    rows += [row("V7", us=7132.0), row("V7", us=9.0, shape=(8192, 128))]
    mean = {"run_type": "aggregate", "aggregate_name": "mean", "repetitions": 2}
    rows += [row("copy", block=None), row("V7", us=9e9) | mean]
    write(tmp_path / "x.json", rows)
    exec(compile(code, "README.md", "exec"), {})
    lines = {line.get_label(): line for line in plt.gca().get_lines()}
    assert sorted(lines) == ["6", "7"] and list(lines["7"].get_xdata()) == [32, 256]
    each = np.asarray(lines["7"].get_ydata(), float)
    np.testing.assert_allclose(each, [(7032 + 7132) / 2 / 8192, 7256 / 8192])
    plt.close("all")


@pytest.mark.parametrize(
    "mode, seconds, slots, nodes",
    [
        ("cold", 1e-6, 1, 1),
        ("hot", None, 1, 1),
        ("graph-hot", None, 1, 32),
        ("graph", None, 3, 33),
        ("graph-hot", 1e-4, 1, 32),  # long enough
        ("graph-hot", 2**-18, 1, 132),  # 0.5 ms
        ("graph", 2**-17, 3, 66),
        ("graph", 0.05, 3, 6),  # 0.25 s
        ("graph", 3.0, 3, 3),
        ("graph", 0.0, 3, 3),  # the clock saw nothing
    ],
)
def test_a_graph_is_as_long_as_the_engine_makes_it(mode, seconds, slots, nodes):
    """Sampler::launches of benchmarks/measure.cpp."""
    assert timing.rotation(mode, 1 << 20, 1 << 20, seconds) == (slots, nodes)


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
