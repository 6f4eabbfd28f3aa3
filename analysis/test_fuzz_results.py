"""Tests of fuzz_results.py: python -m pytest analysis"""

import pytest

import fuzz_results
import results


def test_some_are_taken_and_some_refused(tmp_path):
    asked, taken = fuzz_results.run(60, 7, tmp_path, most=60)
    assert asked == 60 and 0 < taken < asked


def test_it_fails_where_a_reader_chokes(tmp_path, monkeypatch):
    def choke(name):
        raise IndexError(name)

    monkeypatch.setattr(results, "parse_name", choke)
    with pytest.raises(IndexError):
        fuzz_results.run(60, 7, tmp_path, most=60)
