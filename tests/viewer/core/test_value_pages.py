"""Pages of values of arrays of any rank and data type, and the values around a point."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarrfs_viewer.analysis import value_pages
from zarrfs_viewer.analysis.neighbourhood import read_neighbourhood
from zarrfs_viewer.analysis.value_pages import ValuePage, curve, page_csv, page_rows, read_page
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.state.view_state import with_position

import zarrfs

TABLE = np.array([(1, 2.5, "a"), (2, -1.0, "bc")], [("n", "i4"), ("v", "f8"), ("s", "U4")])


def stored(path: Path, data: Any, **options: Any) -> zarrfs.Array:
    return zarrfs.create_array(path / "a.zarr", data=data, **options)


def texts(array: Any, leading: tuple[int, ...] = (), first: int = 0) -> list[list[str]]:
    page = read_page(array, leading, first)
    return [[page.text(row, column) for column in range(len(page.columns))] for row in range(page.row_count)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (np.float32(0.1), [["0.1"]]),
        (np.arange(3, dtype="u8") + 2**63, [["9223372036854775808"], ["9223372036854775809"], ["9223372036854775810"]]),
        (np.array(["x", "yé"], "U3"), [["x"], ["yé"]]),
        (np.array([["x", "y"], ["z", ""]], "U3"), [["x", "y"], ["z", ""]]),
        (np.array(["2020-01-02", "NaT"], "M8[D]"), [["2020-01-02"], ["NaT"]]),
        (np.zeros((0,), "f4"), []),
        (TABLE, [["1", "2.5", "a"], ["2", "-1.0", "bc"]]),
    ],
)  # fmt: skip
def test_values_are_texts_with_all_digits(tmp_path: Path, data: Any, expected: list[list[str]]) -> None:
    assert texts(stored(tmp_path, data)) == expected


def test_strings_of_any_length(tmp_path: Path) -> None:
    array = stored(tmp_path, np.array(["a", "b" * 1000], object), dtype="string")
    assert texts(array) == [["a"], ["b" * 1000]]


def test_the_last_two_axes_are_rows_and_columns(tmp_path: Path) -> None:
    data = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    array = stored(tmp_path, data)
    assert texts(array, (1, 2)) == [list(map(str, row)) for row in data[1, 2].tolist()]


def test_pages_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_pages, "MAX_ELEMENTS", 12)
    monkeypatch.setattr(value_pages, "MAX_COLUMNS", 4)
    data = np.arange(70).reshape(10, 7)
    array = stored(tmp_path, data)
    assert page_rows(array) == 3
    page = read_page(array, (), 8)
    assert (page.first, page.total, page.is_cut, page.columns) == (8, 10, True, ("0", "1", "2", "3"))
    assert np.array_equal(page.values, data[8:, :4])


def test_curves_and_csv(tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "c.zarr", data=np.array([3 + 4j, 0], "c8"))
    page = read_page(array, (), 0)
    line = curve(array, page)
    assert line is not None
    assert line.tolist() == [5, 0]
    table = stored(tmp_path, TABLE)
    page = read_page(table, (), 0)
    assert curve(table, page) is None
    assert page_csv(page) == "index,n,v,s\n0,1,2.5,a\n1,2,-1.0,bc\n"
    assert page_csv(page, [1]) == "index,n,v,s\n1,2,-1.0,bc\n"


def test_the_values_around_a_point_are_those_of_level_0(tmp_path: Path) -> None:
    data = np.arange(4 * 30 * 40, dtype="u2").reshape(4, 30, 40)
    image = describe(stored(tmp_path, data, dimension_names=["z", "y", "x"])).open_image()
    settings = with_position(initial_settings(image), 0, 3)
    found = read_neighbourhood(image, settings, 10.4, 20.6, (9, 5))
    assert found is not None
    assert found.center == (10, 21)
    assert found.first == (6, 19)
    assert np.array_equal(found.values, data[3, 6:15, 19:24])
    corner = read_neighbourhood(image, settings, 29.4, -0.4, (9, 5))
    assert corner is not None
    assert np.array_equal(corner.values, data[3, 21:30, 0:5])
    assert read_neighbourhood(image, settings, 30.0, 0.0, (9, 5)) is None
    hidden = replace(
        settings, channels=tuple(replace(channel, visible=False) for channel in settings.channels)
    )
    assert read_neighbourhood(image, hidden, 0.0, 0.0, (9, 5)) is not None
    tiny = read_neighbourhood(image, settings, 0.0, 0.0, (90, 90))
    assert tiny is not None
    assert np.array_equal(tiny.values, data[3])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"cell 1", "cell 1"),
        (b"", ""),
        ("é".encode(), "é"),
        (b"\xff\xfe", r"b'\xff\xfe'"),
        (b"a\x07", r"b'a\x07'"),
    ],
)
def test_bytes_are_shown_as_text_if_they_are_text(value: bytes, text: str) -> None:
    assert ValuePage(0, 1, ("value",), np.array([[value]], "S8")).text(0, 0) == text
    record = np.array([(value, 1)], [("name", "S8"), ("n", "i4")])
    assert ValuePage(0, 1, ("name", "n"), record).text(0, 0) == text
