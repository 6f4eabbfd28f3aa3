"""Compares two runs, or two versions of one run: what became faster, slower, or cannot be told.

    python analysis/compare.py OLD NEW                  files, or folders of them
    python analysis/compare.py RUN --versions V6 V7     V7 against V6, each at its fastest block
    python analysis/compare.py OLD NEW --fail-on slow:5%,error,gone       for scripts: exit 1

Every repetition in every file of a side counts. A row's time is the median of its samples (of the
sidecar file, else of what the rows say), its interval the median's 95 % confidence interval,
widened by what that does not know: PROCESS, by which two processes of one binary differ, TICK, a
step of the clock, and WANDER times by how much more the medians of the run's pieces and repetitions
scatter than chance explains (drift, modes, placement), less with more repetitions.

  FAST SLOW  The intervals are disjoint, and every witness moved the same way, CONFIRM as far:
               p25, p75    a kernel that changed moves its whole distribution, two modes do not
               us/us_copy  the copy in turn with the row: what the machine did, it felt too
               us*sm_mhz   cycles; not of rows that are NEAR the copy: memory has its own clock
  SAME       The intervals overlap; `±` is the least difference that would have shown. Or the times
             differ by less than LAUNCH and the fastest sample did not move. Or a row NEAR the copy
             moved with the copy.
  AMBIGUOUS  A witness says otherwise, or a side is suspect, or the slower side alone is throttled.
             Or the sides differ by less than CARD, and ran on two cards of one model, or do not say
             and are two files; or by less than SAMPLING, and are of two schemas. Or the intervals
             overlap, but ± is above COARSE (and the fastest sample does not settle it), or
             us/us_copy of a row NEAR the copy differs.
  NEW GONE   Only one side has a time.      ERROR   The new side is wrong, and has none.

Runs of other GPUs, flushes, maths or modes are refused. Of the CPU device's runs the counts are
compared (MORE, LESS, SAME): they are of the kernel, its times are the simulator's.
Exit 1: something of --fail-on; 2: refused, or nothing to compare.
"""

import argparse
import json
import math
import re
import signal
import sys
from collections import Counter

import numpy as np

import match
import results
from tables import DASH, table

# From the committed results of an H200: two runs of a ladder differ by less than 0.6 %; samples
# between two events are multiples of TICK; and of kernels below 40 µs they come in two states, 0.4
# to 0.7 µs apart at one fastest sample, of which a run may see both or one.
PROCESS = 0.0035  # of the time, a side
TICK, LAUNCH = 0.032, 0.8  # µs
WANDER = 2.5  # standard deviations
CHANCE = 2.0  # variances of eight pieces that differ by chance alone exceed it 5 times in 100
PIECES, SHORTEST = 8, 5  # a repetition's samples are cut into so many, of at least so many samples
CARD = 0.03  # of the time: one binary in two sessions on H200s was up to 2.5 % apart
SAMPLING = 0.10  # of the time: schema 1 sampled otherwise, and short launches differ by as much
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


def interval(runs, ci, floor):
    """One series a run -> (median, low, high): see the docstring above.

    runs: arrays of samples, or of one median each, then with half intervals `ci`. floor: what is
    added for the process and the clock; all in one unit.
    """
    n = len(runs)
    pooled = np.sort(np.concatenate(runs))
    middle = float(np.median(pooled))
    if ci is None:
        rank = max(1, math.floor((len(pooled) - NORMAL * math.sqrt(len(pooled))) / 2))
        down, up = middle - pooled[rank - 1], pooled[-rank] - middle
    else:
        down = up = ci / math.sqrt(n)
    pieces = [
        np.median(piece)
        for run in runs
        for piece in np.array_split(run, PIECES if len(run) >= PIECES * SHORTEST else 1)
    ]
    chance = (down + up) / 2 / NORMAL * math.sqrt(len(pieces))
    scatter = np.var(pieces, ddof=1) if len(pieces) > 1 else 0.0
    excess = scatter - chance**2 if scatter > CHANCE * chance**2 else 0.0
    wander = WANDER * math.sqrt(excess / n)
    return middle, middle - math.hypot(down, floor, wander), middle + math.hypot(up, floor, wander)


def has_samples(row):
    there = row["samples"] and row["samples_at"] >= 0
    return there and (results.ROOT / row["samples"]).is_file()


