"""The one reader of results/*.json; all of analysis/ gets its numbers here.

results/README.md owns the schema.
"""

import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
SUMMARIES = ("accuracy", "soak")  # folders of results/ whose files have a schema of their own
SCHEMAS = {"1", "2"}
CONTEXT = ("device", "git_sha", "date")  # every file has these, beside `schema` and `simulated`
OPTIONAL = {"git_dirty": "false", "card": "", "flush": "", "input": "noise"}
TIMES = ("us", "us_min", "us_p25", "us_p75", "us/token", "GB/s", "%copy", "ci%", "us_copy", "%peak")
SINCE_2 = ("sm_mhz", "noisy", "throttled", "suspect", "samples_at")
LADDER = {"op": "softmax", "dtype": "fp32", "mode": "cold", "N": 8192, "C": 50257, "input": "noise"}
GRAMMAR = "op/version/dtype/math/mode/at:../gap:../N:../C:../block:../manual_time"
NAME = re.compile(
    r"(?P<op>[a-z][\w-]*)/(?P<version>V\d+|Auto|[a-z][\w-]*)/(?P<dtype>[a-z]+\d+(-[a-z]+\d+)?)"
    r"/(?P<math>ieee|fast)/(?P<mode>cold|hot|graph|graph-hot|sim)"
    r"(?P<args>(/[A-Za-z_]\w*:[\w.+-]+)*)(/manual_time)?"
)
SIDECAR = re.compile(r"[^/\0]{1,60}\.samples\.f32")  # a name, never a path; of at most 255 bytes
POSITIVE = "us us_p25 us_p75 us/token %copy us_copy %peak sm_mhz n nodes".split()
LEAST_0 = ("ci%", "samples_at")
TEXT = ("name", "label", "op", "version", "dtype", "math", "mode", "error")
ON_FILE = re.compile(r" @ (.+)$")  # the label of a row whose data are a file's
# Google Benchmark's own keys, which our columns and counters say again.
GOOGLE = set(
    "family_index per_family_instance_index run_name run_type repetitions repetition_index threads"
    " iterations real_time cpu_time time_unit error_occurred error_message".split()
)


class ResultsError(Exception):
    """A results file or folder that cannot be used; the message names it and says why."""


def say(text):
    """Prints it at once. Raises ResultsError where it cannot be written."""
    try:
        print(text, flush=True)
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError):  # what is left in the buffer would fail again at the exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ResultsError(f"standard output: {error}") from error


def results_folder():
    """The folder that holds <gpu>/<date>-<sha>/: results/, or $SOFTMAX_RESULTS."""
    return Path(os.environ.get("SOFTMAX_RESULTS", ROOT / "results"))


def relative(path):
    """The path as text, from the project's root where it lies inside it."""
    path = Path(path).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()


def parse_name(name):
    """softmax/V6/fp32/ieee/cold/N:8192/C:50257/block:32/manual_time -> dict of columns.

    The arguments of an operation other than softmax, a study, are free: numbers where they are
    whole ones, else text. Raises ValueError if it is no such name.
    """
    match = NAME.fullmatch(name)
    if not match:
        raise ValueError(f"bad name '{name}', want {GRAMMAR}")
    columns = match.groupdict()
    for argument in columns.pop("args").split("/")[1:]:
        key, value = argument.split(":")
        if key in columns or key in (*TEXT, "number"):
            raise ValueError(f"bad name '{name}', {key}: cannot be an argument here")
        columns[key] = int(value) if value.isdecimal() else value
    if columns["op"] == "softmax":
        if "N" not in columns or "C" not in columns:
            raise ValueError(f"bad name '{name}', N: or C: is missing")
        if not all(isinstance(columns.get(key, 0), int) for key in ("N", "C", "block")):
            raise ValueError(f"bad name '{name}', N, C and block are whole numbers")
    version = columns["version"]
    columns["number"] = int(version[1:]) if version.startswith("V") else float("nan")
    return columns


