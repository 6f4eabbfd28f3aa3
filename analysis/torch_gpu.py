"""PyTorch's side of peers.py: buffers, kernels, events and graphs of one GPU. Needs torch and
triton, so peers.py imports it late.
"""

import importlib.metadata
import statistics
import sys
import time
from collections import deque
from dataclasses import dataclass
from typing import Callable

import torch
import triton
import triton.language as tl

from timing import judge, judge_sums, rows_to_verify

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
PACKAGES = {
    "torch": "torch",
    "triton": "triton",
    "quack": "quack-kernels",
    "liger": "liger-kernel",
    "flashinfer": "flashinfer-python",
    "softmax-lab": "softmax-lab",
}
IN_REGISTERS = 32768  # columns: 32 registers a thread of the largest block; twice that would spill


@triton.jit
def copy_blocks(x, y, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < count), mask=at < count)


@triton.jit
def softmax_in_registers(x, y, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows a program, each whole in registers: one read, one write."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    col = tl.arange(0, BLOCK)
    at = row[:, None] * cols + col[None, :]
    inside = (row < rows)[:, None] & (col < cols)[None, :]
    v = tl.load(x + at, mask=inside, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 1)[:, None])
    tl.store(y + at, (e / tl.sum(e, 1)[:, None]).to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_in_two_passes(x, y, cols, BLOCK: tl.constexpr):
    """A row a program: each lane keeps a maximum and a sum, then the row is read again."""
    lane = tl.arange(0, BLOCK)
    x += tl.program_id(0).to(tl.int64) * cols
    y += tl.program_id(0).to(tl.int64) * cols
    most = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + lane
        v = tl.load(x + col, mask=col < cols, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(most, v)
        # A lane that saw nothing but -inf must not make a NaN of inf - inf.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(most - base) + tl.exp(v - base)
        most = higher
    top = tl.max(most, 0)
    scale = 1 / tl.sum(total * tl.exp(most - top), 0)
    for start in range(0, cols, BLOCK):
        col = start + lane
        v = tl.load(x + col, mask=col < cols, other=float("-inf")).to(tl.float32)
        tl.store(y + col, (tl.exp(v - top) * scale).to(y.dtype.element_ty), mask=col < cols)


def triton_copy(x, y):
    count, block = x.numel(), 8192 // x.element_size()  # 16 bytes a thread
    copy_blocks[(triton.cdiv(count, block),)](x, y, count, BLOCK=block, num_warps=16)
    return y


def memcpy(x, y):
    return y.copy_(x)


def triton_softmax(x, y):
    rows, cols = x.shape
    block = triton.next_power_of_2(cols)
    if block > IN_REGISTERS:
        softmax_in_two_passes[(rows,)](x, y, cols, BLOCK=8192, num_warps=16)
        return y
    tile = max(1, 4096 // block)
    warps = min(32, max(1, tile * block // 512))  # 16 elements a thread
    grid = (triton.cdiv(rows, tile),)
    softmax_in_registers[grid](x, y, rows, cols, ROWS=tile, BLOCK=block, num_warps=warps)
    return y


@dataclass
class Work:
    """One sample's worth of launches."""

    run: Callable  # enqueues them
    flushed: bool
    nodes: int
    copies: bool  # moves the input, computes nothing
    outputs: deque  # of the last launches, as many as there are buffer sets
    host: float = 0.0  # seconds that the host takes to enqueue a sample


class Gpu:
    """The first GPU, with the buffers of one case at a time."""

    now = staticmethod(time.perf_counter)

    def __init__(self, flush, max_autotune):
        """Raises RuntimeError where there is no GPU."""
        if not torch.cuda.is_available():
            raise RuntimeError("torch sees no GPU")
        self.properties = torch.cuda.get_device_properties(0)
        self.cache_bytes = self.properties.L2_cache_size
        self.flush, self.max_autotune = flush, max_autotune
        torch.set_grad_enabled(False)
        self.events, self.polled, self.warm = [], [], False
        self.x, self.y = [], []
        if flush != "none":
            self.cache = torch.zeros(2 * self.cache_bytes // 4, device="cuda")
            self.sink = torch.zeros((), device="cuda")
        self.nvml = self._nvml()

    def _nvml(self):
        try:
            import pynvml

            pynvml.nvmlInit()
            p = self.properties
            bus = f"{p.pci_domain_id:08x}:{p.pci_bus_id:02x}:{p.pci_device_id:02x}.0"
            handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus)
            self.most_mhz = pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)
            self.driver = pynvml.nvmlSystemGetDriverVersion()
            self.polled.append(self._poll(pynvml, handle))
        except Exception as error:  # a result without clocks is still one
            print(f"peers: no clocks: {type(error).__name__}: {error}", file=sys.stderr)
            self.most_mhz, self.driver = 0, None
            return None
        return pynvml, handle

    @staticmethod
    def _poll(pynvml, handle):
        reasons = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        reasons = reasons or pynvml.nvmlDeviceGetCurrentClocksThrottleReasons
        return pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM), int(reasons(handle))

    def context(self):
        """What a result file says of the machine; strings."""
        p = self.properties
        v = torch.backends.cudnn.version()
        peak = 2 * p.memory_clock_rate * 1e3 * p.memory_bus_width / 8 / 1e9
        known = {
            "device": p.name,
            "device_id": "gpu",
            "cc": f"{p.major}.{p.minor}",
            "sm_count": str(p.multi_processor_count),
            "l2_bytes": str(p.L2_cache_size),
            "sm_clock_max_khz": str(p.clock_rate),
            "memory_clock_khz": str(p.memory_clock_rate),
            "memory_bus_bits": str(p.memory_bus_width),
            "peak_GB/s": f"{peak:.1f}",
            "cuda_runtime": torch.version.cuda,
            "cudnn": f"{v // 10000}.{v // 100 % 100}.{v % 100}",
        }
        if self.driver:
            known["driver"] = self.driver
        for name, package in PACKAGES.items():
            try:
                known[name] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                pass
        return known

    def load(self, name):
        """(launch(x, y) -> output, label). Raises ImportError where a package is missing."""
        if name == "torch":
            return lambda x, y: torch.softmax(x, -1, out=y), f"PyTorch {torch.__version__}, eager"
        if name == "torch-compile":
            mode = "max-autotune-no-cudagraphs" if self.max_autotune else "default"
            torch._dynamo.reset()  # a shape is compiled on its own
            fused = torch.compile(lambda x: torch.softmax(x, -1), dynamic=False, mode=mode)
            return lambda x, y: fused(x), f"torch.compile, mode {mode}"
        if name == "triton":
            return triton_softmax, "Triton, a row in registers if it fits, else two online passes"
        if name == "quack":
            from quack.softmax import softmax_fwd

            return lambda x, y: softmax_fwd(x), "quack"
        if name == "liger":
            from liger_kernel.transformers.functional import liger_softmax

            return lambda x, y: liger_softmax(x), "Liger"
        if name == "softmax-lab":
            import softmax_lab

            return softmax_lab.softmax, f"softmax_lab, {softmax_lab.picked(self.x[0])}"
        from flashinfer.sampling import softmax

        return lambda x, y: softmax(x), "FlashInfer, no temperature"

    def open(self, shape, dtype, slots, seed):
        """Fresh buffer sets, as many as `slots`. Noise, one element in 16384 of it an outlier."""
        self.close()
        self.dtype = dtype
        source = torch.Generator("cuda").manual_seed(seed)
        for _ in range(slots):
            x = torch.empty(shape, dtype=DTYPES[dtype], device="cuda").normal_(generator=source)
            x.view(-1)[::16384] *= 4
            self.x.append(x)
            self.y.append(torch.empty_like(x))
        self.sums = [x.sum(-1, dtype=torch.float64) for x in self.x]
        rows = rows_to_verify(*shape)
        self.rows = torch.tensor(rows, device="cuda")

    def close(self):
        self.x, self.y, self.sums = [], [], []
        torch.cuda.empty_cache()

    def bind(self, launch, mode, nodes, copies=False):
        """Work that launches over the buffer sets in turn: `nodes` times, in a graph, or once."""
        slots = len(self.x)
        work = Work(None, mode == "cold", nodes, copies, deque(maxlen=slots))

        def once(i=0):
            work.outputs.append(launch(self.x[i % slots], self.y[i % slots]))

        once()  # compiles, and loads what it needs, before anything is captured or timed
        work.run = once
        if mode.startswith("graph"):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                once()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            # An output that a peer allocates lives until as many came after it: those rotate too.
            with torch.cuda.graph(graph):
                for i in range(nodes):
                    once(i)
            work.run = graph.replay
        torch.cuda.synchronize()
        return work

    def copies(self, mode, nodes):
        """[(label, work)] of the ways to copy an input to its output."""
        ways = {"copy_, a cudaMemcpy": memcpy, "a Triton kernel": triton_copy}
        return [(label, self.bind(way, mode, nodes, copies=True)) for label, way in ways.items()]

    def sample(self, work, n):
        """Microseconds a launch, n samples, between two events each; nothing waits in between."""
        while len(self.events) < 2 * n:
            self.events.append(torch.cuda.Event(enable_timing=True))
        # The GPU spins until the host has enqueued the batch: no sample waits for the host.
        torch.cuda._sleep(int(min(1.25 * work.host * n, 0.05) * 2e9))
        begun = self.now()
        for i in range(n):
            if work.flushed:
                self._overwrite_cache()
            self.events[2 * i].record()
            work.run()
            self.events[2 * i + 1].record()
        work.host = (self.now() - begun) / n
        if self.nvml:
            self.polled.append(self._poll(*self.nvml))  # the GPU is still at work
        torch.cuda.synchronize()
        pairs = zip(self.events[: 2 * n : 2], self.events[1 : 2 * n : 2])
        return [1e3 * start.elapsed_time(end) / work.nodes for start, end in pairs]

    def _overwrite_cache(self):
        if self.flush == "memset":
            self.cache.zero_()
        elif self.flush == "read":
            torch.sum(self.cache, 0, out=self.sink)

    def poison(self, work):
        """NaN wherever the work is to write."""
        for tensor in (*self.y, *work.outputs):
            tensor.fill_(float("nan"))
        torch.full_like(self.x[0], float("nan"))  # and in the block that an allocation will find

    def verify(self, work):
        """(what is wrong with the last launch's output or "", its largest error in ulp)."""
        torch.cuda.synchronize()
        slot = (work.nodes - 1) % len(self.x)
        x, y = self.x[slot], work.outputs[-1]
        if y.shape != x.shape or y.dtype != x.dtype:
            return f"INCORRECT: {y.dtype} {tuple(y.shape)} for {x.dtype} {tuple(x.shape)}", 0.0
        if not torch.equal(x.sum(-1, dtype=torch.float64), self.sums[slot]):
            return "INCORRECT: the input was changed", 0.0
        if work.copies:
            return "" if torch.equal(x, y) else "INCORRECT: the copy differs", 0.0
        sampled = [t.index_select(0, self.rows).double().cpu().numpy() for t in (x, y)]
        wrong, ulp = judge(*sampled, self.dtype, self.rows.tolist())
        sums = torch.cat([t.sum(-1, dtype=torch.float64) for t in work.outputs])  # of every set
        return wrong or judge_sums(sums.cpu().numpy(), x.shape[1], self.dtype), ulp

    def do_bench(self, work):
        """The median that triton.testing.do_bench measures, microseconds."""
        return 1e3 * triton.testing.do_bench(work.run, rep=300, return_mode="median")

    def warm_up(self, work):
        """Once, a second: the clocks of an idle GPU take about that long to settle."""
        start = self.now()
        while not self.warm and self.now() - start < 1:
            self.sample(work, 16)
        self.warm = True

    def fastest(self, labelled):
        """Of [(label, work)] the one of the smallest median over 15 samples."""
        return min(labelled, key=lambda pair: statistics.median(self.sample(pair[1], 15)))
