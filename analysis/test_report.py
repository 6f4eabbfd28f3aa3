"""Tests of the report, the atlas and the studies: python -m pytest analysis/test_report.py"""

import json
import re
import shlex
import shutil

import html5lib
import numpy as np
import pytest

import atlas
import compare
import report
import results
import study_figures
import update_ladder
from testing import failed, row, write, write_ladder, write_sim

CONTEXT = {"schema": "2", "driver": "580.1", "flush": "memset 2x L2"}
ROOFS = {"roof_copy_GB/s": "4246.5", "roof_read_GB/s": "4171", "roof_write_GB/s": "3022",
         "launch_floor_us": "2.75"}
STRIP = [((1 << 28) // c, c) for c in (32, 256, 4096, 131072, 1 << 20)]
FEW = [(n, c) for n in (1, 64) for c in (32000, 50257, 128256)]
FOLDER = "results/nvidia-h200/2026-11-30-abc1234"


def copied(n, c):
    """Microseconds of a copy, more or less a real card's."""
    return 1.35 + 8 * n * c / 4.2e6


def measured(version, shape, mode, share, block=None, math="ieee", **more):
    """A row at `share` of the copy's speed, with schema 2's keys."""
    us = copied(*shape) / share
    entry = {"%copy": 100 * share, "us_copy": copied(*shape), "max_ulp": 3.0}
    entry |= {"bytes_moved": 12.0 * shape[0] * shape[1], "noisy": 0, "throttled": 0, "suspect": 0}
    return row(version, math, mode, block, us, shape, **entry | more)


def share(version, c):
    """Of the copy's speed: V3 wins short rows, V6 middle ones, V7 long ones."""
    best = {3: 32, 6: 4096, 7: 1 << 20}[version]
    return max(0.05, 0.96 - 0.07 * abs(np.log2(c / best)))


def study_row(name, us=10.0, **counters):
    entry = {"name": f"{name}/manual_time", "run_name": name, "run_type": "iteration"}
    entry |= {"time_unit": "us", "us": us, "us_min": us, "us_p25": us, "us_p75": us, "n": 50}
    return entry | {"ci%": 0.1, "label": "an idea"} | counters


def studied():
    rows = []
    for i, variant in enumerate(("tree", "shuffle", "cg")):
        for chains in (1, 4):
            for block in (64, 256, 1024):
                rows.append(study_row(
                    f"reduce/{variant}/fp32/ieee/hot/chains:{chains}/block:{block}", block=block,
                    chains=chains, regs=20, **{"ns/op": (90 - 25 * i) * (1 + block / 1e3) / chains}))
    rows.append(study_row("latency/register/fp32/ieee/hot/block:32", **{"cycles/op": 4.0}))
    for mode, sets in (("hot", (4096, 65536, 1 << 22)), ("cold", (1 << 26,))):
        rows += [study_row(f"latency/global/fp32/ieee/{mode}/set:{size}/block:32", set=size,
                           **{"cycles/op": 33 * np.log2(size / 1024)}) for size in sets]
    for width in (4, 16):
        rows += [study_row(f"access/aligned/fp32/ieee/cold/width:{width}/unroll:{unroll}/block:256",
                           width=width, unroll=unroll,
                           **{"GB/s": 4000 * (1 - 1 / (width * unroll)), "%copy": 90.0})
                 for unroll in (1, 2, 4, 8)]
    for reads in (1, 2):
        rows += [study_row(f"hints/{hint}/fp32/ieee/cold/reads:{reads}/block:512", reads=reads,
                           **{"GB/s": 4000.0 - 200 * i}) for i, hint in enumerate(("plain", "ldcs"))]
    for elements in (8, 16, 64):
        for variant in ("free", "tight"):
            rows.append(study_row(f"occupancy/{variant}/fp32/ieee/cold/elements:{elements}/block:256",
                                  elements=elements, regs=2 * elements, local_bytes=0,
                                  **{"GB/s": 4100.0 - 9 * elements, "blocks/SM": 64 / elements}))
    rows += [study_row(f"occupancy/shared/fp32/ieee/cold/elements:8/shared:{kib << 10}/block:256",
                       elements=8, shared=kib << 10, **{"GB/s": 4100.0 - kib, "blocks/SM": blocks})
             for kib, blocks in ((0, 8), (112, 2), (224, 1))]
    rows += [study_row(f"exp/{variant}/fp32/ieee/hot/block:1024", **{"ns/op": time})
             for variant, time in (("expf", 0.9), ("ex2", 0.4))]
    return rows + [study_row(f"exp-ulp/{variant}/fp32/ieee/hot/block:256", max_ulp=ulp)
                   for variant, ulp in (("expf", 1.1), ("ex2", 2.3))]


def write_everything(top):
    """Results of every kind: a ladder, an atlas, few rows, peers, studies, and rows in error."""
    folder = top / "nvidia-h200" / "2026-11-30-abc1234"
    write_ladder(folder, **CONTEXT, **ROOFS)
    cold = [measured("copy", shape, "cold", 1.0) for shape in STRIP]
    cold += [measured(f"V{v}", shape, "cold", share(v, shape[1]) * (1 if block == 32 else 0.9), block)
             for shape in STRIP for v in (3, 6, 7) for block in (32, 1024)]
    cold.append(measured("V1", STRIP[0], "cold", 1.2, 32, suspect=1))
    cold.append(failed("V2", shape=STRIP[0], mode="cold", error_message="INCORRECT: <row> 3"))
    write(folder / "atlas-ieee.json", cold, suite="atlas", **CONTEXT, **ROOFS)
    few = [measured("copy", shape, "graph", 1.0) for shape in FEW]
    few += [measured(f"V{v}", shape, "graph", 0.2 + 0.05 * v, 1024) for shape in FEW for v in (2, 7)]
    write(folder / "few-rows-ieee.json", few, suite="few-rows", **CONTEXT)
    peers = [measured("torch", shape, "graph", 0.9 if shape[0] == 1 else 0.3) for shape in FEW]
    peers += [measured("torch", shape, "cold", 0.6) for shape in STRIP]
    write(folder / "peers-few-rows-ieee.json", peers, **CONTEXT)
    write(folder / "studies-ieee.json", studied(), suite="studies", **CONTEXT)
    write(folder / "v6-ieee.json", [row("V6", us=1.0)], **CONTEXT)
    return folder


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A project with kernels V1 to V8, its READMEs, templates and results of every kind."""
    for folder in ("kernels", "analysis", "benchmarks/studies"):
        (tmp_path / folder).mkdir(parents=True)
    for version in range(1, 9):
        (tmp_path / f"kernels/v{version}_name.cu").write_text(
            f'int a;\nSOFTMAX_KERNEL({version}, "v{version}_name", "idea of {version}", launch)\n')
    (tmp_path / "kernels/README.md").write_text("<!-- ladder -->\n<!-- /ladder -->\n")
    (tmp_path / "README.md").write_text(
        "<!-- ladder-short -->\n<!-- /ladder-short -->\n"
        "<!-- atlas -->\n<!-- /atlas -->\n<!-- guide -->\n<!-- /guide -->\n")
    shutil.copy(results.ROOT / "analysis/report.html.j2", tmp_path / "analysis")
    names = [*study_figures.PANELS, "block-size", "complexity", "guide"]
    (tmp_path / "analysis/studies.md").write_text(
        "# Studies\n" + "".join(f"\n## {name}: On {name}\n\n> A claim.\n" for name in names))
    (tmp_path / "benchmarks/studies/README.md").touch()
    write_everything(tmp_path / "results")
    monkeypatch.setenv("SOFTMAX_RESULTS", str(tmp_path / "results"))
    return tmp_path


def run(tree, *words):
    return report.main(["--root", str(tree), *words])


def made(tree):
    """The page, and it parsed by a strict parser."""
    assert run(tree) == 0
    text = (tree / "build/report.html").read_text()
    return text, html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


def words(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def by_id(page, name):
    return next(node for node in page.iter() if isinstance(node.tag, str) and node.get("id") == name)