def parse(path):
    """One file of JSON, whose numbers are finite. Raises ResultsError with file and reason."""

    def number(word):
        value = float(word)
        if not math.isfinite(value):
            raise ValueError(f"{word[:20]} is no number, all values are finite")
        return int(word) if word.lstrip("-").isdecimal() and abs(value) < 2**53 else value

    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text, parse_constant=number, parse_float=number, parse_int=number)
        if "\\u" in text:  # half a surrogate pair can be written nowhere
            json.dumps(data, ensure_ascii=False).encode()
    except OSError as error:
        raise ResultsError(f"{relative(path)}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ResultsError(f"{relative(path)}: not JSON: {error}") from error
    return data


def read(path):
    """One file -> (context, list of benchmarks), as Google Benchmark wrote them.

    Raises ResultsError with file and reason.
    """
    data = parse(path)
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("context"), dict)
        or not isinstance(data.get("benchmarks"), list)
        or not all(isinstance(entry, dict) for entry in data["benchmarks"])
    ):
        raise ResultsError(f"{relative(path)}: no Google Benchmark file (context, benchmarks)")
    context = data["context"]
    for key in ("schema", *CONTEXT, "simulated", *OPTIONAL, "samples"):
        if not isinstance(context.get(key, ""), str):
            raise ResultsError(f"{relative(path)}: context {key}: {context[key]!r:.40} is no text")
    if context.get("schema") not in SCHEMAS:
        raise ResultsError(
            f"{relative(path)}: schema {context.get('schema', 'missing')}, known: "
            f"{', '.join(sorted(SCHEMAS))} (results/README.md)"
        )
    missing = [key for key in (*CONTEXT, "simulated") if key not in context]
    if missing:
        raise ResultsError(f"{relative(path)}: context lacks {', '.join(missing)}")
    try:
        pd.to_datetime(context["date"], utc=True, format="ISO8601")
    except ValueError as error:
        why = f"context date: '{context['date'][:40]}' is no ISO date"
        raise ResultsError(f"{relative(path)}: {why}") from error
    if context.get("samples") and not SIDECAR.fullmatch(context["samples"]):
        raise ResultsError(
            f"{relative(path)}: context samples: {context['samples']!r:.40} is no name.samples.f32"
        )
    return context, data["benchmarks"]


def files(path, pattern="*.json"):
    """The results files of a file or folder, in order; ResultsError if there is none."""
    path = Path(path)
    found = sorted(path.rglob(pattern)) if path.is_dir() else [path]
    found = [f for f in found if f.name != "schema.json" and f.parent.name not in SUMMARIES]
    if not found:
        raise ResultsError(f"{relative(path)}: no {pattern} in it")
    return found


def summaries(name, top=None):
    """The files of one of SUMMARIES, oldest first; ResultsError if there is none."""
    folder = (top or results_folder()) / name
    found = [file for file in folder.glob("*.json") if file.name != "schema.json"]
    if not found:
        raise ResultsError(f"{relative(folder)}: no file of {name} in it")
    return sorted(found, key=lambda file: parse(file)["context"]["date"])


def _refuse(row, named):
    """Raises ValueError for a value of another type than our arithmetic takes, or a time of 0."""
    used = {*TIMES, *SINCE_2, "n", "nodes"}
    for key, value in row.items():
        if key in TEXT:
            if not isinstance(value, str):
                raise ValueError(f"'{row['name']}': {key}: {value!r:.40} is no text")
        elif key in named and key not in used:
            continue  # the arguments of a study are free
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"'{row['name']}': {key}: {value!r:.40} is no number")
        elif "error" in row:
            continue
        elif key in POSITIVE and value <= 0 or key in LEAST_0 and value < 0:
            raise ValueError(f"'{row['name']}': {key}: {value} is too small")


def rows(path):
    """One file -> its rows as dicts, without aggregates; see `load`. Raises ResultsError."""
    context, benchmarks = read(path)
    simulated = context["simulated"] == "true"
    common = {key: context[key] for key in CONTEXT}
    common |= {key: context.get(key, default) for key, default in OPTIONAL.items()}
    common["schema"] = context["schema"]
    sidecar = context.get("samples")
    common["samples"] = relative(Path(path).with_name(sidecar)) if sidecar else ""
    for entry in benchmarks:
        if entry.get("run_type") == "aggregate":
            continue
        try:
            if not isinstance(entry["name"], str):
                raise ValueError(f"name: {entry['name']!r:.40} is no text")
            named = parse_name(entry["name"])
            row = {key: value for key, value in entry.items() if key not in GOOGLE}
            row = {"name": entry["name"]} | named | row | named
            if entry.get("error_occurred"):
                row = {key: value for key, value in row.items() if key not in TIMES}
                row["error"] = entry.get("error_message") or "no message"
            _refuse(row, named)
            if "error" not in row and (
                "us" not in row or row["op"] == "softmax" and "us/token" not in row
            ):
                raise ValueError(f"'{entry['name']}' has no counter us or us/token")
            if (row["mode"] == "sim") != simulated:
                raise ValueError(
                    f"'{entry['name']}' in a file that says simulated: {context['simulated']}"
                )
        except KeyError as error:
            raise ResultsError(f"{relative(path)}: a benchmark without {error}") from error
        except ValueError as error:
            raise ResultsError(f"{relative(path)}: {error}") from error
        on_file = ON_FILE.search(entry.get("label", ""))
        own = {"input": on_file[1]} if on_file else {}
        yield row | common | own | {"simulated": simulated, "file": relative(path)}


