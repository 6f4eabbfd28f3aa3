"""Which rows of two runs belong together, and which runs must not be compared; for compare.py."""

import math

import numpy as np

import results

# Context that differs between any two runs and explains nothing.
IDLE = set("date load_avg caches executable command_line samples host_name mhz_per_cpu".split())
NAMED = ("op", "version", "dtype", "math", "mode")


def read(path):
    """A file or folder -> (rows as dicts, contexts, simulated). Raises ResultsError."""
    contexts = [results.read(file)[0] for file in results.files(path)]
    simulated = all(c["simulated"] == "true" for c in contexts)
    frame = results.load(path, simulated=simulated, op=None)
    contexts = [c for c in contexts if (c["simulated"] == "true") == simulated]
    return frame.to_dict("records"), contexts, simulated


def key(row, drop):
    """What two rows must share to be compared, as a dict without the columns of `drop`."""
    named = results.parse_name(row["name"]) | {"input": row["input"]}
    return {column: named[column] for column in named if column not in (*drop, "number")}


def values(rows, column):
    if column == "simulated":
        return {"simulated" if row[column] else "measured" for row in rows}
    return {row[column] for row in rows if column != "flush" or row["mode"] == "cold"}


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
            except (ValueError, ZeroDivisionError):
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


def words(named):
    """A key as a reader sees it: softmax V6 fp32 ieee cold N:8192 C:50257 block:32."""
    named = {c: v for c, v in named.items() if (c, v) != ("input", "noise")}
    return " ".join(v if c in (*NAMED, "input") else f"{c}:{v}" for c, v in named.items())


def label(a, b, shared):
    """How a row is called: without what all rows share, and 'old -> new' where the two differ."""
    a, b = (key(rows[0], ()) if rows else None for rows in (a or b, b or a))
    same = {c: v for c, v in a.items() if c not in shared and b.get(c) == v}
    sides = [words({c: v for c, v in each.items() if c not in shared and c not in same})
             for each in (a, b)]
    return " ".join(filter(None, [words(same), " → ".join(sides) if any(sides) else ""]))


def pairs(old, new, drop, only_fastest):
    """[(old rows or [], new rows or [])], in their order; behind, those that only one side has."""
    a, b = group(old, drop), group(new, drop)
    if only_fastest:
        a, b = fastest(a), fastest(b)
    both = [(a.get(at, []), b.get(at, [])) for at in dict.fromkeys([*a, *b])]
    return sorted(both, key=lambda pair: not all(pair))


def constants(pairs):
    """{column: value} of what all rows share, for the heading."""
    named = [key(rows[0], ()) for pair in pairs for rows in pair if rows]
    first = named[0].items()
    return {c: v for c, v in first if c != "version" and all(each.get(c) == v for each in named)}
