"""Compares two runs, or two versions of one run: what became faster, slower, or cannot be told.

    python analysis/compare.py OLD NEW                  files, or folders of them
    python analysis/compare.py RUN --versions V6 V7     V7 against V6, each at its fastest block
    python analysis/compare.py OLD NEW --fail-on slow:5%,error,gone       for scripts: exit 1

Every repetition in every file of a side counts. A row's time is the median of its samples (of the
sidecar file, else of what the rows say), its interval the median's 95 % confidence interval,
widened by what that does not know: PROCESS, by which two processes of one binary differ, TICK, a
step of the clock, and WANDER times by how much more the medians of the run's pieces and repetitions
scatter than chance explains (drift, modes, placement).

  SAME       The intervals overlap. `±` is the least difference that would have shown.
  FAST SLOW  They are disjoint, and every witness moved the same way, at least CONFIRM as far:
               p25, p75    a kernel that changed moves its whole distribution, two modes do not
               us/us_copy  the copy in turn with the row: what the machine did, it felt too
               us*sm_mhz   cycles; not of rows that both reach NEAR %copy: memory has its own clock
  AMBIGUOUS  A witness says otherwise; or a side is suspect, or throttled alone; or the intervals
             overlap, but ± is above COARSE, or a row NEAR the copy differs in us/us_copy.
  NEW GONE   Only one side has a time.      ERROR   The new side is wrong, and has none.

Runs of other GPUs, flushes, maths or modes are refused. Of the CPU device's runs the counts are
compared (MORE, LESS, SAME): they are of the kernel, its times are the simulator's.
Exit 1: something of --fail-on; 2: refused, or nothing to compare.
"""

import argparse
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np

import results
from tables import DASH, table

PROCESS = 0.0035  # of the time, a side: on an H200 two runs of a ladder differed by less than 0.6 %
TICK = 0.032  # µs: samples between two events of an H200 are multiples of it
WANDER = 2.0  # standard deviations
PIECES, SHORTEST = 8, 5  # a repetition's samples are cut into so many, of at least so many samples
CONFIRM = 0.5  # of the difference
NEAR = 80.0  # %copy
COARSE = 0.05  # of the time
NORMAL = 1.96  # standard deviations of half a 95 % interval

VERDICTS = ("FAST", "SLOW", "LESS", "MORE", "SAME", "AMBIGUOUS", "NEW", "GONE", "ERROR")
TIMED = ("FAST", "SLOW", "SAME", "AMBIGUOUS")
COUNT = re.compile(
    r"(l1tex|smsp)__\w+|atomics|barriers|shuffles|votes|instructions|partial_requests"
    r"|redundant_load_bytes|bytes_transferred"
)
# Context that differs between any two runs and explains nothing.
IDLE = set("date load_avg caches executable command_line samples host_name mhz_per_cpu".split())
WITHOUT_N = ("op", "version", "dtype", "math", "mode")


def interval(runs, n, ci, floor):
    """One series a run -> (median, low, high): see the docstring above.

    runs: arrays of samples, or of one median each, then `n` of them with half intervals `ci`.
    floor: what is added for the process and the clock; all in one unit.
    """
    pooled = np.sort(np.concatenate(runs))
    middle = float(np.median(pooled))
    if ci is None:
        reach = NORMAL / 2 * math.sqrt(len(pooled))
        first = max(0, math.floor(len(pooled) / 2 - reach))
        last = min(len(pooled) - 1, math.ceil(len(pooled) / 2 + reach) - 1)
        down, up = middle - pooled[first], pooled[max(first, last)] - middle
    else:
        down = up = ci / math.sqrt(n)
    pieces = [
        np.median(piece)
        for run in runs
        for piece in np.array_split(run, PIECES if len(run) >= PIECES * SHORTEST else 1)
    ]
    chance = (down + up) / 2 / NORMAL * math.sqrt(len(pieces))
    excess = np.var(pieces, ddof=1) - chance**2 if len(pieces) > 1 else 0.0
    wander = WANDER * math.sqrt(max(0.0, excess))
    return middle, middle - math.hypot(down, floor, wander), middle + math.hypot(up, floor, wander)