def load(path, *, simulated=False, pattern="*.json", op="softmax"):
    """A file, or every file below a folder that matches `pattern` -> one row a benchmark.

    Columns: name, op, version ("V6", "copy"), number (6, NaN), dtype, math, mode, N, C, block (NaN
    where there is none), at and gap ("1.2", NaN of dense rows), every counter under its JSON key ("us/token", "GB/s", "%copy", ...),
    label, error (None, or why there is no time: then every time is NaN), device, git_sha,
    git_dirty, date, flush, input, simulated, file, samples (the sidecar's path, or ""). Times are
    microseconds. What schema 1 lacks is NaN there.

    Rows of other operations are studies, which have arguments of their own and often no us/token:
    they are left out, so that no ladder or plot need know of them; `op` names another, None takes
    all. So are Google Benchmark's aggregates of repetitions.

    The CPU device's times are simulated: its rows are left out, unless `simulated` asks for them,
    and then the path must hold no others. Raises ResultsError: no file, broken file, unknown
    schema, bad name, simulated rows mixed with others, nothing left.
    """
    read_from = files(path, pattern)
    found = [row for file in read_from for row in rows(file)]
    if simulated and not all(row["simulated"] for row in found):
        real = next(row["file"] for row in found if not row["simulated"])
        raise ResultsError(
            f"{relative(path)}: simulated times never stand beside a GPU's, and {real} is a GPU's"
        )
    timed = [row for row in found if row["simulated"] == simulated]
    kept = [row for row in timed if op in (None, row["op"])]
    if not kept:
        why = "only simulated times (simulated=True reads them)" if found else "no benchmark"
        if timed:
            others = ", ".join(sorted({row["op"] for row in timed}))
            why = f"no row of {op}, only of {others} (op=None reads them)"
        raise ResultsError(f"{relative(path)}: {why} in {len(read_from)} file(s)")
    frame = pd.DataFrame(kept)
    for column in ("N", "C", "block", "at", "gap", "error", *TIMES, *SINCE_2):
        if column not in frame:
            frame[column] = None if column == "error" else float("nan")
    frame["error"] = frame["error"].astype(object).where(frame["error"].notna(), None)
    return frame


def samples(row):
    """A row of `load` -> its samples and its copy's, two arrays of n microseconds, as taken.

    The second is empty where the row has no us_copy. Raises ResultsError: none were kept, the
    sidecar is missing, too short, or another row's.
    """
    at, n = row.get("samples_at"), row.get("n")
    if not row.get("samples") or at is None or pd.isna(at):
        raise ResultsError(f"{row['file']}: no samples of {row['name']} were kept")
    path = ROOT / row["samples"]
    parts = 1 if pd.isna(row.get("us_copy", np.nan)) else 2
    at, n = int(at), int(n)
    try:
        size = path.stat().st_size // 4
        if size < at + parts * n:
            raise ResultsError(
                f"{row['samples']}: {size} samples, too short for {row['name']}: "
                f"{parts} times {n} from {at} on"
            )
        found = np.fromfile(path, "<f4", parts * n, offset=4 * at).astype(float)
    except OSError as error:
        raise ResultsError(f"{row['samples']}: {error.strerror}") from error
    own, copy = found[:n], found[n:]
    if not abs(np.median(own) / row["us"] - 1) < 1e-3:  # float32 keeps seven digits
        raise ResultsError(
            f"{row['samples']}: not those of {row['name']}: their median is {np.median(own):.6g} "
            f"us, the row's {row['us']:.6g}"
        )
    return own, copy


