"""The studies: a figure and a paragraph for each claim of the article that an experiment tests.

    python analysis/study_figures.py                writes analysis/studies/*.png and
                                                    benchmarks/studies/README.md
    python analysis/study_figures.py --check        writes nothing; exit 1 if one is out of date
    python analysis/study_figures.py --facts reduce what a paragraph of that study may cite

analysis/studies.md holds claims and paragraphs. In a paragraph {fact} stands for a number with its
unit, {a / b} for the quotient of two, {a more than b} for the difference in per cent. A fact is a
row by what tells it from others of its variant, its metric behind it unless that is the study's
own: {shuffle chains:1 block:256 cycles/op}.
"""

import argparse
import difflib
import hashlib
import json
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd

import atlas
import figures
import results
import update_ladder
from tables import update

UNITS = {"us": "µs", "ns/op": "ns", "cycles/op": "cycles", "GB/s": "GB/s", "%copy": "%",
         "max_ulp": "ulp", "regs": "registers", "blocks/SM": "blocks", "local_bytes": "bytes",
         "sm_mhz": "MHz", "smem": "bytes", "op/cycle": ""}
AXIS = {"ns/op": "ns an operation", "cycles/op": "cycles an operation", "GB/s": "GB/s",
        "max_ulp": "largest error, ulp", "us": "µs"}
ALONG = {"set": "bytes that are walked through", "block": "threads a block",
         "elements": "elements a thread", "unroll": "bytes in flight a thread: loads times width",
         "blocks/SM": "blocks on a multiprocessor"}
TIMES = {"unroll": "width"}  # what stands on x is the product
# Beside the arguments of a row, what its name holds; its counters are the keys of UNITS.
FIXED = ("op", "version", "dtype", "math", "mode")

# Panels of an experiment: operation, rows, argument on x (None: a bar a variant), metric, title.
PANELS = {
    "reduce": [("reduce", {"chains": 1}, "block", "ns/op", "one value a thread"),
               ("reduce", {"chains": 4}, "block", "ns/op", "four values at once"),
               ("reduce-max", {"block": 32}, None, "ns/op", "a maximum, one warp"),
               ("reduce-max", {"block": 1024}, None, "ns/op", "a maximum, 32 warps at once")],
    "latency": [("latency", {}, "set", "cycles/op", "each load needs the one before it")],
    "access": [("access", {}, "unroll", "GB/s", "a copy by a fixed number of threads")],
    "hints": [("hints", {"reads": 1}, None, "GB/s", "data that is read once"),
              ("hints", {"reads": 2}, None, "GB/s", "data that is read twice")],
    "occupancy": [("occupancy", {"version": ("free", "tight")}, "elements", "GB/s",
                   "a row in registers"),
                  ("occupancy", {"version": ("shared",)}, "blocks/SM", "GB/s",
                   "shared memory keeps blocks out")],
    "coarsening": [("coarsening", {}, "elements", "GB/s", "row sums")],
    "exp": [("exp", {}, None, "ns/op", "time"), ("exp-ulp", {}, None, "max_ulp", "error")],
}


def arguments(row):
    """The free arguments of a row's name: {"chains": 1, "block": 256}."""
    named = results.parse_name(row["name"])
    return {key: value for key, value in named.items() if key not in (*FIXED, "number")}


def labels(rows, metric):
    """[(label, row)] of an operation: version, and what tells it from others of that version."""
    versions = {}
    for row in atlas.middle(rows[rows["error"].isna()]):
        if not pd.isna(row.get(metric, np.nan)):
            known = {"math": row["math"], "mode": row["mode"]} | arguments(row)
            versions.setdefault(row["version"], []).append((known, row))
    found = []
    for version, each in versions.items():
        telling, told = [], 1
        for key in dict.fromkeys(key for known, _ in each for key in known):
            apart = len({tuple(known.get(k) for k in (*telling, key)) for known, _ in each})
            if apart > told:
                telling.append(key)
                told = apart
        for known, row in each:
            told = [f"{k}:{known[k]}" for k in telling if k in known and known[k] != "ieee"]
            found.append((" ".join([version, *told]), row))
    return found


