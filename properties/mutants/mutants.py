#!/usr/bin/env python3
"""Mutants of the kernels: which law catches which, and with which generator.

  mutants.py check                    every patch applies; the matrix and the README are of these patches and laws
  mutants.py kill BUILD NAME...       builds mutants and lets the battery kill them
  mutants.py matrix BUILD [NAME...]   judges all, or some, again by everything; fails where a kill was lost or won
  mutants.py write                    the README's tables and battery.csv, of the matrix

BUILD is a folder of CMake's in which `mutant` was built.
"""

import argparse
import csv
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MATRIX, BATTERY, README = HERE / "matrix.csv", HERE / "battery.csv", HERE / "README.md"
SECONDS = 900  # for a mutant


def patches():
    return {path.stem: path for path in sorted(HERE.glob("*.patch"), key=order)}


def order(path):
    return int(re.match(r"v(\d+)_", path.stem)[1]), path.stem


def prose(path):
    """(what is wrong, the kernel's file) of a patch."""
    head, _, body = path.read_text().partition("\n--- ")
    named = re.search(r"^Kernel: (\w+)$", head, re.M)
    files = re.findall(r"^a/kernels/(\w+)\.cu$|^--- a/kernels/(\w+)\.cu$", body, re.M)
    kernel = named[1] if named else "".join(files[0])
    return " ".join(re.sub(r"^Kernel: .*$", "", head, flags=re.M).split()), kernel


def apply(path, root):
    """Changes the files below root. What a hunk takes away must stand there once, wherever that is now."""
    for section in re.split(r"^(?=--- a/)", path.read_text(), flags=re.M)[1:]:
        name, *hunks = re.split(r"^@@.*@@.*\n", section, flags=re.M)
        file = root / re.match(r"--- a/(\S+)\n", name)[1]
        text = file.read_text()
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            if text.count(old) != 1:
                raise ValueError(f"{path.name}: {file.name} has {text.count(old)} times\n{old}")
            text = text.replace(old, new)
        file.write_text(text)


def laws():
    text = (ROOT / "properties/laws.cpp").read_text()
    text = text[text.index("constexpr Law kLaws[]") :]
    return re.findall(r'^    \{"(\w+)", ', text[: text.index("\n};")], re.M)


def build(name, folder):
    """The module of a mutant, compiled as the build compiles its kernel."""
    kernel = prose(patches()[name])[1]
    place = folder / "mutants" / name
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(ROOT / "kernels", place / "kernels")
    apply(patches()[name], place)
    apply(HERE / "few_types.diff", place)
    commands = json.loads((folder / "compile_commands.json").read_text())
    here = f"{ROOT}/kernels/{kernel}.cu"
    words = shlex.split(
        next(c["command"] for c in commands if c["file"] == here and "simt_be" in c["command"])
    )
    words = words[: words.index("-o")]
    words.insert(words.index(f"-I{ROOT}"), f"-I{place}")
    compiler = next(
        word for word in reversed(words[: words.index("-x")]) if not word.startswith("-")
    )
    made, module = f"{place}/kernel.o", f"{place}/module.so"
    subprocess.run(
        [*words, "-w", "-fPIC", "-o", made, "-c", f"{place}/kernels/{kernel}.cu"],
        check=True,
        cwd=place,
    )
    hide = f"-Wl,--version-script={ROOT}/properties/judge/module.map"
    subprocess.run([compiler, "-shared", hide, "-o", module, made], check=True)
    return module


def judge(name, folder, pairs=()):
    """{(law, generator): the case that killed, or 0}"""
    module = build(name, folder)
    words = [
        f"{folder}/mutants/mutant",
        module,
        *(word for pair in pairs for word in pair),
    ]
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS)
    shutil.rmtree(pathlib.Path(module).parent)
    return {
        (law, generator): int(kill)
        for law, generator, _, kill in csv.reader(done.stdout.splitlines())
    }