def side(rows):
    """The rows of one name (repetitions, files) -> what is known of their time, in µs.

    us, min, p25, p75, copy, %copy, GB/s, sm_mhz (NaN where unknown); `time` and, where the copy ran
    in turn, `ratio`: (median, low, high); launch: LAUNCH for a sample of this mode; cards; runs,
    sampled (whether by samples), flags.
    """

    def mid(key):
        values = [row.get(key, math.nan) for row in rows]
        return float(np.median([math.nan if value is None else value for value in values]))

    us, copy, ci = mid("us"), mid("us_copy"), np.nan_to_num(mid("ci%")) / 100
    if any(row["version"] == "copy" for row in rows):
        copy = math.nan
    pairs = [results.samples(row) for row in rows] if all(map(has_samples, rows)) else None
    launches = 1 if math.isnan(mid("nodes")) else mid("nodes")
    tick = TICK / launches
    floor = math.hypot(PROCESS * us, tick)
    ratio = None
    if pairs:
        own = [pair[0] for pair in pairs]
        pooled = np.concatenate(own)
        us, least, p25, p75 = (float(np.percentile(pooled, at)) for at in (50, 0, 25, 75))
        time = interval(own, None, floor)
    else:
        least, p25, p75 = mid("us_min"), mid("us_p25"), mid("us_p75")
        time = interval([np.array([row["us"]]) for row in rows], ci * us, floor)
    if not math.isnan(copy):
        share = us / copy
        floor = share * math.hypot(floor / us, PROCESS, tick / copy)
        if pairs and all(len(pair[1]) and pair[1].min() > 0 for pair in pairs):
            ratio = interval([pair[0] / pair[1] for pair in pairs], None, floor)
        else:
            each = [np.array([row["us"] / row["us_copy"]]) for row in rows]
            ratio = interval(each, ci * share * math.sqrt(2), floor)
    flags = [f for f in ("suspect", "throttled", "noisy") if any(row.get(f) == 1 for row in rows)]
    known = {"us": us, "min": least, "p25": p25, "p75": p75, "time": time, "ratio": ratio}
    known |= {f"{at}s": {row[at] for row in rows} for at in ("card", "file", "schema")}
    known |= {"copy": copy, "launch": LAUNCH / launches, "flags": flags}
    known |= {key: mid(key) for key in ("%copy", "GB/s", "sm_mhz")}
    return known | {"runs": len(rows), "sampled": bool(pairs)}


def judge(old, new):
    """Two sides -> {verdict, why, diff, resolution, witnesses}; shares of the old time."""
    diff = new["us"] / old["us"] - 1
    resolution = sum(s["time"][2] - s["time"][1] for s in (old, new)) / 2 / old["us"]
    launch = max(old["launch"], new["launch"])
    near = all(s["%copy"] >= NEAR for s in (old, new))
    moved = {at: new[at] / old[at] - 1 for at in ("p25", "p75")}
    if old["ratio"] and new["ratio"]:
        moved["us/us_copy"] = new["ratio"][0] / old["ratio"][0] - 1
    if not near:
        moved["cycles"] = new["us"] * new["sm_mhz"] / (old["us"] * old["sm_mhz"]) - 1
    moved = {key: value for key, value in moved.items() if not math.isnan(value)}
    said = {key: f"{key} {value:+.1%}" for key, value in moved.items()}

    def disjoint(view):
        return old[view][2] < new[view][1] or new[view][2] < old[view][1]

    def against(change):
        return change / diff < CONFIRM

    why, verdict = [], "SAME"
    within = abs(new["us"] - old["us"]) < launch
    least = (new["min"] - old["min"]) / old["us"]
    if not disjoint("time"):
        drift = "us/us_copy" in moved and abs(new["copy"] - old["copy"]) > launch
        if near and drift and disjoint("ratio"):
            why.append(said["us/us_copy"])
        if resolution > COARSE and not (within and abs(least) < COARSE):
            why.append("too noisy")
        verdict = "AMBIGUOUS" if why else "SAME"
    elif within and against(least):
        resolution = max(resolution, launch / old["us"])
        why.append("the launch: fastest sample " + format(new["min"] - old["min"], "+.3f") + " µs")
    elif near and "us/us_copy" in moved and against(moved["us/us_copy"]) and not disjoint("ratio"):
        why.append(f"the copy moved too: {said['us/us_copy']}")
    else:
        why += [said[key] for key, change in moved.items() if against(change)]
        for name, known, other in (("old", old, new), ("new", new, old)):
            if "suspect" in known["flags"]:
                why.append(f"{name} is suspect")
            alone = "throttled" in known["flags"] and "throttled" not in other["flags"]
            if alone and known["us"] > other["us"]:
                why.append(f"only {name} is throttled")
        told = "" not in old["cards"] | new["cards"]
        one = "cards" if told else "files"
        if abs(diff) < CARD and not old[one] & new[one]:
            why.append("another card" if told else "perhaps another card")
        if abs(diff) < SAMPLING and old["schemas"] != new["schemas"]:
            why.append("another way of sampling")
        verdict = "AMBIGUOUS" if why else "FAST" if diff < 0 else "SLOW"
    found = {"verdict": verdict, "why": ", ".join(why), "diff": diff}
    return found | {"resolution": resolution, "witnesses": moved}


# Pairs of rows.


def timed(rows):
    return bool(rows) and not any(row["error"] for row in rows)


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


def micro(known):
    if not known:
        return DASH
    return format(known["us"], ".0f" if known["us"] >= 1e4 else "#.4g").rstrip(".")


def percent(finding, name, style="+.1%"):
    known = name in finding and math.isfinite(finding[name])
    return format(finding[name], style).replace("-0.0%", "+0.0%") if known else DASH


