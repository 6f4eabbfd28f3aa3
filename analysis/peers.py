"""Measures other people's softmax on this machine's GPU, into the schema of results/README.md.

The copy, PyTorch eager and compiled, a Triton kernel, and quack, Liger, FlashInfer and our own
package softmax_lab where they are installed, by the method of ./bench: each in turn with the copy
of the same bytes, verified before and after.

    peers.py --suite ladder --out results/<gpu>/<date>-<sha>/peers-ladder-ieee.json
    peers.py --shapes 8192x4096,64x128256 --impl torch,triton --dtype bf16 --mode graph --out x.json
    peers.py --cross-check --out x.json    PyTorch by our timing and by triton.testing.do_bench

Names say `ieee`, whatever exp and division a peer takes. A result that is wrong, or a launch that
fails, is a row with an error; what a peer does not take is left out, with the reason. Needs torch
and triton beside pandas.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

try:
    import pandas as pd

    import timing
except ImportError as error:
    sys.exit(f"peers: {error}; it wants a Python with torch, triton, pandas and numpy")

ROOT = Path(__file__).resolve().parent.parent
IMPLS = ("copy", "torch", "torch-compile", "triton", "quack", "liger", "flashinfer", "softmax-lab")
MODES = ("cold", "hot", "graph", "graph-hot")
FLUSH = {"memset": "memset 2x L2", "read": "read 2x L2", "none": "none"}
SEED = 1
FEW_ROWS = [(n, c) for c in (32000, 50257, 128256, 151936, 262144) for n in (1, 4, 16, 64, 256)]
CROSS_CHECK = [(8192, 50257), (8192, 4096), (65536, 1024), (8192, 32000), (16384, 8192)]
AGREEMENT = 0.03  # of our median, by do_bench's


def suite(name, dtype):
    """(shapes, mode) of --suite."""
    if name == "ladder":
        return [(8192, 50257)], "cold"
    if name == "few-rows":
        return FEW_ROWS, "graph"
    elements = (1 << 30) // timing.ITEM_BYTES[dtype]
    return [(elements >> bits, 1 << bits) for bits in range(5, 21)], "cold"


def parse_shapes(text):
    """ "8192x50257,1x32000" -> [(8192, 50257), (1, 32000)]. Raises argparse.ArgumentTypeError."""
    shapes = []
    for part in text.split(","):
        if not re.fullmatch(r"[1-9]\d*x[1-9]\d*", part):
            raise argparse.ArgumentTypeError(f"'{part}' is no shape such as 8192x50257")
        shapes.append(tuple(int(number) for number in part.split("x")))
    return shapes


def parse_impls(text):
    """Names of IMPLS, comma-separated. Raises argparse.ArgumentTypeError."""
    impls = text.split(",")
    for impl in impls:
        if impl not in IMPLS:
            raise argparse.ArgumentTypeError(f"'{impl}' is none of {', '.join(IMPLS)}")
    return impls


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--shapes", type=parse_shapes, metavar="NxC,...")
    what.add_argument("--suite", choices=("ladder", "atlas", "few-rows"))
    what.add_argument("--cross-check", action="store_true")
    parser.add_argument("--impl", type=parse_impls, default=list(IMPLS), metavar="NAME,...")
    parser.add_argument("--dtype", choices=tuple(timing.ITEM_BYTES), default="fp32")
    parser.add_argument("--mode", choices=MODES, help="default: the suite's, else cold")
    parser.add_argument("--flush", choices=tuple(FLUSH), default="memset", help="of cold")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json")
    parser.add_argument("--seconds", type=float, default=540, help="then no new case is started")
    parser.add_argument("--max-autotune", action="store_true", help="of torch.compile; slow")
    options = parser.parse_args(arguments)
    if options.out.suffix != ".json":
        parser.error(f"--out {options.out}: the name must end in .json")
    options.named = options.suite or ("cross-check" if options.cross_check else "shapes")
    mode = "cold"
    if options.suite:
        options.shapes, mode = suite(options.suite, options.dtype)
    elif options.cross_check:
        if options.mode not in (None, "cold"):
            parser.error("--cross-check: do_bench measures cold")
        options.shapes, options.impl = CROSS_CHECK, ["torch"]
    options.mode = options.mode or mode
    return options


def refusal(impl, shape, dtype):
    """Why a peer does not take this, or ""; from its documentation and source."""
    _, cols = shape
    vector = 16 // timing.ITEM_BYTES[dtype]
    if impl == "quack" and cols % vector:
        return f"C must be a multiple of {vector}"
    if impl == "liger" and cols > 65536:
        return "C is 65536 at most"
    if impl == "flashinfer" and dtype != "fp32":
        return "its output is fp32"
    return ""


def git_revision():
    """(revision of the tree, "true" or "false" for uncommitted changes); "unknown" without git.

    SOFTMAX_REVISION names the revision of a clean tree that travels without its history.
    """
    if named := os.environ.get("SOFTMAX_REVISION"):
        return named, "false"

    def git(*words):
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changes = git("status", "--porcelain", "--", ".", ":!results", ":!*.md")
        return git("rev-parse", "--short=12", "HEAD"), str(bool(changes)).lower()
    except (OSError, subprocess.CalledProcessError):
        return "unknown", None


def context(gpu, options, arguments):
    """The file's context, strings."""
    sha, dirty = git_revision()
    known = {
        "schema": "2",
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "git_sha": sha,
        "simulated": "false",
        "math": "ieee",
        "mode": options.mode,
        "suite": options.named,
        "flush": FLUSH[options.flush],
        "input": "noise",
        "seed": str(SEED),
        "samples": options.out.with_suffix(".samples.f32").name,
        "command_line": " ".join(["peers.py", *arguments]),
    }
    return known | ({"git_dirty": dirty} if dirty else {}) | gpu.context()


