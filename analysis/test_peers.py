"""Tests of timing.py and peers.py with a fake clock and GPU, of torch_gpu.py where torch is."""

import argparse
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import peers
import timing

QUICK = timing.Policy()


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def now(self):
        return self.seconds


def sampler(clock, draw, order=None):
    """A `sample` whose work `w` takes draw(w) us a call, and as long on the clock."""

    def sample(work, n):
        times = [draw(work) for _ in range(n)]
        clock.seconds += sum(times) * 1e-6
        if order is not None:
            order.append((work, n))
        return times

    return sample


def measured(draw, policy=QUICK, order=None):
    clock = Clock()
    sample = sampler(clock, draw, order)
    return timing.measure("peer", "copy", sample, clock.now, policy), clock.seconds


# Statistics and the rule to stop


def test_statistics_are_those_of_the_cpp_engine():
    s = timing.summarize(range(1, 101))
    assert (s["us"], s["us_min"], s["us_p25"], s["us_p75"], s["n"]) == (50.5, 1, 25.75, 75.25, 100)
    # Ranks 50 -+ 9.8: the 40th from either end.
    assert s["ci%"] == pytest.approx(100 * (61 - 40) / 2 / 50.5)
    assert timing.summarize([10, 12])["ci%"] == pytest.approx(100 * 1 / 11)  # half the range
    for bad in ([], [-1, -2, 3], [1, float("nan")]):
        with pytest.raises(ValueError):
            timing.summarize(bad)


def test_a_steady_work_stops_at_the_least():
    order = []
    (mine, copies), seconds = measured(lambda work: 100.0, order=order)
    assert len(mine) == len(copies) == 50 and mine.dtype == np.float32
    assert 0.05 < seconds < 0.1  # the warm-up, then 50 of each
    assert order[-1][0] == "peer"  # whose output is looked at afterwards
    assert order[::2] == [("copy", n) for _, n in order[::2]]
    assert order[1::2] == [("peer", n) for _, n in order[::2]]  # equally often, in turn


def test_noise_takes_more_samples_until_the_interval_is_narrow():
    random = np.random.default_rng(1)
    (mine, copies), seconds = measured(lambda work: random.normal(100, 2.5))
    assert len(mine) == len(copies) > 100 and seconds < 1
    assert timing.summarize(mine)["ci%"] <= 0.5


def test_hopeless_noise_stops_at_a_plateau_or_the_cap():
    step = iter(range(10**9))
    # Two speeds that take turns, as of a clock that goes up and down: the interval never narrows.
    draw = lambda work: 100.0 if next(step) // 2 % 2 else 200.0  # noqa: E731
    (mine, _), seconds = measured(draw)
    assert 100 <= len(mine) <= 200 and seconds < 0.5
    random = np.random.default_rng(1)
    (mine, _), seconds = measured(lambda work: random.uniform(1e3, 3e3))
    assert 1 <= seconds < 1.4 and len(mine) > 50


def test_a_slow_work_is_capped():
    (mine, _), seconds = measured(lambda work: 1e6)
    assert len(mine) == QUICK.floor and seconds < 20
    (mine, _), _ = measured(lambda work: 30e3)
    assert 5 <= len(mine) < 50


def test_a_clock_that_stands_still_is_an_error():
    with pytest.raises(ValueError, match="median of 0"):
        measured(lambda work: 0.0, timing.Policy(warm_seconds=0))


# Rows


def test_row_of_statistics():
    row = timing.statistics((4, 1000), "bf16", [8.0] * 50, [6.0] * 50, QUICK)
    assert row["bytes"] == 16000 and row["us/token"] == 2 and row["GB/s"] == 2
    assert row["%copy"] == 75 and row["noisy"] == row["suspect"] == 0
    assert timing.statistics((4, 8), "fp32", [5.0] * 9, [6.0] * 9, QUICK)["suspect"] == 1
    assert timing.statistics((4, 8), "fp32", [5, 6, -1], [5.0] * 3, QUICK)["suspect"] == 1
    assert timing.statistics((4, 8), "fp32", [6, 7, 8], [5.0] * 3, QUICK)["noisy"] == 1