def markdown(findings, counted):
    rows = []
    for f in findings:
        if counted:
            if f["verdict"] != "SAME":
                numbers = [f"{f[s]:.6g}" if s in f else DASH for s in ("old", "new")]
                rows.append([f["row"], f.get("count", DASH), *numbers, percent(f, "diff")])
                rows[-1] += [f["verdict"], f["why"]]
            continue
        rows.append([f["row"], micro(f["old"]), micro(f["new"])])
        rows[-1] += [percent(f, "diff"), percent(f, "resolution", ".1%")]
        rows[-1] += [both(f, "GB/s", ".0f"), both(f, "%copy", ".1f"), f["verdict"], f["why"]]
    header = ["row", "old µs", "new µs", "diff", "±", "GB/s", "%copy", "verdict", "why"]
    if counted:
        header = ["row", "count", "old", "new", "diff", "verdict", "why"]
    return table(header, rows, left=2 if counted else 1, text=2, pad=True) if rows else ""


def summary(findings, counted):
    tally = Counter(f["verdict"] for f in findings)
    text = f"{len(findings)} rows: " if len(findings) != 1 else "1 row: "
    text += ", ".join(f"{tally[verdict]} {verdict}" for verdict in VERDICTS if tally[verdict])
    shares = [1 + f["diff"] for f in findings if f["verdict"] in TIMED]
    if shares and not counted:
        mean = math.exp(np.mean(np.log(shares)))
        text += f"; new time / old time {mean:.3f}, geometric mean of {len(shares)}"
    return text


def finite(value):
    """The same for JSON, null where a number is none."""
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [finite(one) for one in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def limits(text):
    """'slow:5%,error' -> {"SLOW": 0.05, "ERROR": 0.0}"""
    found = {}
    for part in text.split(","):
        word = re.fullmatch(r"([a-z]+)(?::(\d+(?:\.\d+)?)%)?", part.strip())
        if not word or word[1].upper() not in VERDICTS:
            possible = ", ".join(verdict.lower() for verdict in VERDICTS)
            raise argparse.ArgumentTypeError(f"'{part}': want WORD or WORD:N%, of {possible}")
        found[word[1].upper()] = float(word[2] or 0) / 100
    return found


def regex(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from error


def compare(args):
    """-> (heading lines, findings, whether they are of counts). Raises ResultsError."""
    old, old_contexts, simulated = match.read(args.old)
    new, new_contexts, new_simulated = match.read(args.new) if args.new else (
        old, old_contexts, simulated)
    refused, apart = match.refusals(old, new)
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
    old, new = ([row for row in rows if args.filter.search(row["name"])] for rows in (old, new))
    counted = simulated or new_simulated
    pairs = match.pairs(old, new, drop, args.versions and not args.each_block and not counted)
    if not any(a and b for a, b in pairs):
        names = " and ".join(f"'{rows[0]['name']}'" if rows else "none" for rows in (old, new))
        raise results.ResultsError(f"no row of the one side is in the other: {names} begin them")
    shared = match.constants(pairs)
    findings = []
    for a, b in pairs:
        name = match.label(a, b, shared)
        findings += [{"row": name} | one for one in (counts if counted else times)(a, b)]
    if counted and not findings:
        raise results.ResultsError("simulated: times say nothing, and there are no counts")
    lines = [f"old: {args.old}", f"new: {args.new or args.old}"]
    lines += [f"FORCED, not comparable: {c}: {what}" for c, what in refused.items()]
    if told := match.differences(old_contexts, new_contexts):
        lines += ["differs:", *told]
    sidecars = {row["samples"] for row in old + new if row["samples"] and not has_samples(row)}
    lines += [f"without samples, by medians and quartiles: {name} is not there"
              for name in sorted(sidecars)]
    if counted:
        lines.append("simulated: counts are compared, times are not")
    if shared:
        lines.append(f"all rows: {match.words(shared)}")
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
    parser.add_argument("--filter", type=regex, default="", metavar="REGEX",
                        help="of the rows' names")
    parser.add_argument("--fail-on", type=limits, default={}, metavar="WORD[:N%],...",
                        help="exit 1 if a row has this verdict, by more than N %%")
    parser.add_argument("--force", action="store_true", help="compare what is not comparable")
    parser.add_argument("--json", action="store_true", help="the numbers behind each verdict")
    args = parser.parse_args(argv)
    if not args.new and not args.versions:
        parser.error("want OLD and NEW, or RUN with --versions")
    try:
        lines, findings, counted = compare(args)
        if args.json:
            found = finite({"heading": lines, "rows": findings})
            results.say(json.dumps(found, indent=1, allow_nan=False))
        else:
            parts = ["\n".join(lines), markdown(findings, counted), summary(findings, counted)]
            results.say("\n\n".join(filter(None, parts)))
    except (results.ResultsError, OSError) as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    failed = False
    for f in findings:
        limit = args.fail_on.get(f["verdict"])
        if limit == 0 or limit and abs(f.get("diff", 0)) > limit:
            failed = True
            said = [f.get("count"), f["verdict"], percent(f, "diff"), f["why"]]
            print(f"compare: {f['row']}:", *filter(None, said), file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` is no failure
    sys.exit(main())
