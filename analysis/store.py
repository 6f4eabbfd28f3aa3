"""Keeps results/ append-only and of the schema: enters new files into results/index.csv.

    python analysis/store.py                     enters what is new
    python analysis/store.py --check             writes nothing; exit 1 if a file is not entered
    python analysis/store.py --validate FILE...  exit 1 if results/schema.json says no

A file that changed or vanished since it was entered, and a new one that is not of the schema, is
named, and the exit status is 1. Exit 2: no index that can be read.
"""

import argparse
import csv
import hashlib
import io
import json
import os
import sys
from pathlib import Path

try:
    import jsonschema
except ImportError as error:
    sys.exit(f"store: {error}; build/venv/bin/python has it, ./check makes that")

import results
import soak

INDEX = (
    "path date device git_sha dirty schema suite math modes flush rows errors driver sha256"
).split()
OURS = ("README.md", "schema.json", "index.csv", "index.csv.new")  # no results
OURS += tuple(f"{name}/schema.json" for name in results.SUMMARIES)
SCHEMA = results.ROOT / "results" / "schema.json"


def validator(schema):
    return jsonschema.Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))


def invalid_summary(path):
    try:
        data = results.parse(path)
    except results.ResultsError as error:
        return [str(error)]
    schema = SCHEMA.parent / path.parent.name / "schema.json"
    return [
        f"{results.relative(path)}: {' '.join(map(str, error.absolute_path))}: "
        f"{error.message[:200]}"
        for error in validator(schema).iter_errors(data)
    ]


def invalid(path):
    """What is wrong with a file by its schema: a list of texts, empty if it is good."""
    if path.parent.name in results.SUMMARIES:
        return invalid_summary(path)
    try:
        context, benchmarks = results.read(path)
    except results.ResultsError as error:
        return [str(error)]
    found = []
    for error in validator(SCHEMA).iter_errors({"context": context, "benchmarks": benchmarks}):
        at = list(error.absolute_path)
        if at[:1] == ["benchmarks"] and len(at) > 1:
            at[:2] = [f"'{benchmarks[at[1]].get('name', at[1])}'"]
        message = "must not stand here" if error.schema == {"not": {}} else error.message
        found.append(f"{results.relative(path)}: {' '.join(map(str, at))}: {message[:200]}")
    try:
        return found or list(results.rows(path))[:0]  # what the schema cannot say
    except results.ResultsError as error:
        return [str(error)]


def cut_short(path):
    """What is wrong with the sidecar of a file of the schema, like `invalid`."""
    if path.parent.name in results.SUMMARIES:
        return []
    ends = [
        row["samples_at"] + row.get("n", 0) * (2 if "us_copy" in row else 1)
        for row in results.rows(path)
        if "samples_at" in row
    ]
    if not ends:
        return []
    sidecar = path.with_name(results.read(path)[0]["samples"])
    size = sidecar.stat().st_size if sidecar.is_file() else 0
    if size >= 4 * max(ends):
        return []
    return [f"{results.relative(sidecar)}: {size} bytes, its rows want {4 * max(ends):.0f}"]


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def entry(path, top):
    """The line of the index that a file should have; of what is no JSON only path and digest."""
    line = {"path": path.relative_to(top).as_posix(), "sha256": digest(path)}
    if path.suffix != ".json":
        return dict.fromkeys(INDEX, "") | line
    if path.parent.name in results.SUMMARIES:
        summary = results.parse(path)
        context = summary["context"] | {"dirty": summary["context"]["git_dirty"]}
        context |= {"suite": path.parent.name, "errors": len(summary.get("failures", ()))}
        rows = soak.total(summary) if "failures" in summary else len(summary["accuracy"])
        return {key: (context | line | {"rows": rows}).get(key, "") for key in INDEX}
    context, benchmarks = results.read(path)
    rows = [row for row in benchmarks if row.get("run_type") != "aggregate"]
    errors = sum(bool(row.get("error_occurred")) for row in rows)
    modes = sorted({results.parse_name(row["name"])["mode"] for row in rows})
    line |= {"dirty": context.get("git_dirty", ""), "modes": " ".join(modes)}
    line |= {"rows": len(rows), "errors": errors}
    return {key: context.get(key, "") for key in INDEX} | line


def survey(top):
    """Holds every file below `top` against top/index.csv.

    Gives the lines of the index with those of new files, the names of the new, and what is wrong.
    Raises ResultsError for an index that is none.
    """
    file = top / "index.csv"
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ",".join(INDEX)
        reader = csv.DictReader(io.StringIO(text))
        entered = {line["path"]: line for line in reader if reader.fieldnames == INDEX}
    except (UnicodeError, csv.Error) as error:
        raise results.ResultsError(f"{results.relative(file)}: {error}") from error
    ragged = any(None in (*line, *line.values()) for line in entered.values())
    if reader.fieldnames != INDEX or ragged:
        raise results.ResultsError(f"{results.relative(file)}: want columns {','.join(INDEX)}")
    new, wrong = [], []
    for path in sorted(path for path in top.rglob("*") if path.is_file()):
        name = path.relative_to(top).as_posix()
        if name in OURS:
            continue
        if name not in entered:
            faults = (invalid(path) or cut_short(path)) if path.suffix == ".json" else []
            wrong += faults
            if not faults:
                new.append(name)
                entered[name] = entry(path, top)
        elif digest(path) != entered[name]["sha256"]:
            wrong.append(f"{results.relative(path)}: not the file that was entered: append-only")
    wrong += [
        f"{results.relative(top / name)}: in the index, but gone: append-only"
        for name in entered
        if not (top / name).is_file()
    ]
    return [entered[name] for name in sorted(entered)], new, wrong


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--validate", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--results", type=Path, help="default: results/, or $SOFTMAX_RESULTS")
    args = parser.parse_args(argv)
    top = args.results or results.results_folder()
    try:
        if args.validate:
            wrong = [fault for file in args.validate for fault in invalid(file)]
            results.say("\n".join(wrong) or f"{len(args.validate)} file(s) of the schema")
            return 1 if wrong else 0
        lines, new, wrong = survey(top)
        if args.check:
            wrong += [f"{results.relative(top / name)}: not in index.csv, run python "
                      "analysis/store.py" for name in new]
        elif new:
            written = top / "index.csv.new"
            with written.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, INDEX, lineterminator="\n")
                writer.writeheader()
                writer.writerows(lines)
            os.replace(written, top / "index.csv")  # a reader sees the old one or the new
            results.say("\n".join(f"entered: {name}" for name in new))
        if wrong:
            results.say("\n".join(wrong))
    except (results.ResultsError, OSError) as error:
        print(f"store: {error}", file=sys.stderr)
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
