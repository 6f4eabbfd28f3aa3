"""Makes one self-contained HTML page of a GPU's results, and refreshes the tables of the READMEs.

    python analysis/report.py              writes build/report.html, and what stands between the
                                           markers ladder, atlas and guide of the READMEs
    python analysis/report.py --check      writes nothing; exit 1 if a README or a study's picture
                                           is out of date

Of the files ladder-, shapes-, atlas-, few-rows-, sweep-, peers- and study-*.json the newest of each
name counts. Exit 2: nothing to read, or nowhere to write.
"""

import argparse
import math
import os
import re
import sys
from pathlib import Path

import jinja2
import markupsafe
import matplotlib
import pandas as pd

import atlas
import figures
import results
import study_figures
import update_ladder
from peers import published
from tables import DASH, between

MARKED = ("README.md", "kernels/README.md")
ROOFS = {"roof_copy_GB/s": "copy", "roof_read_GB/s": "read", "roof_write_GB/s": "write"}
FLAGS = ("noisy", "throttled", "suspect")


def heat(percent):
    """A %copy -> the style of a cell: how near to the copy, on a scale for any eye."""
    if math.isnan(percent):
        return ""
    red, green, blue, _ = matplotlib.colormaps["viridis"](min(max(percent, 0), 100) / 100)
    ink = "#000" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.45 else "#fff"
    return f"background:{matplotlib.colors.to_hex((red, green, blue))};color:{ink}"


def prose(text):
    """Markdown of paragraphs, `code`, **stress** and [links](of a file) -> HTML without links."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(markupsafe.escape(text)))
    text = re.sub(r"(\d) (%|[µn]s|GB/s|[KMG]iB)", "\\1\N{NO-BREAK SPACE}\\2", text)
    text = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
    return markupsafe.Markup("".join(f"<p>{part}</p>" for part in re.split(r"\n\s*\n", text)))


def overview(files, rows):
    """A line for each file: what was measured, and how well."""
    lines = []
    for path, context in files:
        name = results.relative(path)
        own = rows[rows["file"] == name] if len(rows) else rows
        counts = {flag: int((own[flag] > 0).sum()) if flag in own else 0 for flag in FLAGS}
        roofs = {word: float(context[key]) for key, word in ROOFS.items() if key in context}
        modes = ", ".join(dict.fromkeys(own["mode"])) if len(own) else DASH
        dirty = "-dirty" if context.get("git_dirty") == "true" else ""
        lines.append(counts | {
            "file": name, "date": context["date"], "revision": context["git_sha"] + dirty,
            "device": context["device"], "driver": context.get("driver", DASH), "modes": modes,
            "math": context.get("math", DASH), "flush": context.get("flush", DASH),
            "rows": len(own), "roofs": roofs, "floor": float(context.get("launch_floor_us", "nan")),
            "errors": int(own["error"].notna().sum()) if len(own) else 0})
    return lines


def ladder_lines(ladder):
    """The ladder's table: each version at its fastest block, ieee and then fast."""
    foot, lines = results.baseline(ladder, 32), []
    for math_ in ("ieee", "fast"):
        for version, row in results.best(ladder, math_).iterrows():
            spread = 50 * (row["us_p75"] - row["us_p25"]) / row["us"]
            lines.append(row.to_dict() | {
                "version": version, "math": math_, "spread": spread,
                "gain": foot / row["us/token"], "ours": not math.isnan(row["number"])})
    return lines


def peer_lines(rows):
    """Shapes that a peer was measured at, by dtype and mode: {title: (versions, lines)}; of each
    shape the fastest row of each version, ours by math."""
    good = rows[rows["error"].isna() & ~(rows["suspect"] > 0)] if len(rows) else rows
    shapes = {}
    for row in atlas.middle(good):
        if row["version"] != "copy":
            at = (row["dtype"], row["mode"], int(row["C"]), int(row["N"]))
            shapes.setdefault(at, []).append(row)
    tables = {}
    for (dtype, mode, c, n), each in sorted(shapes.items()):
        peers = atlas.fastest(row for row in each if math.isnan(row["number"]))
        if not peers:
            continue
        line = {row["version"]: row for row in peers}
        for math_ in ("ieee", "fast"):
            own = [row for row in each if row["math"] == math_ and not math.isnan(row["number"])]
            if own:
                line[f"ours, {math_}"] = min(own, key=lambda row: row["us"])
        table = tables.setdefault(f"{dtype}, {mode}", {"versions": {}, "lines": [], "files": []})
        names = sorted(line, key=lambda name: ("ours" not in name, name))
        table["versions"] |= dict.fromkeys(names)
        table["files"] = sorted({*table["files"], *(row["file"] for row in line.values())})
        first = min(row["us"] for row in line.values())
        table["lines"].append({"N": n, "C": c, "rows": line, "first": first})
    return tables


