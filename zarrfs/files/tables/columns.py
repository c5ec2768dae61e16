"""Columns of tables: the text of the values of a dtype, and the maximum size of that text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Column", "Values", "columns_of", "quoted", "text_of_bytes"]

Values = np.ndarray[Any, Any]

FLOAT_WIDTHS = {2: 12, 4: 20, 8: 24}
"""Size of a float -> the maximum length of the shortest text that NumPy reads back as the same number."""

TIME_MARGIN = 2

MAX_ESCAPE_NBYTES = 6
"""The maximum size of a character in UTF-8, where a surrogate is replaced by its Python escape sequence."""


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        name: the name in the header.
        width: the maximum size of the text of a value in bytes.
        take: returns the values of the column for rows of the array.
        texts: returns the text of each value. It is quoted where CSV requires that.
    """

    name: str
    width: int
    take: Callable[[Values], Values]
    texts: Callable[[Values], Sequence[str]]


def columns_of(dtype: np.dtype[Any], name: str, take: Callable[[Values], Values]) -> Iterator[Column | str]:
    """Yield the columns of values of a dtype, or the name of a dtype that has no text.

    Complex numbers have two columns. A field has its name, and an element of a subarray its indices.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        for index in np.ndindex(shape):
            yield from columns_of(base, ".".join([name, *map(str, index)]), _element(take, index))
    elif dtype.names is not None:
        for field in dtype.names:
            yield from columns_of(dtype[field], f"{name}.{field}" if name else field, _field(take, field))
    elif dtype.kind == "c":
        width = FLOAT_WIDTHS.get(dtype.itemsize // 2)
        if width is None:
            yield dtype.name
            return
        yield Column(f"{name}.real", width, lambda rows: take(rows).real, _float_texts)
        yield Column(f"{name}.imag", width, lambda rows: take(rows).imag, _float_texts)
    else:
        form = _form(dtype)
        yield dtype.name if form is None else Column(name, form[0], take, form[1])


def _element(take: Callable[[Values], Values], index: tuple[int, ...]) -> Callable[[Values], Values]:
    selection: tuple[slice | int, ...] = (slice(None), *index)
    return lambda rows: take(rows)[selection]


def _field(take: Callable[[Values], Values], field: str) -> Callable[[Values], Values]:
    return lambda rows: take(rows)[field]


def _form(dtype: np.dtype[Any]) -> tuple[int, Callable[[Values], Sequence[str]]] | None:
    """Return the maximum size of the text of values of a dtype, and the function that returns the texts."""
    if dtype.isbuiltin == 2:  # a dtype of another package
        if "float" in dtype.name:
            return FLOAT_WIDTHS[4], lambda values: _float_texts(values.astype(np.float32))
        return (4, lambda values: _integer_texts(values.astype(np.int16))) if "int" in dtype.name else None
    if dtype.kind == "b":
        return len("False"), _boolean_texts
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return max(len(str(limits.min)), len(str(limits.max))), _integer_texts
    if dtype.kind == "f":
        width = FLOAT_WIDTHS.get(dtype.itemsize)
        return None if width is None else (width, _float_texts)
    if dtype.kind == "M":
        extremes = np.array([np.iinfo(np.int64).max, np.iinfo(np.int64).min + 1]).view(
            dtype.newbyteorder("=")
        )
        return max(map(len, map(str, extremes))) + TIME_MARGIN, _time_texts
    if dtype.kind == "m":
        return len(str(np.iinfo(np.int64).min)), _duration_texts
    if dtype.kind == "S":
        # An escape sequence such as \xff has four bytes, a doubled quotation mark two.
        return 4 * dtype.itemsize + 2, lambda values: [
            quoted(text_of_bytes(value)) for value in values.tolist()
        ]
    if dtype.kind == "U":
        return MAX_ESCAPE_NBYTES * dtype.itemsize // 4 + 2, lambda values: [*map(quoted, values.tolist())]
    if dtype.kind == "V":
        return 2 * dtype.itemsize, lambda values: [value.tobytes().hex() for value in values]
    return None


def _boolean_texts(values: Values) -> Sequence[str]:
    return ["True" if value else "False" for value in values.tolist()]


def _integer_texts(values: Values) -> Sequence[str]:
    return [*map(str, values.tolist())]


def _float_texts(values: Values) -> Sequence[str]:
    if values.dtype.itemsize == 8:
        return [*map(repr, values.tolist())]
    texts: list[str] = values.astype("U32").tolist()
    return texts


def _time_texts(values: Values) -> Sequence[str]:
    texts: list[str] = np.datetime_as_string(values.astype(values.dtype.newbyteorder("="))).tolist()
    return ["" if text == "NaT" else text for text in texts]


def _duration_texts(values: Values) -> Sequence[str]:
    missing = np.iinfo(np.int64).min
    counts = values.astype(values.dtype.newbyteorder("=")).view(np.int64).tolist()
    return ["" if count == missing else str(count) for count in counts]


def text_of_bytes(value: bytes) -> str:
    """Return bytes as text: UTF-8, with escape sequences for bytes that are not."""
    return value.decode("utf-8", "backslashreplace")


def quoted(text: str) -> str:
    """Return a text as a CSV field (RFC 4180)."""
    if not any(character in text for character in ',"\r\n') and text == text.strip():
        return text
    return '"' + text.replace('"', '""') + '"'
