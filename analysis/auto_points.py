"""Lists of shapes that Auto is judged at, for `./bench --points`.

    python analysis/auto_points.py cliffs > cliffs.csv      both sides of the steps of table.csv
    python analysis/auto_points.py held-out > held-out.csv  columns that no table was made from
    python analysis/auto_points.py few-rows > few-rows.csv  where the published figures have few rows
    python analysis/auto_points.py layouts > layouts.csv    rows that begin anywhere, or have gaps

A pair of `cliffs` is the last column of a rule and the next one; the time may not jump between
them. The columns of `held-out` are drawn at random, evenly by their logarithm, from a fixed seed.
Rules without a limit of rows are measured cold at half a gigabyte of input, others in graphs. The
lists but `layouts` are of dense rows; its columns `at` and `gap` are --sweep's.
"""

import argparse
import csv
import random
import sys

import results

TYPES = {("4", "4"): "fp32", ("2", "2"): "bf16", ("2", "4"): "bf16-fp32"}
COLD_BYTES = 1 << 29
SEED = 20261130
FEW = (1, 4, 16, 64)
WIDTHS = (33, 73, 127, 250, 1000, 4099, 32003, 50257, 131071)  # of layouts
LAYOUTS = (("1.1", 0), ("0.1", 0), (0, "1.1"), (0, "1.0"))  # at and gap; in, out
DRAWS = {"cold": 24, "graph": 8}  # of each type, and of each number of rows


def table(root):
    """The rules of kernels/library/table.csv, as dicts of text."""
    with (root / "kernels" / "library" / "table.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def shape(rule, cols):
    """(dtype, N, C, mode) of a rule's rows at so many columns."""
    kind = TYPES[rule["in_bytes"], rule["out_bytes"]]
    if rule["rows"]:
        return kind, int(rule["rows"]), cols, "graph"
    return kind, max(1, COLD_BYTES // int(rule["in_bytes"]) // cols), cols, "cold"


def pick(rule):
    """What a rule decides."""
    return tuple(rule[key] for key in ("version", "threads", "vectors", "blocks"))


def cliffs(rules):
    """Pairs of shapes, each pair on both sides of a step: the same rows at C and at C + 1."""
    groups = {}
    for rule in rules:
        key = (rule["in_bytes"], rule["out_bytes"], rule["rows"])
        groups.setdefault(key, []).append(rule)
    pairs = []
    for group in groups.values():
        for rule, following in zip(group, [*group[1:], None]):
            if rule["cols"] and (following is None or pick(rule) != pick(following)):
                cols = int(rule["cols"])
                first = shape(rule, cols)
                pairs.append((first, (first[0], first[1], cols + 1, first[3])))
    return pairs


def held_out(seed=SEED):
    """Shapes of random columns; every call with one seed gives the same."""
    draw = random.Random(seed)

    def cols(least, most):
        return round(least * (most / least) ** draw.random())

    shapes = []
    for (in_bytes, _), kind in TYPES.items():
        for _ in range(DRAWS["cold"]):
            width = cols(32, 1 << 20)
            shapes.append((kind, COLD_BYTES // int(in_bytes) // width, width, "cold"))
        for rows in FEW:
            shapes += [(kind, rows, cols(1024, 1 << 20), "graph") for _ in range(DRAWS["graph"])]
    return shapes


def few_rows():
    """1, 8 and 64 rows of a few columns, in graphs."""
    return [
        (kind, rows, cols, "graph")
        for kind in ("fp32", "bf16", "fp16")
        for cols in (1024, 50257, 128256, 262144, 1 << 20)
        for rows in (1, 8, 64)
    ]


def layouts():
    """Shapes that are not dense, with their at and gap, cold at half a gigabyte of input.

    In and out in one phase and in two; rows each in another phase, in out as in in, and in in
    alone; and some short rows that begin at multiples of 16 bytes.
    """
    shapes = []
    for (in_bytes, out_bytes), kind in TYPES.items():
        for cols in WIDTHS:
            first = (kind, COLD_BYTES // int(in_bytes) // cols, cols, "cold")
            shapes += [(*first, *layout) for layout in LAYOUTS]
            if cols in (73, 1000):
                each = [16 // int(size) for size in (in_bytes, out_bytes)]
                gaps = [-cols % one or one for one in each]
                shapes.append((*first, 0, ".".join(map(str, gaps))))
    return shapes


def main(argv=None):
    """Command line entry; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("cliffs", "held-out", "few-rows", "layouts"))
    what = parser.parse_args(argv).what
    shapes = {
        "cliffs": lambda: [one for pair in cliffs(table(results.ROOT)) for one in pair],
        "held-out": held_out,
        "few-rows": few_rows,
        "layouts": layouts,
    }[what]()
    print("dtype,N,C,mode" + ",at,gap" * (what == "layouts"))
    for one in shapes:
        print(",".join(map(str, one)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
