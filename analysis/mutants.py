"""Draws the kill matrix of properties/mutants/: which law kills which mutant, and with how many generators.

python analysis/mutants.py [--check]
"""

import csv
import hashlib
import pathlib
import sys

import figures

ROOT = pathlib.Path(__file__).resolve().parents[1]
MATRIX = ROOT / "properties" / "mutants" / "matrix.csv"
PICTURE = ROOT / "analysis" / "mutants.png"


def read(path=MATRIX):
    """{mutant: {law: (generators that kill, generators asked)}}"""
    mutants = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            mutant, law = row.pop("mutant"), row.pop("law")
            asked = [kill for kill in row.values() if kill]
            killing = sum(kill != "0" for kill in asked)
            mutants.setdefault(mutant, {})[law] = killing, len(asked)
    return mutants


@figures.styled
def draw(mutants):
    laws = list(dict.fromkeys(law for cells in mutants.values() for law in cells))
    figure, axes = figures.grid(1, 1, 0.17 * len(mutants) + 1.8)
    ax = axes[0, 0]
    for y, cells in enumerate(mutants.values()):
        by = [law for law, (killing, _) in cells.items() if killing]
        for law, (killing, asked) in cells.items():
            colour = figures.SERIES[1 if by == [law] else 0]
            shade = 0.25 + 0.75 * killing / asked if killing else 0
            at = laws.index(law) - 0.5, y - 0.5
            ax.add_patch(
                figures.matplotlib.patches.Rectangle(at, 1, 1, color=colour, alpha=shade, lw=0)
            )
    ax.set_xlim(-0.5, len(laws) - 0.5)
    ax.set_ylim(len(mutants) - 0.5, -0.5)
    ax.set_xticks(
        range(len(laws)), laws, rotation=60, ha="left", rotation_mode="anchor", fontsize=7
    )
    ax.xaxis.tick_top()
    ax.set_yticks(range(len(mutants)), mutants, fontsize=7)
    ax.tick_params(length=0)
    key = "darker: more of the law's generators kill it; orange: no other law does"
    ax.set_xlabel(key, fontsize=8)
    return figure


def main(arguments):
    digest = hashlib.sha256(MATRIX.read_bytes()).hexdigest()
    if arguments == ["--check"]:
        from PIL import Image  # matplotlib brings it

        if PICTURE.exists() and Image.open(PICTURE).info.get("Description") == digest:
            return 0
        print("analysis/mutants.png: out of date, run python analysis/mutants.py", file=sys.stderr)
        return 1
    figures.png(draw(read()), PICTURE, digest)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