def error_lines(rows):
    """(max_ulp of each version and math: [(version, {math: ulp})], its files, rows in error)."""
    worst, files = {}, []
    if "max_ulp" in rows:
        known = rows[rows["max_ulp"].notna() & (rows["op"] == "softmax")].sort_values("number")
        files = sorted(set(known["file"]))
        for (version, math_), part in known.groupby(["version", "math"], sort=False):
            worst.setdefault(version, {})[math_] = part["max_ulp"].max()
    wrong = rows[rows["error"].notna()]
    return list(worst.items()), files, wrong[["name", "error", "file"]].to_dict("records")


def gather(top, gpu, root):
    """All that the page and the READMEs say. Raises ResultsError: no results, a broken file."""
    files, others = atlas.sources(top, gpu)
    softmax, experiments = atlas.load(files)
    kernels = update_ladder.kernels(root / "kernels")
    every = (softmax, experiments, study_figures.flushes_of(files))
    all_rows = pd.concat([part for part in every if len(part)])
    counted = set(all_rows["file"])
    used = [(file, context) for file, context in files if results.relative(file) in counted]
    others += [file for file, _ in files if results.relative(file) not in counted]
    ladder = study_figures.ladder_of(files)
    made = study_figures.drawn(files, softmax, experiments, kernels)
    return {"files": used, "others": others, "softmax": softmax, "all": all_rows, "made": made,
            "ladder": ladder, "parts": atlas.slices(atlas.cells(softmax))}


def drawing(name, figure, words, files):
    """A figure as the template takes it."""
    return {"svg": figures.svg(figure, name, words), "words": words, "files": files}


def page(root, found):
    """The page's HTML."""
    ladder, parts, softmax = found["ladder"], found["parts"], found["softmax"]
    chapters = study_figures.written(root / "analysis" / "studies.md", found["made"])[1]
    for study in chapters:
        if study["drawn"]:
            study["figure"] = drawing(f"study-{study['name']}", study["drawn"][0], study["title"],
                                      study["drawn"][2])
    drawn = {"roof": None, "moved": None}
    large = [part for part in parts if len(part["cells"]) >= atlas.FEWEST]
    if large:
        cells = [cell for part in large for cell in part["cells"]]
        drawn["roof"] = drawing("roof", figures.roof(large), "GB/s of each version and of the copy",
                                atlas.files_of(cells))
    if ladder is not None:
        best = results.best(ladder, "ieee")
        drawn["moved"] = drawing("moved", figures.moved(best), "GB/s needed and GB/s asked for",
                                 sorted(set(best["file"])))
    worst, ulp_files, wrong = error_lines(found["all"])
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(root / "analysis"), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"digits": atlas.digits, "heat": heat, "prose": prose}
    environment.globals |= {"isnan": math.isnan, "command": atlas.command,
                            "slice_title": atlas.title, "files_of": atlas.files_of}
    variables = [(f"s{i}", *each) for i, each in enumerate(zip(figures.SERIES, figures.DARK))]
    return environment.get_template("report.html.j2").render(
        overview=overview(found["files"], found["all"]),
        others=[results.relative(file) for file in found["others"]],
        ladder=[] if ladder is None else ladder_lines(ladder),
        ladder_files=[] if ladder is None else sorted(set(ladder["file"])),
        parts=parts, guide=atlas.guide_rows(parts), guide_columns=list(atlas.GUIDE.values()),
        drawn=drawn, peers=peer_lines(softmax), worst=worst,
        published=published().to_dict("records"), ulp_files=ulp_files, wrong=wrong, variables=variables,
        studies={study["name"]: study for study in chapters},
        panels=[*study_figures.PANELS, "flush"])


def readmes(root, found):
    """What the READMEs should hold: {path: text}. Raises ResultsError for markers out of order."""
    texts = {}
    if found["ladder"] is not None:
        folder = {Path(file).parent for file in found["ladder"]["file"]}
        texts = update_ladder.wanted(root, results.ROOT / max(folder))
    for name in MARKED:
        path = root / name
        text = texts.get(path) or path.read_text(encoding="utf-8")
        for marker, table in (("atlas", atlas.atlas_table), ("guide", atlas.guide_table)):
            if f"<!-- {marker} -->" in text:
                text = between(text, marker, table(found["parts"]), path)
        texts[path] = text
    return texts


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--results", type=Path, help="default: results/, or $SOFTMAX_RESULTS")
    parser.add_argument("--gpu", default="nvidia-h200", help="folder of results/ (%(default)s)")
    parser.add_argument("--out", type=Path, help="the page (build/report.html)")
    parser.add_argument("--root", type=Path, default=results.ROOT, help="the tree of the READMEs")
    args = parser.parse_args(argv)
    out = args.out or args.root / "build" / "report.html"
    try:
        found = gather(args.results or results.results_folder(), args.gpu, args.root)
        texts = readmes(args.root, found)
        status = study_figures.refresh("report.py", args.root, found["made"], texts, args.check)
        if status == 2 or args.check:
            return status
        html = page(args.root, found)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(html, encoding="utf-8")
    except (results.ResultsError, OSError) as error:
        print(f"report: {error}", file=sys.stderr)
        return 2
    print(f"{results.relative(out)}: written, {os.path.getsize(out) / 1e6:.1f} MB")
    return status


if __name__ == "__main__":
    sys.exit(main())
