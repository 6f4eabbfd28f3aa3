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
FLUSHES = {"memset": 3.0, "read": -1.0, "none": 0.5, "graph": 0}  # µs more than in a graph
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
                name = f"reduce/{variant}/fp32/ieee/hot/chains:{chains}/block:{block}"
                ns = (90 - 25 * i) * (1 + block / 1e3) / chains
                rows.append(study_row(name, block=block, chains=chains, regs=20, **{"ns/op": ns}))
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
                           **{"GB/s": speed}) for hint, speed in (("plain", 4000), ("ldcs", 3800))]
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
    cold += [measured(f"V{v}", shape, "cold", share(v, shape[1]) * factor, block)
             for shape in STRIP for v in (3, 6, 7) for block, factor in ((32, 1.0), (1024, 0.9))]
    cold.append(measured("V1", STRIP[0], "cold", 1.2, 32, suspect=1))
    cold.append(failed("V2", shape=STRIP[0]) | {"error_message": "INCORRECT: <row> 3"})
    write(folder / "atlas-ieee.json", cold, suite="atlas", **CONTEXT, **ROOFS)
    few = [measured("copy", shape, "graph", 1.0) for shape in FEW]
    few += [measured(f"V{v}", shape, "graph", 0.2 + 0.05 * v, 1024)
            for shape in FEW for v in (2, 7)]
    write(folder / "few-rows-ieee.json", few, suite="few-rows", **CONTEXT)
    peers = [measured("torch", shape, "graph", 0.9 if shape[0] == 1 else 0.3) for shape in FEW]
    peers += [measured("torch", shape, "cold", 0.6) for shape in STRIP]
    write(folder / "peers-few-rows-ieee.json", peers, **CONTEXT)
    write(folder / "studies-ieee.json", studied(), suite="studies", **CONTEXT)
    for flush, over in FLUSHES.items():
        rows = [row("V7", "ieee", "cold" if over else "graph", 32, copied(*shape) + over, shape)
                for shape in FEW]
        words = flush if flush == "none" else f"{flush} 2x L2"
        write(folder / f"study-flush-{flush}-ieee.json", rows, **CONTEXT | ROOFS | {"flush": words})
    write(folder / "v6-ieee.json", [row("V6", us=1.0)], **CONTEXT)
    return folder


def plant(tree):
    """A project with kernels V1 to V8, its READMEs, templates and results of every kind."""
    for folder in ("kernels", "analysis", "benchmarks/studies"):
        (tree / folder).mkdir(parents=True)
    for version in range(1, 9):
        (tree / f"kernels/v{version}_name.cu").write_text(
            f'int a;\nSOFTMAX_KERNEL({version}, "v{version}_name", "idea of {version}", launch)\n')
    (tree / "kernels/README.md").write_text("<!-- ladder -->\n<!-- /ladder -->\n")
    (tree / "README.md").write_text(
        "<!-- ladder-short -->\n<!-- /ladder-short -->\n"
        "<!-- atlas -->\n<!-- /atlas -->\n<!-- guide -->\n<!-- /guide -->\n")
    shutil.copy(results.ROOT / "analysis/report.html.j2", tree / "analysis")
    names = [*study_figures.PANELS, "flush", "block-size", "complexity", "guide"]
    (tree / "analysis/studies.md").write_text(
        "# Studies\n" + "".join(f"\n## {name}: On {name}\n\n> A claim.\n" for name in names))
    (tree / "benchmarks/studies/README.md").touch()
    write_everything(tree / "results")
    return tree


@pytest.fixture
def tree(tmp_path):
    return plant(tmp_path)


def run(tree, *words):
    return report.main(["--root", str(tree), "--results", str(tree / "results"), *words])


def made(tree):
    """The page, and it parsed by a strict parser."""
    assert run(tree) == 0
    text = (tree / "build/report.html").read_text()
    return text, html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(text)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """(tree, text of its page, the page parsed), of tests that change nothing."""
    tree = plant(tmp_path_factory.mktemp("site"))
    return tree, *made(tree)


def words(node):
    return re.sub(r"\s+", " ", "".join(node.itertext())).strip()


def by_id(page, name):
    return next(node for node in page.iter() if node.get("id") == name)


# The atlas


def cells(tree):
    files, _ = atlas.sources(tree / "results", "nvidia-h200")
    return atlas.cells(atlas.load(files)[0])


