"""Writes the table of properties/faults/README.md: which check finds which seeded fault.

    python analysis/update_faults.py            rewrites what stands between the markers
    python analysis/update_faults.py --check    writes nothing; exit 1 if the table is out of date

From the newest results/<gpu>/<date>-<sha>/sanitizer.csv, which analysis/sanitize.py makes. Exit 2:
nothing to write from or into.
"""

import argparse
import csv
import sys
from pathlib import Path

import results
import sanitize
import tables

CELLS = {"yes": "yes", "no": tables.DASH, "crash": "crash", "timeout": "hang"}
COLUMNS = (sanitize.OURS, *sanitize.TOOLS)


def read(path):
    """{(fault, tool): found}, {fault: kind} of a sanitizer.csv; ResultsError if it is none."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or tuple(rows[0]) != sanitize.FIELDS:
        raise results.ResultsError(f"{results.relative(path)}: want {','.join(sanitize.FIELDS)}")
    found = {(row["fault"], row["tool"]): row["found"] for row in rows}
    return found, {row["fault"]: row["kind"] for row in rows}


def body(path, study):
    """The table and what it comes to. study: as sanitize.study() gives."""
    found, kinds = read(path)
    faults = [name for name, kind in kinds.items() if kind != "clean"]
    clean = [name for name, kind in kinds.items() if kind == "clean"]

    def count(names, *tools):
        return sum(any(found.get((name, tool)) == "yes" for tool in tools) for name in names)

    rows = []
    for name in faults:
        fault = study.get(name, {"file": "", "idea": "no longer in the tree"})
        place = f"[{name}]({fault['file']})" if fault["file"] else name
        cells = [found.get((name, tool), "") for tool in COLUMNS]
        rows.append([f"{place}: {fault['idea']}", kinds[name], *(CELLS.get(c, c) for c in cells)])
    table = tables.table(["fault", "kind", "CPU device", *sanitize.TOOLS], rows)
    by_tool = ", ".join(f"{tool} {count(faults, tool)}" for tool in sanitize.TOOLS)
    return (
        f"{table}\n\n"
        f"Of {len(faults)} faults the CPU device names {count(faults, sanitize.OURS)}, the four "
        f"tools of compute-sanitizer together {count(faults, *sanitize.TOOLS)} ({by_tool}). Of "
        f"{len(clean)} near misses and tests of right kernels the CPU device reports "
        f"{count(clean, sanitize.OURS)}, compute-sanitizer {count(clean, *sanitize.TOOLS)}. "
        f"*crash*: the tool names nothing, a CUDA error ends the program; *hang*: it names nothing "
        f"before its time is over. From `{results.relative(path)}`, table by "
        "`analysis/update_faults.py`."
    )


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--csv", type=Path, help="a sanitizer.csv (default: the newest)")
    parser.add_argument("--root", type=Path, default=results.ROOT, help="the tree to write into")
    args = parser.parse_args(argv)
    readme = args.root / "properties" / "faults" / "README.md"

    def texts():
        table = body(args.csv or tables.newest("sanitizer.csv"), sanitize.study())
        old = readme.read_text(encoding="utf-8")
        return {readme: tables.between(old, "faults", table, readme)}

    return tables.update("update_faults.py", texts, args.check)


if __name__ == "__main__":
    sys.exit(main())