def test_clocks():
    assert timing.clocks([], 0) == {}
    idle, power = 0x1, 0x4
    fine = {"sm_mhz": 1900, "throttled": 0, "throttle_reasons": idle}
    assert timing.clocks([(1980, 0), (1820, idle)], 1980) == fine
    assert timing.clocks([(1980, 0), (1980, power)], 1980)["throttled"] == 1
    assert timing.clocks([(1400, 0)], 1980)["throttled"] == 1


def test_rotation():
    cache = 60 << 20
    assert timing.rotation("cold", 1 << 10, cache) == (1, 1)
    assert timing.rotation("graph-hot", 1 << 10, cache) == (1, 32)
    for size in (1 << 16, 402056, 1 << 24, 1 << 32):
        slots, nodes = timing.rotation("graph", size, cache)
        assert slots >= 2 and slots * size >= 3 * cache and nodes >= 32 and nodes % slots == 0
    with pytest.raises(ValueError, match="65536"):
        timing.rotation("graph", 65535, cache)


# Verification


@pytest.mark.parametrize("dtype", timing.FORMATS)
@pytest.mark.parametrize("cols", [1, 32, 1001, 50257])
def test_right_results_pass_and_wrong_ones_do_not(dtype, cols):
    x = np.random.default_rng(cols).normal(size=(3, cols))
    x[:, 0] *= 20
    fraction, least, _ = timing.FORMATS[dtype]
    exact = timing.softmax(x)
    spacing = np.exp2(np.maximum(np.frexp(exact)[1] - 1, least) - fraction)
    right = np.round(exact / spacing) * spacing
    wrong, ulp = timing.judge(x, right, dtype, [0, 7, 9])
    assert wrong == "" and ulp <= 0.5
    assert timing.judge_sums(right.sum(1), cols, dtype) == ""
    top = int(np.argmax(exact[1]))
    for factor in (1.01 if dtype != "bf16" else 1.03, 0.5, float("nan")):
        bad = right.copy()
        bad[1, top] *= factor
        wrong, _ = timing.judge(x, bad, dtype, [0, 7, 9])
        assert wrong.startswith(f"INCORRECT: row 7, column {top}: got ")
    assert "row 1: its sum is" in timing.judge_sums([1, 0.9, 1], cols, dtype)
    assert "row 0: its sum is nan" in timing.judge_sums([float("nan")], cols, dtype)


