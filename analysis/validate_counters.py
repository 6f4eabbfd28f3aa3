"""Holds the CPU device's counters against an H200's own, as Nsight Compute reads them.

    python analysis/validate_counters.py --record BINARY OUT.csv   on a machine with a GPU and ncu
    python analysis/validate_counters.py --table                   writes kernels/COUNTERS.md
    python analysis/validate_counters.py --check                   writes nothing; exit 1 if stale

--record runs the launches of properties/counters_test.cpp under ncu: a row a launch and metric.
File it as results/<gpu>/<date>-<sha>/ncu.csv; the table is made of the newest. Every deviation
above 2 % needs a cause in properties/counters/causes.csv, and every cause there a deviation.
Exit 2: nothing to read, or nothing to write into.
"""

import argparse
import csv
import fnmatch
import io
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEVIATION = 0.02
FILTER = "CounterGate/Gpu.*:CounterGateGpu.*"
KERNELS = r"regex:^(softmax_v[0-9]+|pattern_).*"
OPCODES = "sass__inst_executed_per_opcode"
COLUMNS = ["kernel", "version", "rows", "cols", "block", "metric", "value"]
SCALE = {"Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}  # what ncu prints in spite of --print-units base

# Our key -> how a reader sees it in the table. Nsight Compute's names get ".sum".
SHORT = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld": "load requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld": "load sectors",
    "smsp__sass_data_bytes_mem_global_op_ld": "load bytes",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st": "store requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st": "store sectors",
    "smsp__sass_data_bytes_mem_global_op_st": "store bytes",
    "smsp__inst_executed_op_shared_ld": "shared loads",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld": "wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld": "conflicts",
    "smsp__inst_executed_op_shared_st": "shared stores",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st": "wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st": "conflicts",
    "atomics": "atomics",
    "barriers": "barriers",
    "shuffles": "shuffles",
    "votes": "votes",
}
# Ours that are counts of executed instructions there.
INSTRUCTIONS = {
    "atomics": ("ATOM", "ATOMG", "ATOMS", "RED", "REDG"),
    "barriers": ("BAR",),
    "shuffles": ("SHFL",),
    "votes": ("VOTE", "VOTEU"),
}
METRICS = [
    *(f"{key}.sum" for key in SHORT if "__" in key),
    *("dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_sectors_op_read.sum", OPCODES),
]


class ValidationError(Exception):
    """The message says which file or launch, and what is wrong with it."""


# Recording: the standard library only, for a machine that has a GPU and perhaps no pandas.


def number(text):
    """'1,234.5' or '1,234 (BAR: 2; ...)' -> the first number in it; None without one."""
    match = re.match(r"\s*(-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)", text)
    return float(match[1].replace(",", "")) if match else None


def instances(text):
    """'36 (BAR: 12; SHFL: 24)' -> {'BAR': 12, 'SHFL': 24}"""
    inside = text[text.find("(") + 1 :] if "(" in text else ""
    pairs = re.findall(r"\b([A-Z][A-Z0-9_.]*)\"?\s*[:=]\s*(\d[\d,]*(?:\.\d+)?)", inside)
    return {opcode: number(value) for opcode, value in pairs}