def side(rows):
    """The rows of one name (repetitions, files) -> what is known of their time, in µs.

    us, p25, p75, %copy, GB/s, sm_mhz (NaN where unknown); `time` and, where the copy ran in turn,
    `ratio`: (median, low, high); runs, sampled (whether by samples), flags.
    """

    def mid(key):
        values = [row.get(key, math.nan) for row in rows]
        return float(np.median([math.nan if value is None else value for value in values]))

    us, copy, n = mid("us"), mid("us_copy"), len(rows)
    if any(row["version"] == "copy" for row in rows):
        copy = math.nan
    try:
        pairs = [results.samples(row) for row in rows]
    except results.ResultsError:
        if any(row["samples"] and row["samples_at"] >= 0 for row in rows):
            raise  # named, but not to be had
        pairs = None
    nodes = mid("nodes")
    tick = TICK / (1 if math.isnan(nodes) else nodes)
    floor = math.hypot(PROCESS * us, tick)
    ratio = None
    if pairs:
        own = [pair[0] for pair in pairs]
        pooled = np.concatenate(own)
        us, p25, p75 = (float(np.percentile(pooled, at)) for at in (50, 25, 75))
        time = interval(own, n, None, floor)
    else:
        p25, p75, ci = mid("us_p25"), mid("us_p75"), mid("ci%") / 100
        ci = 0.0 if math.isnan(ci) else ci
        time = interval([np.array([row["us"]]) for row in rows], n, ci * us, floor)
    if not math.isnan(copy):
        share = us / copy
        floor = share * math.hypot(floor / us, PROCESS, tick / copy)
        if pairs and all(len(pair[1]) for pair in pairs):
            ratio = interval([pair[0] / pair[1] for pair in pairs], n, None, floor)
        else:
            each = [np.array([row["us"] / row["us_copy"]]) for row in rows]
            spread = 0.0 if pairs else ci * share * math.sqrt(2)
            ratio = interval(each, n, spread, floor)
    flags = [flag for flag in ("suspect", "throttled", "noisy") if mid(flag) > 0]
    known = {"us": us, "p25": p25, "p75": p75, "time": time, "ratio": ratio, "flags": flags}
    known |= {key: mid(key) for key in ("%copy", "GB/s", "sm_mhz")}
    return known | {"runs": n, "sampled": bool(pairs)}


def judge(old, new):
    """Two sides -> {verdict, diff, resolution, witnesses, why}; shares of the old time."""
    diff = new["us"] / old["us"] - 1

    def disjoint(view):
        return old[view][2] < new[view][1] or new[view][2] < old[view][1]

    def half(known):
        return (known["time"][2] - known["time"][1]) / 2

    near = min(old["%copy"], new["%copy"]) >= NEAR
    moved = {"p25": new["p25"] / old["p25"] - 1, "p75": new["p75"] / old["p75"] - 1}
    if old["ratio"] and new["ratio"]:
        moved["us/us_copy"] = new["ratio"][0] / old["ratio"][0] - 1
    if not near:
        moved["cycles"] = new["us"] * new["sm_mhz"] / (old["us"] * old["sm_mhz"]) - 1
    moved = {key: value for key, value in moved.items() if not math.isnan(value)}
    resolution = (half(old) + half(new)) / old["us"]
    why = []
    if disjoint("time"):
        verdict = "FAST" if diff < 0 else "SLOW"
        why += [f"{key} {value:+.1%}" for key, value in moved.items() if value / diff < CONFIRM]
        for name, known, other in (("old", old, new), ("new", new, old)):
            if "suspect" in known["flags"]:
                why.append(f"{name} is suspect")
            if "throttled" in known["flags"] and "throttled" not in other["flags"]:
                why.append(f"only {name} is throttled")
    else:
        verdict = "SAME"
        if near and "us/us_copy" in moved and disjoint("ratio"):
            why.append(f"us/us_copy {moved['us/us_copy']:+.1%}")
        if resolution > COARSE:
            why.append("too noisy")
    found = {"verdict": "AMBIGUOUS" if why else verdict, "diff": diff, "why": ", ".join(why)}
    return found | {"resolution": resolution, "witnesses": moved}


