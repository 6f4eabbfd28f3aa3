"""Tests of soak.py, and of the soaks that are committed: python -m pytest analysis"""

import json

import pytest

import results
import soak
import store

LEAST = {"true": 60, "false": 15}  # minutes, together: of the CPU device, of a GPU


def summary(**context):
    """A good one."""
    context = {
        "schema": "soak 1",
        "date": "2026-12-01T09:00:00+00:00",
        "device": "NVIDIA H200",
        "simulated": "false",
        "math": "ieee",
        "git_sha": "abc1234def56",
        "git_dirty": "false",
        "seed": "18446744073709551615",
        "minutes": 7.5,
        "stopped": False,
    } | context
    return {
        "context": context,
        "cases": {"V1_gpu": {"repeats": 4, "in_range": 5}, "merge_gpu": {"any_grouping": 3}},
        "classes": {"one row": {"cases": 4, "least": 0.3}},
        "failures": [],
    }


def write(top, data, name="x"):
    (top / "soak").mkdir(exist_ok=True)
    path = top / "soak" / f"{name}.json"
    path.write_text(json.dumps(data))
    return path


def stored():
    try:
        return results.summaries("soak", results.ROOT / "results")
    except results.ResultsError:
        return []


@pytest.mark.parametrize("path", stored(), ids=lambda path: path.stem)
def test_no_committed_soak_broke_a_law(path):
    assert store.invalid(path) == []
    kept = results.parse(path)
    assert kept["failures"] == []
    assert soak.rare(kept) == []
    assert not kept["context"]["stopped"] and kept["context"]["git_dirty"] == "false"
    laws = {law for name in kept["cases"] if name[0] != "m" for law in kept["cases"][name]}
    assert len(laws) >= 23
    assert {"Auto", *(f"V{v}" for v in range(1, 13))} <= {n.split("_")[0] for n in kept["cases"]}


def test_the_committed_soaks_took_long_enough():
    minutes = {}
    for path in stored():
        context = results.parse(path)["context"]
        machine = context["device"], context["simulated"]
        minutes[machine] = minutes.get(machine, 0) + context["minutes"]
    assert ("CPU device", "true") in minutes
    for (device, simulated), took in minutes.items():
        assert took >= LEAST[simulated], device


def test_the_table_is_up_to_date(capsys):
    assert soak.main(["--check"]) == 0, capsys.readouterr()


def test_a_row_counts(tmp_path):
    late = write(tmp_path, summary(date="2026-12-01T10:00:00+00:00", math="fast"), "late")
    early = write(tmp_path, summary(), "early")
    assert results.summaries("soak", tmp_path) == [early, late]
    line = "| [late](soak/late.json) | NVIDIA H200, fast | 7.5 | 12 | 1 | 3 | 1 (0) | 0 |"
    assert soak.body(tmp_path).splitlines()[3] == line
    data = summary()
    data["classes"] |= {"never": {"cases": 0, "least": 0}, "seldom": {"cases": 2, "least": 3}}
    assert soak.rare(data) == ["never", "seldom"]


def test_a_summary_enters_the_index_and_no_loader_takes_it_for_times(tmp_path):
    path = write(tmp_path, summary())
    (line,), new, wrong = store.survey(tmp_path)
    assert (new, wrong) == (["soak/x.json"], [])
    assert (line["suite"], line["rows"], line["errors"], line["dirty"]) == ("soak", 12, 0, "false")
    with pytest.raises(results.ResultsError, match="no \\*.json in it"):
        results.load(tmp_path)
    path.write_text("{")
    assert store.survey(tmp_path)[1:] == ([], [f"{path.as_posix()}: not JSON: " + (
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)")])


@pytest.mark.parametrize(
    "where, key, value",
    [
        ("context", "schema", "2"),
        ("context", "seed", 1),
        ("context", "minutes", 0),
        ("context", "math", "ieee and fast"),
        ("cases", "V1_gpu", {"repeats": 0}),
        ("classes", "one row", {"cases": -1, "least": 0}),
        ("classes", "one row", 3),
    ],
)
def test_a_bad_summary_is_refused(tmp_path, where, key, value):
    data = summary()
    data[where][key] = value
    assert len(store.invalid(write(tmp_path, data))) == 1
    del data[where]
    assert store.invalid(write(tmp_path, data))
