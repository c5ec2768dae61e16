"""Lookup tables of ImageJ and colour maps of cmap."""

from __future__ import annotations

import struct
import sys
import zlib
from base64 import urlsafe_b64encode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.state import colormaps
from zarrfs_viewer.state.colormaps import is_colormap, lookup
from zarrfs_viewer.state.luts import cmap_names, lut_name, lut_title, parse_lut

from zarrfs.errors import UnsupportedError, ZarrError

TABLE = np.random.default_rng(3).integers(0, 256, (256, 3)).astype(np.uint8)


def rows(table: np.ndarray, separator: str, index: bool) -> str:
    return "\n".join(
        separator.join(map(str, [number, *row] if index else row))
        for number, row in enumerate(table.tolist())
    )


@pytest.mark.parametrize(
    "content",
    [
        TABLE.T.tobytes(),
        b"ICOL" + struct.pack(">hhhh", 1, 256, 0, 255) + bytes(20) + TABLE.T.tobytes(),
        rows(TABLE, "\t", False).encode(),
        ("Index\tRed\tGreen\tBlue\n" + rows(TABLE, "\t", True)).encode(),
        ("Index,Red,Green,Blue\r\n" + rows(TABLE, ", ", True).replace("\n", "\r\n") + "\r\n").encode(),
    ],
    ids=["raw", "NIH", "text", "table", "csv"],
)
def test_all_kinds_of_lookup_tables_are_read(content: bytes) -> None:
    assert np.array_equal(parse_lut(content, "a.lut"), TABLE)


def test_fewer_colours_are_interpolated() -> None:
    table = parse_lut(b"0 0 0\n255 127 10\n", "a.lut")
    assert table[[0, 255]].tolist() == [[0, 0, 0], [255, 127, 10]]
    assert table[:, 0].tolist() == list(range(256))
    header = b"ICOL" + struct.pack(">hhhh", 1, 2, 0, 255) + bytes(20)
    assert np.array_equal(parse_lut(header + bytes([0, 255, 0, 127, 0, 10]), "a.lut"), table)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 767, b"1 2 3\n", b"1 2 3\n4 5\n", b"1 2 256\n1 2 3", b"1 2 3\n" * 257, b"1 -2 3\n1 2 3\n"]
    + [b"ICOL" + struct.pack(">hhhh", 1, count, 0, 255) + bytes(20) + bytes(9) for count in (-1, 0, 1, 300)],
)
def test_other_files_are_errors_that_name_them(content: bytes) -> None:
    with pytest.raises(ZarrError, match=r"some\.lut"):
        parse_lut(content, "some.lut")


@given(st.binary(max_size=900))
def test_any_content_is_a_table_or_an_error(content: bytes) -> None:
    try:
        table = parse_lut(content, "a.lut")
    except ZarrError:
        return
    assert table.shape == (256, 3)
    assert table.dtype == np.uint8


@given(st.text(max_size=60))
def test_the_name_of_an_imported_table_contains_its_colours(title: str) -> None:
    name = lut_name(title, TABLE)
    assert is_colormap(name)
    assert np.array_equal(lookup(name), TABLE)
    assert not lookup(name).flags.writeable
    assert lut_title(name)
    assert len(lut_title(name)) <= 40


@pytest.mark.parametrize("data", [bytes(10), bytes(767), bytes(1 << 24)])
def test_damaged_names_are_no_colour_maps(data: bytes) -> None:
    encoded = urlsafe_b64encode(zlib.compress(data, 9)).decode()
    for name in (
        f"lut:a:{encoded}",
        f"lut::{encoded}",
        "lut:a:AAAA",
        "lut:a",
        "cmap:",
        "cmap:no such map",
        "cmap:zzz",
    ):
        assert not is_colormap(name)
        with pytest.raises(ValueError, match="unknown colour map"):
            lookup(name)


def test_the_colour_maps_of_cmap_are_offered() -> None:
    names = cmap_names()
    assert "cmap:imagej:fire" in names
    assert len(names) > 200
    for name in names:
        assert lookup(name).shape == (256, 3), name
    assert lookup("cmap:imagej:fire")[-1].tolist() == [255, 255, 255]
    assert lut_title("cmap:imagej:fire") == "imagej:fire"
    assert lut_title("viridis") == "viridis"


def test_without_cmap_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    cmap_names.cache_clear()
    colormaps._other_table.cache_clear()
    monkeypatch.setitem(sys.modules, "cmap", None)
    with pytest.raises(UnsupportedError, match="pip install"):
        cmap_names()
    assert not is_colormap("cmap:imagej:fire")
    colormaps._other_table.cache_clear()