# Reading and matching.


def read(path):
    """A file or folder -> (rows as dicts, contexts, simulated). Raises ResultsError."""
    path = Path(path)
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    contexts = [results.read(file)[0] for file in files]
    simulated = bool(contexts) and all(c["simulated"] == "true" for c in contexts)
    frame = results.load(path, simulated=simulated, op=None)
    contexts = [c for c in contexts if (c["simulated"] == "true") == simulated]
    return frame.to_dict("records"), contexts, simulated


def arguments(row):
    """{"N": 8192, ...}: those of the row's name, in its order."""
    parts = (part.split(":") for part in row["name"].split("/")[5:] if ":" in part)
    return dict(parts)


def key(row, drop):
    """What two rows must share to be compared, as a dict without the columns of `drop`."""
    named = {column: row[column] for column in WITHOUT_N} | arguments(row)
    named["input"] = row["input"]
    return {column: value for column, value in named.items() if column not in drop}


def values(rows, column):
    rows = [row for row in rows if column != "flush" or row["mode"] == "cold"]
    return {str(row[column]) for row in rows}


def refusals(old, new):
    """({column: "old values against new values"} that must not differ, columns of no overlap)."""
    found, apart = {}, []
    for column in ("device", "simulated", "flush", "math", "mode"):
        a, b = values(old, column), values(new, column)
        if column in ("math", "mode"):
            if not a or not b or a & b:
                continue
            apart.append(column)
        elif len(a | b) < 2:
            continue
        found[column] = " against ".join(f"'{', '.join(sorted(each))}'" for each in (a, b))
    return found, apart


def differences(old, new):
    """Lines: what else the contexts say that is not the same on both sides."""
    lines = []
    for name in sorted({name for c in old + new for name in c} - IDLE):
        a, b = (sorted({str(c.get(name, "none")) for c in each}) for each in (old, new))
        if a == b:
            continue
        if name.startswith("roof_") or name == "launch_floor_us":
            try:
                if abs(float(b[0]) / float(a[0]) - 1) < 0.02:
                    continue
            except ValueError:
                pass
        lines.append(f"  {name}: {', '.join(a)} -> {', '.join(b)}")
    return lines


def group(rows, drop):
    """Rows by key: {frozen key: rows}, in their order."""
    found = {}
    for row in rows:
        found.setdefault(tuple(sorted(key(row, drop).items())), []).append(row)
    return found


def fastest(groups):
    """Of groups that differ in `block` alone, that of the least median; rows in error come last."""

    def median(rows):
        return math.inf if any(r["error"] for r in rows) else np.median([r["us"] for r in rows])

    found = {}
    for at, rows in groups.items():
        found.setdefault(tuple(pair for pair in at if pair[0] != "block"), []).append(rows)
    return {at: min(each, key=median) for at, each in found.items()}


def timed(rows):
    return bool(rows) and not any(row["error"] for row in rows)


def label(rows, constant):
    named = {column: value for column, value in key(rows[0], ()).items() if column not in constant}
    words = [value for column, value in named.items() if column in (*WITHOUT_N, "input")]
    return " ".join(words + [f"{c}:{v}" for c, v in named.items() if c not in (*WITHOUT_N, "input")])


def match(old, new, drop, only_fastest):
    """[(old rows or [], new rows or [])], in the order of the old side, then of the new."""
    a, b = group(old, drop), group(new, drop)
    if only_fastest:
        a, b = fastest(a), fastest(b)
    return [(a.get(at, []), b.get(at, [])) for at in dict.fromkeys([*a, *b])]


