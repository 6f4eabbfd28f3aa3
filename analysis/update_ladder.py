"""Writes the ladder's table into kernels/README.md, and a shorter one into README.md.

    python analysis/update_ladder.py            rewrites what stands between the markers
    python analysis/update_ladder.py --check    writes nothing; exit 1 if a table is out of date

The numbers are the newest GPU results that hold a ladder. The markers are `<!-- ladder -->` and
`<!-- /ladder -->`, in the root's README.md `ladder-short`. Exit 2: nothing to write from or into.
"""

import argparse
import math
import re
import sys
from pathlib import Path

import results
from tables import DASH, between, table, update

REGISTRATION = re.compile(
    r'SOFTMAX_KERNEL\(\s*(\d+)\s*,\s*"[^"]*"\s*,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)'
)
COMMENT_OR_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
SHAPE = f"N = {results.LADDER['N']}, C = {results.LADDER['C']}, fp32, L2 cold"


def kernels(folder):
    """What the kernel files say of themselves: {"V6": {idea, file, lines, barriers}}, in order.

    lines: neither blank nor only a comment. barriers: __syncthreads() written in the file.
    Raises ResultsError for a file that registers no kernel, and for a folder without one.
    """
    found = {}
    for file in folder.glob("v*.cu"):
        text = file.read_text(encoding="utf-8")
        code = COMMENT_OR_STRING.sub(lambda m: m[0] if m[0].startswith('"') else " ", text)
        match = REGISTRATION.search(code)
        if not match:
            raise results.ResultsError(
                f'{results.relative(file)}: no SOFTMAX_KERNEL(number, "name", "idea", ...) line'
            )
        idea = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])).replace('\\"', '"')
        found[int(match[1])] = {
            "idea": idea,
            "file": file.name,
            "barriers": code.count("__syncthreads()"),
            "lines": sum(1 for line in code.splitlines() if line.strip()),
        }
    if not found:
        raise results.ResultsError(f"{results.relative(folder)}: no v*.cu in it")
    return {f"V{number}": found[number] for number in sorted(found)}


def number(value, style="#.3g"):
    """Three digits, or as `style` says; a dash for what was not measured."""
    return DASH if value is None or math.isnan(value) else format(value, style).rstrip(".")


def timed(rows, version):
    """'0.104 (512)': us/token and its block, for a version of a `best` table or a dash."""
    if version not in rows.index:
        return DASH
    row = rows.loc[version]
    return number(row["us/token"]) + ("" if math.isnan(row["block"]) else f" ({row['block']:.0f})")


def times(base, value):
    factor = base / value
    return DASH if math.isnan(factor) else f"{factor:.0f}x" if factor >= 100 else f"{factor:.1f}x"


def source(rows):
    """Device, revision and files that the rows were read from."""
    files = ", ".join(f"`{file}`" for file in sorted(rows["file"].unique()))
    dirty = "-dirty" if "true" in set(rows["git_dirty"]) else ""
    return f"{rows['device'].iloc[0]}, revision {rows['git_sha'].iloc[0]}{dirty}, from {files}"


def long_table(files, rows):
    """The table of kernels/README.md. files: as `kernels` gives; rows: a ladder."""
    ieee, fast, article = results.best(rows, "ieee"), results.best(rows, "fast"), results.article()
    foot, top = results.baseline(rows, 32), results.baseline(rows, 1024)
    columns = {}

    def put(column, text):
        columns.setdefault(column, []).append(text)

    measured = [v for v in files if v in ieee.index]  # a new kernel joins with its first results
    for version in [*measured, *(v for v in ieee.index if v not in files and not v.startswith("V"))]:
        file = files.get(version)
        row = ieee.loc[version] if version in ieee.index else {}
        us = row.get("us/token", math.nan) if file else math.nan
        theirs = article[article["version"] == version].to_dict("records")
        put("", f"[{version}]({file['file']})" if file else version)
        put("idea", file["idea"] if file else row.get("label", ""))
        put("µs/token (block), ieee", timed(ieee, version))
        put("fast", timed(fast, version))
        put("%copy", number(row.get("%copy"), ".1f"))
        put("times V1 at 32", times(foot, us))
        put("at 1024", times(top, us))
        put("the article's µs/token (block), GPU unknown",
            "; ".join(f"{r['us/token']:.2f} ({r['block']})" for r in theirs) or DASH)
        put("its times V1 at 32 / at 1024",
            "; ".join(f"{r['x32']:.2g}x / {r['x1024']:.2g}x" for r in theirs) or DASH)
        put("lines", file["lines"] if file else DASH)
        put("barriers", file["barriers"] if file else DASH)
        put("registers", number(row.get("regs"), ".0f"))
    return (
        f"{table(list(columns), zip(*columns.values()))}\n\n"
        f"Ours: {source(rows)}. {SHAPE}; each version at its fastest block. Times, registers and "
        "%copy are those of ieee; %copy is 100 where softmax costs what copying the matrix "
        f"costs. V1 in ieee takes {number(foot)} µs/token at block 32 and {number(top)} at block "
        "1024: the article's table counts from the first, its \"20x\" from the second. The article "
        "does not name its GPU, so its times and ours do not compare; the steps between versions "
        "do. Lines are those with code, barriers the `__syncthreads()` written in the file. Table "
        "by `analysis/update_ladder.py`."
    )


def short_table(files, rows):
    """The table of the root's README.md."""
    ieee, foot = results.best(rows, "ieee"), results.baseline(rows, 32)
    body = []
    for version, file in files.items():
        if version not in ieee.index:
            continue
        row = ieee.loc[version]
        body.append([f"[{version}](kernels/{file['file']})", file["idea"], timed(ieee, version),
                     number(row.get("%copy"), ".1f"), times(foot, row.get("us/token", math.nan))])
    text = table(["", "idea", "µs/token (block)", "%copy", "times V1"], body)
    return f"{text}\n\n{source(rows)}. {SHAPE}, ieee; times V1 at block 32."


def wanted(root, folder):
    """What the READMEs should hold: {path: text}."""
    files = kernels(root / "kernels")
    rows = results.ladder(results.load(folder, pattern="ladder-*.json"))
    readme, front = root / "kernels" / "README.md", root / "README.md"
    if not readme.is_file():
        raise results.ResultsError(f"{results.relative(readme)}: no such file")
    text = readme.read_text(encoding="utf-8")
    texts = {readme: between(text, "ladder", long_table(files, rows), readme)}
    if front.is_file() and "<!-- ladder-short -->" in (text := front.read_text(encoding="utf-8")):
        texts[front] = between(text, "ladder-short", short_table(files, rows), front)
    return texts


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--results", type=Path, help="folder (default: the newest with a ladder)")
    parser.add_argument("--root", type=Path, default=results.ROOT, help="the tree with kernels/")
    args = parser.parse_args(argv)

    def texts():
        return wanted(args.root, args.results or results.latest(pattern="ladder-*.json"))

    return update("update_ladder.py", texts, args.check)


if __name__ == "__main__":
    sys.exit(main())
