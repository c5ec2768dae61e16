"""Names of new nodes that programs which copy a tree have not written yet."""

from __future__ import annotations

import os

import pytest

from zarrfs.mount.writing import implied_names
from zarrfs.mount.writing.implied_names import ImpliedNames


def test_only_copying_programs_do_not_find_the_names_that_they_implied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ImpliedNames()
    names.add("/a.raw", os.getpid())
    assert "/a.raw" in names
    assert not names.is_absent_for("/a.raw", os.getpid()), "this process is not cp"
    assert not names.is_filled_by("/b", os.getpid())
    command = ["cp", "-p"]
    monkeypatch.setattr(implied_names, "_command", lambda process: command)
    assert names.is_absent_for("/a.raw", os.getpid())
    assert not names.is_absent_for("/a.raw", os.getpid() + 1)
    assert not names.is_filled_by("/b", os.getpid()), "cp copies files"
    for copying in (["cp", "-pr"], ["cp", "--archive"], ["tar", "x"]):
        command[:] = copying
        assert names.is_filled_by("/b", os.getpid())
    names.mark_written("/a.raw")
    assert not names.is_absent_for("/a.raw", os.getpid())
    assert "/a.raw" in names
    names.discard("/a.")
    assert "/a.raw" not in names


def test_an_unknown_process_finds_all_names() -> None:
    names = ImpliedNames()
    names.add("/a.raw", 0)
    assert not names.is_absent_for("/a.raw", 0)
    assert not names.is_filled_by("/a.raw", 0)


def test_the_number_of_names_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implied_names, "MAX_IMPLIED_NAMES", 1)
    names = ImpliedNames()
    names.add("/a.raw", 1)
    names.add("/b.raw", 1)
    assert ("/a.raw" in names, "/b.raw" in names) == (False, True)
