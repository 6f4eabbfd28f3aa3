"""Tests of results.py and store.py: python -m pytest analysis"""

import json

import numpy as np
import pytest

import atlas
import results
import store
from testing import failed, row, sampled, write, write_counted, write_sampled, write_sim

LONG = 250 * "a" + ".samples.f32"  # more than a file's name may have
STORED = sorted(results.ROOT.glob("results/*/*/*.json"))


def test_a_label_names_the_file_of_its_row(tmp_path):
    rows = [row(), row(shape=(16, 128), label="idea of V6 @ scores.npy")]
    frame = results.load(write(tmp_path / "x.json", rows))
    assert list(frame["input"]) == ["noise", "scores.npy"]


def test_load_gives_one_row_a_benchmark(tmp_path):
    path = write(tmp_path / "x.json", [row("V6", block=256), row("copy", block=None)])
    six, copy = results.load(path).to_dict("records")
    named = [six[key] for key in ("op", "version", "number", "dtype", "math", "mode")]
    assert named == ["softmax", "V6", 6, "fp32", "ieee", "cold"]
    assert (six["N"], six["C"], six["block"]) == (8192, 50257, 256)
    assert (six["us"], six["us/token"], six["%copy"], six["regs"]) == (1000, 1000 / 8192, 80, 32)
    assert (six["device"], six["git_sha"], six["error"]) == ("NVIDIA H200", "abc1234", None)
    assert six["date"].startswith("2026-11-29") and six["file"].endswith("x.json")
    assert copy["version"] == "copy" and np.isnan(copy["number"]) and np.isnan(copy["block"])


def test_load_leaves_aggregates_out(tmp_path):
    mean = row() | {"run_type": "aggregate", "aggregate_name": "mean"}
    mean["name"] += "_mean"
    assert len(results.load(write(tmp_path / "x.json", [row(), mean]))) == 1


def test_load_keeps_rows_in_error_without_a_time(tmp_path):
    frame = results.load(write(tmp_path / "x.json", [row(), failed("V7")]))
    assert frame["error"].tolist() == [None, "INCORRECT: row 3"]
    assert frame.loc[1, ["us", "us/token", "%copy"]].isna().all()
    assert results.ladder(frame)["version"].tolist() == ["V6"]


def test_simulated_times_are_out_unless_asked(tmp_path):
    sim = write_sim(tmp_path / "sim.json")
    assert results.load(sim, simulated=True)["mode"].tolist() == ["sim"]
    with pytest.raises(results.ResultsError, match="only simulated"):
        results.load(sim)
    write(tmp_path / "gpu.json", [row()])
    assert results.load(tmp_path)["mode"].tolist() == ["cold"]
    with pytest.raises(results.ResultsError, match="never stand beside"):
        results.load(tmp_path, simulated=True)


