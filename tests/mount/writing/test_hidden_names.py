"""Names that were removed from a writable mount while their nodes remain."""

from __future__ import annotations

import errno

import pytest

from zarrfs.mount.fuse.error_numbers import RefusedError
from zarrfs.mount.writing import hidden_names
from zarrfs.mount.writing.hidden_names import HiddenNames


def test_names_are_shown_one_by_one_or_by_their_prefix() -> None:
    names = HiddenNames()
    for path in ("/a.npy", "/a.raw", "/ab.npy"):
        names.add(path)
    names.show("/a.raw")
    assert [path in names for path in ("/a.npy", "/a.raw", "/ab.npy")] == [True, False, True]
    names.show_all("/a.")
    assert [path in names for path in ("/a.npy", "/a.raw", "/ab.npy")] == [False, False, True]


def test_the_number_of_names_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hidden_names, "MAX_HIDDEN_NAMES", 1)
    names = HiddenNames()
    names.add("/a.npy")
    names.add("/a.npy")
    with pytest.raises(RefusedError) as error_info:
        names.add("/b.npy")
    assert error_info.value.number == errno.ENOSPC
    assert "/b.npy" not in names