def read_matrix():
    """{mutant: {(law, generator): the case that killed, or 0}}"""
    matrix = {}
    with MATRIX.open() as file:
        for row in csv.DictReader(file):
            cells = matrix.setdefault(row.pop("mutant"), {})
            law = row.pop("law")
            cells.update({(law, generator): int(kill) for generator, kill in row.items() if kill})
    return matrix


def write_matrix(matrix):
    generators = list(dict.fromkeys(g for cells in matrix.values() for _, g in sorted(cells)))
    generators.sort(key=lambda g: (g.endswith("+"), g))
    with MATRIX.open("w") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["mutant", "law", *generators])
        for name in matrix:
            for law in laws():
                row = [matrix[name].get((law, g), "") for g in generators]
                if any(kill != "" for kill in row):
                    out.writerow([name, law, *row])


def killers(cells):
    return {pair for pair, kill in cells.items() if kill}


def own(matrix):
    """{law: the mutants that no other law kills}"""
    by_law = {name: {law for law, _ in killers(cells)} for name, cells in matrix.items()}
    return {law: [name for name, by in by_law.items() if by == {law}] for law in laws()}


def battery(matrix):
    """The fewest (law, generator) that kill all, those first that kill most of what is left."""
    sets = {name: killers(cells) for name, cells in matrix.items()}
    rank = {
        pair: sum(pair in by for by in sets.values()) for by in sets.values() for pair in sorted(by)
    }
    # A mutant whose killers include another's is killed with that one.
    hard = [by for by in sets.values() if not any(other < by for other in sets.values())]
    best = None

    def search(chosen, left):
        nonlocal best
        if best is not None and len(chosen) + (1 if left else 0) >= len(best):
            return
        if not left:
            best = chosen
            return
        # Mutants that share no killer need one each.
        apart, seen = 0, set()
        for by in sorted(left, key=len):
            if not by & seen:
                apart, seen = apart + 1, seen | by
        if best is not None and len(chosen) + apart >= len(best):
            return
        for pair in sorted(
            min(left, key=len), key=lambda p: (-sum(p in by for by in left), -rank[p], p)
        ):
            search(chosen + [pair], [by for by in left if pair not in by])

    search([], sorted({frozenset(by) for by in hard}, key=sorted))
    ordered, left = [], dict(sets)
    while len(ordered) < len(best):
        pair = max(
            (p for p in best if p not in ordered),
            key=lambda p: (sum(p in by for by in left.values()), p),
        )
        ordered.append(pair)
        left = {name: by for name, by in left.items() if pair not in by}
    return ordered


def run_all(names, folder):
    def one(name):
        start = time.monotonic()
        cells = judge(name, folder)
        by = sorted({law for law, _ in killers(cells)})
        print(
            f"{name}: {time.monotonic() - start:.0f} s, killed by {' '.join(by) or 'nothing'}",
            flush=True,
        )
        return cells

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return dict(zip(names, pool.map(one, names)))


def first_kills(matrix):
    """[(law, generator, the mutants that no pair before it kills)] of the battery."""
    left, rows = dict(matrix), []
    for pair in battery(matrix):
        its = [name for name, cells in left.items() if cells.get(pair)]
        rows.append((*pair, its))
        left = {name: cells for name, cells in left.items() if name not in its}
    return rows


def battery_csv(matrix):
    return "law,generator\n" + "".join(f"{law},{of}\n" for law, of, _ in first_kills(matrix))


def tables(matrix):
    """What the README says of the matrix."""
    links = lambda names: ", ".join(f"[{name}]({name}.patch)" for name in names)
    lines = ["| mutant | what is wrong | killed by |", "| --- | --- | --- |"]
    for name, path in patches().items():
        by = [law for law in laws() if any(killer[0] == law for killer in killers(matrix[name]))]
        asked = {law for law, _ in matrix[name]}
        who = ", ".join(by) if len(by) <= 4 else f"{len(by)} of {len(asked)} laws"
        lines.append(f"| [{name}]({name}.patch) | {prose(path)[0]} | {who} |")
    lines += ["", "| law | mutants that no other law kills |", "| --- | --- |"]
    lines += [f"| {law} | {links(names)} |" for law, names in own(matrix).items()]
    lines += ["", "| the battery: law | generator | kills, of those left |", "| --- | --- | --- |"]
    for law, generator, names in first_kills(matrix):
        lines.append(
            f"| {law} | {generator} | {links(names) if len(names) <= 4 else f'{len(names)} mutants'} |"
        )
    return "\n".join(lines)


