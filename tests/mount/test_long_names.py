"""Names of files that present members with long names."""

from __future__ import annotations

import pytest

from zarrfs.mount.tree.long_names import file_name, find_shortened, is_shortened, reference_name

MAX_NBYTES = 255


@pytest.mark.parametrize("character", ["a", "é", "字", "😀"])
def test_names_are_shortened_only_if_they_are_too_long(character: str) -> None:
    size = len(character.encode())
    for count in range(1, MAX_NBYTES // size + 3):
        stem = character * count
        name = file_name(stem, ".npy")
        assert len(name.encode()) <= MAX_NBYTES
        assert name.endswith(".npy")
        fits = count * size + len(".npy") <= MAX_NBYTES
        assert (name == f"{stem}.npy") is fits
        assert is_shortened(name.removesuffix(".npy")) is not fits
        if not fits:
            assert find_shortened(name.removesuffix(".npy"), ["b", stem]) == stem
            assert reference_name(stem) == name.removesuffix(".npy")
