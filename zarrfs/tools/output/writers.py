"""Writers of the selected values of an array: npy, raw, csv and tiff."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from math import prod
from typing import Any, BinaryIO, Literal, get_args

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.errors import OptionError, UnsupportedError
from zarrfs.plugins import install_hint
from zarrfs.tools.output.selections import Selection, selected_shape, split_selection

__all__ = ["FORMATS", "OutputFormat", "write_values"]

OutputFormat = Literal["npy", "raw", "csv", "tiff"]
"""
- ``npy``: a NumPy file in C order.
- ``raw``: the elements in C order, in the byte order of the data type.
- ``csv``: one line per row of a two-dimensional selection, or per element of a one-dimensional one. Structured arrays
  have one column for each field, and a header.
- ``tiff``: one page for each plane of the last two dimensions. The stream has to be seekable.
"""

FORMATS: tuple[OutputFormat, ...] = get_args(OutputFormat)

MEMORY = 64 << 20
MAX_NBYTES = (1 << 63) - 1
"""The maximum size of a file. Metadata can declare more."""
MAX_CSV_DIMENSIONS = 2
TIFF_KINDS = "biufc"
DOUBLE_NBYTES = 8


def write_values(
    array: Array, selection: Selection, file: BinaryIO, output_format: OutputFormat, memory: int = MEMORY
) -> None:
    """Write the selected values of an array to a binary stream, reading at most ``memory`` bytes of them at a time.

    Raises OptionError for an unknown format, UnsupportedError if the format cannot represent the values (before
    anything is written), and the errors of reading.
    """
    if output_format not in FORMATS:
        raise OptionError(f"the format has to be one of {', '.join(FORMATS)}; found {output_format!r}")
    nbytes = prod(selected_shape(selection)) * max(1, array.dtype.itemsize)
    if nbytes > MAX_NBYTES:
        raise UnsupportedError(
            f"{_location(array)}: the {nbytes:,} selected bytes exceed the maximum size of a file; "
            "select less, as in [0, :10]"
        )
    WRITERS[output_format](array, selection, file, memory)


def _parts(array: Array, selection: Selection, memory: int) -> Iterator[np.ndarray[Any, Any]]:
    for part in split_selection(array, selection, memory):
        yield _read(array, part)


def _read(array: Array, selection: Selection) -> np.ndarray[Any, Any]:
    """Return the selected values in the dtype of the array. A single element is read as a NumPy scalar, which has the
    byte order of the machine.
    """
    values = array[selection]
    if isinstance(values, np.ndarray):
        return values
    element = np.empty((), array.dtype)
    element[()] = values
    return element


def _location(array: Array) -> str:
    return array.store.url + (array.name if array.path else "")


def _check_fixed_size(array: Array, output_format: str) -> None:
    if array.dtype.hasobject:
        raise UnsupportedError(
            f"{_location(array)}: elements of variable length ({array.spec.data_type.name}) cannot be written as "
            f"{output_format}; use csv"
        )


def _write_raw(array: Array, selection: Selection, file: BinaryIO, memory: int) -> None:
    _check_fixed_size(array, "raw")
    for values in _parts(array, selection, memory):
        file.write(np.ascontiguousarray(values).tobytes())


def _write_npy(array: Array, selection: Selection, file: BinaryIO, memory: int) -> None:
    _check_fixed_size(array, "npy")
    descr = np.lib.format.dtype_to_descr(array.dtype)
    if np.lib.format.descr_to_dtype(descr) != array.dtype:
        raise UnsupportedError(
            f"{_location(array)}: data type {array.spec.data_type.name} cannot be stored in a NumPy file; use raw"
        )
    header = {"descr": descr, "fortran_order": False, "shape": selected_shape(selection)}
    try:
        np.lib.format.write_array_header_1_0(file, header)
    except ValueError:  # too long for version 1.0
        np.lib.format.write_array_header_2_0(file, header)
    _write_raw(array, selection, file, memory)


def _write_csv(array: Array, selection: Selection, file: BinaryIO, memory: int) -> None:
    shape = selected_shape(selection)
    fields = array.dtype.names
    if len(shape) > (1 if fields else MAX_CSV_DIMENSIONS):
        raise UnsupportedError(
            f"{_location(array)}: the selection has {len(shape)} dimensions, csv needs {1 if fields else 2} or fewer; "
            f"select fewer, as in [0, ...]"
        )
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        if fields:
            writer.writerow(fields)
        if len(shape) == MAX_CSV_DIMENSIONS:
            # A part of less than one row would end a line too early.
            memory = max(memory, shape[1] * max(1, array.dtype.itemsize))
        for values in _parts(array, selection, memory):
            for row in values if values.ndim else [values]:
                writer.writerow(_cells(row[()] if isinstance(row, np.ndarray) and not row.ndim else row))
    finally:
        text.flush()
        text.detach()


def _cells(row: Any) -> list[Any]:
    """Return the cells of a row of a table, or of one element: of a structured element one for each field."""
    if isinstance(row, np.void) and row.dtype.names is not None:
        return [_cell(_values(row[name])) for name in row.dtype.names]
    values = _values(row)
    return [_cell(value) for value in values] if isinstance(values, list) else [_cell(values)]


def _values(row: Any) -> Any:
    """Return an array or element as objects of Python. Times, and floats of fewer than 64 bits, become the texts of
    NumPy: Python has no times in all units, and would write more digits than the floats have.
    """
    if not isinstance(row, np.ndarray | np.generic):
        return row
    kind, size = row.dtype.kind, row.dtype.itemsize
    if kind == "m":
        return [str(value) for value in row] if isinstance(row, np.ndarray) else str(row)
    if kind == "M" or (kind == "f" and size < DOUBLE_NBYTES):
        return np.asarray(row).astype(str).tolist()
    return row.tolist()


def _cell(value: Any) -> Any:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _write_tiff(array: Array, selection: Selection, file: BinaryIO, memory: int) -> None:
    try:
        import tifffile
    except ImportError:
        raise UnsupportedError(
            f"writing TIFF needs the package tifffile: {install_hint('tiff')}; or use npy or raw"
        ) from None
    shape = selected_shape(selection)
    if array.dtype.kind not in TIFF_KINDS or len(shape) < MAX_CSV_DIMENSIONS or 0 in shape:
        raise UnsupportedError(
            f"{_location(array)}: a TIFF file needs numbers in at least two dimensions, none of length 0; found "
            f"{array.spec.data_type.name} of shape {shape}"
        )

    def planes() -> Iterator[np.ndarray[Any, Any]]:
        plane = shape[-2] * shape[-1] * array.dtype.itemsize
        for values in _whole_planes(array, selection, max(memory, plane)):
            yield from values.reshape(-1, *shape[-2:])

    tifffile.imwrite(
        file,
        planes(),
        shape=shape,
        dtype=array.dtype,
        photometric="minisblack",
        bigtiff=np.prod(shape, dtype=float) * array.dtype.itemsize > 1 << 31,
        metadata=None,
    )


def _whole_planes(array: Array, selection: Selection, memory: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yield parts that are not cut within the last two dimensions."""
    cut = [axis for axis, item in enumerate(selection) if isinstance(item, slice)][:-2]
    if not cut:
        yield _read(array, selection)
        return
    yield from _parts(array, selection, memory)


WRITERS: dict[OutputFormat, Callable[[Array, Selection, BinaryIO, int], None]] = {
    "npy": _write_npy,
    "raw": _write_raw,
    "csv": _write_csv,
    "tiff": _write_tiff,
}
