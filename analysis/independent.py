"""Holds the benchmark's cold times against Nsight Compute's of the same kernels.

    python analysis/independent.py RESULTS.json OUT.csv [--bench build/bench] [--filter REGEX]

on a machine with a GPU and ncu. Runs `bench --profile` under ncu, which empties the caches before
the launch and times it by itself (gpu__time_duration); takes the medians of RESULTS.json of the
same names. Ours lie between two events, so they include what a launch costs: of launches below
100 µs that is more than the 3 % that is allowed, and they are left out. Writes a row a kernel:
name, ncu_us, bench_us, ratio. Exit 1 if a ratio is off by more than 3 %; 2: nothing to compare.
"""

import argparse
import csv
import io
import re
import subprocess
import sys

import results

ALLOWED = 0.03
SHORTEST = 100.0  # µs
NAME = re.compile(r"(softmax/\S+?)/manual_time")  # the range's, among its other attributes
METRIC = "gpu__time_duration.sum"
SCALE = {"nsecond": 1e-3, "ns": 1e-3, "usecond": 1.0, "us": 1.0, "msecond": 1e3, "ms": 1e3}


def ncu(bench, pattern):
    """{name without its ending: µs}, of each launch in the range that --profile names after it."""
    command = ["ncu", "--profile-from-start", "off", "--cache-control", "all", "--clock-control"]
    command += ["none", "--nvtx", "--csv", "--page", "raw", "--metrics", METRIC]
    done = subprocess.run(
        [*command, bench, "--profile", f"--benchmark_filter={pattern}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    table = done.stdout[done.stdout.find('"ID"') :]
    rows = list(csv.DictReader(io.StringIO(table))) if table.startswith('"ID"') else []
    if not rows:
        raise results.ResultsError(f"ncu counted no launch: {(done.stderr or done.stdout)[-300:]}")
    units, launches = rows[0], rows[1:]
    scale = SCALE[units[METRIC]]
    found = {}
    for row in launches:
        match = NAME.search(" ".join(value for value in row.values() if isinstance(value, str)))
        if not match:
            raise results.ResultsError(f"a launch in no range of --profile: {row}")
        us = float(row[METRIC].replace(",", "")) * scale
        found[match[1]] = found.get(match[1], 0.0) + us
    return found


def compare(theirs, frame):
    """Rows (name, ncu_us, bench_us, ratio) of what both timed, launches of SHORTEST and longer."""
    ours = frame[frame["error"].isna()].groupby("name")["us"].median()
    ours.index = ours.index.str.removesuffix("/manual_time")
    both = [(name, us, ours[name]) for name, us in theirs.items() if name in ours.index]
    return [(name, us, mine, mine / us) for name, us, mine in both if us >= SHORTEST]


def main(argv=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results")
    parser.add_argument("out")
    parser.add_argument("--bench", default="build/bench")
    parser.add_argument("--filter", default="/V[2-7]/.*C:50257/block:(32|1024)/")
    args = parser.parse_args(argv)
    try:
        rows = compare(ncu(args.bench, args.filter), results.load(args.results))
    except (results.ResultsError, OSError) as error:
        print(f"independent: {error}", file=sys.stderr)
        return 2
    if not rows:
        print("independent: no kernel that both timed", file=sys.stderr)
        return 2
    with open(args.out, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "ncu_us", "bench_us", "ratio"])
        writer.writerows([name, f"{a:.3f}", f"{b:.3f}", f"{r:.4f}"] for name, a, b, r in rows)
    for name, a, b, r in rows:
        print(f"{name:60} ncu {a:10.2f}  bench {b:10.2f}  ratio {r:.4f}")
    return 1 if any(abs(row[3] - 1) > ALLOWED for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
