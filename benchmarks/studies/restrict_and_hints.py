"""What __restrict__, unrolling and streaming hints are worth: writes variants of the lessons beside them.

    git clone . ../study && cd ../study
    python3 benchmarks/studies/restrict_and_hints.py
    SOFTMAX_PRESET=cuda-fast ./bench --benchmark_filter="$(python3 benchmarks/studies/restrict_and_hints.py filter)" \
        --benchmark_repetitions=3 --benchmark_enable_random_interleaving=true --benchmark_out=study-fast.json

A variant of V7 is V70n; its idea, in the table and in the JSON's label, says what is different.

V20202 and V70202 cost 2 % of V2's and V7's reads more, of words that nobody else touches, so that they come from memory. A
comparison of results has to see that: --benchmark_filter="/V(2|20202|7|70202)/.*C:50257/block:1024/".
"""

import re
import sys
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
FILTER = "copy/.*C:50257/|V(1|5)[0-9]*/.*C:50257/block:32/|V2[0-9]*/.*C:50257/block:1024/|V[67][0-9]*/.*C:50257/block:(64|1024)/"

FIRST_PASS = "batch[u] = x[min(cols - 1, first + long(u) * threads)];"
SECOND_PASS = "batch[u] = __ldcs(&x[min(cols - 1, first + long(u) * threads)]);"
STORE = re.compile(r"__stcs\(&y\[(.*?)\], (.*?)\);", re.DOTALL)
ONE_SUM = re.compile(r"    const float next = x\[i\];.*?\n  }\n", re.DOTALL)
TWO_BRANCHES = """    if (x[i] > max) {
      sum = sum * expf(max - x[i]) + 1;
      max = x[i];
    } else if (x[i] != -INFINITY) {
      sum += expf(x[i] - max);
    }
  }
"""
LOOP = "  for (long i = 0; i < cols; ++i)"

# The words are scratch memory, of any content: they must decide nothing.
PARAMETERS = re.compile(r"long in_stride,\n +long out_stride\) {\n")
ARGUMENTS = re.compile(r"p\.in_stride,\s*p\.out_stride\)")
END = "\n}\n\nvoid launch("
V2_LOOP = "  for (long i = thread; i < cols; i += threads) max = fmaxf(max, x[i]);\n"
V2_MORE = """  for (long i = thread; i < cols; i += threads) {
    if (i < extra) bits ^= spare[i];
    max = fmaxf(max, x[i]);
  }
"""
V7_LOOP = "    float max = seen.max;\n#pragma unroll\n"
V7_MORE = """    const long word = thread + (first - thread) / kUnroll;
    if (word < extra) bits ^= spare[word];
"""


def reads_more(per_cent, old, new):
    """Edits that read so many per cent of a row from elsewhere, in the first pass, which `old` -> `new` changes."""
    more = f"""long in_stride,
                           long out_stride, const unsigned* __restrict__ spare) {{
  const long extra = {per_cent} * cols / 100;
  spare += blockIdx.x * extra;
  unsigned bits = 0;
"""
    scratch = f"[](const softmax::Problem& p) {{ return 4 * p.rows * ({per_cent} * p.cols / 100); }}"
    return [
        (PARAMETERS, more),
        (old, new),
        (END, "\n  if (bits == 0x9e3779b9u) y[0] = 0;  // never, but the words have a use" + END),
        (ARGUMENTS, "p.in_stride, p.out_stride, static_cast<const unsigned*>(p.workspace))"),
        (re.compile(r"(, \.reads = \d)\)"), rf"\1, .cuda_only = true, .workspace = {scratch})"),
    ]


VARIANTS = [
    ("v1_naive", 101, "V1 without __restrict__", [("* __restrict__ ", "* ")]),
    ("v1_naive", 108, "V1 unrolled by 8", [(LOOP, "#pragma unroll 8\n" + LOOP)]),
    ("v1_naive", 116, "V1 unrolled by 16", [(LOOP, "#pragma unroll 16\n" + LOOP)]),
    ("v2_shared", 201, "V2 without __restrict__", [("* __restrict__ ", "* ")]),
    ("v2_shared", 20202, "V2 and 2 % more reads", reads_more(6, V2_LOOP, V2_MORE)),
    ("v5_online", 501, "V5 without __restrict__", [("* __restrict__ ", "* ")]),
    ("v5_online", 502, "V5 with two branches that both add", [(ONE_SUM, TWO_BRANCHES)]),
    ("v6_cooperative", 601, "V6 without __restrict__", [("* __restrict__ ", "* ")]),
    ("v7_unrolled", 701, "V7 with __ldcs on the first pass too", [(FIRST_PASS, SECOND_PASS)]),
    ("v7_unrolled", 702, "V7 without any __ldcs", [(SECOND_PASS, FIRST_PASS)]),
    ("v7_unrolled", 703, "V7 without __stcs", [(STORE, r"y[\1] = \2;")]),
    ("v7_unrolled", 704, "V7 without any hint", [(STORE, r"y[\1] = \2;"), (SECOND_PASS, FIRST_PASS)]),
    ("v7_unrolled", 70202, "V7 and 2 % more reads", reads_more(4, V7_LOOP, V7_MORE + V7_LOOP)),
]


def write(lesson, version, idea, edits):
    text = (KERNELS / f"{lesson}.cu").read_text()
    for old, new in edits:
        before = text
        text = old.sub(new, text) if isinstance(old, re.Pattern) else text.replace(old, new)
        assert text != before, f"{lesson}: nothing to replace for '{idea}'"
    head = f'SOFTMAX_KERNEL({version}, "v{version}", "{idea}"'
    text = re.sub(r'SOFTMAX_KERNEL\(\d+, "\w+", "[^"]*"', head, text)
    (KERNELS / f"v{version}_{lesson[3:]}_variant.cu").write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["filter"]:
        print(FILTER)
    else:
        for variant in VARIANTS:
            write(*variant)
