"""Writes the tables of kernels/GOALS.md and README.md: what goals.csv asks, what an H200 gave.

    python analysis/goals.py            rewrites what stands between the markers
    python analysis/goals.py --check    writes nothing; exit 1 if the table is out of date

From the newest goals-ieee.json, which has cuDNN beside Auto, goals-fast.json beside it, and the
newest folder's peers-goals-*.json, whose rows of softmax-lab are the Python package's, beside the
others in one process; and, where there are any, from the newest points-cliffs-*.json,
points-held-out-ieee.json, points-few-rows-ieee.json and points-layouts*.json, of auto_points.py's
shapes. Exit 2: nothing to write from or into.
"""

import argparse
import csv
import re
import sys

import pandas as pd

import results
import tables

KEYS = ("dtype", "N", "C", "mode")
RATIO = 1.02  # to the fastest of the others: more is behind
CLIFF = 1.15  # to one column fewer
LEAST = 85  # % of the copy, wherever rows begin
WIDTHS = {"fp32": 4, "fp16": 2, "bf16": 2}  # bytes
HEADER = (
    "type",
    "rows x columns",
    "of",
    "must",
    "aim",
    "Auto",
    "Auto, overlapping",
    "copy, us",
    "meets",
    "kernel and plan",
    "fastest of the others, us",
    "ours over it",
)