def constants(pairs):
    """{column: value} of what all rows share, for the heading."""
    named = [key(rows[0], ()) for pair in pairs for rows in pair if rows]
    shared = {c: v for c, v in named[0].items() if all(each.get(c) == v for each in named)}
    return shared if len(named) > 1 else {}


def presence(a, b):
    """The verdict and reason where a side has no time, else None."""
    for rows, name in ((b, "new"), (a, "old")):
        if error := next((row["error"] for row in rows if row["error"]), None):
            return ("ERROR" if name == "new" else "NEW"), f"{name}: {error}"
    return None if a and b else ("GONE", "") if a else ("NEW", "")


def times(a, b):
    """One pair of rows -> [finding], of their times."""
    found = {"old": side(a) if timed(a) else None, "new": side(b) if timed(b) else None}
    if absent := presence(a, b):
        return [found | {"verdict": absent[0], "why": absent[1]}]
    return [found | judge(found["old"], found["new"])]


def counts(a, b):
    """One pair of rows -> [finding], of each count that differs, or one that says SAME."""
    if absent := presence(a, b):
        return [{"verdict": absent[0], "why": absent[1]}]
    found = []
    for name in a[0]:
        before, now = a[0][name], b[0].get(name)
        if COUNT.fullmatch(name) and now is not None and not math.isnan(before + now):
            diff = now / before - 1 if before else math.inf if now else 0.0
            verdict = "SAME" if now == before else "MORE" if now > before else "LESS"
            found.append({"count": name, "old": before, "new": now, "diff": diff, "why": ""})
            found[-1]["verdict"] = verdict
    return [one for one in found if one["verdict"] != "SAME"] or found[:1]


# Printing.


def both(finding, name, style):
    cells = [finding[s][name] if finding[s] else math.nan for s in ("old", "new")]
    cells = [DASH if math.isnan(cell) else format(cell, style) for cell in cells]
    return cells[0] if cells == [DASH, DASH] else " → ".join(cells)


def percent(finding, name, style="+.1%"):
    return format(finding[name], style) if name in finding else DASH


def markdown(findings, counted):
    rows = []
    for f in findings:
        if counted:
            if f["verdict"] != "SAME":
                numbers = [f"{f[s]:.6g}" if s in f else DASH for s in ("old", "new")]
                rows.append([f["row"], f.get("count", DASH), *numbers, percent(f, "diff")])
                rows[-1] += [f["verdict"], f["why"]]
            continue
        us = [f"{f[s]['us']:#.4g}".rstrip(".") if f[s] else DASH for s in ("old", "new")]
        rows.append([f["row"], *us, percent(f, "diff"), percent(f, "resolution", ".1%")])
        rows[-1] += [both(f, "GB/s", ".0f"), both(f, "%copy", ".1f"), f["verdict"], f["why"]]
    header = ["row", "old µs", "new µs", "diff", "±", "GB/s", "%copy", "verdict", "why"]
    if counted:
        header = ["row", "count", "old", "new", "diff", "verdict", "why"]
    return table(header, rows, left=2 if counted else 1, text=2, pad=True) if rows else ""


def summary(findings):
    tally = Counter(f["verdict"] for f in findings)
    text = f"{len(findings)} rows: " if len(findings) != 1 else "1 row: "
    text += ", ".join(f"{tally[verdict]} {verdict}" for verdict in VERDICTS if tally[verdict])
    shares = [1 + f["diff"] for f in findings if f["verdict"] in TIMED]
    if shares:
        mean = math.exp(np.mean(np.log(shares)))
        text += f"; new time / old time {mean:.3f}, geometric mean of {len(shares)}"
    return text