def readme(matrix):
    text = README.read_text()
    return re.sub(
        r"(?<=<!-- matrix -->\n).*(?=\n<!-- /matrix -->)",
        lambda _: tables(matrix),
        text,
        flags=re.S,
    )


def check():
    """What is wrong with patches, matrix and documents, one each."""
    wrong = []
    for name, path in patches().items():
        with tempfile.TemporaryDirectory() as place:
            shutil.copytree(ROOT / "kernels", f"{place}/kernels")
            try:
                apply(path, pathlib.Path(place))
                apply(HERE / "few_types.diff", pathlib.Path(place))
            except ValueError as error:
                wrong.append(str(error))
    matrix = read_matrix()
    if list(matrix) != list(patches()):
        wrong.append(
            f"not both in matrix.csv and a patch: {' '.join(set(matrix) ^ set(patches()))}"
        )
    if unknown := {law for cells in matrix.values() for law, _ in cells} ^ set(laws()):
        wrong.append(f"not both in matrix.csv and laws.cpp: {' '.join(unknown)}")
    if wrong:
        return wrong
    wrong += [f"{name} survives" for name, cells in matrix.items() if not killers(cells)]
    wrong += [f"{law} has no mutant of its own" for law, its in own(matrix).items() if not its]
    if wrong:
        return wrong
    firsts = list(dict.fromkeys(law for law, *_ in first_kills(matrix)))
    if firsts != laws():
        wrong.append(f"the battery's order, which laws.cpp should have: {' '.join(firsts)}")
    if battery_csv(matrix) != BATTERY.read_text() or readme(matrix) != README.read_text():
        wrong.append(
            "battery.csv or README.md is not of this matrix: properties/mutants/mutants.py write"
        )
    return wrong


def kill(names, folder):
    """Whom the battery lets live."""
    with BATTERY.open() as file:
        asked = [(row["law"], row["generator"]) for row in csv.DictReader(file)]
    for name in names:
        its = [pair for pair in asked if pair in read_matrix()[name]]
        by = killers(judge(name, folder, its))
        print(
            f"{name}: killed by {' '.join(f'{law},{of}' for law, of in sorted(by)) or 'nothing'}",
            flush=True,
        )
        if not by:
            yield f"{name} survives the battery"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["check", "kill", "matrix", "write"])
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if asked.what in ("kill", "matrix"):
        program = asked.build and asked.build / "mutants" / "mutant"
        if not program or not program.is_file():
            parser.error(f"{asked.what}: no {program or 'BUILD'}; cmake --build BUILD --target mutant")
        if unknown := sorted(set(asked.names) - set(patches())):
            parser.error(f"no such mutant: {', '.join(unknown)}")
        if asked.what == "kill" and not asked.names:
            parser.error("kill: which?")
    folder = asked.build and asked.build.resolve()
    wrong = []
    if asked.what == "check":
        wrong = check()
    elif asked.what == "kill":
        wrong = list(kill(asked.names, folder))
    elif asked.what == "write":
        BATTERY.write_text(battery_csv(read_matrix()))
        README.write_text(readme(read_matrix()))
        write_matrix(read_matrix())
    else:
        names = asked.names or list(patches())
        before = read_matrix() if MATRIX.exists() else {}
        after = run_all(names, folder)
        every = before | after
        write_matrix({name: every[name] for name in patches() if name in every})
        wrong = [
            f"{n}: killed otherwise"
            for n in names
            if n in before and killers(before[n]) != killers(after[n])
        ]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