def latest(gpu=None, pattern="*.json", *, simulated=False):
    """The newest folder <gpu>/<date>-<sha> with a GPU's file, by the dates inside the files.

    `gpu` is a slug such as "nvidia-h200", without it any; `simulated` looks for the CPU device's
    files instead. Raises ResultsError if there is none.
    """
    top = results_folder()
    dated = []
    for file in sorted(top.glob(f"{gpu or '*'}/*/{pattern}")):
        context, _ = read(file)
        if (context["simulated"] == "true") == simulated:
            dated.append((pd.to_datetime(context["date"], utc=True), file.parent))
    if not dated:
        raise ResultsError(
            f"{relative(top)}: no {'simulated' if simulated else 'GPU'} results "
            f"({gpu or '<gpu>'}/<date>-<sha>/{pattern}) in it; ./bench "
            f"{'--device=cpu' if simulated else 'on a GPU'} makes them, results/README.md says how "
            "to file them"
        )
    return max(dated)[1]


def ladder(frame):
    """The ladder's rows: the article's shape, fp32, cold, noise; one a (version, math, block).

    Repetitions become their median; rows in error are left out. Raises ResultsError if nothing is
    left or if the rows come from more than one device or revision.
    """
    rows = frame[frame["error"].isna()]
    for column, value in LADDER.items():
        rows = rows[rows[column] == value]
    if rows.empty:
        wanted = ", ".join(f"{key} {value}" for key, value in LADDER.items())
        raise ResultsError(f"no row of the ladder: {wanted}")
    for key in ("device", "git_sha"):
        if rows[key].nunique() > 1:
            raise ResultsError(f"a ladder of several: {key} {', '.join(sorted(set(rows[key])))}")
    keys = ["version", "math", "block"]
    numbers = set(rows.select_dtypes("number"))
    how = {c: "median" if c in numbers else "first" for c in rows.columns if c not in keys}
    rows = rows.groupby(keys, as_index=False, dropna=False).agg(how)
    return rows.sort_values(["number", "version", "math", "block"], ignore_index=True)


def counters(frame):
    """What the CPU device counted in simulated rows of noise, freed of the matrix's size.

    One row a (version, block), repetitions and rows in error left out: version, number, block, and
    x_min               bytes moved over the least
    reads, writes       times that an element is loaded and stored
    sectors/128 bytes   of loads, for 128 bytes asked for: 4 is the least, 32 the most
    barriers, shuffles, conflicts   a row of the matrix; shuffles of whole warps
    Raises ResultsError if no row has counters, or rows come from more than one revision.
    """
    rows = frame[frame["error"].isna() & (frame["input"] == "noise")]
    if "x_min" not in rows or rows["x_min"].isna().all():
        raise ResultsError("no row with counters: ./bench --device=cpu of a newer program has them")
    if rows["git_sha"].nunique() > 1:
        shas = ", ".join(sorted(set(rows["git_sha"])))
        raise ResultsError(f"counters of several revisions: {shas}")
    rows = rows[rows["x_min"].notna()].drop_duplicates(["version", "block"])
    loaded, stored = (rows[f"smsp__sass_data_bytes_mem_global_op_{op}"] for op in ("ld", "st"))
    conflict = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
    sectors = rows["l1tex__t_sectors_pipe_lsu_mem_global_op_ld"]
    of = rows[["version", "number", "block", "N", "C", "x_min", "barriers", "shuffles"]]
    return of.assign(
        reads=loaded / 4 / rows["C"],
        writes=stored / 4 / rows["C"],
        conflicts=rows[f"{conflict}ld"] + rows[f"{conflict}st"],
        **{"sectors/128 bytes": 128 * sectors / loaded},
    ).sort_values(["number", "block"], ignore_index=True)


def best(rows, math):
    """Each version's fastest row in that math, of a ladder: a DataFrame indexed by version."""
    rows = rows[rows["math"] == math]
    fastest = rows.groupby("version")["us/token"].idxmin()
    return rows.loc[fastest].set_index("version").sort_values("number")


def baseline(rows, block):
    """us/token of V1 in ieee at that block, the ladder's foot; NaN if it was not measured."""
    at = rows[(rows["version"] == "V1") & (rows["math"] == "ieee") & (rows["block"] == block)]
    return at["us/token"].iloc[0] if len(at) else float("nan")


def article():
    """The article's table, GPU unknown: version, block, us/token, x32 and x1024 (times V1)."""
    frame = pd.read_csv(Path(__file__).with_name("article.csv"))
    frame = frame.rename(columns={"us_per_token": "us/token"})
    frame["version"] = "V" + frame["version"].astype(str)
    first = frame[frame["version"] == "V1"].set_index("block")["us/token"]
    for block in (32, 1024):
        frame[f"x{block}"] = first[block] / frame["us/token"]
    return frame