def goals(root):
    """The lines of benchmarks/goals.csv, numbers as such, in their order."""
    with (root / "benchmarks" / "goals.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        line.update(N=int(line["N"]), C=int(line["C"]))
        line.update(must=float(line["must"]), aim=float(line["aim"]))
    return lines


def value(row, metric):
    """Of a row of results, what a goal of this metric is about."""
    if metric == "copy_fraction":
        return row["%copy"] / 100
    return row["us"] / row["N"] if metric == "us/token" else row["us"]


def of(rows, goal):
    """The rows of one shape, type and mode."""
    for key in KEYS:
        rows = rows[rows[key] == goal[key]]
    return rows


def met(goal, reached):
    """ "aim", "must" or "no"."""
    better = (lambda a, b: a >= b) if goal["metric"] == "copy_fraction" else (lambda a, b: a <= b)
    return next((word for word in ("aim", "must") if better(reached, goal[word])), "no")


def spell(metric, number):
    """A number as the table has it."""
    return f"{100 * number:.1f} %" if metric == "copy_fraction" else f"{number:.3g}"


def auto(rows, goal):
    """Auto's rows of a goal: without an overlapping launch, and with one or None."""
    mine = of(rows, goal)
    mine = mine[(mine["version"] == "Auto") & mine["error"].isna()].sort_values("overlap")
    if mine.empty or mine.iloc[0]["overlap"] != 0:
        raise results.ResultsError(f"no Auto at {goal['dtype']} {goal['N']} x {goal['C']}")
    return mine.iloc[0], mine.iloc[1] if len(mine) > 1 else None


def beside(files):
    """{(dtype, N, C, mode): (us of ours, name of another, its us)}: whom ours is behind most, or
    ahead of least, of all that ran in one process with it, without overlapping launches."""
    found = {}
    for rows in files:
        ours = rows["version"].isin(("softmax-lab", "Auto"))
        rows = rows[rows["error"].isna() & (ours | rows["number"].isna())]  # its kernels are no others
        if "overlap" in rows:  # of a peer nobody says
            rows = rows[~(rows["overlap"] > 0)]
        for key, some in rows.groupby(list(KEYS)):
            us = some.groupby("version")["us"].median()
            mine = us[us.index.isin(("softmax-lab", "Auto"))]
            others = us[~us.index.isin(("softmax-lab", "Auto", "copy"))]
            if mine.empty or others.empty:
                continue
            one = (mine.iloc[0], others.idxmin(), others.min())
            if key not in found or one[0] / one[2] > found[key][0] / found[key][2]:
                found[key] = one
    return found


def beside_text(others):
    """Every shape of `beside`, a table for each mode, a line for each shape."""
    parts = []
    for mode in sorted({key[3] for key in others}, reverse=True):
        shapes = sorted({(key[2], key[1]) for key in others if key[3] == mode})
        dtypes = [kind for kind in ("fp32", "bf16", "fp16") if (kind, mode) in
                  {(key[0], key[3]) for key in others}]
        header = ["rows x columns"]
        for dtype in dtypes:
            header += [f"{dtype}, us", "another, us", "ours over it"]
        lines = []
        for cols, rows in shapes:
            lines.append([f"{rows:,} x {cols:,}"])
            for dtype in dtypes:
                one = others.get((dtype, rows, cols, mode))
                lines[-1] += [tables.DASH] * 3 if one is None else [
                    f"{one[0]:.4g}", f"{one[1]} {one[2]:.4g}", f"{one[0] / one[2]:.2f}"]
        what = {"graph": "In graphs", "cold": "With a cold cache"}.get(mode, mode)
        parts.append(f"{what}:\n\n" + tables.table(header, lines, left=1))
    late = [key for key, one in others.items() if one[0] / one[2] > RATIO]
    text = f"Of {len(others)} shapes and types ours takes more than {RATIO} times another's time"
    text += f" at {len(late)}"
    if late:
        named = (f"{key[0]} {key[1]:,} x {key[2]:,} ({others[key][0] / others[key][2]:.2f})"
                 for key in sorted(late, key=lambda key: (key[3], key[0], key[2], key[1])))
        text += ": " + ", ".join(named)
    return text + ".\n\n" + "\n\n".join(parts)


def body(root, ours, others):
    """The table, and what it comes to; others: of `beside`."""
    rows, reached, alone = [], [], []
    for goal in goals(root):
        plain, early = auto(ours, goal)
        best = plain if early is None or plain["us"] <= early["us"] else early
        metric = goal["metric"]
        reached.append(met(goal, value(best, metric)))
        alone.append(met(goal, value(plain, metric)))
        cells = [
            goal["dtype"],
            f"{goal['N']:,} x {goal['C']:,}",
            metric.replace("copy_fraction", "of the copy"),
        ]
        cells += [spell(metric, goal[word]) for word in ("must", "aim")]
        cells += [
            spell(metric, value(row, metric)) if row is not None else tables.DASH
            for row in (plain, early)
        ]
        cells += [
            f"{best['us_copy']:.4g}",
            reached[-1],
            re.search(r"\[(.+?)[],]", best["label"])[1],
        ]
        against = others.get(tuple(goal[key] for key in KEYS))
        if against is None:
            cells += [tables.DASH, tables.DASH]
        else:
            mine, name, theirs = against
            cells += [f"{name} {theirs:.4g}", f"{mine / theirs:.2f}"]
        rows.append(cells)
    text = tables.table(HEADER, rows, left=3)
    counts = [(sum(word != "no" for word in all_), all_.count("aim")) for all_ in (reached, alone)]
    text += f"\n\nOf {len(reached)} goals {counts[0][0]} meet `must` and {counts[0][1]} meet `aim`;"
    text += (
        f" without overlapping launches, which is the default, {counts[1][0]} and {counts[1][1]}."
    )
    return text


def short_text(root, ours):
    """The same in short, for README.md: few rows each, gigabytes by type."""
    rows, parts = [], {}
    for goal in goals(root):
        plain, early = auto(ours, goal)
        if goal["mode"] == "graph":
            cells = [goal["dtype"], f"{goal['N']:,} x {goal['C']:,}", f"{plain['us']:.3g}"]
            cells += [tables.DASH if early is None else f"{early['us']:.3g}"]
            rows.append([*cells, f"{plain['us_copy']:.3g}"])
        elif goal["metric"] == "copy_fraction":
            parts.setdefault(goal["dtype"], []).append((goal["C"], plain["%copy"]))
    header = ("type", "rows x columns", "Auto, us", "overlapping", "a copy, us")
    text = "Half a gigabyte or more, cold, of a copy's speed: "
    text += "; ".join(
        f"{dtype} {min(of for _, of in some):.1f} to {max(of for _, of in some):.1f} %"
        f" ({min(some)[0]:,} to {max(some)[0]:,} columns)"
        for dtype, some in parts.items()
    )
    return text + ". Few rows, in CUDA graphs:\n\n" + tables.table(header, rows, left=2)


def flavours_text(ours, fast):
    """How far the times in fast math are from those of the same shapes in ieee."""
    keys = [*KEYS, "overlap"]
    columns = [*keys, "us"]
    pairs = [rows[(rows["version"] == "Auto") & rows["error"].isna()] for rows in (ours, fast)]
    both = pairs[0][columns].merge(pairs[1][columns], on=keys, suffixes=("", "_fast"))
    if both.empty:
        raise results.ResultsError("goals-fast: no Auto at a shape of goals-ieee")
    ratio = both["us_fast"] / both["us"]
    text = f"In fast math the {len(both)} times of {', '.join(sorted(set(both['dtype'])))} are"
    return text + f" {ratio.min():.3f} to {ratio.max():.3f} of these."


def jumps(rows):
    """[(shape, us at C, us at C + 1)] of every pair of `auto_points.py cliffs`, in their order."""
    rows = rows[(rows["version"] == "Auto") & rows["error"].isna() & (rows["overlap"] == 0)]
    at = {(row["dtype"], row["N"], row["C"], row["mode"]): row["us"] for _, row in rows.iterrows()}
    following = ((key, (*key[:2], key[2] + 1, key[3])) for key in at)
    return [(key, at[key], at[after]) for key, after in following if after in at]


def is_cliff(before, after):
    """Whether one column more costs what no column may: 15 %, or 1 us where both are below 20."""
    return after - before > 1 if max(before, after) < 20 else after / before > CLIFF


def cliffs_text(rows):
    """What the steps of the table cost."""
    found = jumps(rows)
    if not found:
        raise results.ResultsError("points-cliffs: no two shapes that are a column apart")
    bad = [f"{key[0]} {key[1]:,} x {key[2]:,}" for key, *times in found if is_cliff(*times)]
    worst = max(found, key=lambda one: one[2] / one[1])
    text = f"At the {len(found)} steps of the table one column more takes at most"
    text += f" {worst[2] / worst[1]:.2f} times as long"
    text += (
        f" ({worst[0][0]} {worst[0][1]:,} x {worst[0][2]:,}: {worst[1]:.4g} to {worst[2]:.4g} us)"
    )
    return text + (f"; too much at {', '.join(bad)}." if bad else "; nowhere too much.")


def held_out_text(rows):
    """How near to the copy Auto is at columns that its table was not made from."""
    rows = rows[(rows["version"] == "Auto") & rows["error"].isna() & (rows["overlap"] == 0)]
    parts = []
    for (dtype, mode), some in rows.groupby(["dtype", "mode"], sort=True):
        worst = some.loc[some["%copy"].idxmin()]
        parts.append(
            f"{dtype} {mode}: median {some['%copy'].median():.1f} % of the copy"
            f" at {len(some)} shapes, "
            f"least {worst['%copy']:.1f} % ({worst['N']:,} x {worst['C']:,})"
        )
    if not parts:
        raise results.ResultsError("points-held-out: no Auto in it")
    return "Columns drawn at random: " + "; ".join(parts) + "."


def layout(row):
    """What a row of points-layouts says of its layout: "at 1.1", "gap 1.0" or "gap to 16 bytes"."""
    parts = {name: row[name] for name in ("at", "gap") if not pd.isna(row[name])}
    if set(parts) == {"gap"}:
        kinds = row["dtype"].split("-")
        strides = (row["C"] + int(gap) for gap in parts["gap"].split("."))
        if all(stride * WIDTHS[kind] % 16 == 0 for stride, kind in zip(strides, (*kinds, *kinds))):
            return "gap to 16 bytes"
    return " ".join(f"{name} {value}" for name, value in parts.items())


def layouts_text(rows):
    """How near to the copy Auto is where rows begin anywhere, a line for each type and width."""
    rows = rows[(rows["version"] == "Auto") & rows["error"].isna() & (rows["overlap"] == 0)]
    rows = rows[rows["at"].notna() | rows["gap"].notna()].reset_index(drop=True)
    if rows.empty:
        raise results.ResultsError("points-layouts: no Auto in it")
    rows = rows.assign(layout=[layout(row) for _, row in rows.iterrows()])
    names = list(dict.fromkeys(rows["layout"]))
    lines, parts = [], []
    for (dtype, cols), some in rows.groupby(["dtype", "C"]):
        of_copy = some.groupby("layout")["%copy"].median()
        cells = (f"{of_copy[name]:.1f}" if name in of_copy else tables.DASH for name in names)
        late = {name for name in of_copy.index if of_copy[name] < LEAST}
        cells = [f"**{cell}**" if name in late else cell for name, cell in zip(names, cells)]
        lines.append([dtype, f"{cols:,}", *cells])
    for name, some in rows.groupby("layout", sort=False):
        worst = some.loc[some["%copy"].idxmin()]
        parts.append(
            f"{name}: median {some['%copy'].median():.1f} %, least {worst['%copy']:.1f} %"
            f" ({worst['dtype']} {worst['N']:,} x {worst['C']:,})"
        )
    text = "Where rows begin anywhere, Auto's % of a copy of as many bytes that lie dense and"
    text += " aligned. `at` elements lie ahead of the first row, `gap` between two, of the input"
    text += f" and the output; below {LEAST} in bold. " + "; ".join(parts) + ".\n\n"
    return text + tables.table(("type", "columns", *names), lines, left=1)


def newest(pattern):
    """Files of the newest folder of a GPU's results that has such; [] where there is none."""
    if not any(results.results_folder().glob(f"*/*/{pattern}")):
        return []
    return sorted(results.latest(pattern=pattern).glob(pattern))


def source(files):
    """The last line of a text."""
    return "From " + ", ".join(f"`{results.relative(one)}`" for one in files) + "."


def wanted(root):
    """{kernels/GOALS.md: its text, README.md: its}."""
    file = results.latest(pattern="goals-ieee.json") / "goals-ieee.json"
    ours = results.load(file)
    more = [*newest("peers-goals-*.json"), *newest("points-few-rows-ieee.json")]
    others = beside([ours, *(results.load(one) for one in more)])
    text, files = body(root, ours, others), [file]
    fast = file.with_name("goals-fast.json")
    for found, say in (
        ([fast] if fast.exists() else [], lambda rows: flavours_text(ours, rows)),
        (newest("points-cliffs-*.json"), cliffs_text),
        (newest("points-held-out-ieee.json"), held_out_text),
    ):
        if found:
            text += "\n\n" + say(pd.concat([results.load(one) for one in found]))
        files += found
    text += "\n\n" + source(files)
    versus = beside_text(others) + "\n\n" + source([file, *more])
    found = newest("points-layouts*.json")
    layouts = ""
    if found:
        layouts = layouts_text(pd.concat([results.load(one) for one in found]))
        layouts += "\n\n" + source(found)
    short = short_text(root, ours) + "\n\n" + source([file])
    texts = {}
    for page, marker, new in (
        (root / "kernels" / "GOALS.md", "goals", text),
        (root / "kernels" / "GOALS.md", "layouts", layouts),
        (root / "kernels" / "GOALS.md", "beside", versus),
        (root / "README.md", "goals-short", short),
    ):
        old = texts.get(page) or page.read_text(encoding="utf-8")
        texts[page] = tables.between(old, marker, new, page)
    return texts


def main(argv=None):
    """Command line entry; gives the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if out of date")
    options = parser.parse_args(argv)
    return tables.update("goals.py", lambda: wanted(results.ROOT), options.check)


if __name__ == "__main__":
    sys.exit(main())