def series(label, x):
    """What is one line over x: the label without it; of a counter the version alone."""
    words = label.split()
    return words[0] if x in UNITS else " ".join(w for w in words if not w.startswith(f"{x}:"))


def row_facts(rows, metric, suffix=""):
    """Facts of an operation's rows: {label: (number, unit)}, with other metrics behind it, and of
    each version the "best"; suffix tells a second operation's from the first's."""
    facts, best = {}, {}
    rows = rows.assign(**{"op/cycle": 1 / rows["cycles/op"]}) if "cycles/op" in rows else rows
    better = max if metric == "GB/s" else min
    for label, row in labels(rows, metric):
        for key, unit in UNITS.items():
            if not pd.isna(row.get(key, np.nan)):
                facts[f"{label}{suffix} {key}"] = (row[key], unit)
        facts[f"{label}{suffix}"] = (row[metric], UNITS[metric])
        best.setdefault(f"{row['version']}{suffix} best", []).append(row[metric])
    return facts | {key: (better(values), UNITS[metric]) for key, values in best.items()}


def chosen(rows, operation, where):
    rows = rows[rows["op"] == operation] if len(rows) else rows
    for key, value in where.items():
        if key not in rows:
            return rows[:0]
        rows = rows[rows[key].isin(value if isinstance(value, tuple) else (value,))]
    return rows


def draw_panel(ax, rows, x, metric, looks):
    """Lines over x, one for each version and argument but x; bars without x. looks: by label."""
    lines = {}
    for label, row in rows:
        at = row.get(x, np.nan) * row.get(TIMES.get(x), 1)
        lines.setdefault(series(label, x), []).append((at, row[metric]))
    if x is None:
        names = list(lines)
        values = [lines[name][0][1] for name in names]
        versions = figures.look(dict.fromkeys(name.split()[0] for name in names))
        ax.barh(names, values, color=[versions[name.split()[0]]["color"] for name in names])
        for y, value in enumerate(values):
            ax.annotate(atlas.digits(value), (value, y), (3, 0), textcoords="offset points",
                        va="center", fontsize=8)
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.grid(axis="y", visible=False)
        return
    points = [at for each in lines.values() for at, _ in each if at > 0]
    for above, (name, each) in zip(reversed(range(len(lines))), lines.items()):
        known = sorted(point for point in each if point[0] > 0)
        if known:  # wider than what is drawn above it, so that it shows below an equal
            ax.plot(*zip(*known), marker="o", ms=3.5 + 0.6 * above, lw=1.5 + 0.6 * above,
                    label=name, **looks[name])
        else:  # it has no such argument: the same wherever
            ax.axhline(each[0][1], lw=1.5, label=name, **looks[name])
    figures.log_ticks(ax.xaxis, points, base=2)
    ax.set_xlabel(ALONG.get(x, x))


@figures.styled
def experiment(name, rows):
    """An experiment of PANELS -> (Figure, facts), or None without a row of it."""
    panels, facts = [], {}
    for operation, where, x, metric, title in PANELS[name]:
        found = chosen(rows, operation, where)
        if drawn_rows := labels(found, metric):
            panels.append((drawn_rows, x, metric, title))
    for i, operation in enumerate(dict.fromkeys(panel[0] for panel in PANELS[name])):
        metric = next(panel[3] for panel in PANELS[name] if panel[0] == operation)
        facts |= row_facts(chosen(rows, operation, {}), metric, f" {operation}" if i else "")
    if not panels:
        return None
    # Two panels a line; bars take what they need.
    columns = min(2, len(panels))
    lanes = [panels[at : at + columns] for at in range(0, len(panels), columns)]
    heights = [max(3.4 if x else 0.9 + 0.3 * len(found) for found, x, _, _ in lane)
               for lane in lanes]
    figure, axes = figures.grid(len(lanes), columns, sum(heights), height_ratios=heights)
    for ax in axes.flat[len(panels):]:
        ax.set_visible(False)
    for ax, (found, x, metric, title) in zip(axes.flat, panels):
        names = dict.fromkeys(series(label, x) for label, _ in found)
        draw_panel(ax, found, x, metric, figures.look(names))
        ax.set_title(title)
        if x is None:
            ax.set_xlabel(AXIS[metric])
        else:
            ax.set_ylabel(AXIS[metric])
            wide = max(row[metric] for _, row in found) > 8 * min(row[metric] for _, row in found)
            if wide:
                figures.log_ticks(ax.yaxis, [row[metric] for _, row in found])
            else:
                ax.set_ylim(0, 1.08 * max(row[metric] for _, row in found))
            ax.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=4 // columns)
    return figure, facts