@pytest.mark.parametrize(
    "context, rows, message",
    [
        ({"schema": "3"}, [row()], "schema 3, known: 1, 2"),
        ({"schema": None}, [row()], "schema missing"),
        ({"device": None}, [row()], "context lacks device"),
        ({}, [row() | {"name": "softmax/V6/cold"}], "bad name 'softmax/V6/cold'"),
        ({}, [row(mode="warm")], "bad name"),
        ({}, [row() | {"name": "softmax/V6/fp32/ieee/cold/N:1/block:32"}], "N: or C: is missing"),
        ({}, ["text"], "no Google Benchmark file"),
        ({}, [row(mode="sim")], "simulated: false"),
        ({"simulated": "true"}, [row()], "simulated: true"),
        ({}, [{"name": row()["name"]}], "no counter us"),
        *(({"samples": bad}, [row()], "context samples")
          for bad in ("../x", ".", "..", "/dev/zero", 5, "a\0.samples.f32", LONG)),
        ({"driver": "\ud800"}, [row()], "not JSON: 'utf-8' codec can't encode"),
        *(({key: bad}, [row()], f"context {key}: {bad!r} is no text")
          for key in ("schema", "device", "flush", "input", "card", "simulated")
          for bad in ([], 5)),
        ({"date": "yesterday"}, [row()], "context date: 'yesterday' is no ISO date"),
        ({}, [row() | {"name": 5}], "name: 5 is no text"),
        ({}, [row(label=["a"])], "label: ['a'] is no text"),
        ({}, [failed() | {"error_message": [5]}], "error: [5] is no text"),
        *(({}, [row() | {key: bad}], f"{key}: {bad!r} is no number")
          for key in ("us", "us_copy", "sm_mhz", "samples_at", "n", "barriers", "nodes", "regs")
          for bad in ("5", [], True, None)),
        *(({}, [row() | {key: 0}], f"{key}: 0 is too small")
          for key in ("us", "us_copy", "us_p25", "us_p75", "sm_mhz", "n", "nodes")),
        ({}, [row(samples_at=-1)], "samples_at: -1 is too small"),
        ({}, [row(regs=10**400)], "is no number, all values are finite"),
        ({}, [row() | {"name": "reduce/x/fp32/ieee/hot/us:one"}], "us: 'one' is no number"),
        ({}, [row() | {"us": float("nan")}], "NaN is no number"),
        ({}, [{}], "a benchmark without 'name'"),
        ({}, [], "no benchmark in 1 file"),
    ],
)
def test_bad_files_are_named_with_the_reason(tmp_path, context, rows, message):
    with pytest.raises(results.ResultsError, match="x.json: ") as error:
        results.load(write(tmp_path / "x.json", rows, **context))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text, message",
    [
        *((text, "not JSON") for text in ("{", "[" * 10**5, '{"context": 1e999}')),
        *((text, "no Google Benchmark file") for text in ("[]", "{}")),
    ],
)
def test_broken_json(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(results.ResultsError, match=f"x.json: {message}"):
        results.load(tmp_path / "x.json")


def test_the_schema_is_no_result(tmp_path):
    write(tmp_path / "x.json", [row()])
    (tmp_path / "schema.json").write_text(store.SCHEMA.read_text())
    assert len(results.load(tmp_path)) == 1


def test_no_file(tmp_path):
    with pytest.raises(results.ResultsError, match="No such file"):
        results.load(tmp_path / "x.json")
    with pytest.raises(results.ResultsError, match="no \\*.json in it"):
        results.load(tmp_path)


def test_latest_goes_by_the_dates_inside(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTMAX_RESULTS", str(tmp_path))
    with pytest.raises(results.ResultsError, match="no GPU results"):
        results.latest()
    write(tmp_path / "a100/2026-12-01-fff/x.json", [row()], date="2026-12-01T09:00:00+00:00")
    write(tmp_path / "h200/2026-12-01-zzz/x.json", [row()], date="2026-12-01T10:00:00+02:00")
    write(tmp_path / "h200/2026-12-01-yyy/x.json", [row()], date="2026-12-01T08:30:00+00:00")
    write(tmp_path / "h200/2026-11-30-aaa/ladder-ieee.json", [row()])
    write_sim(tmp_path / "cpu/2027-01-01-aaa/x.json", date="2027-01-01T09:00:00+00:00")
    assert results.latest().name == "2026-12-01-fff"
    assert results.latest("h200").name == "2026-12-01-yyy"
    assert results.latest(pattern="ladder-*.json").name == "2026-11-30-aaa"
    assert results.latest(simulated=True).name == "2027-01-01-aaa"
    with pytest.raises(results.ResultsError, match="no simulated results.*--device=cpu"):
        results.latest(pattern="ladder-*.json", simulated=True)


def test_ladder_takes_medians_and_one_device(tmp_path):
    def ladder(path):
        return results.ladder(results.load(path))

    rows = [row(us=1), row(us=2), row(us=9), row(us=1, shape=(8192, 1024))]
    assert ladder(write(tmp_path / "x.json", rows))["us"].tolist() == [2]
    with pytest.raises(results.ResultsError, match="no row of the ladder"):
        ladder(write(tmp_path / "y.json", rows, input="scores.npy"))
    write(tmp_path / "y.json", rows, device="NVIDIA A100")
    with pytest.raises(results.ResultsError, match="several: device NVIDIA A100, NVIDIA H200"):
        ladder(tmp_path)
    write(tmp_path / "y.json", rows, git_sha="def5678")
    with pytest.raises(results.ResultsError, match="several: git_sha abc1234, def5678"):
        ladder(tmp_path)


def test_counters_are_freed_of_the_size(tmp_path):
    file = write_counted(tmp_path)
    table = results.counters(results.load(file, simulated=True)).set_index(["version", "block"])
    assert len(table) == 15
    one, two = table.loc[("V1", 32)], table.loc[("V2", 256)]
    assert (one["reads"], one["writes"], one["x_min"]) == (3, 1, 16)  # 32 bytes for each element
    assert (one["sectors/128 bytes"], two["sectors/128 bytes"]) == (32, 4.5)
    assert (two["barriers"], two["shuffles"], two["conflicts"]) == (13, 12, 1)
    with pytest.raises(results.ResultsError, match="no row with counters"):
        results.counters(results.load(write_sim(tmp_path / "old" / "x.json"), simulated=True))
    write_counted(tmp_path / "other", git_sha="def5678")
    frame = results.load(tmp_path, simulated=True, pattern="ladder-*.json")
    with pytest.raises(results.ResultsError, match="several revisions: abc1234, def5678"):
        results.counters(frame)


def test_article_has_both_baselines():
    article = results.article().set_index(["version", "block"])
    assert article.loc["V1", "us/token"].to_dict() == {32: 7.53, 1024: 28.32}
    assert round(article.loc[("V6", 32), "x32"], 1) == 5.5  # its table
    assert round(article.loc[("V6", 32), "x1024"]) == 21  # its "about 20 times"


# Schema 2


def study(**more):
    """A row of another operation: arguments of its own, no us/token, no %copy."""
    name = "reduce/shuffle/fp32/ieee/hot/block:256/width:half/manual_time"
    left_out = ("us/token", "GB/s", "%copy", "N", "C", "bytes", "block", "version")
    entry = {key: value for key, value in row().items() if key not in left_out}
    return entry | {"name": name, "run_name": name} | more


def test_keys_of_schema_2_are_columns(tmp_path):
    new = row("V6", us_copy=800.0, sm_mhz=1950.0, noisy=0, throttled=1, **{"%peak": 60.0})
    write(tmp_path / "new.json", [new, row("torch-compile", block=None)], schema="2", flush="none")
    write(tmp_path / "old.json", [row("V5")])
    frame = results.load(tmp_path).set_index("version")
    six = frame.loc["V6"]
    assert (six["us_copy"], six["sm_mhz"], six["throttled"], six["%peak"]) == (800, 1950, 1, 60)
    assert six["flush"] == "none" and np.isnan(frame.loc["torch-compile", "number"])
    assert frame.loc["V5", ["us_copy", "sm_mhz", "noisy", "suspect", "samples_at"]].isna().all()


def test_studies_stay_out_unless_asked(tmp_path):
    path = write(tmp_path / "x.json", [row(), study()], schema="2")
    assert results.load(path)["version"].tolist() == ["V6"]
    assert results.load(path, op=None)["op"].tolist() == ["softmax", "reduce"]
    only = results.load(path, op="reduce").iloc[0]
    assert (only["version"], only["block"], only["width"]) == ("shuffle", 256, "half")
    assert np.isnan(only["us/token"]) and np.isnan(only["N"])
    with pytest.raises(results.ResultsError, match="no row of softmax, only of reduce"):
        results.load(write(tmp_path / "y.json", [study()], schema="2"))


def test_samples_are_the_rows_own_and_its_copys(tmp_path):
    made = [sampled([9, 10, 11] * 5, [5] * 15), sampled([20] * 8, version="V7")]
    first, second = results.load(write_sampled(tmp_path / "x.json", made)).to_dict("records")
    own, copy = results.samples(first)
    assert own.tolist() == [9, 10, 11] * 5 and copy.tolist() == [5] * 15
    own, copy = results.samples(second)  # it has no us_copy
    assert own.tolist() == [20] * 8 and copy.tolist() == []


def test_samples_that_cannot_be_had(tmp_path):
    def fails_with(message, at=-1):
        with pytest.raises(results.ResultsError, match=message):
            results.samples(results.load(tmp_path / "x.json").iloc[at])

    write(tmp_path / "x.json", [row()])
    fails_with("no samples of softmax/V6/.* were kept")
    made = [sampled([10] * 15, [5] * 15), sampled([20] * 15, [5] * 15)]
    sidecar = write_sampled(tmp_path / "x.json", made).with_suffix(".samples.f32")
    sidecar.write_bytes(sidecar.read_bytes()[:-4])
    fails_with("59 samples, too short for softmax/V6/.*: 2 times 15 from 30 on")
    sidecar.write_bytes(np.full(60, 15, "<f4").tobytes())
    fails_with("not those of softmax/V6/.*: their median is 15 us, the row's 20")
    sidecar.write_bytes(np.full(60, np.nan, "<f4").tobytes())
    fails_with("not those of")
    sidecar.unlink()
    fails_with("x.samples.f32: No such file")


def laid_out():
    """A row of a matrix that is not dense."""
    name = row()["name"].replace("/N:", "/at:1.2/gap:3.0/N:")
    return row(name=name, in_at=1, out_at=2, in_gap=3, out_gap=0)


def test_a_layout_has_columns_and_is_in_no_atlas(tmp_path):
    path = write(tmp_path / "gpu" / "day" / "sweep-x.json", [row(), laid_out()])
    frame = results.load(path)
    assert frame["gap"].tolist()[1:] == ["3.0"] and frame["at"].isna().tolist() == [True, False]
    assert atlas.load([(path, None)])[0]["at"].isna().tolist() == [True]


# results/schema.json


@pytest.mark.parametrize("path", STORED, ids=lambda path: "/".join(path.parts[-3:]))
def test_every_committed_file_is_of_the_schema(path):
    assert store.invalid(path) == []


def test_there_are_committed_files():
    assert len(STORED) >= 11


def aggregate(**more):
    return row() | {"run_type": "aggregate", "aggregate_name": "mean"} | more


def without(entry, *keys):
    return {key: value for key, value in entry.items() if key not in keys}


def test_good_files_are_of_the_schema(tmp_path):
    mean = aggregate(name=row()["name"] + "_mean")
    copy = row("copy", block=None)
    rows = [row(noisy=1.0, sm_mhz=1900, us_copy=2), copy, failed(), mean, study()]
    rows.append(row("torch", block=None))
    rows.append(laid_out())
    for schema in ("1", "2"):
        assert store.invalid(write(tmp_path / "x.json", rows, schema=schema)) == []
    assert store.invalid(write_sampled(tmp_path / "x.json", [sampled([10] * 15, [5] * 15)])) == []
    assert store.invalid(write_counted(tmp_path)) == []


@pytest.mark.parametrize(
    "context, rows, message",
    [
        ({}, [row(us=float("nan"))], "NaN is no number"),
        ({}, [row(us_p75=float("inf"))], "Infinity is no number"),
        ({"schema": "3"}, [row()], "schema 3"),
        ({"git_sha": None}, [row()], "context lacks git_sha"),
        ({"date": "yesterday"}, [row()], "context date: 'yesterday' is no ISO date"),
        ({"sm_count": 132}, [row()], "context sm_count: 132 is not of type 'string'"),
        ({"samples": "../x.samples.f32"}, [row()], "context samples"),
        ({"date": "2026-11-29"}, [row()], "context date: '2026-11-29' does not match"),
        ({}, [study() | {"name": "reduce/x/fp32/ieee/hot/op:3"}], "op: cannot be an argument"),
        ({}, [row(samples_at=0)], "samples_at: must not stand here"),
        ({}, [], "benchmarks: [] should be non-empty"),
        ({}, [row(mode="warm")], "not valid under any of the given schemas"),
        ({}, [row("V6", block=None)], "'threads' is a required property"),
        ({}, [row("v6", block=None) | {"name": row("v6", block=None)["name"] + "/block:3"}], "any"),
        ({}, [row("V06x", block=None)], "not valid under any of the given schemas"),
        ({}, [row(mode="sim")], "should not be valid under"),
        ({"simulated": "true"}, [row()], "does not match '/sim"),
        ({"simulated": "true"}, [row(mode="sim", **{"%copy": 50})], "%copy: must not stand here"),
        ({"simulated": "true"}, [row(mode="sim", us_copy=50)], "us_copy: must not stand here"),
        ({}, [without(row(), "us", "us/token")], "'us' is a required property"),
        ({}, [without(row(), "us/token")], "'us/token' is a required property"),
        ({}, [without(row(), "ci%")], "'ci%' is a required property"),
        ({}, [without(row(), "block")], "'block' is a required property"),
        ({}, [without(failed(), "error_message")], "'error_message' is a required property"),
        ({}, [row() | {"us": 0.0}], "0.0 is less than or equal to the minimum of 0"),
        ({}, [row(noisy=2)], "2 is not one of [0, 1]"),
        ({}, [row(regs="32")], "'32' is not of type 'number'"),
        ({}, [row() | {"time_unit": "ns"}], "'us' was expected"),
        ({}, [without(aggregate(), "aggregate_name")], "'aggregate_name' is a required property"),
        ({}, [without(study(), "n")], "'n' is a required property"),
    ],
)
def test_broken_files_are_not_of_the_schema(tmp_path, context, rows, message):
    found = store.invalid(write(tmp_path / "x.json", rows, **context))
    assert message in "\n".join(found) and "x.json" in found[0]


@pytest.mark.parametrize(
    "name, good",
    [
        ("softmax/V6/fp32/ieee/cold/N:1/C:1/block:32/manual_time", True),
        ("softmax/V12/bf16-fp32/fast/graph-hot/N:1/C:1/block:32/manual_time", True),
        ("softmax/torch-compile/fp32/ieee/graph/N:1/C:1/manual_time", True),
        ("reduce/shuffle/fp32/ieee/hot/manual_time", True),
        ("reduce/V3/fp32/ieee/hot/how:a.b-c/n:3", True),
        ("softmax/V6/fp32/ieee/cold/N:1/block:32/manual_time", False),
        ("softmax/V6/fp32/ieee/cold/N:many/C:1/block:32/manual_time", False),
        ("softmax/V6/fp32/ieee/hot-graph/N:1/C:1/block:32/manual_time", False),
        ("softmax/V6/fp32/exact/cold/N:1/C:1/block:32/manual_time", False),
        ("Softmax/V6/fp32/ieee/cold/N:1/C:1/block:32/manual_time", False),
        ("reduce/shuffle/fp32/ieee/hot/block/manual_time", False),
    ],
)
def test_loader_and_schema_agree_on_names(tmp_path, name, good):
    entry = row() | {"name": name, "run_name": name}
    assert (store.invalid(write(tmp_path / "x.json", [entry])) == []) == good
    try:
        results.parse_name(name)
    except ValueError:
        assert not good
    else:
        assert good


# results/index.csv


def test_the_committed_index_is_complete(capsys):
    assert store.main(["--check"]) == 0, capsys.readouterr().out


def test_the_index_takes_what_is_new_and_no_change(tmp_path, capsys):
    def said(*arguments):
        status = store.main([*arguments, "--results", str(tmp_path)])
        return status, "".join(capsys.readouterr())

    folder = tmp_path / "nvidia-h200" / "2026-11-29-abc1234"
    write_sampled(folder / "b.json", [sampled([10] * 15, [5] * 15)], driver="580")
    write(folder / "a.json", [row(), failed(), aggregate(), row(mode="hot")], git_dirty="true")
    status, text = said("--check")
    assert status == 1 and "a.json: not in index.csv" in text
    assert not (tmp_path / "index.csv").exists()
    assert said()[0] == 0 and said("--check") == (0, "")
    lines = (tmp_path / "index.csv").read_text().splitlines()
    assert lines[0] == ",".join(store.INDEX) and len(lines) == 4
    at = "2026-11-29T20:00:00+00:00,NVIDIA H200,abc1234"
    assert f"nvidia-h200/2026-11-29-abc1234/a.json,{at},true,1,,,cold hot,,3,1,," in lines[1]
    assert f"/b.json,{at},false,2,,,cold,memset 2x L2,1,0,580," in lines[2]
    assert lines[3].startswith("nvidia-h200/2026-11-29-abc1234/b.samples.f32,,")

    write(folder / "c.json", [row(regs="32")])
    status, text = said()
    assert status == 1 and "c.json: 'softmax/V6" in text and "is not of type 'number'" in text
    assert (tmp_path / "index.csv").read_text().splitlines() == lines
    (folder / "c.json").unlink()
    write(folder / "d.json", [row()])
    assert said() == (0, "entered: nvidia-h200/2026-11-29-abc1234/d.json\n")
    assert (tmp_path / "index.csv").read_text().splitlines()[:4] == lines

    (folder / "b.samples.f32").write_bytes(b"1234")
    for arguments in ([], ["--check"]):
        status, text = said(*arguments)
        assert status == 1 and "b.samples.f32: not the file that was entered: append-only" in text
    (folder / "b.samples.f32").unlink()
    assert "b.samples.f32: in the index, but gone" in said("--check")[1]
    (tmp_path / "index.csv").write_text("path,sha256\n")
    assert said("--check") == (2, said()[1])


def test_the_index_takes_no_file_of_lost_samples_and_every_depth(tmp_path, capsys):
    folder = tmp_path / "nvidia-h200" / "2026-11-29-abc1234" / "deeper"
    path = write_sampled(folder / "b.json", [sampled([10] * 15, [5] * 15)])
    (tmp_path / "README.md").write_text("no result")
    sidecar = path.with_suffix(".samples.f32")
    whole = sidecar.read_bytes()
    arguments = ["--results", str(tmp_path)]
    for left in (whole[:-1], whole[:60], None):
        sidecar.unlink() if left is None else sidecar.write_bytes(left)
        assert store.main(arguments) == 1
        said = f"b.samples.f32: {len(left or b'')} bytes, its rows want 120"
        assert said in capsys.readouterr().out
        index = tmp_path / "index.csv"
        assert not index.exists() or "b.json" not in index.read_text()
    index.unlink(missing_ok=True)
    sidecar.write_bytes(whole)
    assert store.main(arguments) == 0 and "deeper/b.json" in capsys.readouterr().out
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "README.md", "index.csv", "nvidia-h200"]
    assert store.main([*arguments, "--check"]) == 0


def test_the_index_is_replaced_whole(tmp_path, monkeypatch):
    write(tmp_path / "gpu" / "date" / "a.json", [row()])
    assert store.main(["--results", str(tmp_path)]) == 0
    before = (tmp_path / "index.csv").read_text()
    write(tmp_path / "gpu" / "date" / "b.json", [row()])

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.csv.DictWriter, "writerows", full)
    assert store.main(["--results", str(tmp_path)]) == 2
    assert (tmp_path / "index.csv").read_text() == before


@pytest.mark.parametrize(
    "index", [b"\xff\xfe", b"a\n", ",".join(store.INDEX).encode() + b"\na,b\n"]
)
def test_an_index_that_is_none(tmp_path, capsys, index):
    (tmp_path / "index.csv").write_bytes(index)
    assert store.main(["--results", str(tmp_path)]) == 2
    assert "index.csv: " in capsys.readouterr().err


def test_validate_names_file_and_row(tmp_path, capsys):
    good, bad = write(tmp_path / "x.json", [row()]), write(tmp_path / "y.json", [row(us=-1.0)])
    assert store.main(["--validate", str(good)]) == 0
    assert store.main(["--validate", str(good), str(bad)]) == 1
    assert f"y.json: '{row()['name']}' us: -1.0 is less than" in capsys.readouterr().out
