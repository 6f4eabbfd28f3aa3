"""Writes the table of results/README.md: what each committed soak asked, and what it found.

    python analysis/soak.py            rewrites what stands between the markers
    python analysis/soak.py --check    writes nothing; exit 1 if the table is out of date

From results/soak/*.json, which ./check --soak MINUTES --json=FILE makes. Exit 2: nothing to write
from or into.
"""

import argparse
import sys
from pathlib import Path

import results
import tables


def total(summary):
    """The cases of all kernels under all laws."""
    return sum(sum(laws.values()) for laws in summary["cases"].values())


def rare(summary):
    """Names of the classes that were drawn less often than their quota wants, or never."""
    counts = summary["classes"].items()
    return [name for name, one in counts if one["cases"] < max(1, one["least"])]


def row(file):
    summary = results.parse(file)
    context = summary["context"]
    kernels = [name for name in summary["cases"] if not name.startswith("merge_")]
    laws = set().union(*summary["cases"].values())
    return [
        f"[{file.stem}](soak/{file.name})",
        f"{context['device']}, {context['math']}",
        f"{context['minutes']:.1f}",
        f"{total(summary):,}",
        len(kernels),
        len(laws),
        f"{len(summary['classes'])} ({len(rare(summary))})",
        len(summary["failures"]),
    ]


def body(top=None):
    header = ["run", "on", "minutes", "cases", "kernels", "laws", "classes (rare)", "failures"]
    return tables.table(header, [row(file) for file in results.summaries("soak", top)])


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    args = parser.parse_args(argv)
    readme = results.ROOT / "results" / "README.md"

    def texts():
        old = readme.read_text(encoding="utf-8")
        return {readme: tables.between(old, "soak", body(), readme)}

    return tables.update("soak.py", texts, args.check)


if __name__ == "__main__":
    sys.exit(main())
