"""Which version is the fastest where: the cells of the atlas, and the guide that follows from them.

A cell is one shape in one dtype, math and mode; report.py draws it, study_figures.py too.
"""

import math
import re

import pandas as pd

import compare
import results
from tables import DASH, table

SUITES = re.compile(r"(ladder|shapes|atlas|few-rows|sweep|peers)\b")  # how their files are called
STUDIES = re.compile(r"stud(y|ies)\b")
FEWEST = 4  # widths of equally many elements make a strip, which has one row of cells
ORDER = {"fp32": 0, "ieee": 0, "cold": 0, "hot": 1, "graph": 2, "graph-hot": 3}


def sources(top, gpu):
    """The newest GPU's file of each name below top/gpu: [(path, context)], and those left out.

    Left out are files that are called like no suite and no study: of a filter or an input. Raises
    ResultsError if none is left.
    """
    newest, others = {}, []
    for file in sorted(top.glob(f"{gpu}/*/*.json")):
        context, _ = results.read(file)
        if context["simulated"] == "true":
            continue
        if not SUITES.match(file.name) and not STUDIES.match(file.name):
            others.append(file)
            continue
        dated = (pd.to_datetime(context["date"], utc=True), file, context)
        newest[file.name] = max(newest.get(file.name, dated), dated, key=lambda each: each[0])
    if not newest:
        raise results.ResultsError(
            f"{results.relative(top)}: no GPU's {gpu}/<date>-<sha>/*.json of a suite or study")
    return [(file, context) for _, file, context in newest.values()], others


def load(files):
    """Rows of `results.load` of files of sources -> (softmax, studies), of each name the newest.

    Repetitions stay rows of their own. Softmax rows are of noise, dense; a study's variants of a
    lesson are in neither.
    """
    frames = [results.load(file, op=None).assign(study=bool(STUDIES.match(file.name)))
              for file, _ in files]
    rows = pd.concat(frames, ignore_index=True)
    plain = ~rows["study"] & (rows["input"] == "noise") & rows["at"].isna() & rows["gap"].isna()
    rows = rows[(rows["op"] != "softmax") | plain]
    dates = pd.to_datetime(rows["date"], utc=True)
    rows = rows[dates == dates.groupby(rows["name"]).transform("max")]
    softmax = rows["op"] == "softmax"
    return rows[softmax], rows[~softmax]


def middle(rows):
    """Repetitions of each name -> one row of their medians, and `all`, the rows themselves."""
    records = {}
    for row in rows.to_dict("records"):
        records.setdefault(row["name"], []).append(row)
    found = []
    for same in records.values():
        medians = {}
        if len(same) > 1:
            numbers = pd.DataFrame(same).select_dtypes("number")
            medians = numbers.median().to_dict()
        found.append(same[0] | medians | {"all": same})
    return found


def command(row):
    """The command that measures a row of ours again, for a shell."""
    axes = [f"N={row['N']:.0f}", f"C={row['C']:.0f}"]
    if not math.isnan(row["block"]):
        axes.append(f"block={row['block']:.0f}")
    axes.append(f"mode={row['mode']}")
    flush = row["flush"].split()[:1]
    if row["mode"] == "cold" and flush and flush != ["memset"]:
        axes.append(f"flush={flush[0]}")
    if row["dtype"] != "fp32":
        axes.append(f"dtype={row['dtype']}")
    preset = "SOFTMAX_PRESET=cuda-fast " if row["math"] == "fast" else ""
    return f'{preset}./bench --sweep "{",".join(axes)}" --benchmark_filter=/{row["version"]}/'


def fastest(rows):
    """Each version's fastest row, the fastest version first."""
    found = {}
    for row in sorted(rows, key=lambda row: row["us"]):
        found.setdefault(row["version"], row)
    return list(found.values())