def parse_ncu(text):
    """What `ncu --csv --page raw` wrote -> [{kernel, block, metrics: {name: value}}], in order.

    Opcode counts are metrics of their own, sass__inst_executed_per_opcode:BAR.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID",')), None)
    if start is None:
        raise ValidationError("ncu wrote no table:\n" + "\n".join(lines[-15:]))
    quoted = [line for line in lines[start:] if line.startswith('"')]
    table = csv.DictReader(io.StringIO("\n".join(quoted)))
    units = next(table, {})
    launches = []
    for row in table:
        metrics = {}
        for name in METRICS:
            value = number(row.get(name) or "")
            if value is not None:
                metrics[name] = value * SCALE.get(units.get(name), 1)
        for opcode, value in instances(row.get(OPCODES) or "").items():
            metrics[f"{OPCODES}:{opcode}"] = value
        threads = math.prod(int(n) for n in re.findall(r"\d+", row["Block Size"]))
        name = re.search(r"\b(softmax_v\d+|pattern_)\w*", row["Kernel Name"])
        launches.append({"kernel": name[0] if name else row["Kernel Name"], "block": threads})
        launches[-1]["metrics"] = metrics
    return launches


def parse_plan(text):
    """What counters_test announces -> [(kernel, version, rows, cols, block)], in order."""
    plan = re.findall(r"@launch,(\w+),(\w+),(\d+),(\d+),(\d+)", text)
    return [(kernel, version, *map(int, rest)) for kernel, version, *rest in plan]


def assign(plan, launches):
    """Which profiled launch is which announced one -> tidy rows of COLUMNS.

    By order within each kernel. A kernel that starts k functions a launch has its k added up.
    """
    rows, seen = [], 0
    for family in dict.fromkeys((kernel, version) for kernel, version, *_ in plan):
        kernel, version = family
        function = kernel if version == "pattern" else rf"softmax_v{version[1:]}(?!\d)\w*"
        mine = [launch for launch in launches if re.fullmatch(function, launch["kernel"])]
        announced = [entry for entry in plan if entry[:2] == family]
        each, left = divmod(len(mine), len(announced))
        if each == 0 or left:
            raise ValidationError(
                f"{kernel}: {len(announced)} launches announced, {len(mine)} profiled"
            )
        seen += len(mine)
        for i, entry in enumerate(announced):
            parts = mine[i * each : (i + 1) * each]
            if each == 1 and parts[0]["block"] != entry[4]:
                raise ValidationError(
                    f"{kernel}: a block of {entry[4]} announced, of {parts[0]['block']} profiled"
                )
            for metric in dict.fromkeys(name for part in parts for name in part["metrics"]):
                total = sum(part["metrics"].get(metric, 0) for part in parts)
                rows.append(dict(zip(COLUMNS, [*entry, metric, f"{total:.0f}"])))
    if seen != len(launches):
        raise ValidationError(f"{len(launches) - seen} profiled launches that nobody announced")
    return rows


def run_ncu(ncu, binary, metrics):
    """(log of ncu, output of the binary, the metrics that ncu complains of)"""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [ncu, "--clock-control", "none", "--csv", "--page", "raw", "--log-file", log]
        command += ["--print-units", "base", "--print-metric-instances", "details"]
        command += ["--print-kernel-base", "function", "--kernel-name", KERNELS]
        command += ["--metrics", ",".join(metrics), binary, f"--gtest_filter={FILTER}"]
        done = subprocess.run(command, text=True, capture_output=True)
        text = log.read_text(encoding="utf-8") if log.exists() else ""
    said = "\n".join([text, done.stdout, done.stderr])
    complaints = "\n".join(re.findall(r"^==(?:ERROR|WARNING)==.*", said, re.MULTILINE))
    refused = [m for m in metrics if re.search(rf"(?<![\w.]){re.escape(m)}(?![\w.]\w)", complaints)]
    if done.returncode and not refused:
        raise ValidationError(f"{ncu}: exit {done.returncode}\n{said[-4000:]}")
    return text, done.stdout, refused


def record(binary, out, ncu="ncu", chip="gh100"):
    try:
        query = [ncu, "--query-metrics", "--chips", chip]
        listed = subprocess.run(query, text=True, capture_output=True).stdout
    except OSError as error:
        raise ValidationError(f"{ncu}: {error.strerror}") from error
    known = set(re.findall(r"^\s*(\w+__\w+)", listed, re.MULTILINE))
    # Metrics that it gets by instrumenting the code are not all among those that it lists.
    wanted = [m for m in METRICS if not known or m.split(".")[0] in known or "sass_" in m]
    text, output, refused = run_ncu(ncu, binary, wanted)
    if refused:
        wanted = [m for m in wanted if m not in refused]
        text, output, _ = run_ncu(ncu, binary, wanted)
    for metric in METRICS:
        if metric not in wanted:
            print(f"validate_counters: ncu does not know {metric}: left out", file=sys.stderr)
    rows = assign(parse_plan(output), parse_ncu(text))
    if not rows:
        raise ValidationError(f"{binary}: it announced no launch; has it a GPU?\n{output[-2000:]}")
    with open(out, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{out}: {len(rows)} rows")


# Comparing.


def read_csv(path):
    """Rows as dicts; lines that begin with # are left out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def ours(root):
    """{kernel: {(rows, cols, block): {key: count}}} of properties/golden and of the patterns."""
    counts = {}
    for file in sorted((root / "properties" / "golden").glob("*.csv")):
        for row in read_csv(file):
            at = tuple(int(row.pop(key)) for key in ("rows", "cols", "block"))
            counts.setdefault(file.stem, {})[at] = {key: int(n) for key, n in row.items()}
    for row in read_csv(root / "properties" / "counters" / "patterns.csv"):
        name, at = row.pop("pattern"), (int(row.pop("blocks")), 0, int(row.pop("block")))
        counts[f"pattern_{name}"] = {at: {key: int(n) for key, n in row.items()}}
    return counts