def test_a_cell_has_the_fastest_version_at_its_fastest_block(tree):
    found = {(cell["mode"], cell["N"], cell["C"]): cell for cell in cells(tree)}
    for n, c in STRIP:
        cell = found["cold", n, c]
        best = max((3, 6, 7), key=lambda version: share(version, c))
        assert cell["ours"][0]["version"] == f"V{best}" and cell["ours"][0]["block"] == 32
        assert cell["ours"][0]["us"] == min(row["us"] for row in cell["ours"])
        assert cell["copy"]["us"] == copied(n, c)
    beaten = {shape: found[("graph", *shape)]["beaten"] for shape in FEW}
    assert {n for (n, _), peer in beaten.items() if peer} == {1}
    assert all(peer["version"] == "torch" for peer in beaten.values() if peer)


def test_suspect_rows_and_rows_in_error_win_nothing(tree):
    names = {row["version"] for cell in cells(tree) if cell["C"] == STRIP[0][1]
             for row in cell["ours"]}
    assert names == {"V3", "V6", "V7"}  # V1 is faster than the copy, V2 is wrong


def test_a_tie_is_what_compare_cannot_tell(tmp_path):
    def tied(us):
        rows = [row("V6", us=1000.0), row("V7", us=us)]
        cell, = atlas.cells(results.load(write(tmp_path / "x.json", rows)))
        return cell["tie"]

    assert [tied(us) for us in (1000.5, 1100.0)] == [True, False]
    sides = [compare.side(results.load(tmp_path / "x.json").to_dict("records")[i : i + 1])
             for i in (0, 1)]
    assert compare.judge(sides[1], sides[0])["verdict"] == "FAST"


def test_repetitions_count_by_their_median(tmp_path):
    rows = [row("V6", us=us) for us in (10.0, 30.0, 11.0)] + [row("V7", us=12.0)]
    cell, = atlas.cells(results.load(write(tmp_path / "x.json", rows)))
    assert [(row["version"], row["us"]) for row in cell["ours"]] == [("V6", 11.0), ("V7", 12.0)]


def test_of_each_file_name_and_each_row_the_newest_counts(tree):
    folder = tree / "results/nvidia-h200"
    older = {"date": "2026-11-01T00:00:00+00:00"}
    write(folder / "2026-11-01-old0000/few-rows-ieee.json", [row("V1", us=0.5)], **older)
    write(folder / "2026-11-01-old0000/sweep-ieee.json",
          [measured("V7", FEW[0], "graph", 0.99, 1024)], **older)
    write_sim(folder / "2026-12-01-sim0000/atlas-ieee.json", date="2026-12-01T00:00:00+00:00")
    files, others = atlas.sources(tree / "results", "nvidia-h200")
    names = [file.name for file, _ in files]
    assert len(names) == len(set(names)) and "sweep-ieee.json" in names
    assert [file.name for file in others] == ["v6-ieee.json"]
    rows, _ = atlas.load(files)
    seven = rows[(rows["name"] == measured("V7", FEW[0], "graph", 1, 1024)["name"])]
    assert seven["%copy"].tolist() == [100 * (0.2 + 0.05 * 7)]


def test_a_study_of_a_lesson_is_no_measurement_of_it(tree):
    write(tree / "results/nvidia-h200/2026-12-01-abc1234/study-hints-ieee.json",
          [row("V7", us=1.0, block=1024)], date="2026-12-01T00:00:00+00:00")
    files, _ = atlas.sources(tree / "results", "nvidia-h200")
    softmax, studies = atlas.load(files)
    assert softmax["us"].min() > 1.0 and not len(studies[studies["op"] == "softmax"])


def test_equal_sizes_are_a_strip_and_other_shapes_a_grid(tree):
    parts = atlas.slices(cells(tree))
    shapes = [(part["mode"], part["math"], part["strip"], len(part["cells"])) for part in parts]
    assert shapes == [("cold", "ieee", True, 5), ("cold", "ieee", False, 1),
                      ("graph", "ieee", False, 6), ("cold", "fast", False, 1)]
    assert atlas.title(parts[0]) == "1 GiB of input at every width, cold, fp32, ieee"