def limits(text):
    """'slow:5%,error' -> {"SLOW": 0.05, "ERROR": 0.0}"""
    found = {}
    for part in text.split(","):
        match_ = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d+)?)%)?", part.strip())
        if not match_ or match_[1].upper() not in VERDICTS:
            words = ", ".join(verdict.lower() for verdict in VERDICTS)
            raise argparse.ArgumentTypeError(f"'{part}': want WORD or WORD:N%, of {words}")
        found[match_[1].upper()] = float(match_[2] or 0) / 100
    return found


def compare(args):
    """-> (heading lines, findings, whether they are of counts). Raises ResultsError."""
    old, old_contexts, simulated = read(args.old)
    new, new_contexts, new_simulated = read(args.new) if args.new else (
        old, old_contexts, simulated)
    refused, apart = refusals(old, new)
    if refused and not args.force:
        said = "; ".join(f"{column}: {what}" for column, what in refused.items())
        raise results.ResultsError(f"not comparable: {said} (--force compares nevertheless)")
    drop = set(apart)
    if args.versions:
        for version, rows in zip(args.versions, (old, new)):
            there = sorted({row["version"] for row in rows})
            if version not in there:
                raise results.ResultsError(f"no {version}, there are {', '.join(there)}")
        old = [row for row in old if row["version"] == args.versions[0]]
        new = [row for row in new if row["version"] == args.versions[1]]
        drop.add("version")
    wanted = re.compile(args.filter)
    old, new = ([row for row in rows if wanted.search(row["name"])] for rows in (old, new))
    pairs = match(old, new, drop, args.versions and not args.each_block)
    if not any(a and b for a, b in pairs):
        raise results.ResultsError("no row of the one side is in the other")
    counted = simulated or new_simulated
    shared = constants(pairs)
    findings = []
    for a, b in pairs:
        name = label(a or b, shared)
        if args.versions and a and b:
            name = f"{name} → {label(b, shared)}"
        findings += [{"row": name} | one for one in (counts if counted else times)(a, b)]
    if counted and not findings:
        raise results.ResultsError("simulated: times say nothing, and there are no counts")
    lines = [f"old: {args.old}", f"new: {args.new or args.old}"]
    lines += [f"FORCED, not comparable: {c}: {what}" for c, what in refused.items()]
    if told := differences(old_contexts, new_contexts):
        lines += ["differs:", *told]
    if counted:
        lines.append("simulated: counts are compared, times are not")
    if shared:
        lines.append("all rows: " + " ".join(
            v if c in (*WITHOUT_N, "input") else f"{c}:{v}" for c, v in shared.items()))
    return lines, findings, counted


def main(argv=None):
    style = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("old", metavar="OLD", help="a results file, or a folder of them")
    parser.add_argument("new", metavar="NEW", nargs="?")
    parser.add_argument("--versions", nargs=2, metavar=("V6", "V7"),
                        help="the second against the first, of NEW (default: OLD) and OLD")
    parser.add_argument("--each-block", action="store_true",
                        help="with --versions: block by block, not each at its fastest")
    parser.add_argument("--filter", default="", metavar="REGEX", help="of the rows' names")
    parser.add_argument("--fail-on", type=limits, default={}, metavar="WORD[:N%],...",
                        help="exit 1 if a row has this verdict, by more than N %%")
    parser.add_argument("--force", action="store_true", help="compare what is not comparable")
    parser.add_argument("--json", action="store_true", help="the numbers behind each verdict")
    args = parser.parse_args(argv)
    if not args.new and not args.versions:
        parser.error("want OLD and NEW, or RUN with --versions")
    try:
        lines, findings, counted = compare(args)
    except results.ResultsError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    if args.json:
        print(json.dumps({"rows": findings}, indent=1, default=float))
    else:
        print("\n".join(lines), markdown(findings, counted), summary(findings), sep="\n\n")
    failed = [
        f for f in findings
        if f["verdict"] in args.fail_on and abs(f.get("diff", 0)) >= args.fail_on[f["verdict"]]
    ]
    for f in failed:
        print(f"compare: {f['row']} is {f['verdict']} {f['why']}".rstrip(), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