def named(impl, shape, dtype, mode):
    """A row with nothing but its name."""
    rows, cols = shape
    name = f"softmax/{impl}/{dtype}/ieee/{mode}/N:{rows}/C:{cols}/manual_time"
    return {"name": name, "run_name": name, "run_type": "iteration", "time_unit": "us"}


class Case:
    """A shape, a type and a mode on the GPU: its buffers and the fastest copy, for all peers."""

    def __init__(self, gpu, shape, dtype, mode, policy):
        """Raises ValueError for a shape that the mode does not take, and what the GPU raises."""
        self.gpu, self.shape, self.dtype, self.mode, self.policy = gpu, shape, dtype, mode, policy
        self.bytes = 2 * shape[0] * shape[1] * timing.ITEM_BYTES[dtype]
        self.slots, self.nodes = timing.rotation(mode, self.bytes, gpu.cache_bytes)
        gpu.open(shape, dtype, self.slots, SEED)
        ways = gpu.copies(mode, self.nodes)
        for _, way in ways:
            self.check(way)
        gpu.warm_up(ways[0][1])
        self.copy_label, self.copy = gpu.fastest(ways)
        if (nodes := self.launches(self.copy)) > self.nodes:
            self.copy = dict(gpu.copies(mode, nodes))[self.copy_label]

    def launches(self, work):
        """How many make a sample: a graph's replay must be long beside what starts it."""
        gpu, timed = self.gpu, self.gpu.sample(work, 2)[1]
        return timing.rotation(self.mode, self.bytes, gpu.cache_bytes, timed / 1e6)[1]

    def check(self, work):
        """The largest error in ulp of one more launch. Raises RuntimeError if it is wrong."""
        self.gpu.poison(work)
        work.run()
        return self.left(work)

    def left(self, work):
        """The same of what the last launch left."""
        wrong, ulp = self.gpu.verify(work)
        if wrong:
            raise RuntimeError(wrong)
        return ulp

    def measure(self, impl, cross_check=False):
        """(row, samples of the peer, of the copy). Raises what the peer does."""
        gpu = self.gpu
        if impl == "copy":
            work, label = self.copy, f"the fastest way to copy the same bytes: {self.copy_label}"
        else:
            launch, label = gpu.load(impl)
            work = gpu.bind(launch, self.mode, self.nodes)
            if (nodes := self.launches(work)) > self.nodes:
                work = gpu.bind(launch, self.mode, nodes)
        ulp = self.check(work)
        gpu.poison(work)
        gpu.polled.clear()
        mine, copies = timing.measure(work, self.copy, gpu.sample, gpu.now, self.policy)
        polled = timing.clocks(gpu.polled, gpu.most_mhz)
        ulp = max(ulp, self.left(work), self.check(work))
        row = named(impl, self.shape, self.dtype, self.mode) | {"label": label}
        row |= timing.statistics(self.shape, self.dtype, mine, copies, self.policy) | polled
        row |= {"real_time": row["us"], "iterations": 1}
        if impl != "copy":
            row["max_ulp"] = ulp
        if self.mode.startswith("graph"):
            row |= {"slots": self.slots, "nodes": work.nodes}
        if cross_check:
            row["us_do_bench"] = gpu.do_bench(work)
        return row, mine, copies