def test_the_guide_joins_neighbours_of_one_winner(tree):
    strip, _, few, _ = atlas.slices(cells(tree))
    lines = [(line["C"], line["version"], line["blocks"]) for line in atlas.runs(strip)]
    assert lines == [("32 to 256", "V3", "32"), ("4,096", "V6", "32"),
                     ("131,072 to 1,048,576", "V7", "32")]
    line, = atlas.runs(few)
    assert (line["N"], line["C"], line["peer"]) == ("1 to 64", "32,000 to 128,256", "torch")
    assert line["ahead"] == f"{(0.2 + 0.05 * 7) / (0.2 + 0.05 * 2):.2f}x"


@pytest.mark.parametrize("more, wanted", [
    ({}, './bench --sweep "N=64,C=128256,block=1024,mode=graph" --benchmark_filter=/V7/'),
    ({"mode": "cold", "flush": "read 2x L2"},
     './bench --sweep "N=64,C=128256,block=1024,mode=cold,flush=read" --benchmark_filter=/V7/'),
    ({"dtype": "bf16", "math": "fast"}, "SOFTMAX_PRESET=cuda-fast ./bench --sweep "
     '"N=64,C=128256,block=1024,mode=graph,dtype=bf16" --benchmark_filter=/V7/')])
def test_a_command_measures_its_row_again(more, wanted):
    at = {"N": 64, "C": 128256, "block": 1024.0, "mode": "graph", "flush": "memset 2x L2"}
    assert atlas.command(at | {"dtype": "fp32", "math": "ieee", "version": "V7"} | more) == wanted


# The page


def test_the_page_has_every_section_and_its_figures(site):
    tree, _, page = site
    links = [node.get("href") for node in page.findall(".//nav//a")]
    assert len(links) == 10
    for link in links:
        section = by_id(page, link[1:])
        assert section.find("h2") is not None and len(words(section)) > 100, link
    figures = page.findall(".//figure")
    assert len(figures) >= 9
    for figure in figures:
        drawn = figure.find(".//{http://www.w3.org/2000/svg}svg")
        assert drawn.get("aria-label") and re.search(r"From \S+\.json", words(figure))