def cells(rows):
    """Softmax rows -> a list of cells, dicts:

    dtype, math, mode, N, C; ours, peers: `fastest` rows, never of one in error or suspect; copy:
    the copy's row or None; tie: whether `compare` cannot tell the first of ours from the second;
    beaten: the fastest peer if it is faster than ours, else None; command. Without a row of ours
    there is no cell.
    """
    good = rows[rows["error"].isna() & ~(rows["suspect"] > 0)] if len(rows) else rows
    shapes = {}
    for row in middle(good):
        at = tuple(row[key] for key in ("dtype", "math", "mode", "N", "C"))
        shapes.setdefault(at, []).append(row)
    # A peer's math is its own affair, whatever its name says. Our package is no peer.
    theirs = {}
    for (dtype, _, mode, *shape), each in shapes.items():
        peers = [r for r in each
                 if math.isnan(r["number"]) and r["version"] not in ("copy", "softmax-lab")]
        theirs.setdefault((dtype, mode, *shape), []).extend(peers)
    found = []
    for at, each in shapes.items():
        dtype, math_, mode, n, c = at
        ours = fastest(row for row in each if not math.isnan(row["number"]))
        if not ours:
            continue
        peers = fastest(theirs[dtype, mode, n, c])
        first = ours[0]
        tie = len(ours) > 1 and compare.judge(
            compare.side(ours[1]["all"]), compare.side(first["all"]))["verdict"] != "FAST"
        found.append({
            "dtype": dtype, "math": math_, "mode": mode, "N": int(n), "C": int(c), "ours": ours,
            "peers": peers, "copy": next((r for r in each if r["version"] == "copy"), None),
            "tie": tie, "beaten": peers[0] if peers and peers[0]["us"] < first["us"] else None,
            "command": command(first)})
    return found


def slices(found):
    """Cells -> [{dtype, math, mode, strip, cells}]: those of equal size and one shape a width are a
    strip, sorted by C; the others of a dtype, math and mode are a grid, by N and C."""
    groups = {}
    for cell in found:
        groups.setdefault((cell["dtype"], cell["math"], cell["mode"]), []).append(cell)
    parts = []
    for at in sorted(groups, key=lambda at: [(ORDER.get(word, 9), word) for word in at]):
        sizes = {}
        for cell in groups[at]:
            sizes.setdefault(round(math.log2(cell["N"] * cell["C"]), 3), []).append(cell)
        named, rest = dict(zip(("dtype", "math", "mode"), at)), []
        for each in sizes.values():
            if len(each) >= FEWEST and len({cell["C"] for cell in each}) == len(each):
                ordered = sorted(each, key=lambda cell: cell["C"])
                parts.append(named | {"strip": True, "cells": ordered})
            else:
                rest += each
        if rest:
            ordered = sorted(rest, key=lambda cell: (cell["N"], cell["C"]))
            parts.append(named | {"strip": False, "cells": ordered})
    return parts


def digits(value):
    """Three digits or more, without an exponent: 0.0948, 19.2, 36153; a dash for NaN."""
    if math.isnan(value):
        return DASH
    return f"{value:.0f}" if abs(value) >= 100 else format(value, "#.3g").rstrip(".")


