"""Tests of accuracy.py, and of what is committed of it: python -m pytest analysis"""

import json

import pandas as pd
import pytest

import accuracy
import results
import store

KINDS = {"normal", "wide", "constant", "spike20", "ascending", "absorbed", "rising"}


def line(impl, kind="normal", cols=33, ulp=2.0, **more):
    zero = {"block": 0, "rows": 2, "p999_ulp": ulp, "sum_error": 0.0}
    return {"impl": impl, "kind": kind, "cols": cols, "max_ulp": ulp} | zero | more


def bounded(impl, **more):
    return line(impl, **{"of_bound": 0.5, "of_sum_bound": 0.25} | more)


def write(top, lines, name="x", **context):
    context = {
        "schema": "accuracy 1",
        "date": "2026-12-01T09:00:00+00:00",
        "device": "NVIDIA H200",
        "simulated": "false",
        "math": "ieee",
        "git_sha": "abc1234def56",
        "git_dirty": "false",
        "dtype": "fp32",
    } | context
    path = top / "accuracy" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"context": context, "accuracy": lines}))
    return path


COMMITTED = results.summaries("accuracy", results.ROOT / "results")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_bounds_hold_and_are_approached(path):
    assert store.invalid(path) == []
    rows = pd.DataFrame(results.parse(path)["accuracy"])
    ours = rows.dropna(subset=["of_bound"])
    assert {f"V{v}" for v in range(1, 13)} | {"Auto"} <= set(ours["impl"])
    assert set(ours["kind"]) >= KINDS
    assert ours[["of_bound", "of_sum_bound"]].max().max() <= 1
    assert ours.groupby("impl")["of_reduction"].max().min() >= 0.3
    assert rows["of_bound"].isna().any(), "no peer"


def test_schema_refuses_what_is_beyond_its_bound(tmp_path):
    assert store.invalid(write(tmp_path, [bounded("V1"), line("torch")])) == []
    assert "maximum" in store.invalid(write(tmp_path, [bounded("V1", of_bound=1.5)]))[0]
    assert store.invalid(write(tmp_path, [line("V1", of_bound=0.5)]))
    assert store.invalid(write(tmp_path, [line("V1", ulp=-1.0)]))
    assert store.invalid(write(tmp_path, []))
    assert store.invalid(write(tmp_path, [line("V1")], dtype="fp64"))


def test_is_entered(tmp_path):
    write(tmp_path, [bounded("V1"), line("torch")])
    [entered], new, wrong = store.survey(tmp_path)
    assert (new, wrong) == (["accuracy/x.json"], [])
    assert (entered["suite"], entered["rows"], entered["device"]) == ("accuracy", 2, "NVIDIA H200")


def test_a_gpu_goes_before_the_cpu_device(tmp_path):
    with pytest.raises(results.ResultsError, match="no file of accuracy"):
        results.summaries("accuracy", tmp_path)
    cpu = write(tmp_path, [line("V1")], "cpu", simulated="true", date="2026-12-03T09:00:00+00:00")
    assert accuracy.newest(tmp_path)[0] == cpu
    write(tmp_path, [line("V1")], "old")
    new = write(tmp_path, [line("V2")], "new", date="2026-12-02T09:00:00+00:00")
    file, context, rows = accuracy.newest(tmp_path)
    assert (file, context["device"], list(rows["impl"])) == (new, "NVIDIA H200", ["V2"])


def test_tables(tmp_path):
    lines = [line("torch", ulp=1.0), bounded("V10"), bounded("Auto", ulp=4.0), bounded("V9")]
    lines += [bounded("V9", cols=1000, ulp=9.0), bounded("Auto", cols=1000)]
    lines += [line("torch", cols=1000)]
    write(tmp_path, lines)
    rows = accuracy.newest(tmp_path)[2]
    table = accuracy.worst(rows, "max_ulp")
    assert list(table.index) == ["V9", "V10", "Auto", "torch"] and table["normal"]["V9"] == 9
    assert list(accuracy.worst(rows, "of_bound").index) == ["V9", "V10", "Auto"]
    assert accuracy.more_accurate(rows)[["impl", "cols", "ours"]].values.tolist() == [
        ["torch", 33, 4.0]
    ]
    assert len(accuracy.draw(rows, "a GPU").axes) == 2
