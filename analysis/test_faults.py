"""Tests of sanitize.py and update_faults.py: python -m pytest analysis"""

import csv
import os
import stat

import pytest

import results
import sanitize
import tables
import update_faults

HERE = results.ROOT / "analysis"

# What they print, cut down: the lines that count are compute-sanitizer's own.
RACE = """========= COMPUTE-SANITIZER
Note: Google Test filter = Fault/Gpu.runs/reads_too_early
[==========] Running 1 test from 1 test suite.
========= Error: Race reported between Read access at k(Args)+0x2b0 in /src/races.cu:16
=========     and Write access at k(Args)+0x1f0 in /src/races.cu:15 [12 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
WRITE = """========= COMPUTE-SANITIZER
[==========] Running 1 test from 1 test suite.
========= Invalid __global__ write of size 4 bytes
=========     at k(Args)+0x540 in bounds.cu:15
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure"
========= ERROR SUMMARY: 2 errors
"""
CRASH = """========= COMPUTE-SANITIZER
[==========] Running 1 test from 1 test suite.
========= Program hit cudaErrorMisalignedAddress (error 716) due to "misaligned address" on CUDA API
=========     Saved host backtrace up to driver entry point at error
========= ERROR SUMMARY: 1 error
"""
QUIET = "========= COMPUTE-SANITIZER\n[==========] Running 1 test from 1 test suite.\n"


@pytest.mark.parametrize(
    "status, text, found, message",
    [
        (9, RACE, "yes", "Race reported between Read access at k(Args)+0x2b0 in /src/races.cu:16"),
        (None, WRITE, "yes", "Invalid __global__ write of size 4 bytes (bounds.cu:15)"),
        (9, CRASH, "crash", "cudaErrorMisalignedAddress"),
        (0, QUIET + "========= ERROR SUMMARY: 0 errors\n", "no", ""),
        (None, QUIET, "timeout", ""),
        (0, QUIET + "[  SKIPPED ] 1 test\n", "skipped", ""),
        (1, QUIET, "failed", "Running 1 test"),
        (0, "[==========] Running 0 tests\n", "failed", "Running 0 tests"),
    ],
)
def test_judge(status, text, found, message):
    job = sanitize.Job("k", "race", "racecheck", [])
    got, said = sanitize.judge(job, status, text)
    assert got == found and message in said


def test_judge_of_our_own():
    one, fault = "Running 1 test\n", sanitize.Job("k", "race", sanitize.OURS, [])
    assert sanitize.judge(fault, 0, one + "reported: race: a\n") == ("yes", "race: a")
    assert sanitize.judge(fault, 1, one)[0] == "no"
    assert sanitize.judge(fault, 0, "Running 0 tests")[0] == "failed"
    assert sanitize.judge(fault._replace(kind="clean"), 0, one) == ("no", "")
    assert sanitize.judge(fault._replace(kind="clean"), 1, one)[0] == "yes"


def test_study_reads_the_sources():
    study = sanitize.study()
    assert study["reads_too_early"]["kind"] == "race"
    assert study["reads_too_early"]["file"] == "races.cu"
    assert study["cluster_exchange"]["kind"] == "clean"
    assert sum(fault["kind"] != "clean" for fault in study.values()) >= 40


def test_sanitize_runs_every_kernel_under_every_tool(tmp_path, capsys):
    program, sanitizer, out = (tmp_path / name for name in ("faults_test", "sanitizer", "x.csv"))
    program.write_text(
        "#!/bin/sh\ncase $1 in\n  --gtest_list_tests) printf 'All/Laws.\\n  hold/a  # A\\n' ;;\n"
        "  *Fault/Cpu*) echo 'Running 1 test'; echo 'reported: found' ;;\n"
        "  *NearMiss*|*Laws.hold/a) echo 'Running 1 test' ;;\n"
        "  *) echo 'Running 1 test'; echo '========= Bad' $SOFTMAX_RUN_FAULTS; exit 9 ;;\nesac\n"
    )
    sanitizer.write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    for file in (program, sanitizer):
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    command = [program, out, "--sanitizer", sanitizer, "--also", f"{program}:*", "--jobs", "2"]
    assert sanitize.main([os.fspath(part) for part in command]) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    study = sanitize.study()
    assert len(rows) == 5 * len(study) + 4
    assert all((row["kind"] == "clean") == (row["found"] == "no") for row in rows)
    assert {row["message"] for row in rows} == {"Bad 1", "found", ""}
    faults = sum(fault["kind"] != "clean" for fault in study.values())
    assert f"racecheck: {faults} of {faults} faults" in capsys.readouterr().out
    sanitizer.write_text("#!/bin/sh\necho '========= Error: Device not supported'\n")
    assert sanitize.main([os.fspath(part) for part in command]) == 2
    assert sanitize.main([str(tmp_path / "none"), str(out), "--sanitizer", str(sanitizer)]) == 2

    faults_folder = tmp_path / "properties" / "faults"
    faults_folder.mkdir(parents=True)
    readme = faults_folder / "README.md"
    readme.write_text("a\n<!-- faults -->\n<!-- /faults -->\nb\n")
    arguments = ["--csv", str(out), "--root", str(tmp_path)]
    assert update_faults.main([*arguments, "--check"]) == 1
    assert update_faults.main(arguments) == 0
    assert update_faults.main([*arguments, "--check"]) == 0
    text = readme.read_text()
    assert text.count("\n| [") == faults and f"Of {faults} faults the CPU device names" in text
    readme.write_text("no markers")
    assert update_faults.main(arguments) == 2


def test_the_table_of_the_faults_is_up_to_date():
    try:
        tables.newest("sanitizer.csv")
    except results.ResultsError as error:
        pytest.skip(str(error))
    assert update_faults.main(["--check"]) == 0
