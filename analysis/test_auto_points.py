"""The shapes that Auto is judged at."""

import auto_points
import results


def test_both_sides_of_every_step():
    head = ("in_bytes", "out_bytes", "rows", "cols", "version", "threads", "vectors", "blocks")
    lines = [
        "4,4,8,1024,8,,,",
        "4,4,8,4096,9,256,2,",
        "4,4,8,8192,9,256,2,",
        "4,4,,2048,8,,,",
        "4,4,,8192,10,128,8,2",
    ]
    rules = [dict(zip(head, line.split(","))) for line in lines]
    assert auto_points.cliffs(rules) == [
        (("fp32", 8, 1024, "graph"), ("fp32", 8, 1025, "graph")),
        (("fp32", 8, 8192, "graph"), ("fp32", 8, 8193, "graph")),
        (("fp32", 65536, 2048, "cold"), ("fp32", 65536, 2049, "cold")),
        (("fp32", 16384, 8192, "cold"), ("fp32", 16384, 8193, "cold")),
    ]


def test_the_table_has_steps_and_all_are_in_the_list():
    rules = auto_points.table(results.ROOT)
    assert len(auto_points.cliffs(rules)) > 50


def test_layouts_are_of_every_type_and_have_columns_of_their_own(capsys):
    shapes = auto_points.layouts()
    assert len(shapes) == len(set(shapes)) == 3 * (9 * 4 + 2)
    assert ("bf16", (1 << 28) // 73, 73, "cold", "0.1", 0) in shapes
    assert ("bf16-fp32", (1 << 28) // 73, 73, "cold", 0, "7.3") in shapes  # 80 and 76 elements
    assert ("bf16-fp32", (1 << 28) // 1000, 1000, "cold", 0, "8.4") in shapes  # not dense
    assert auto_points.main(["layouts"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert (head, first) == ("dtype,N,C,mode,at,gap", f"fp32,{(1 << 27) // 33},33,cold,1.1,0")
    auto_points.main(["few-rows"])
    assert capsys.readouterr().out.startswith("dtype,N,C,mode\n")


def test_draws_are_the_same_again_and_no_grid():
    shapes = auto_points.held_out()
    assert shapes == auto_points.held_out()
    assert shapes != auto_points.held_out(seed=1)
    assert {kind for kind, *_ in shapes} == {"fp32", "bf16", "bf16-fp32"}
    cols = [c for _, _, c, _ in shapes]
    assert sum(c & (c - 1) == 0 for c in cols) < 3
    assert any(c % 2 for c in cols)