def block_size(ladder):
    """The ladder -> (Figure, facts): us/token of each version and block, its best and worst."""
    facts = {}
    own = ladder[ladder["number"].notna()]
    for (version, math_), part in own.groupby(["version", "math"]):
        suffix = "" if math_ == "ieee" else f" math:{math_}"
        for row in part.to_dict("records"):
            facts[f"{version} block:{row['block']:.0f}{suffix}"] = (row["us/token"], "µs")
        first, last = part["us/token"].idxmin(), part["us/token"].idxmax()
        facts[f"{version} best{suffix}"] = (part["us/token"].min(), "µs")
        facts[f"{version} worst{suffix}"] = (part["us/token"].max(), "µs")
        facts[f"{version} best block{suffix}"] = (part.loc[first, "block"], "")
        facts[f"{version} worst block{suffix}"] = (part.loc[last, "block"], "")
    for row in results.article().to_dict("records"):
        facts[f"article {row['version']} block:{row['block']}"] = (row["us/token"], "µs")
    return figures.blocks(ladder), facts


def complexity(ladder, kernels):
    """The ladder -> (Figure, facts): lines, and times V1 at block 32 in ieee, of each version."""
    foot, facts = results.baseline(ladder, 32), {}
    for math_ in sorted(set(ladder["math"])):
        suffix = "" if math_ == "ieee" else f" math:{math_}"
        for version, row in results.best(ladder, math_).iterrows():
            if version in kernels:
                facts[f"{version} lines"] = (kernels[version]["lines"], "")
                facts[f"{version} gain{suffix}"] = (foot / row["us/token"], "")
    return figures.complexity(ladder, kernels), facts


def guide(parts):
    """Slices of fp32 and ieee -> (Figure, facts): who wins each cell, at what share of a copy."""
    facts, wins, beaten, against = {}, {}, 0, 0
    for cell in (cell for part in parts for cell in part["cells"]):
        row = cell["ours"][0]
        at = f"{cell['mode']} {cell['N']}x{cell['C']}"
        facts[at] = (atlas.winner(cell), "")
        facts[f"{at} us"] = (row["us"], "µs")
        facts[f"{at} %copy"] = (row["%copy"], "%")
        wins[row["version"]] = wins.get(row["version"], 0) + 1
        beaten, against = beaten + bool(cell["beaten"]), against + bool(cell["peers"])
        for peer in cell["peers"]:
            facts[f"{at} {peer['version']} us"] = (peer["us"], "µs")
            facts[f"{at} {peer['version']} %copy"] = (peer["%copy"], "%")
    facts |= {f"{version} wins": (count, "") for version, count in wins.items()}
    counts = {"cells": sum(wins.values()), "beaten": beaten, "against a peer": against}
    return figures.winners(parts), facts | {key: (count, "") for key, count in counts.items()}


