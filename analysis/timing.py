"""How long a piece of GPU work takes: samples in turn with the copy, a rule to stop, statistics,
and a judgement of the result. The definitions are those of benchmarks/measure.cpp; numpy alone.
"""

import math
from dataclasses import dataclass

import numpy as np

ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2}
# Bits of the fraction, the smallest normal exponent, and the absolute error of a tiny output: exp
# may flush what fp32 has below its normal numbers to zero, and fp16 rounds to multiples of 2^-24.
FORMATS = {
    "fp32": (23, -126, 2.0**-126),
    "fp16": (10, -14, 2.0**-25),
    "bf16": (7, -126, 2.0**-126),
}
# Of a graph: launches at least, so that what starts it is little beside them; seconds.
LAUNCHES, REPLAY, LONG_REPLAY = 32, 5e-4, 0.25
# NVML's reasons that slow a clock down; the rest are idleness and a user's own settings.
SLOWDOWNS = 0x4 | 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True)
class Policy:
    """When to stop. Times are wall seconds, of all works of a case together, flushes included."""

    warm_seconds: float = 0.05
    samples: int = 50  # at least, while the cap allows
    floor: int = 5  # at least, whatever they cost
    ci_percent: float = 0.5
    cap_seconds: float = 1.0
    batch: int = 64  # samples at most between two synchronisations
    batch_seconds: float = 0.1


def quantile(ordered, q):
    """The q-quantile of sorted values, interpolated linearly."""
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (at - low) * (ordered[high] - ordered[low]))