def size(byte_count):
    """1073741824 -> "1 GiB"."""
    power = min(3, max(0, int(math.log2(byte_count) // 10)))
    return f"{byte_count / 1024**power:.3g} {('B', 'KiB', 'MiB', 'GiB')[power]}"


def title(part):
    """What a slice holds, as a heading."""
    cell = part["cells"][0]
    named = f"{part['mode']}, {part['dtype']}, {part['math']}"
    if not part["strip"]:
        return named
    return f"{size(cell['ours'][0]['bytes'] / 2)} of input at every width, {named}"


def span(values, style):
    """[52.6, 97.1] -> "53 to 97"; a dash where none is known."""
    known = [value for value in values if not math.isnan(value)]
    low, high = (format(each(known), style) if known else DASH for each in (min, max))
    return low if low == high else f"{low} to {high}"


def runs(part):
    """A slice -> what to take where: [{N, C, version, blocks, %copy, ahead, also, peer}], texts.

    Neighbouring widths of one fastest version are one run, and neighbouring N with the same runs.
    ahead: of the next version, in times; also: versions that cannot be told from it; peer: those
    that are faster than it somewhere.
    """
    lines = {}
    for cell in part["cells"]:
        lines.setdefault(0 if part["strip"] else cell["N"], []).append(cell)
    found = []
    for line in lines.values():
        line_runs = []
        for cell in line:
            version = cell["ours"][0]["version"]
            if not line_runs or line_runs[-1][-1]["ours"][0]["version"] != version:
                line_runs.append([])
            line_runs[-1].append(cell)
        shape = [(r[0]["C"], r[-1]["C"], r[0]["ours"][0]["version"]) for r in line_runs]
        if found and not part["strip"] and found[-1][0] == shape:
            for known, more in zip(found[-1][1], line_runs):
                known.extend(more)
        else:
            found.append((shape, line_runs))
    return [advice(run) for _, line_runs in found for run in line_runs]


def advice(run):
    """Cells of one fastest version -> a line of `runs`."""
    best = [cell["ours"][0] for cell in run]
    gains = [cell["ours"][1]["us"] / cell["ours"][0]["us"] for cell in run if len(cell["ours"]) > 1]
    blocks = sorted({int(row["block"]) for row in best if not math.isnan(row["block"])})
    also = {cell["ours"][1]["version"] for cell in run if cell["tie"]}
    peers = {cell["beaten"]["version"] for cell in run if cell["beaten"]}
    return {
        "N": span([cell["N"] for cell in run], ","), "C": span([cell["C"] for cell in run], ","),
        "version": best[0]["version"], "blocks": ", ".join(map(str, blocks)) or DASH,
        "%copy": span([row["%copy"] for row in best], ".0f"),
        "ahead": f"{min(gains):.2f}x" if gains else DASH,
        "also": ", ".join(sorted(also)) or DASH, "peer": ", ".join(sorted(peers)) or DASH}


def files_of(found):
    """The files that cells come from, sorted."""
    rows = [row for cell in found for row in cell["ours"] + cell["peers"]]
    return sorted({row["file"] for row in rows})


def listed(files):
    return ", ".join(f"`{file}`" for file in files)


def winner(cell):
    first = cell["ours"][0]
    block = "" if math.isnan(first["block"]) else f" ({first['block']:.0f})"
    return f"{first['version']}{block}, {span([first['%copy']], '.0f')} %"


def plain(parts):
    """The slices that the READMEs show."""
    return [part for part in parts if (part["dtype"], part["math"]) == ("fp32", "ieee")]


def atlas_table(parts):
    """Markdown for README.md: the fastest version, its block and %copy, of fp32 and ieee."""
    texts = []
    for part in plain(parts):
        found = part["cells"]
        if part["strip"]:
            rows = [[f"{cell['C']:,}", winner(cell), (cell["beaten"] or {}).get("version", DASH)]
                    for cell in found]
            header = ["columns", "fastest (block), of a copy's speed", "a peer is faster"]
            text = table(header, rows, left=0)
        else:
            widths = sorted({cell["C"] for cell in found})
            at = {(cell["N"], cell["C"]): winner(cell) for cell in found}
            heights = sorted({cell["N"] for cell in found})
            rows = [[f"{c:,}", *(at.get((n, c), DASH) for n in heights)] for c in widths]
            text = table(["columns", *(f"{n:,} rows" for n in heights)], rows, left=0)
        texts.append(f"{title(part)}, from {listed(files_of(found))}:\n\n{text}")
    return "\n\n".join(texts) or (
        "No atlas was measured yet: `./bench --suite=atlas` and `--suite=few-rows` make one.")


GUIDE = {"mode": "mode", "N": "rows", "C": "columns", "version": "take", "blocks": "block",
         "%copy": "% of a copy's speed", "ahead": "ahead of the next by", "also": "as fast",
         "peer": "a peer is faster"}


def guide_rows(parts):
    """Rows for the columns of GUIDE, of fp32 and ieee."""
    return [[part["mode"], *(line[key] for key in list(GUIDE)[1:])]
            for part in plain(parts) for line in runs(part)]


def guide_table(parts):
    """Markdown: which version to take at which shape."""
    rows = guide_rows(parts)
    if not rows:
        return atlas_table([])
    found = [cell for part in plain(parts) for cell in part["cells"]]
    return f"{table(list(GUIDE.values()), rows, left=5, text=2)}\n\nFrom {listed(files_of(found))}."
