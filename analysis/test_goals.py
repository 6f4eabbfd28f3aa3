"""The table of goals: up to date, and able to say no."""

import pandas as pd
import pytest

import goals
import results


def test_the_table_is_up_to_date(capsys):
    assert goals.main(["--check"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("metric", "reached", "word"),
    [
        ("us", 2.0, "aim"),
        ("us", 2.5, "must"),
        ("us", 3.1, "no"),
        ("copy_fraction", 0.99, "aim"),
        ("copy_fraction", 0.96, "must"),
        ("copy_fraction", 0.94, "no"),
    ],
)
def test_met(metric, reached, word):
    goal = {"metric": metric, "must": 3.0, "aim": 2.2}
    if metric == "copy_fraction":
        goal.update(must=0.95, aim=0.98)
    assert goals.met(goal, reached) == word


def rows(**columns):
    """Results of one shape; every column a list, or one value for all."""
    frame = pd.DataFrame(
        {"dtype": "fp32", "N": 1, "C": 128256, "mode": "graph", "error": None} | columns
    )
    return frame


def test_a_goal_without_auto_is_refused():
    goal = goals.goals(results.ROOT)[1]
    with pytest.raises(results.ResultsError, match="no Auto at fp32 1 x 128256"):
        goals.auto(rows(version=["V10"], us=[3.0], overlap=[0.0]), goal)


def test_the_fastest_other_is_named_and_errors_do_not_count():
    key = ("fp32", 1, 128256, "graph")
    peers = rows(
        version=["softmax-lab", "torch", "triton", "copy"], us=[3.0, 2.0, 4.0, 1.0], number=None
    )
    assert goals.beside([peers]) == {key: (3.0, "torch", 2.0)}
    peers.loc[1, "error"] = "wrong"
    assert goals.beside([peers]) == {key: (3.0, "triton", 4.0)}
    # Each is held against ours of its own run; an overlapping launch of ours against nobody.
    # And V9 is no other.
    ours = rows(
        version=["Auto", "Auto", "cudnn", "V9"],
        us=[5.0, 2.0, 6.0, 4.0],
        overlap=[0.0, 1.0, None, 0.0],
        number=[None, None, None, 9],
    )
    assert goals.beside([peers, ours]) == {key: (5.0, "cudnn", 6.0)}
    assert goals.beside([ours.drop(2)]) == {}
    text = goals.beside_text(goals.beside([peers, ours.assign(C=1024)]))
    assert "more than 1.02 times another's time at 0." in text
    assert "| 1 x 1,024 | 5 | cudnn 6 | 0.83 |" in text
    late = goals.beside_text({key: (3.0, "torch", 2.5)})
    assert "at 1: fp32 1 x 128,256 (1.20)." in late


def test_the_flavours_are_compared_shape_by_shape():
    ours = rows(version=["Auto", "Auto", "copy"], overlap=[0.0, 1.0, 0.0], us=[4.0, 3.0, 2.0])
    fast = rows(version=["Auto", "Auto"], overlap=[1.0, 0.0], us=[3.3, 4.0])
    assert "the 2 times of fp32 are 1.000 to 1.100" in goals.flavours_text(ours, fast)
    with pytest.raises(results.ResultsError, match="no Auto"):
        goals.flavours_text(ours, fast.assign(N=2))


def steps(*times):
    """Auto at 1000 and 1001 columns, in that time."""
    return rows(
        version="Auto", N=8, C=[1000, 1001], us=list(times), overlap=0.0, **{"%copy": [90.0, 80.0]}
    )


@pytest.mark.parametrize(
    ("before", "after", "bad"),
    [
        (30, 34, False),
        (30, 35, True),
        (5, 5.9, False),
        (5, 6.1, True),
        (19.9, 20.6, False),
        (19, 22, True),
    ],
)
def test_a_cliff(before, after, bad):
    text = goals.cliffs_text(steps(before, after))
    assert ("too much at fp32 8 x 1,000" in text) == bad
    assert ("nowhere too much" in text) != bad


def test_cliffs_want_pairs():
    with pytest.raises(results.ResultsError, match="a column apart"):
        goals.cliffs_text(steps(1, 2).head(1))


def laid_out(dtype="bf16", cols=73, at=None, gap=None, of_copy=97.0):
    """Auto at one layout, and a row of V8 that does not count."""
    both = rows(dtype=dtype, N=8, C=cols, at=[at] * 2, gap=[gap] * 2, version=["Auto", "V8"])
    return both.assign(overlap=0.0, **{"%copy": [of_copy, 10.0]})


@pytest.mark.parametrize(
    ("dtype", "at", "gap", "name"),
    [
        ("bf16", "1.1", None, "at 1.1"),
        ("bf16", None, "1.0", "gap 1.0"),
        ("bf16", None, "7.7", "gap to 16 bytes"),
        ("bf16-fp32", None, "7.3", "gap to 16 bytes"),
        ("bf16-fp32", None, "3.3", "gap 3.3"),
        ("fp32", None, "3.3", "gap to 16 bytes"),
        ("fp32", "1.1", "3.3", "at 1.1 gap 3.3"),
    ],
)
def test_a_layout_has_a_name(dtype, at, gap, name):
    assert goals.layout(laid_out(dtype, at=at, gap=gap).iloc[0]) == name


def test_layouts_are_a_table_and_the_slow_ones_stand_out():
    frame = pd.concat([
        laid_out(at="1.1"), laid_out(at="0.1", of_copy=84.94), laid_out(gap="7.7"),
        laid_out(cols=1000, at="1.1", of_copy=98.0),
    ])
    text = goals.layouts_text(frame)
    assert "| type | columns | at 1.1 | at 0.1 | gap to 16 bytes |" in text
    assert "| bf16 | 73 | 97.0 | **84.9** | 97.0 |\n| bf16 | 1,000 | 98.0 | – | – |" in text
    assert "at 1.1: median 97.5 %, least 97.0 % (bf16 8 x 73); at 0.1: median 84.9 %" in text
    with pytest.raises(results.ResultsError, match="no Auto"):
        goals.layouts_text(frame.assign(at=None, gap=None))


def test_held_out_names_the_worst():
    text = goals.held_out_text(steps(1, 2))
    assert "fp32 graph: median 85.0 % of the copy at 2 shapes, least 80.0 % (8 x 1,001)" in text
