"""Whatever is in a file of results: it is read, or refused by a ResultsError.

    python analysis/fuzz_results.py [--minutes 10] [--seed N]

Changes committed files at random, in their text and in what it says, and gives them to the loader
and the schema. Exit 1 at the first file that one of them chokes on, which is kept.
"""

import argparse
import copy
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

import results
import soak
import store

ODD = (
    *(None, True, "", "\ud800", "nan", "softmax/V6/fp32/ieee/cold/N:1/C:1/block:32/manual_time"),
    *(0, -1, 0.5, 1e300, 2**63, -(2**64), 10**400, [], {}, [[]], {"": None}, {"name": []}),
)
TOKENS = (b"NaN", b"-Infinity", b"1e999", b"9" * 5000)
TOKENS += (b"{", b"]", b",", b'"', b"\\u", b"\xff", b"\0")


def seeds():
    """Small files of each sort, as the objects that they hold."""
    found = []
    for path in sorted(results.ROOT.glob("results/*/*/*.json")):
        if path.stat().st_size > 200_000:
            continue
        data = results.parse(path)
        data["benchmarks"] = data["benchmarks"][:3]
        found.append((path.name, data))
    stored = results.summaries("soak", results.ROOT / "results")
    found += [("soak/x.json", results.parse(path)) for path in stored]
    return found


def places(node):
    """(container, key) of every value in it."""
    keys = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        yield node, key
        yield from places(node[key])


def changed(data, rng):
    """A copy with one to three values replaced, exchanged or taken away."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        all_places = list(places(data))
        if not all_places:
            break
        node, key = rng.choice(all_places)
        how = rng.randrange(4)
        if how == 0:
            del node[key]
        elif how == 1:
            other, its = rng.choice(all_places)
            if isinstance(other, dict) and its in other:
                node[key] = copy.deepcopy(other[its])
        elif how == 2 and isinstance(node, dict):
            to = rng.choice(list(node))
            node[to] = node.pop(key)
        else:
            node[key] = rng.choice(ODD)
    return data


def broken(text, rng):
    """Bytes with up to three places cut, doubled or written over."""
    text = bytearray(text)
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(text) + 1)
        length = rng.choice((1, 1, 2, 8, 64))
        twice = bytes(text[at : at + 2 * length]) * 2
        part = rng.choice((b"", rng.choice(TOKENS), rng.randbytes(length), twice))
        text[at : at + rng.choice((0, length))] = part
    return bytes(text)


def ask(path):
    """Gives the file to all who read it. True: it is taken."""
    try:
        if path.parent.name == "soak":
            wrong = store.invalid(path)
            if not wrong:
                soak.row(path), store.entry(path, path.parent.parent)
            return not wrong
        wrong = store.invalid(path)
        results.load(path, op=None)
        if not wrong:
            store.cut_short(path), store.entry(path, path.parent)
        return True
    except results.ResultsError:
        return False


def run(seconds, seed, folder, most=float("inf")):
    """Asks for so long, `most` files at most. Gives how many files were asked, and how many taken.

    Raises what is no ResultsError.
    """
    rng, good = random.Random(seed), seeds()
    (folder / "soak").mkdir()
    asked = taken = 0
    end = time.monotonic() + seconds
    while asked < most and time.monotonic() < end:
        name, data = rng.choice(good)
        data = changed(data, rng) if rng.random() < 0.7 else data
        text = json.dumps(data, indent=rng.choice((1, None)))
        path = folder / name
        path.write_bytes(broken(text.encode(), rng) if rng.random() < 0.5 else text.encode())
        asked += 1
        taken += ask(path)
    return asked, taken


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    args = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp())
    print(f"seed {args.seed}, files in {folder}", flush=True)
    asked, taken = run(60 * args.minutes, args.seed, folder)
    shutil.rmtree(folder)
    print(f"{asked} files, {taken} of them taken, none choked on")
    return 0


if __name__ == "__main__":
    sys.exit(main())
