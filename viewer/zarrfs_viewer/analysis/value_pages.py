"""The values of an array as pages of a table, and as curves. For arrays of any rank and data type."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.images.reading import SourceArray
from zarrfs_viewer.images.values import component, is_displayable, to_display

__all__ = ["ValuePage", "curve", "page_csv", "page_rows", "read_page"]

MAX_ELEMENTS = 1 << 20
MAX_OBJECTS = 1 << 16
"""The maximum number of elements of a page; fewer for objects, such as strings of any length, which take more memory.
"""
MAX_PAGE_BYTES = 1 << 26
MAX_COLUMNS = 500
"""The maximum number of columns of a table. Further ones are not displayed."""


@dataclass(frozen=True, eq=False)
class ValuePage:
    """Rows of an array: of its last axis but one, or of the only axis.

    ``values`` has one entry per row for a structured array of rank 1, else the axes (row, column). ``first`` is the
    index of the first row, ``total`` the number of rows of the array. ``is_cut`` is whether columns are omitted.
    """

    first: int
    total: int
    columns: tuple[str, ...]
    values: npt.NDArray[Any]
    is_cut: bool = False

    @property
    def row_count(self) -> int:
        return len(self.values)

    def text(self, row: int, column: int) -> str:
        """Return a value with all digits. Bytes that are printable UTF-8 are returned as their text."""
        if self.values.dtype.names is not None and self.values.ndim == 1:
            return _text(self.values[row][self.columns[column]])
        return _text(self.values[row, column])


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            return str(value)
        return text if text.isprintable() else str(value)
    return str(value)


def page_rows(array: SourceArray) -> int:
    """Return the maximum number of rows of a page."""
    columns = min(array.shape[-1], MAX_COLUMNS) if len(array.shape) > 1 else 1
    limit = MAX_OBJECTS if array.dtype.hasobject or array.dtype.kind == "T" else MAX_ELEMENTS
    return max(1, min(limit, MAX_PAGE_BYTES // max(1, array.dtype.itemsize)) // max(1, columns))


def read_page(array: SourceArray, leading: tuple[int, ...], first: int) -> ValuePage:
    """Read a page. ``leading`` are the indices along all axes but the last two. Blocks. Raises ZarrError."""
    shape, dtype = array.shape, array.dtype
    if not shape:
        return ValuePage(0, 1, ("value",), np.asarray(array[()]).reshape(1, 1))
    total = shape[0] if len(shape) == 1 else shape[-2]
    rows = slice(first, min(first + page_rows(array), total))
    if len(shape) == 1:
        values = np.asarray(array[rows,])
        if dtype.names is not None:
            return ValuePage(first, total, dtype.names[:MAX_COLUMNS], values, len(dtype.names) > MAX_COLUMNS)
        return ValuePage(first, total, ("value",), values.reshape(-1, 1))
    columns = min(shape[-1], MAX_COLUMNS)
    values = np.asarray(array[(*leading, rows, slice(0, columns))])
    return ValuePage(first, total, tuple(map(str, range(columns))), values, columns < shape[-1])


def curve(array: SourceArray, page: ValuePage) -> npt.NDArray[np.float64] | None:
    """Return the values of a page of a numeric array of rank 1, of complex numbers the absolute values; else None."""
    dtype = array.dtype
    if len(array.shape) != 1 or dtype.names is not None or not is_displayable(dtype):
        return None
    values = component(to_display(page.values[:, 0]), "abs" if dtype.kind == "c" else "value")
    return np.asarray(values, np.float64)


def page_csv(page: ValuePage, rows: Iterable[int] | None = None) -> str:
    """Return rows of a page as CSV, by default all. The first column is the index."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["index", *page.columns])
    for row in range(page.row_count) if rows is None else rows:
        texts = [page.text(row, column) for column in range(len(page.columns))]
        writer.writerow([str(page.first + row), *texts])
    return file.getvalue()