def flush(rows):
    """Rows of study-flush-*.json -> (Figure, facts), None without a flush and a graph: by how much
    a launch of its own is slower than one in a graph, by flush and size."""
    if rows.empty:
        return None
    rows, times, facts = rows[rows["error"].isna()], {}, {}
    parts = [part for _, part in rows.groupby("flush")]  # their names are the same
    for row in (row for part in parts for row in atlas.middle(part)):
        way = "graph" if row["mode"] == "graph" else row["flush"].split()[0]
        size = round(row["bytes"] / 2)
        at = f"{row['version']} {atlas.size(size)}"
        times.setdefault(way, {}).setdefault(row["version"], {})[size] = row["us"]
        facts[f"{at} {way}"] = (row["us"], "µs")
        apart = row["us_p75"] - row["us_p25"]
        facts[f"{at} {way} quartiles"] = (apart, "µs")
        facts[f"{at} {way} spread"] = (50 * apart / row["us"], "%")
    graph = times.pop("graph", {})
    over = {way: {version: {size: us - graph[version][size] for size, us in each.items()
                            if size in graph.get(version, {})}
                  for version, each in versions.items()} for way, versions in times.items()}
    known = {way: [us for each in versions.values() for us in each.values()]
             for way, versions in over.items()}
    if not any(known.values()):
        return None
    for way, versions in over.items():
        for version, each in versions.items():
            for size, us in each.items():
                facts[f"{version} {atlas.size(size)} {way} over graph"] = (us, "µs")
            facts[f"{version} {way} over graph least"] = (min(each.values()), "µs")
            facts[f"{version} {way} over graph most"] = (max(each.values()), "µs")
        facts[f"{way} over graph least"] = (min(known[way]), "µs")
    spreads = [number for key, (number, _) in facts.items() if key.endswith(" graph spread")]
    facts["graph spread most"] = (max(spreads), "%")
    facts["empty launch least"] = (rows["floor"].min(), "µs")
    facts["empty launch most"] = (rows["floor"].max(), "µs")
    return figures.flushes(over), facts


def flushes_of(files):
    """Rows of study-flush-*.json, which are of equal names; empty without any."""
    found = [results.load(file).assign(floor=float(context.get("launch_floor_us", "nan")))
             for file, context in files if file.name.startswith("study-flush-")]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def ladder_of(files):
    """The ladder of the newest folder with one, of files of atlas.sources; None without any."""
    dated = [(pd.to_datetime(context["date"], utc=True), file.parent) for file, context in files
             if file.name.startswith("ladder-")]
    if not dated:
        return None
    return results.ladder(results.load(max(dated)[1], pattern="ladder-*.json"))


def drawn(files, softmax, studies, kernels):
    """All studies: {name: (Figure, facts, files) or None where nothing was measured}.

    files: of atlas.sources; softmax, studies: of atlas.load; kernels: of update_ladder.kernels.
    """
    found, ladder, flushes = {}, ladder_of(files), flushes_of(files)
    for name, panels in PANELS.items():
        made = experiment(name, studies)
        rows = [chosen(studies, operation, {}) for operation in {panel[0] for panel in panels}]
        files = sorted({file for part in rows if len(part) for file in part["file"]})
        found[name] = made and (*made, files)
    made = flush(flushes)
    found |= {"flush": made and (*made, sorted(set(flushes["file"])))}
    found |= {"block-size": None, "complexity": None}
    if ladder is not None:
        files = sorted(set(ladder["file"]))
        found["block-size"] = (*block_size(ladder), files)
        found["complexity"] = (*complexity(ladder, kernels), files)
    plain = [part for part in atlas.slices(atlas.cells(softmax))
             if (part["dtype"], part["math"]) == ("fp32", "ieee")]
    parts = [part for part in plain if len(part["cells"]) >= atlas.FEWEST]
    cells = [cell for part in parts for cell in part["cells"]]
    found["guide"] = (*guide(parts), atlas.files_of(cells)) if parts else None
    return found


def fact(facts, key):
    """A fact, quotient or difference as text. Raises ResultsError if there is none of that name."""
    numbers, more = [], " more than " in key
    for name in re.split(" / | more than ", key):
        if name not in facts:
            near = difflib.get_close_matches(name, facts, 3)
            raise results.ResultsError(f"no fact {{{name}}}; near it: {', '.join(near) or 'none'}")
        numbers.append(facts[name])
    (value, unit), *over = numbers
    if isinstance(value, str):
        return value
    for each, _ in over:
        value, unit = (100 * (value / each - 1), "%") if more else (value / each, "")
    whole = unit in ("", "registers", "blocks", "bytes", "ulp") and value == int(value)
    return f"{f'{value:.0f}' if whole else atlas.digits(value)} {unit}".strip()


def fill(text, facts):
    """The text with every {fact} in it."""
    return re.sub(r"\{([^{}]+)\}", lambda match: fact(facts, match[1]), text)


def wrapped(text):
    """The text with its paragraphs in lines of 100."""
    return "\n\n".join(textwrap.fill(part, 100, break_long_words=False, break_on_hyphens=False)
                       for part in text.split("\n\n"))