def hardware(path):
    """The same of an ncu.csv, under our keys and in our units."""
    raw = {}
    for row in read_csv(path):
        at = tuple(int(row[key]) for key in ("rows", "cols", "block"))
        raw.setdefault(row["kernel"], {}).setdefault(at, {})[row["metric"]] = float(row["value"])
    counts = {}
    for kernel, launches in raw.items():
        for at, metrics in launches.items():
            found = counts.setdefault(kernel, {}).setdefault(at, {})
            found |= {key: metrics[f"{key}.sum"] for key in SHORT if f"{key}.sum" in metrics}
            if any(name.startswith(f"{OPCODES}:") for name in metrics):
                for key, names in INSTRUCTIONS.items():
                    found[key] = sum(metrics.get(f"{OPCODES}:{name}", 0) for name in names)
                found["barriers"] /= max(1, at[2] // 32)  # each warp of a block executes one
    return counts


def compare(ours_, theirs):
    """[(kernel, key, ours, hardware, deviation)]: totals, and the worst launch's deviation.

    Launches that only one of the two has are left out.
    """
    found = []
    for kernel in ours_:
        launches = [at for at in ours_[kernel] if at in theirs.get(kernel, {})]
        for key in SHORT:
            pairs = [
                (ours_[kernel][at][key], theirs[kernel][at][key])
                for at in launches
                if key in ours_[kernel][at] and key in theirs[kernel][at]
            ]
            if pairs:
                worst = max(abs(b - a) / a if a else math.inf if b else 0.0 for a, b in pairs)
                total, there = map(sum, zip(*pairs))
                found.append((kernel, key, total, there, worst))
    return found


def explain(found, causes):
    """(deviations with their causes or None, causes that explain nothing).

    The kernel and the metric of a cause may have wildcards.
    """
    used, deviations = set(), []
    for kernel, key, a, b, worst in found:
        if worst <= DEVIATION:
            continue
        fits = [i for i, c in enumerate(causes)
                if fnmatch.fnmatch(kernel, c["kernel"]) and fnmatch.fnmatch(key, c["metric"])]
        used |= set(fits)
        deviations.append((kernel, key, a, b, causes[fits[0]]["cause"] if fits else None))
    return deviations, [cause for i, cause in enumerate(causes) if i not in used]


def cell(a, b):
    return ("" if a == 0 else f"{a}") if a == b else f"**{a} / {b:.0f}**"


def body(found, deviations, source):
    """Markdown: a line a kernel, then the deviations."""
    from tables import table  # it reads results with pandas

    keys = [key for key in SHORT if any(row[1] == key and (row[2] or row[3]) for row in found)]
    by_kernel = {}
    for kernel, key, a, b, _ in found:
        by_kernel.setdefault(kernel, {})[key] = cell(a, b)
    rows = [[name, *(cells.get(key, "–") for key in keys)] for name, cells in by_kernel.items()]
    listed = [
        [f"{kernel}: `{key}`", cause or "**no cause known**", f"{a}", f"{b:.0f}",
         f"{b / a:.3f}" if a else "–"]
        for kernel, key, a, b, cause in deviations
    ]
    same = sum(1 for row in found if row[2] == row[3])
    text = (
        f"{same} of {len(found)} counts are the hardware's to the last digit; {len(deviations)} "
        f"differ by more than {DEVIATION:.0%} in some launch. Summed over the launches of each "
        "kernel; a cell is **ours / hardware** where the two differ. A barrier is one of a whole "
        "block: the hardware's count of `BAR` is one a warp, and is divided by the warps of a "
        f"block. From `{source}` by `analysis/validate_counters.py`.\n\n"
    )
    text += table(["kernel", *(SHORT[key] for key in keys)], rows)
    if listed:
        text += "\n\n" + table(["", "cause of the difference", "ours", "hardware", "ratio"], listed)
    return text


def validate(root, top, check):
    """Writes or checks kernels/COUNTERS.md -> exit status. top: the folder of results."""
    import tables

    page = root / "kernels" / "COUNTERS.md"
    faults = []

    def texts():
        source = tables.newest("ncu.csv", top)
        found = compare(ours(root), hardware(source))
        if not found:
            raise ValidationError(f"{source}: no launch that properties/golden has too")
        causes = read_csv(root / "properties" / "counters" / "causes.csv")
        deviations, unused = explain(found, causes)
        faults.extend(f"{kernel}, {key}: hardware has {b:.0f}, we {a}, and causes.csv has no cause"
                      for kernel, key, a, b, cause in deviations if not cause)
        faults.extend(f"causes.csv: {c['kernel']}, {c['metric']} explains no deviation"
                      for c in unused)
        named = source.relative_to(root) if source.is_relative_to(root) else source
        text = body(found, deviations, named.as_posix())
        old = page.read_text(encoding="utf-8")
        return {page: tables.between(old, "counters", text, page)}

    status = tables.update("validate_counters.py --table", texts, check)
    print("\n".join(faults), end="\n" if faults else "")
    return status or bool(faults)


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", nargs=2, metavar=("BINARY", "OUT.csv"))
    what.add_argument("--table", action="store_true")
    what.add_argument("--check", action="store_true")
    parser.add_argument("--ncu", default="ncu", help="the profiler (default: ncu)")
    parser.add_argument("--chip", default="gh100", help="whose metrics to ask for")
    parser.add_argument("--results", type=Path, help="default: results/, or $SOFTMAX_RESULTS")
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree with kernels/")
    args = parser.parse_args(argv)
    top = args.results or Path(os.environ.get("SOFTMAX_RESULTS", args.root / "results"))
    try:
        if args.record:
            record(*args.record, ncu=args.ncu, chip=args.chip)
            return 0
        return validate(args.root, top, args.check)
    except (ValidationError, OSError) as error:
        print(f"validate_counters: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
