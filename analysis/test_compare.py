"""Tests of compare.py: python -m pytest analysis"""

import contextlib
import io
import json
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import compare
import results
import timing
from testing import CPU, counted, failed, row, sampled, write, write_sampled, write_sim

H200 = results.ROOT / "results" / "nvidia-h200"
PAIRS = 200
COPY = 800.0


def normal(rng, us, n, noise=0.005):
    """n samples of one process: its own level, and noise around it."""
    return us * rng.normal(1, 0.0015) * rng.normal(1, noise, n)


def judged(tmp_path, old, new):
    """How often each verdict came, of rows made in pairs: functions of (rng) -> own, copy."""
    rng = np.random.default_rng(7)
    for name, make in (("old", old), ("new", new)):
        rows = [sampled(*make(rng), shape=(1 + i, 64), sm_mhz=1950.0) for i in range(PAIRS)]
        write_sampled(tmp_path / f"{name}.json", rows)
    args = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    return Counter(finding["verdict"] for finding in found(args))


def found(arguments):
    """The findings of a command line, as --json prints them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert compare.main([*map(str, arguments), "--json"]) == 0
    return json.loads(out.getvalue())["rows"]


def steady(us=1000.0, *, n, noise):
    return lambda rng: (normal(rng, us, n, noise), normal(rng, COPY, n, noise))


# The rule


@pytest.mark.parametrize("n, noise", [(50, 0.002), (200, 0.01), (800, 0.02)])
@pytest.mark.parametrize("us", [30.0, 1000.0])
def test_the_same_is_the_same(tmp_path, n, noise, us):
    one = steady(us, n=n, noise=noise)
    assert judged(tmp_path, one, one)["SAME"] >= 0.95 * PAIRS


@pytest.mark.parametrize("n, noise", [(50, 0.002), (200, 0.01), (800, 0.02)])
def test_two_percent_are_seen(tmp_path, n, noise):
    one, other = steady(n=n, noise=noise), steady(1020.0, n=n, noise=noise)
    assert judged(tmp_path, one, other)["SLOW"] >= 0.95 * PAIRS
    assert judged(tmp_path, other, one)["FAST"] >= 0.95 * PAIRS


def bimodal(rng):
    """Two modes 5 % apart, of which each process sees another share."""
    high = rng.random(200) < rng.uniform(0.3, 0.7)
    return 1000 * (1 + 0.05 * high) * rng.normal(1, 0.002, 200), normal(rng, COPY, 200)


def switching(rng):
    """The same, but for some time one and then the other."""
    high = np.repeat(rng.random(10) < 0.5, 20)
    return 1000 * (1 + 0.04 * high) * rng.normal(1, 0.004, 200), normal(rng, COPY, 200)


def drifting(rng):
    """A level that runs off by up to 3 %, while the copy stays."""
    ramp = np.linspace(1, 1 + rng.uniform(-0.03, 0.03), 200)
    return 1000 * ramp * rng.normal(1, 0.004, 200), normal(rng, COPY, 200)


def warming(rng):
    """A machine that starts anywhere within 3 % and runs off: kernel and copy feel the same."""
    level = np.linspace(*(1 + rng.uniform(-0.03, 0.03, 2)), 200)
    return tuple(us * level * rng.normal(1, 0.004, 200) for us in (1000, COPY))


@pytest.mark.parametrize("unsteady", [bimodal, switching, drifting, warming])
def test_chance_makes_nothing_fast_or_slow(tmp_path, unsteady):
    verdicts = judged(tmp_path, unsteady, unsteady)
    assert verdicts["SAME"] + verdicts["AMBIGUOUS"] >= 0.95 * PAIRS, verdicts


def test_two_percent_are_seen_through_a_drifting_machine(tmp_path):
    def slower(rng):
        own, copy = warming(rng)
        return own * 1.05, copy

    verdicts = judged(tmp_path, warming, slower)
    assert verdicts["SLOW"] > 0.3 * PAIRS and not verdicts["FAST"], verdicts


def pair(tmp_path, old, new):
    """The one finding of two rows, each a row or a triple of `sampled`."""
    for name, one in (("old", old), ("new", new)):
        path = tmp_path / f"{name}.json"
        if isinstance(one, tuple):
            write_sampled(path, [one])
        else:
            write(path, [one], schema="2", flush="memset 2x L2")
    (finding,) = found([tmp_path / "old.json", tmp_path / "new.json"])
    return finding


@pytest.mark.parametrize(
    "old, new, verdict, why",
    [
        # Clocks: compute-bound rows slow down with the SM clock, rows near the copy do not.
        ({"sm_mhz": 1980}, {"us": 4120, "sm_mhz": 1922}, "AMBIGUOUS", "cycles -0.0%"),
        ({"sm_mhz": 1980}, {"us": 4120, "sm_mhz": 1980}, "SLOW", ""),
        ({"sm_mhz": 1980}, {"us": 4120, "sm_mhz": 1990}, "SLOW", ""),
        ({"us": 850, "sm_mhz": 1980}, {"us": 867, "sm_mhz": 1900}, "SLOW", ""),
        ({"us": 850, "sm_mhz": 1980}, {"us": 850, "sm_mhz": 1900}, "SAME", ""),
        # The copy in turn.
        ({"us_copy": 800}, {"us": 4120, "us_copy": 800}, "SLOW", ""),
        ({"us_copy": 800}, {"us": 4120, "us_copy": 824}, "AMBIGUOUS", "us/us_copy +0.0%"),
        ({"us": 850, "us_copy": 800}, {"us": 876, "us_copy": 824}, "SAME", "the copy moved too"),
        ({"us": 850, "us_copy": 800}, {"us": 850, "us_copy": 780}, "AMBIGUOUS", "us/us_copy +2.6%"),
        ({"us": 850, "us_copy": 800}, {"us": 867, "us_copy": 800}, "SLOW", ""),
        # The shape of the distribution.
        ({}, {"us": 4120, "us_p25": 3996}, "AMBIGUOUS", "p25 +0.0%"),
        ({"us_p75": 4120}, {"us": 4120, "us_p75": 4124}, "AMBIGUOUS", "p75 +0.1%"),
        # A launch between two events has two states; the fastest sample tells.
        ({"us": 6.3, "us_min": 5.2}, {"us": 5.7, "us_min": 5.2}, "SAME", "the launch"),
        ({"us": 6.3, "us_min": 5.2}, {"us": 5.7, "us_min": 4.7}, "FAST", ""),
        ({"us": 16.3, "us_min": 15.2}, {"us": 15.4, "us_min": 15.2}, "FAST", ""),
        ({"us": 6.3, "us_min": 5.2, "nodes": 9}, {"us": 5.7, "us_min": 5.2, "nodes": 9}, "FAST", ""),
        ({"us": 6.304}, {"us": 6.368}, "SAME", ""),  # two steps of the clock
        # Flags and noise.
        ({}, {"us": 4120, "suspect": 1}, "AMBIGUOUS", "new is suspect"),
        ({}, {"us": 4000, "suspect": 1}, "SAME", ""),
        ({}, {"us": 4120, "throttled": 1}, "AMBIGUOUS", "only new is throttled"),
        ({"throttled": 1}, {"us": 4120}, "SLOW", ""),  # it was held back, and is faster all the same
        ({"throttled": 1}, {"us": 4120, "throttled": 1}, "SLOW", ""),
        ({"ci%": 4.0}, {"us": 4120, "ci%": 4.0}, "AMBIGUOUS", "too noisy"),
        ({"us": 6.3, "us_min": 5.2, "ci%": 8}, {"us": 6.6, "us_min": 5.2, "ci%": 8}, "SAME", ""),
        ({"us": 6.3, "us_min": 5.2, "ci%": 8}, {"us": 6.6, "us_min": 5.6, "ci%": 8},
         "AMBIGUOUS", "too noisy"),
        ({"ci%": 1.0}, {"us": 4040, "ci%": 1.0}, "SAME", ""),
    ],
)
def test_each_witness(tmp_path, old, new, verdict, why):
    old = {"us": 4000} | old
    finding = pair(tmp_path, row(**old), row(**new))
    assert (finding["verdict"], finding["why"][: len(why)]) == (verdict, why), finding
    assert bool(finding["why"]) == bool(why), finding


@pytest.mark.parametrize(
    "cards, us, verdict",
    [
        (("a1", "a1"), 4080, "SLOW"),
        (("a1", "b2"), 4080, "AMBIGUOUS"),
        (("a1", "b2"), 4160, "SLOW"),
        (("a1", None), 4080, "AMBIGUOUS"),  # it does not say
    ],
)
def test_two_cards_of_a_model_differ(tmp_path, cards, us, verdict):
    for name, card, time in zip(("old", "new"), cards, (4000, us)):
        path = tmp_path / f"{name}.json"
        write(path, [row(us=time)], schema="2", flush="memset 2x L2", card=card)
    (finding,) = found([tmp_path / "old.json", tmp_path / "new.json"])
    assert finding["verdict"] == verdict and ("another card" in finding["why"]) == (
        verdict == "AMBIGUOUS")


@pytest.mark.parametrize("n", [1, 5, 6, 7, 20, 39])
def test_the_interval_is_the_engines(n):
    """Of samples too few for pieces, so that nothing is added."""
    us = np.random.default_rng(n).normal(1000, 10, n)
    middle, low, high = compare.interval([us], None, 0.0)
    assert 50 * (high - low) / middle == pytest.approx(timing.summarize(us)["ci%"])


# What the rule says of an H200, as committed


def committed(pattern):
    files = sorted(H200.glob(pattern))
    assert files, pattern
    return files[-1]


@pytest.mark.parametrize(
    "old, new, filtered",
    [
        ("*/repeat-a-*.json", "*/two-percent-*.json", "/V[27]/"),
        ("*/study-flush-memset-*.json", "2026-11-30-9d0818c/atlas-*.json", "/V[267]/"),
        ("2026-11-29-0fa86b5/ladder-ieee.json", "*/repeat-a-*.json", "/V[1-7]/"),
    ],
)
def test_kernels_that_nobody_changed_are_neither_fast_nor_slow(old, new, filtered):
    """Other sessions, perhaps other cards, and an older way of sampling."""
    verdicts = Counter(
        one["verdict"] for one in found([committed(old), committed(new), "--filter", filtered])
    )
    assert not verdicts["FAST"] + verdicts["SLOW"] and verdicts["SAME"], verdicts


def test_two_runs_of_one_binary_are_the_same():
    verdicts = Counter(
        one["verdict"] for one in found([committed("*/repeat-a-*.json"), committed("*/repeat-b-*.json")])
    )
    assert verdicts["SAME"] >= 0.95 * verdicts.total() and verdicts.total() >= 70, verdicts


def test_two_percent_more_reads_are_slow():
    (finding,) = found([committed("*/two-percent-*.json"), "--versions", "V7", "V70202"])
    assert finding["verdict"] == "SLOW" and 0.01 < finding["diff"] < 0.03, finding


def test_nsight_compute_measures_the_same_times():
    rows = pd.read_csv(committed("*/ncu-time.csv"))
    assert len(rows) >= 10 and rows["ratio"].between(0.97, 1.03).all(), rows


def test_do_bench_measures_the_same_times():
    rows = results.load(committed("*/peers-cross-check-*.json"))
    ratio = (rows["us_do_bench"] / rows["us"]).dropna()
    assert len(ratio) >= 5 and ratio.between(0.97, 1.03).all(), ratio


def test_samples_say_more_than_medians(tmp_path):
    """Runs that drift by 1.5 % cannot tell 1.5 % from it, and their quartiles do not show it."""
    drift = np.linspace(1, 1.015, 200)
    old, new = sampled(1000 * drift), sampled(1015 * drift)
    assert pair(tmp_path, old, new)["verdict"] == "SAME"
    assert pair(tmp_path, old[0], new[0])["verdict"] == "SLOW"


def test_a_missing_sidecar_is_said_and_medians_are_used(tmp_path, capsys):
    old, new = sampled([1000.0] * 50, [800.0] * 50), sampled([1030.0] * 50, [800.0] * 50)
    finding = pair(tmp_path, old, new)
    assert finding["verdict"] == "SLOW" and finding["new"]["sampled"]
    (tmp_path / "new.samples.f32").unlink()
    assert compare.main([str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 0
    said = capsys.readouterr().out
    assert "without samples" in said and "new.samples.f32 is not there" in said and "SLOW" in said
    (tmp_path / "old.samples.f32").write_bytes(b"")
    assert compare.main([str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 2
    assert "old.samples.f32: 0 samples, too short" in capsys.readouterr().err


def test_all_repetitions_of_all_files_count(tmp_path):
    for i, us in enumerate((1000, 1004, 990)):
        write(tmp_path / "old" / f"{i}.json", [row(us=us)])
    write(tmp_path / "new" / "x.json", [row(us=us) for us in (1010, 980, 1030, 1020, 1000)])
    (finding,) = found([tmp_path / "old", tmp_path / "new"])
    assert (finding["old"]["runs"], finding["new"]["runs"]) == (3, 5)
    assert (finding["old"]["us"], finding["new"]["us"]) == (1000, 1010)
    assert finding["verdict"] == "SAME" and finding["resolution"] > 0.02  # they scatter
    (finding,) = found([tmp_path / "old" / "0.json", tmp_path / "new" / "x.json"])
    assert finding["diff"] == pytest.approx(0.01)


def test_two_runs_of_an_h200_are_the_same():
    """The committed ladders of two revisions: of their kernels two lost an addition a row."""
    old, new = H200 / "2026-11-29-9777a48", H200 / "2026-11-29-0fa86b5"
    verdicts = Counter(f["verdict"] for f in found([old, new]) if f["verdict"] not in ("NEW", "GONE"))
    assert verdicts.total() > 100 and verdicts["SAME"] >= 0.95 * verdicts.total(), verdicts
    assert not verdicts["FAST"] and not verdicts["SLOW"]


# The command


def run(tmp_path, old, new, *arguments):
    """The exit status of two lists of rows."""
    write(tmp_path / "old.json", old)
    write(tmp_path / "new.json", new)
    return compare.main([str(tmp_path / "old.json"), str(tmp_path / "new.json"), *arguments])


def test_new_gone_and_error(tmp_path, capsys):
    old = [row("V1"), row("V2"), row("V3"), failed("V4"), failed("V5"), row("V6", us=2000)]
    new = [row("V1"), failed("V2"), row("V4"), failed("V5"), row("V6"), row("V7"), row("V1", us=1001)]
    assert run(tmp_path, old, new) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line[:3] == "| V"]
    assert [(line[0], line[-2]) for line in cells] == [
        ("V1", "SAME"), ("V2", "ERROR"), ("V4", "NEW"), ("V5", "ERROR"), ("V6", "FAST"),
        ("V3", "GONE"), ("V7", "NEW"),
    ]  # what one side lacks is last
    assert cells[1][-1] == "new: INCORRECT: row 3" and cells[2][-1] == "old: INCORRECT: row 3"
    assert cells[4] == "V6|2000|1000|-50.0%|0.5%|1647 → 3294|40.0 → 80.0|FAST|".split("|")
    assert "all rows: softmax fp32 ieee cold N:8192 C:50257 block:32" in lines
    geometric = np.sqrt(0.5 * 1.0005)
    assert lines[-1] == (
        "7 rows: 1 FAST, 1 SAME, 2 NEW, 1 GONE, 2 ERROR; new time / old time "
        f"{geometric:.3f}, geometric mean of 2"
    )


def test_the_table_is_markdown_that_lines_up(tmp_path, capsys):
    run(tmp_path, [row(), row("V10", us=31234.5)], [row(), row("V10", us=31234.5)])
    table = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(table) == 4 and len({len(line) for line in table}) == 1
    assert all(set(cell) <= set("-: ") for cell in table[1].split("|"))
    assert "| V10 |  31234 |  31234 | +0.0% |" in table[3]


@pytest.mark.parametrize(
    "fail_on, status",
    [
        ("slow", 1), ("slow:5%", 1), ("slow:9.9%", 1), ("slow:11%", 0), ("fast:1%", 0),
        ("error", 1), ("gone", 1), ("new", 0), ("slow:11%,gone", 1), ("ambiguous", 0),
    ],
)
def test_fail_on(tmp_path, capsys, fail_on, status):
    old, new = [row("V1"), row("V2"), row("V3")], [row("V1", us=1100), failed("V2")]
    assert run(tmp_path, old, new, "--fail-on", fail_on) == status
    assert ("compare: " in capsys.readouterr().err) == bool(status)


@pytest.mark.parametrize("fail_on", ["slower", "slow:5", "slow:x%", ""])
def test_fail_on_knows_its_words(tmp_path, capsys, fail_on):
    with pytest.raises(SystemExit) as error:
        run(tmp_path, [row()], [row()], "--fail-on", fail_on)
    assert error.value.code == 2 and "want WORD or WORD:N%" in capsys.readouterr().err


@pytest.mark.parametrize(
    "new, context, message",
    [
        ({}, {"device": "NVIDIA A100"}, "device: 'NVIDIA H200' against 'NVIDIA A100'"),
        ({}, {"flush": "none"}, "flush: 'memset' against 'none'"),
        ({"math": "fast"}, {}, "math: 'ieee' against 'fast'"),
        ({"mode": "hot"}, {}, "mode: 'cold' against 'hot'"),
    ],
)
def test_what_does_not_compare_is_refused(tmp_path, capsys, new, context, message):
    write(tmp_path / "old.json", [row()], flush="memset")
    write(tmp_path / "new.json", [row(**new)], **{"flush": "memset"} | context)
    arguments = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    assert compare.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err
    assert compare.main([*arguments, "--force"]) == 0
    out = capsys.readouterr().out
    assert f"FORCED, not comparable: {message}" in out and "1 row: 1 SAME" in out


def test_what_else_differs_is_printed(tmp_path, capsys):
    context = {"driver": "590", "roof_copy_GB/s": "4251.2", "date": "2027-01-01T00:00:00Z"}
    write(tmp_path / "old.json", [row()], driver="580", **{"roof_copy_GB/s": "4250.1"})
    write(tmp_path / "new.json", [row()], git_sha="def5678", **context)
    assert compare.main([str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("differs:")
    assert lines[at + 1 : at + 3] == ["  driver: 580 -> 590", "  git_sha: abc1234 -> def5678"]
    assert not lines[at + 3].startswith("  ")


def test_versions_of_one_run(tmp_path, capsys):
    rows = [row("V6", us=1000), row("V6", us=900, block=256), row("V7", us=850, block=512)]
    rows += [row("copy", block=None, us=800), row("V7", us=990), row("V6", us=70, shape=(8, 1024))]
    path = str(write(tmp_path / "x.json", rows))
    one, lonely = found([path, "--versions", "V6", "V7"])
    assert one["row"] == "N:8192 C:50257 V6 block:256 → V7 block:512" and one["verdict"] == "FAST"
    assert lonely["verdict"] == "GONE"
    each = found([path, "--versions", "V6", "V7", "--each-block"])
    by = {finding["row"]: finding["verdict"] for finding in each}
    assert by["N:8192 C:50257 block:32 V6 → V7"] == "FAST" and Counter(by.values())["GONE"] == 2
    (copy,) = found([path, "--versions", "copy", "V7"])
    assert copy["verdict"] == "SLOW" and copy["diff"] == pytest.approx(0.0625)
    assert compare.main([path, "--versions", "V6", "V9"]) == 2
    assert "no V9, there are V6, V7, copy" in capsys.readouterr().err


def test_studies_compare_too(tmp_path):
    name = "reduce/shuffle/fp32/ieee/hot/block:256/manual_time"
    study = {k: v for k, v in row().items() if k not in ("us/token", "%copy", "N", "C", "GB/s")}
    for file, us in (("old", 100.0), ("new", 103.0)):
        quartiles = {"us": us, "us_p25": us, "us_p75": us}
        write(tmp_path / f"{file}.json", [study | {"name": name} | quartiles])
    (finding,) = found([tmp_path / "old.json", tmp_path / "new.json"])
    assert finding["verdict"] == "SLOW" and finding["new"]["%copy"] is None


def test_simulated_runs_compare_counts_and_never_times(tmp_path, capsys):
    more = counted("V2", 256) | {"us": 9000.0, "barriers": 15.0, "shuffles": 6.0}
    write(tmp_path / "old.json", [counted("V1", 32), counted("V2", 256)], **CPU)
    write(tmp_path / "new.json", [counted("V1", 32), more], **CPU)
    arguments = [str(tmp_path / "old.json"), str(tmp_path / "new.json")]
    assert compare.main([*arguments, "--fail-on", "more:10%"]) == 1
    out, err = capsys.readouterr()
    assert "counts are compared, times are not" in out and "9000" not in out and "µs" not in out
    assert out.endswith("3 rows: 1 LESS, 1 MORE, 1 SAME\n") and "V2 block:256: barriers MORE +15.4%" in err
    line = next(line for line in out.splitlines() if "| barriers" in line)
    assert [cell.strip() for cell in line.split("|")[3:7]] == ["13", "15", "+15.4%", "MORE"]

    write_sim(tmp_path / "old.json")
    assert compare.main([arguments[0], arguments[0]]) == 2
    assert "times say nothing, and there are no counts" in capsys.readouterr().err
    write(tmp_path / "new.json", [row()])
    assert compare.main(arguments) == 2
    assert "simulated: 'simulated' against 'measured'" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["(", "*", "[z-a]"])
def test_a_filter_that_is_none(tmp_path, capsys, text):
    with pytest.raises(SystemExit) as error:
        run(tmp_path, [row()], [row()], "--filter", text)
    assert error.value.code == 2 and f"'{text}': " in capsys.readouterr().err


def test_what_cannot_be_read_or_written_is_said(tmp_path):
    def ends(out=subprocess.PIPE, **entry):
        path = write(tmp_path / "x.json", [row() | entry], **{"roof_copy_GB/s": "0"})
        old = write(tmp_path / "y.json", [row()], **{"roof_copy_GB/s": "4250"})
        command = [sys.executable, compare.__file__, path, old]
        return subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True)

    assert ends().returncode == 0
    done = ends(us=0)
    assert done.returncode == 2 and "compare: " in done.stderr and "Traceback" not in done.stderr
    with open("/dev/full", "w") as full:
        done = ends(full)
    assert done.returncode == 2, done.stderr
    assert done.stderr == "compare: standard output: [Errno 28] No space left on device\n"


def test_nothing_in_common_or_nothing_there(tmp_path, capsys):
    def fails_with(message, *arguments):
        assert compare.main([*map(str, arguments)]) == 2
        assert message in capsys.readouterr().err

    old = write(tmp_path / "old.json", [row("V1")])
    new = write(tmp_path / "new.json", [row("V2")])
    fails_with("no row of the one side is in the other", old, new)
    fails_with("no row of the one side is in the other", old, old, "--filter", "V9")
    fails_with("No such file", old, tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    fails_with("no *.json in it", old, tmp_path / "empty")
    with pytest.raises(SystemExit):
        compare.main([str(old)])
    shutil.copy(old, tmp_path / "empty")
    assert compare.main([str(old), str(tmp_path / "empty"), "--filter", "/V1/"]) == 0