def test_rows_to_verify():
    assert timing.rows_to_verify(5, 8) == [0, 1, 2, 3, 4]
    rows = timing.rows_to_verify(8192, 128256)
    assert rows[0] == 0 and rows[-1] == 8191 and rows == sorted(set(rows)) and len(rows) <= 32
    assert {2**29 // 128256, 2**29 // 128256 + 1} <= set(rows)  # 2^31 bytes
    assert len(timing.rows_to_verify(1 << 23, 32)) == 8192
    assert timing.rows_to_verify(256, 1 << 20)[-1] == 255


# The command line


def options(*arguments):
    return peers.parse_arguments([*arguments, "--out", "x.json"])


def test_arguments():
    o = options("--shapes", "8192x50257,1x32", "--impl", "torch,triton", "--dtype", "bf16")
    assert (o.shapes, o.impl, o.mode) == ([(8192, 50257), (1, 32)], ["torch", "triton"], "cold")
    assert options("--suite", "few-rows").mode == "graph"
    assert len(options("--suite", "few-rows").shapes) == 25
    assert options("--suite", "few-rows", "--mode", "hot").mode == "hot"
    for dtype, size in timing.ITEM_BYTES.items():
        atlas = options("--suite", "atlas", "--dtype", dtype).shapes
        assert [c for _, c in atlas] == [1 << b for b in range(5, 21)]
        assert {n * c * size for n, c in atlas} == {1 << 30}
    assert options("--cross-check").impl == ["torch"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "one of the arguments"),
        (["--shapes", "8x"], "no shape such as"),
        (["--shapes", "0x5"], "no shape such as"),
        (["--suite", "ladder", "--impl", "torch,jax"], "'jax' is none of copy, torch"),
        (["--suite", "ladder", "--shapes", "1x1"], "not allowed with"),
        (["--cross-check", "--mode", "graph"], "do_bench measures cold"),
        (["--suite", "ladder", "--out", "x.csv"], "must end in .json"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as error:
        peers.parse_arguments([*(["--out", "x.json"] * ("--out" not in arguments)), *arguments])
    assert error.value.code == 2 and message in capsys.readouterr().err


def test_refusals():
    assert peers.refusal("quack", (8192, 50257), "fp32") == "C must be a multiple of 4"
    assert peers.refusal("quack", (8192, 50260), "fp32") == ""
    assert peers.refusal("quack", (8192, 50260), "bf16") == "C must be a multiple of 8"
    assert "65536" in peers.refusal("liger", (1, 65537), "fp32")
    assert "fp32" in peers.refusal("flashinfer", (1, 32), "bf16")
    assert peers.refusal("torch", (1, 1), "fp16") == ""


# A run, with a GPU that takes a fixed time for each peer


class FakeGpu(Clock):
    cache_bytes, most_mhz = 60 << 20, 1980
    US = {"copy": 60.0, "slow copy": 70.0, "torch": 120.0, "triton": 80.0, "liger": 90.0}

    def __init__(self):
        super().__init__()
        self.polled, self.opened, self.wrong, self.broken = [], [], {}, {}

    def context(self):
        return {"device": "NVIDIA H200", "device_id": "gpu", "peak_GB/s": "4900.0"}

    def open(self, shape, dtype, slots, seed):
        self.opened.append((shape, dtype, slots))

    def load(self, impl):
        if impl in ("quack", "softmax-lab"):
            raise ImportError(f"No module named '{impl}'")
        return impl, f"idea of {impl}"

    def bind(self, launch, mode, nodes):
        work = argparse.Namespace(name=launch, runs=0, nodes=nodes)
        work.run = lambda: setattr(work, "runs", work.runs + 1)
        return work

    def copies(self, mode, nodes):
        return [(name, self.bind(name, mode, nodes)) for name in ("slow copy", "copy")]

    def warm_up(self, work):
        self.seconds += 1

    def fastest(self, labelled):
        return min(labelled, key=lambda pair: self.US[pair[0]])

    def sample(self, work, n):
        if why := self.broken.get(work.name):
            raise RuntimeError(why)
        self.polled.append((1980, 0))
        self.seconds += n * self.US[work.name] * 1e-6
        return [self.US[work.name]] * n

    def poison(self, work):
        pass

    def verify(self, work):
        return ("INCORRECT: row 3" if work.runs >= self.wrong.get(work.name, 99) else ""), 1.5

    def do_bench(self, work):
        return self.US[work.name] * 1.02


def run(tmp_path, *arguments, gpu=None):
    gpu, lines = gpu or FakeGpu(), []
    arguments = [*arguments, "--out", str(tmp_path / "new" / "x.json")]
    o = peers.parse_arguments(arguments)
    output = peers.Output(o.out, peers.context(gpu, o, arguments))
    bad = peers.measure_all(gpu, o, output, lines.append)
    data = json.loads(o.out.read_text()) if o.out.exists() else None
    return bad, data, "\n".join(lines)


def test_a_run_writes_the_schema(tmp_path):
    impls = ["--impl", "copy,torch,quack,liger,softmax-lab"]
    bad, data, log = run(tmp_path, "--shapes", "64x128256", "--mode", "graph", *impls)
    assert bad == 0
    context, rows = data["context"], data["benchmarks"]
    assert (context["schema"], context["simulated"]) == ("2", "false")
    assert context["flush"] == "memset 2x L2"
    assert all(isinstance(value, str) for value in context.values())
    assert len(context["git_sha"]) == 12 and context["samples"] == "x.samples.f32"
    assert [row["name"].split("/")[1] for row in rows] == ["copy", "torch"]
    row = rows[1]
    assert row["name"] == "softmax/torch/fp32/ieee/graph/N:64/C:128256/manual_time"
    assert row["us"] == row["real_time"] == 120 and row["us_copy"] == 60 and row["%copy"] == 50
    assert (row["slots"], row["nodes"], row["max_ulp"]) == (3, 33, 1.5)
    assert row["label"] == "idea of torch"
    assert row["%peak"] == pytest.approx(100 * 8 * 64 * 128256 / 120 / 1e3 / 4900)
    assert (row["sm_mhz"], row["throttled"], row["suspect"], row["noisy"]) == (1980, 0, 0, 0)
    assert rows[0]["label"].endswith("bytes: copy") and "max_ulp" not in rows[0]
    assert "left out: quack: not installed: No module named 'quack'" in log
    assert "left out: softmax-lab: not installed: No module named 'softmax-lab'" in log
    assert "left out: liger at fp32 64 x 128256 graph: C is 65536 at most" in log
    assert "[2/5] torch fp32 64 x 128256 graph: 120.00 us" in log
    taken = np.fromfile(tmp_path / "new" / "x.samples.f32", "<f4")
    for row in rows:
        mine, copies = taken[row["samples_at"] :][: 2 * row["n"]].reshape(2, -1)
        assert np.median(mine) == row["us"] and np.median(copies) == row["us_copy"]
    assert len(taken) == 2 * sum(row["n"] for row in rows)


def test_a_run_can_be_loaded_with_every_other_result(tmp_path):
    import results

    if "2" not in results.SCHEMAS:
        pytest.skip("this tree's loader does not know schema 2")
    run(tmp_path, "--suite", "ladder", "--impl", "torch,triton")
    frame = results.load(tmp_path)
    assert frame["us"].tolist() == [120, 80] and frame["error"].isna().all()


@pytest.mark.parametrize("runs, when", [(1, "before"), (2, "after")])
def test_a_wrong_peer_has_no_time(tmp_path, runs, when):
    gpu = FakeGpu()
    gpu.wrong = {"torch": runs}
    bad, data, log = run(tmp_path, "--shapes", "8x1024", "--impl", "torch,triton", gpu=gpu)
    row, other = data["benchmarks"]
    assert bad == 1 and row["error_occurred"] and "INCORRECT: row 3" in row["error_message"]
    assert "us" not in row and "samples_at" not in row and other["us"] == 80
    assert "INCORRECT: row 3" in log


def test_short_launches_fill_half_a_millisecond(tmp_path):
    gpu = FakeGpu()
    gpu.US = {"copy": 2.0, "slow copy": 3.0, "torch": 4.0}
    graph = ["--shapes", "64x128256", "--mode", "graph", "--impl", "copy,torch"]
    bad, data, _ = run(tmp_path, *graph, gpu=gpu)
    assert bad == 0 and [row["nodes"] for row in data["benchmarks"]] == [252, 126]


def test_a_peer_that_fails_or_a_shape_that_does(tmp_path):
    gpu = FakeGpu()
    gpu.broken = {"triton": "out of\nresources"}
    bad, data, log = run(tmp_path, "--shapes", "8x1024", "--impl", "triton", gpu=gpu)
    assert bad == 1 and data["benchmarks"][0]["error_message"] == "RuntimeError: out of resources"
    both = ["--shapes", "1x32,1x32000", "--mode", "graph"]
    bad, data, log = run(tmp_path / "2", *both, "--impl", "torch")
    assert bad == 0 and "left out: fp32 1 x 32 graph: ValueError: a set of 256 bytes" in log
    assert len(data["benchmarks"]) == 1
    gpu = FakeGpu()
    gpu.wrong = {"copy": 1}
    bad, data, log = run(tmp_path / "3", "--shapes", "8x1024", "--impl", "torch", gpu=gpu)
    assert bad == 1 and data is None and "left out" in log


def test_a_run_is_bounded_and_says_so(tmp_path):
    bad, data, log = run(tmp_path, "--suite", "atlas", "--impl", "torch", "--seconds", "2.5")
    assert bad == 1 and 0 < len(data["benchmarks"]) < 16
    assert "left out: all from fp32" in log and "2.5 s are over" in log


def test_cross_check(tmp_path):
    bad, data, log = run(tmp_path, "--cross-check")
    assert bad == 0 and len(data["benchmarks"]) == len(peers.CROSS_CHECK)
    assert {row["us_do_bench"] for row in data["benchmarks"]} == {120 * 1.02}
    assert "ratio 1.0200" in log
    gpu = FakeGpu()
    gpu.do_bench = lambda work: 125.0
    assert run(tmp_path / "2", "--cross-check", gpu=gpu)[0] == len(peers.CROSS_CHECK)


def test_without_torch_the_program_says_so(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('none here')")
    command = [sys.executable, peers.__file__, "--suite", "ladder", "--out", tmp_path / "x.json"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "no GPU to measure on: none here" in done.stderr
    assert not (tmp_path / "x.json").exists()


# What others printed


def test_published_figures():
    frame = peers.published()
    assert set(frame["unit"]) == {"us", "GB/s"} and (frame["value"] > 0).all()
    keys = ["source", "impl", "dtype", "rows", "cols"]
    assert not frame.duplicated(keys).any() and frame["gpu"].notna().all()
    oneflow = frame[frame["source"] == "Oneflow-Inc/oneflow#4058"]
    assert set(oneflow["gpu"]) == {"not named"} and set(oneflow["rows"]) == {49152}
    at = oneflow.set_index(["impl", "cols"])["GB/s"] / 1.073741824  # they print GiB/s
    assert at["oneflow-warp", 1024] == pytest.approx(768.44, abs=0.01)
    assert at["oneflow-smem", 8192] == pytest.approx(672.65, abs=0.01)
    assert at["oneflow-uncached", 32768] == pytest.approx(502.09, abs=0.01)
    assert at["cudnn", 32] == pytest.approx(14.43, abs=0.01)


# The Triton kernels, interpreted where there is no GPU

KERNELS = """
import os, torch
gpu = torch.cuda.is_available()
if not gpu:
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
import torch_gpu, timing
torch.set_default_device("cuda" if gpu else "cpu")
for dtype in ("fp32", "fp16", "bf16") if gpu else ("fp32", "fp16"):  # interpreted bf16 truncates
    for rows, cols in ((5, 1), (3, 33), (130, 100), (2, 4096), (2, 9000)):
        torch_gpu.IN_REGISTERS = 8192  # so that the last one takes two passes
        x = torch.randn(rows, cols).to(torch_gpu.DTYPES[dtype])
        x[0, 0] = float("-inf") if cols > 1 else 1
        y = torch_gpu.triton_softmax(x, torch.full_like(x, float("nan")))
        assert torch.equal(torch_gpu.triton_copy(x, torch.zeros_like(x)), x)
        both = [t[1:].double().cpu().numpy() for t in (x, y)]
        wrong, ulp = timing.judge(*both, dtype, range(1, rows))
        assert not wrong and ulp < 40, (dtype, rows, cols, wrong, ulp)
        sums = y.sum(-1, dtype=torch.float64).cpu().numpy()
        assert not timing.judge_sums(sums, cols, dtype)
"""


def test_triton_kernels_are_right():
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    environment = os.environ | {"PYTHONPATH": str(peers.ROOT / "analysis")}
    command = [sys.executable, "-c", KERNELS]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
