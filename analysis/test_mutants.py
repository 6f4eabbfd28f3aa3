"""Tests of mutants.py: python -m pytest analysis"""

import mutants


def test_reads_kills(tmp_path):
    path = tmp_path / "matrix.csv"
    path.write_text("mutant,law,normal,wide,normal+\nm,one,0,2,\nm,two,0,0,0\n")
    assert mutants.read(path) == {"m": {"one": (1, 2), "two": (0, 3)}}


def test_the_picture_is_of_the_matrix(capsys, monkeypatch, tmp_path):
    assert mutants.main(["--check"]) == 0, capsys.readouterr().err
    other = tmp_path / "matrix.csv"
    other.write_text("mutant,law,normal\n")
    monkeypatch.setattr(mutants, "MATRIX", other)
    assert mutants.main(["--check"]) == 1