def summarize(samples):
    """Microseconds -> us, us_min, us_p25, us_p75, n, ci%. Raises ValueError if no median is usable.

    ci% is half the width of the 95 % confidence interval of the median, in % of it: the number of
    samples below the median is binomial(n, 1/2), so ranks n/2 -+ 1.96 sqrt(n)/2 enclose it. Of
    fewer than six samples it is half their range.
    """
    ordered = np.sort(np.asarray(samples, float))
    n = len(ordered)
    if n == 0:
        raise ValueError("no sample was taken")
    median = quantile(ordered, 0.5)
    if not np.isfinite(ordered).all() or median <= 0:
        raise ValueError(f"the clock measured a median of {median} us")
    rank = max(1, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return {
        "us": median,
        "us_min": float(ordered[0]),
        "us_p25": quantile(ordered, 0.25),
        "us_p75": quantile(ordered, 0.75),
        "n": n,
        "ci%": 100 * float(ordered[n - rank] - ordered[rank - 1]) / 2 / median,
    }


def plateau(history):
    """Whether samples stopped to help: twice as many did not narrow the interval by 10 %.

    `history` is (n, ci%) of each check, in order.
    """
    n, ci = history[-1]
    before = [old for m, old in history if 2 * m <= n]
    return bool(before) and ci >= 0.9 * before[-1]


def measure(work, copy, sample, now, policy):
    """Samples of the copy and of the work in turn, batch by batch, equally often.

    `sample(work, n)` times n calls and returns their microseconds, `now()` is a clock in seconds.
    Returns the work's and the copy's samples, float32 microseconds, as taken. The last call is the
    work's. Raises ValueError if the work has no usable median.
    """
    mine, copies = [], []

    def batch_of(n):
        before = now()
        copies.extend(sample(copy, n))
        mine.extend(sample(work, n))
        return (now() - before) / n

    start, cost, warm = now(), 0, 1
    while now() - start < policy.warm_seconds:
        cost = batch_of(warm)
        warm = min(2 * warm, policy.batch)
    mine.clear()
    copies.clear()
    history, start = [], now()
    while True:
        n = len(mine)
        # Past the target a batch is a quarter of what is there, so that the check stays cheap.
        wanted = policy.samples - n if n < policy.samples else max(16, n // 4)
        affordable = int(policy.batch_seconds / cost) if cost > 0 else policy.batch
        cost = batch_of(max(1, min(wanted, affordable, policy.batch)))
        n = len(mine)
        late = now() - start >= policy.cap_seconds
        if n < policy.floor or n < policy.samples and not late:
            continue
        history.append((n, summarize(mine)["ci%"]))
        if late or history[-1][1] <= policy.ci_percent or plateau(history):
            return np.asarray(mine, np.float32), np.asarray(copies, np.float32)


def rotation(mode, set_bytes, cache_bytes, seconds=None):
    """(slots, nodes): buffer sets that rotate and launches a sample.

    In graph mode the sets are three caches together at least. A graph has a multiple of them as
    launches, at least LAUNCHES that take at least REPLAY, but no more than take LONG_REPLAY; of a
    launch `seconds` are known from a replay of the sets, or None. Raises ValueError for small sets.
    """
    if not mode.startswith("graph"):
        return 1, 1
    slots = 1
    if mode == "graph":
        if set_bytes < 1 << 16:
            raise ValueError(
                f"a set of {set_bytes} bytes is too small to rotate, 65536 are the least"
            )
        slots = max(2, math.ceil(3 * cache_bytes / set_bytes))
    wanted = LAUNCHES
    if seconds is not None:
        if not seconds > 0:
            return slots, slots
        wanted = min(max(LAUNCHES, REPLAY / seconds), max(1.0, LONG_REPLAY / seconds))
    return slots, slots * math.ceil(wanted / slots)


def statistics(shape, dtype, samples, copies, policy):
    """A row's keys out of one launch's samples and the copy's, microseconds."""
    rows, cols = shape
    mine, copy = summarize(samples), summarize(copies)
    us, us_copy = mine["us"], copy["us"]
    moved = 2 * rows * cols * ITEM_BYTES[dtype]
    dishonest = us < us_copy / 1.05 or mine["us_min"] <= 0 or copy["us_min"] <= 0
    return mine | {
        "us/token": us / rows,
        "bytes": moved,
        "GB/s": moved / us / 1e3,
        "N": rows,
        "C": cols,
        "us_copy": us_copy,
        "%copy": 100 * us_copy / us,
        "noisy": int(mine["ci%"] > policy.ci_percent),
        "suspect": int(dishonest),
    }


def clocks(polled, most_mhz):
    """sm_mhz, throttled and throttle_reasons out of (MHz, reasons) polled while samples ran."""
    if not polled:
        return {}
    mhz = sum(clock for clock, _ in polled) / len(polled)
    reasons = 0
    for _, bits in polled:
        reasons |= bits
    throttled = int(bool(reasons & SLOWDOWNS) or mhz < 0.75 * most_mhz)
    return {"sm_mhz": mhz, "throttled": throttled, "throttle_reasons": reasons}


def rows_to_verify(rows, cols):
    """Some rows, sorted: the first, the last, where offsets leave 29 to 32 bits, and any others.

    2^18 elements at most, but 64 rows while those are at most 2^22 elements.
    """
    limit = min(rows, max((1 << 18) // cols, min(max((1 << 22) // cols, 8), 64)))
    edges = [(1 << bits) // cols + beside for bits in (29, 30, 31, 32) for beside in (0, 1)]
    picked = dict.fromkeys(row for row in [0, rows - 1, *edges] if 0 <= row < rows)
    others = np.random.default_rng(cols).integers(0, rows, 4 * limit).tolist()
    picked |= dict.fromkeys(range(rows) if limit == rows else others)
    return sorted(list(picked)[:limit])


def softmax(x):
    """Of each row of x, in float64."""
    x = np.asarray(x, np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def relative_bound(depth, cols, dtype):
    """Largest relative error of an output that lies `depth` below its row's maximum.

    In units of 2^-24: four roundings of an exponent of size `depth` and of the sum's (ln C at most,
    on average), four units each of two exps and the division, and a sum that a warp at least adds:
    C / 32 additions and a tree. Then the output's own rounding.
    """
    fraction = FORMATS[dtype][0]
    rounding = 2.0 ** -(fraction + 1)
    units = 4 * depth + 4 * math.log(cols) + 12 + cols / 32 + math.log2(cols)
    return units * 2.0**-24 + rounding


def judge(x, y, dtype, rows):
    """(what is wrong with y or "", the largest error in ulp of the output).

    x and y are the sampled rows of input and output as float64, `rows` their numbers.
    """
    fraction, least, tiny = FORMATS[dtype]
    exact = softmax(x)
    cols = exact.shape[1]
    error = np.abs(y - exact)
    depth = np.max(x, axis=1, keepdims=True) - x
    bound = exact * relative_bound(depth, cols, dtype) + tiny
    wrong = ~(error <= bound)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        return (
            f"INCORRECT: row {rows[at[0]]}, column {at[1]}: got {y[at]:.9g}, expected "
            f"{exact[at]:.9g}, bound {bound[at]:.3g}"
        ), math.inf
    exponent = np.maximum(np.frexp(exact)[1] - 1, least)
    return "", float((error / np.exp2(exponent - fraction)).max())


def judge_sums(sums, cols, dtype):
    """What is wrong with the float64 sums of all output rows, or ""; mean depth is below ln C."""
    bound = relative_bound(math.log(cols), cols, dtype) + cols * FORMATS[dtype][2]
    wrong = np.flatnonzero(~(np.abs(np.asarray(sums) - 1) <= bound))
    if not len(wrong):
        return ""
    sum_of = f"row {wrong[0]}: its sum is {sums[wrong[0]]:.9g}"
    return f"INCORRECT: {sum_of}, expected 1, bound {bound:.3g}"