def test_the_page_loads_nothing_and_is_small(site):
    _, text, page = site
    assert len(text) < 3e6
    for node in page.iter():
        for key, value in node.items():
            assert not key.endswith(("src", "srcset", "data")), value
            assert not key.endswith("href") or value.startswith("#"), value
    assert not re.search(r"url\((?!#)|@import|fetch\(", text)
    assert set(re.findall(r"https?://[\w./]+", text)) <= {
        "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_no_id_stands_twice_and_every_reference_leads_somewhere(site):
    _, text, page = site
    ids = [node.get("id") for node in page.iter() if isinstance(node.tag, str) and node.get("id")]
    assert len(ids) == len(set(ids))
    wanted = set(re.findall(r'(?:popovertarget="|href="#|url\(#)([^")]+)', text))
    assert len(wanted) > 20 and wanted <= set(ids)


def test_the_ladder_on_the_page_is_the_ladder_of_the_files(site):
    tree, _, page = site
    frame = results.load(tree / FOLDER, pattern="ladder-*.json")
    rows = results.best(results.ladder(frame), "ieee")
    lines = by_id(page, "ladder").findall(".//tbody/tr")
    lines = [[words(cell) for cell in line] for line in lines]
    ieee = {line[0]: line for line in lines if line[1] == "ieee"}
    assert list(ieee) == list(rows.index)
    for version, best in rows.iterrows():
        block = "" if np.isnan(best["block"]) else f" @{best['block']:.0f}"
        assert ieee[version][2] == f"{atlas.digits(best['us/token'])}{block}"
        assert ieee[version][3] == f"{best['%copy']:.1f}"
        spread = 50 * (best["us_p75"] - best["us_p25"]) / best["us"]
        assert ieee[version][5] == f"±{spread:.2f} %"


def test_every_cell_shows_its_row_and_the_command_of_it(site):
    tree, _, page = site
    rows = {}
    for file in (tree / FOLDER).glob("*-ieee.json"):
        for entry in json.loads(file.read_text())["benchmarks"]:
            rows.setdefault(entry["name"], []).append((entry, file.name))
    tiles = [node for node in page.iter("td") if node.get("class") == "tile"]
    assert len(tiles) == 5 + 3 * 5 + 1 + 6 + 1  # a strip and its versions, and three grids
    for tile in tiles:
        preset, *arguments = shlex.split(words(tile.find(".//p[@class='command']/code")))
        fast = preset == "SOFTMAX_PRESET=cuda-fast"
        program, flag, axes, only = arguments if fast else (preset, *arguments)
        assert (program, flag) == ("./bench", "--sweep")
        axis = dict(part.split("=") for part in axes.split(","))
        assert list(axis) == ["N", "C", "block", "mode"]
        version = re.fullmatch(r"--benchmark_filter=/(V\d+)/", only)[1]
        assert words(tile.find("button/b")) == version
        if fast:
            continue
        name = (f"softmax/{version}/fp32/ieee/{axis['mode']}/N:{axis['N']}/C:{axis['C']}"
                f"/block:{axis['block']}/manual_time")
        (entry, file), *_ = [each for each in rows[name] if each[1] != "v6-ieee.json"]
        text = words(tile)
        assert f"{version}@{axis['block']}{entry['%copy']:.0f} %" in text.replace(" @", "@")
        assert f"{atlas.digits(entry['us'])} µs, {atlas.digits(entry['GB/s'])} GB/s" in text
        assert text.endswith(file)


def test_a_faster_peer_shows_in_the_cell(site):
    tree, _, page = site
    tiles = [words(node.find("button")) for node in page.iter("td") if node.get("class") == "tile"]
    faster = [text for text in tiles if "torch" in text]
    assert faster == [f"V7@102455 %torch {0.9 / 0.55:.2f}x"] * 3


def test_the_overview_counts_flags_errors_and_roofs(site):
    tree, _, page = site
    facts = {words(node.find("dt")): words(node.find("dd"))
             for node in by_id(page, "measured").findall("dl/div")}
    assert facts["in error"] == "1" and facts["noisy, throttled, suspect"] == "0, 0, 1"
    assert facts["roof: copy, 1 GiB buffers"] == "4246 GB/s"
    assert facts["an empty launch"] == "2.75 µs"
    assert "v6-ieee.json" in words(by_id(page, "measured"))


def test_a_row_in_error_is_shown_with_its_words(site):
    _, text, page = site
    assert "INCORRECT: <row> 3" in words(by_id(page, "errors"))
    assert "<row>" not in text


def test_sections_without_data_say_so(tree):
    for file in (tree / FOLDER).glob("*.json"):
        file.unlink()
    write(tree / FOLDER / "peers-shapes-ieee.json", [measured("torch", (8, 4096), "hot", 0.5)])
    _, page = made(tree)
    for name in "measured ladder atlas guide roofline blocks complexity errors studies".split():
        notes = [node for node in by_id(page, name).iter("p") if node.get("class") == "none"]
        assert notes and all(words(note) for note in notes), name
    assert "8 × 4096" in words(by_id(page, "peers"))


def test_a_ladder_of_one_math_has_its_figures_too(tree):
    next(tree.glob("results/*/*/ladder-fast.json")).unlink()
    text, _ = made(tree)
    assert "ladder-ieee.json" in text and "ladder-fast.json" not in text


def test_no_results_and_a_broken_file_are_named(tree, capsys):
    assert run(tree, "--gpu", "nvidia-a100") == 2
    assert "no GPU's nvidia-a100/<date>-<sha>/*.json" in capsys.readouterr().err
    (tree / FOLDER / "atlas-ieee.json").write_text("{")
    assert run(tree) == 2
    assert "atlas-ieee.json: not JSON" in capsys.readouterr().err


# The READMEs


def test_readmes_are_written_checked_and_found_stale(tree, capsys):
    assert run(tree, "--check") == 1
    assert "README.md: out of date, run python analysis/report.py" in capsys.readouterr().out
    assert not (tree / "build").exists()
    assert run(tree) == 0 and run(tree, "--check") == 0
    text = (tree / "README.md").read_text()
    assert "| 32 | V3 (32), 96 % | – |" in text and "| V7 |" not in text.split("<!-- atlas -->")[0]
    assert "| cold | 1,048,576 to 8,388,608 | 32 to 256 | V3 | 32 |" in text
    assert "from `" in text and "/atlas-ieee.json`" in text
    write(tree / FOLDER / "few-rows-ieee.json", [measured("V7", FEW[0], "graph", 0.44, 1024)])
    capsys.readouterr()
    assert run(tree, "--check") == 1
    assert re.findall(r"\S+(?=: out)", capsys.readouterr().out)[0].endswith("/README.md")


def test_the_documents_are_those_of_the_committed_results(monkeypatch):
    monkeypatch.delenv("SOFTMAX_RESULTS", raising=False)
    assert report.main(["--check"]) == 0


# The studies


def draw(tree, *words):
    return study_figures.main(["--root", str(tree), "--results", str(tree / "results"), *words])


def studies(tree):
    files, _ = atlas.sources(tree / "results", "nvidia-h200")
    kernels = update_ladder.kernels(tree / "kernels")
    return study_figures.drawn(files, *atlas.load(files), kernels)


def test_each_study_that_was_measured_has_a_figure_and_facts(tree):
    found = studies(tree)
    assert [name for name, each in found.items() if not each] == ["coarsening"]
    assert all(facts and files for _, facts, files in filter(None, found.values()))


def test_a_paragraph_cites_facts_and_quotients_of_them(tree):
    found = {name: each and each[1] for name, each in studies(tree).items()}
    for name, text, wanted in [
        ("reduce", "{shuffle chains:1 block:256}", f"{65 * 1.256:.1f} ns"),
        ("reduce", "{tree best / cg best} times", f"{90 / 40:.2f} times"),
        ("reduce", "{cg chains:4 block:64 regs}", "20 registers"),
        ("latency", "{register}, {global mode:hot set:65536}", "4.00 cycles, 198 cycles"),
        ("exp", "{expf / ex2} for {ex2 exp-ulp}", "2.25 for 2.30 ulp"),
        ("occupancy", "{shared shared:0 blocks/SM}", "8 blocks"),
        ("flush", "{V7 12.3 MiB memset over graph}, {read over graph least}", "3.00 µs, -1.00 µs"),
        ("flush", "{empty launch most}", "2.75 µs"),
        ("hints", "{plain reads:1 more than ldcs reads:1}", "5.26 %"),
        ("block-size", "{V1 best} at {V1 best block}", "0.977 µs at 32"),
        ("complexity", "{V6 lines}", "2"),
        ("guide", f"{{cold {STRIP[0][0]}x32}}; {{V3 wins}} of {{cells}}", "V3 (32), 96 %; 2 of 11"),
    ]:
        assert study_figures.fill(text, found[name]) == wanted


def test_fast_math_changes_no_name_of_a_fact(tree):
    before = studies(tree)["reduce"][1]
    rows = [entry | {"name": entry["name"].replace("/ieee/", "/fast/"), "ns/op": 1.0}
            for entry in studied() if entry["name"].startswith("reduce/")]
    write(tree / FOLDER / "studies-fast.json", rows, **CONTEXT)
    after = studies(tree)["reduce"][1]
    same = {key for key in before if "best" not in key}
    assert {key: after[key] for key in same} == {key: before[key] for key in same}
    assert after["tree math:fast chains:1 block:64"] == (1.0, "ns")


def test_a_fact_that_there_is_not_fails_and_names_its_like(tree, capsys):
    path = tree / "analysis/studies.md"
    path.write_text(path.read_text().replace("## latency", "{shufle best}\n\n## latency"))
    assert run(tree) == 2
    error = capsys.readouterr().err
    assert "studies.md: reduce: no fact {shufle best}; near it: shuffle best" in error


def test_a_chapter_too_few_or_too_many_fails(tree, capsys):
    path = tree / "analysis/studies.md"
    path.write_text(path.read_text().replace("## latency:", "## latencies:"))
    assert draw(tree) == 2
    assert "chapters and studies differ: latencies, latency" in capsys.readouterr().err


def test_the_studies_page_and_pictures_follow_the_results(tree, capsys):
    assert draw(tree, "--check") == 1
    assert draw(tree) == 0
    assert draw(tree, "--check") == 0
    text = (tree / "benchmarks/studies/README.md").read_text()
    for link in re.findall(r"\]\((.+?)\)", text):
        assert (tree / "benchmarks/studies" / link).is_file()
    assert text.count("Not measured yet.") == 1
    rows = studied()
    rows[0]["ns/op"] *= 2
    write(tree / FOLDER / "studies-ieee.json", rows, **CONTEXT)
    capsys.readouterr()
    assert draw(tree, "--check") == 1
    assert re.findall(r"(\w+\.\w+): out", capsys.readouterr().out) == ["reduce.png"]


def test_facts_are_listed_for_who_writes_a_paragraph(tree, capsys):
    assert draw(tree, "--facts", "exp") == 0
    assert "{ex2 best}  0.400 ns" in capsys.readouterr().out
