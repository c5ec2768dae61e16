""".csv: a table of comma-separated values (RFC 4180, UTF-8).

The rows are the elements of a one-dimensional array, whose fields are the columns, or the rows of a two-dimensional
array. All lines have the same size, so that the size of the file is known and a part of it is read without the rest:
the first column, ``index``, is padded with spaces on its left. All other values are written without padding.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.errors import StoreError
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.record_segments import RecordSegment
from zarrfs.files.tables.columns import Column, Values, columns_of, quoted
from zarrfs.files.view import MAX_FILE_NBYTES, PresentedArray, View, fixed_size_unsupported_reason

__all__ = ["CsvView"]

MAX_COLUMNS = 16384
"""The maximum number of columns of spreadsheet programs."""

MAX_LINE_NBYTES = 1 << 20
INDEX = "index"


class CsvView(View):
    """A table of comma-separated values."""

    suffix: ClassVar[str] = ".csv"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array)
        if unsupported_reason is not None:
            return unsupported_reason
        if array.ndim > 2 or (array.ndim == 2 and array.dtype.names is not None):
            return f"a table cannot present the shape {array.shape}; use .npy"
        if array.ndim == 2 and array.shape[1] == 0:
            return "it has no columns"
        cells = _cells(array, presented.name)
        if isinstance(cells, str):
            return cells
        line_nbytes = _line_nbytes(array, cells)
        if line_nbytes > MAX_LINE_NBYTES:
            return f"a line of {line_nbytes:,} bytes exceeds the maximum ({MAX_LINE_NBYTES:,})"
        if line_nbytes * _row_count(array) > MAX_FILE_NBYTES:
            return "the table exceeds the maximum file size"
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        cells = _cells(array, presented.name)
        assert not isinstance(cells, str)
        line_nbytes = _line_nbytes(array, cells)
        columns = _columns(array, cells)
        names = [column.name for column in columns]
        index = INDEX
        while index in names:
            index += "_"
        header = ",".join(map(quoted, [index, *names])) + "\n"

        def encode(start: int, stop: int) -> bytes:
            return _encode_lines(array, columns, line_nbytes, start, stop)

        lines = RecordSegment(_row_count(array), line_nbytes, encode)
        return VirtualFileContent([BytesSegment(header.encode("utf-8", "backslashreplace")), lines])


def _row_count(array: Array) -> int:
    return array.shape[0] if array.ndim else 1


def _cells(array: Array, name: str) -> list[Column] | str:
    """Return the columns of one element, or the reason why there are none."""
    columns: list[Column] = []
    for column in columns_of(array.dtype, "" if array.dtype.names is not None else name, lambda rows: rows):
        if isinstance(column, str):
            return f"a table has no text for its elements ({column})"
        columns.append(column)
        if len(columns) * _element_count(array) > MAX_COLUMNS:
            return f"it has more than {MAX_COLUMNS:,} columns"
    return columns


def _element_count(array: Array) -> int:
    """Return the number of elements in a row."""
    return array.shape[1] if array.ndim == 2 else 1


def _columns(array: Array, cells: list[Column]) -> list[Column]:
    """Return the columns of all elements of a row."""
    if array.ndim < 2:
        return cells
    columns: list[Column] = []
    for number in range(array.shape[1]):
        for column in columns_of(array.dtype, str(number), _column_taker(number)):
            assert isinstance(column, Column)
            columns.append(column)
    return columns


def _column_taker(number: int) -> Callable[[Values], Values]:
    return lambda rows: rows[:, number]


def _line_nbytes(array: Array, cells: list[Column]) -> int:
    digits = len(str(max(0, _row_count(array) - 1)))
    return digits + _element_count(array) * sum(1 + cell.width for cell in cells) + 1


def _encode_lines(array: Array, columns: list[Column], line_nbytes: int, start: int, stop: int) -> bytes:
    rows = np.asarray(array[start:stop] if array.ndim else array[...]).reshape(stop - start, *array.shape[1:])
    try:
        texts = [column.texts(column.take(rows)) for column in columns]
    except ValueError as error:
        raise StoreError(
            f"{array.name}: the rows {start} to {stop} contain values that are not text: {error}", errno.EIO
        ) from error
    lines = []
    for number, fields in enumerate(zip(*texts, strict=True), start):
        values = ",".join(fields).encode("utf-8", "backslashreplace")
        lines.append(b"%s,%s\n" % (str(number).encode().rjust(line_nbytes - len(values) - 2), values))
    return b"".join(lines)