def chapters(path):
    """analysis/studies.md -> (text before the first study, {name: (title, claim, paragraph)})."""
    head, *parts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)
    found = {}
    for part in parts:
        first, _, rest = part.partition("\n")
        name, _, title = first.partition(": ")
        quoted = [line for line in rest.splitlines() if line.startswith(">")]
        claim = "\n".join(line[1:].strip() for line in quoted)
        others = "\n".join(line for line in rest.splitlines() if not line.startswith(">"))
        found[name] = (title, claim, others.strip())
    return head.strip(), found


def written(path, made):
    """(text before the studies, [{name, title, claim, paragraph, drawn}]). Raises ResultsError for
    a study without a chapter, a chapter without a study, and a fact that there is not."""
    head, texts = chapters(path)
    if set(texts) != set(made):
        odd = ", ".join(sorted(set(texts) ^ set(made)))
        raise results.ResultsError(f"{results.relative(path)}: chapters and studies differ: {odd}")
    found = []
    for name, (title, claim, paragraph) in texts.items():
        try:
            paragraph = wrapped(fill(paragraph, made[name][1])) if made[name] else ""
        except results.ResultsError as error:
            raise results.ResultsError(f"{results.relative(path)}: {name}: {error}") from error
        found.append({"name": name, "title": title, "claim": claim, "paragraph": paragraph,
                      "drawn": made[name]})
    return head, found


def readme(head, found):
    """benchmarks/studies/README.md."""
    lines = [head]
    for study in found:
        lines += [f"## {study['title']}", "> " + study["claim"].replace("\n", "\n> ")]
        if not study["drawn"]:
            lines.append("Not measured yet.")
            continue
        picture = f"../../analysis/studies/{study['name']}.png"
        lines += [f"![{study['title']}]({picture})", study["paragraph"],
                  f"From {atlas.listed(study['drawn'][2])}."]
    return "\n\n".join(line for line in lines if line) + "\n"


def digest(facts):
    """What a picture was drawn from, in a word."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=float).encode()).hexdigest()


def stale(path, facts):
    from PIL import Image  # matplotlib brings it

    if not path.is_file():
        return True
    with Image.open(path) as picture:
        return picture.info.get("Description") != digest(facts)


def pictures(folder, made):
    """Figures whose picture in the folder is missing or of other data: {path: what is drawn}."""
    paths = {folder / f"{name}.png": each for name, each in made.items() if each}
    return {path: each for path, each in paths.items() if stale(path, each[1])}


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    names = (*PANELS, "flush", "block-size", "complexity", "guide")
    parser.add_argument("--facts", choices=names, help="what a paragraph of it may cite")
    parser.add_argument("--results", type=Path, help="default: results/, or $SOFTMAX_RESULTS")
    parser.add_argument("--gpu", default="nvidia-h200", help="folder of results/ (%(default)s)")
    parser.add_argument("--root", type=Path, default=results.ROOT, help="the tree")
    args = parser.parse_args(argv)
    try:
        files, _ = atlas.sources(args.results or results.results_folder(), args.gpu)
        kernels = update_ladder.kernels(args.root / "kernels")
        made = drawn(files, *atlas.load(files), kernels)
    except results.ResultsError as error:
        print(f"study_figures: {error}", file=sys.stderr)
        return 2
    if args.facts:
        facts = made[args.facts][1] if made[args.facts] else {}
        lines = [f"{{{key}}}  {fact(facts, key)}" for key in facts]
        print("\n".join(lines) or "nothing measured yet")
        return 0
    return refresh("study_figures.py", args.root, made, {}, args.check)


def refresh(script, root, made, texts, check):
    """Writes the studies' README and pictures, and `texts`; or says which are out of date."""
    path = root / "benchmarks" / "studies" / "README.md"

    def wanted():
        return texts | {path: readme(*written(root / "analysis" / "studies.md", made))}

    status = update(script, wanted, check)
    if status == 2:
        return status
    for path, (figure, facts, _) in pictures(root / "analysis" / "studies", made).items():
        if check:
            print(f"{results.relative(path)}: out of date, run python analysis/{script}")
            status = 1
        else:
            figures.png(figure, path, digest(facts))
            print(f"{results.relative(path)}: written")
    return status


if __name__ == "__main__":
    sys.exit(main())