def describe(row):
    """One line for a reader who waits."""
    if "error_message" in row:
        return row["error_message"]
    text = f"{row['us']:.2f} us +- {row['ci%']:.2f} %, {row['%copy']:.1f} % copy, n {row['n']}"
    for flag in ("noisy", "throttled", "suspect"):
        text += f", {flag}" if row.get(flag) else ""
    if other := row.get("us_do_bench"):
        text += f", do_bench {other:.2f} us, ratio {other / row['us']:.4f}"
    return text


class Output:
    """FILE.json and its sidecar of samples, whole after every row: a run may be cut short."""

    def __init__(self, path, context):
        self.path, self.context, self.rows, self.taken = path, context, [], 0
        path.parent.mkdir(parents=True, exist_ok=True)
        self.sidecar = path.with_suffix(".samples.f32")
        self.sidecar.write_bytes(b"")

    def add(self, row, *samples):
        if samples:
            row["samples_at"] = self.taken
            with self.sidecar.open("ab") as file:
                for each in samples:
                    file.write(each.astype("<f4").tobytes())
            self.taken += sum(len(each) for each in samples)
        self.rows.append(row)
        data = {"context": self.context, "benchmarks": self.rows}
        self.path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def measure_all(gpu, options, output, log):
    """Every shape and peer of the options. Returns how many failed, disagree, or were cut off."""
    start, done, bad, missing = gpu.now(), 0, 0, set()
    total = len(options.shapes) * len(options.impl)
    peak = float(output.context.get("peak_GB/s", 0))
    for shape in options.shapes:
        at = f"{options.dtype} {shape[0]} x {shape[1]} {options.mode}"
        if gpu.now() - start > options.seconds:
            log(f"left out: all from {at} on: {options.seconds:g} s are over")
            return bad + 1
        case = None  # its buffers go before new ones come
        try:
            case = Case(gpu, shape, options.dtype, options.mode, timing.Policy())
        except Exception as error:
            log(f"left out: {at}: {type(error).__name__}: {error}")
            bad += not isinstance(error, ValueError)  # the mode does not take the shape
            done += len(options.impl)
            continue
        for impl in options.impl:
            done += 1
            why = refusal(impl, shape, options.dtype)
            if impl in missing or why:
                if why:
                    log(f"left out: {impl} at {at}: {why}")
                continue
            samples = ()
            try:
                row, *samples = case.measure(impl, options.cross_check)
                if peak:
                    row["%peak"] = 100 * row["GB/s"] / peak
                bad += options.cross_check and abs(row["us_do_bench"] / row["us"] - 1) > AGREEMENT
            except ImportError as error:
                missing.add(impl)
                log(f"left out: {impl}: not installed: {error}")
                continue
            except Exception as error:
                what = " ".join(f"{type(error).__name__}: {error}".split())[:500]
                row = named(impl, shape, options.dtype, options.mode)
                row |= {"error_occurred": True, "error_message": what}
                bad += 1
            output.add(row, *samples)
            spent = gpu.now() - start
            left = min(spent / done * (total - done), max(0, options.seconds - spent))
            about = f"({spent:.0f} s, about {left:.0f} s left)"
            log(f"[{done}/{total}] {impl} {at}: {describe(row)} {about}")
    return bad


def published():
    """What others printed, a DataFrame; published.csv's columns. `gpu` may be "not named".

    GB/s is added: decimal, of one read and one write, from a time or as printed.
    """
    frame = pd.read_csv(Path(__file__).with_name("published.csv"))
    size = frame["dtype"].map(timing.ITEM_BYTES)
    moved = 2 * frame["rows"] * frame["cols"] * size
    frame["GB/s"] = frame["value"].where(frame["unit"] == "GB/s", moved / frame["value"] / 1e3)
    return frame


def main(arguments):
    options = parse_arguments(arguments)
    try:
        from torch_gpu import Gpu

        gpu = Gpu(options.flush, options.max_autotune)
    except (ImportError, RuntimeError) as error:
        print(f"peers: no GPU to measure on: {error}", file=sys.stderr)
        return 1
    output = Output(options.out, context(gpu, options, arguments))

    def log(line):
        print(f"peers: {line}", file=sys.stderr, flush=True)

    bad = measure_all(gpu, options, output, log)
    return 1 if bad or not output.rows else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
