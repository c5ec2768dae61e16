"""HDF5 files with one contiguous dataset, whose elements are not in memory: the bytes before and after the elements.

h5py writes the file to a sparse file in memory. The space of the dataset is allocated when it is created, and its
elements are never written. Specification: https://support.hdfgroup.org/documentation/hdf5/latest/_f_m_t4.html
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np

from zarrfs.engine.json_memory import json_memory_nbytes
from zarrfs.files.content.content import BytesSegment, Segment, VirtualFileContent
from zarrfs.libraries import import_library
from zarrfs.plugins import install_hint

__all__ = [
    "MAX_HDF5_RANK",
    "attribute_values",
    "datatype_unsupported_reason",
    "hdf5_content",
    "is_valid_name",
    "library_unsupported_reason",
]

MAX_HDF5_RANK = 32

MAX_MESSAGE_NBYTES = 60_000
"""The maximum size of an attribute or a data type. HDF5 stores them in messages of at most 64 KiB."""

MAX_ATTRIBUTES_NBYTES = 4 << 20
"""The maximum size of all attributes."""

MAX_ATTRIBUTES = 1024
"""Further attributes are omitted: h5py needs about 0.1 ms for each one."""

FORMAT_BOUNDS = ("v108", "latest")
"""The file can be read by HDF5 1.8. The format before has no index of attributes, so that a thousand of them take
seconds.
"""

MAX_VALUE_MEMORY = 16 * MAX_MESSAGE_NBYTES
"""The maximum size of the JSON value of an attribute in memory. Larger values do not fit into a message."""

MAX_NAME_NBYTES = 1024

MEMBER_NBYTES = 48
"""The upper bound of the encoded size of a member of a compound data type, without its name and its type."""

TYPE_NBYTES = 24
"""The upper bound of the encoded size of a number or string type."""

PAGE_NBYTES = 4096

INTEGERS = range(-(2**63), 2**64)


@cache
def library_unsupported_reason() -> str | None:
    """Return why h5py cannot be used, or None if it is installed."""
    return None if find_spec("h5py") is not None else f"it needs h5py: {install_hint('hdf5')}"


def datatype_unsupported_reason(dtype: np.dtype[Any]) -> str | None:
    """Return why HDF5 has no data type for a dtype, or None if it has one."""
    name = _unsupported(dtype)
    if name is not None:
        return f"HDF5 has no data type for its elements ({name})"
    if _datatype_nbytes(dtype) > MAX_MESSAGE_NBYTES:
        return (
            f"the description of its fields exceeds the maximum size in HDF5 ({MAX_MESSAGE_NBYTES:,} bytes)"
        )
    return None


def _unsupported(dtype: np.dtype[Any]) -> str | None:
    """Return the name of a dtype, or of the dtype of a field, that HDF5 cannot represent; None if there is none."""
    if dtype.subdtype is not None:
        return _unsupported(dtype.subdtype[0])
    if dtype.names is not None:
        return next(filter(None, (_unsupported(dtype[name]) for name in dtype.names)), None)
    is_of_other_package = dtype.isbuiltin == 2
    is_representable = dtype.kind in "biufcSVmM" and dtype.itemsize > 0 and not is_of_other_package
    return None if is_representable else dtype.name


def _datatype_nbytes(dtype: np.dtype[Any]) -> int:
    """Return an upper bound of the size of a data type message."""
    if dtype.subdtype is not None:
        return TYPE_NBYTES + 4 * len(dtype.shape) + _datatype_nbytes(dtype.subdtype[0])
    if dtype.names is None:
        return TYPE_NBYTES
    return TYPE_NBYTES + sum(
        MEMBER_NBYTES + len(name.encode()) + _datatype_nbytes(dtype[name]) for name in dtype.names
    )


def hdf5_content(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    body: Segment,
    describe: Callable[[Any, Any], None],
    **file_options: Any,
) -> VirtualFileContent:
    """Return the content of an HDF5 file with one dataset, whose elements are ``body``.

    ``describe`` receives the h5py file and the dataset, and adds attributes and further small objects.
    ``file_options`` are options of ``h5py.File``.
    """
    h5py = import_library("h5py")
    file = _MetadataFile()
    # Elements of a large dataset begin at a page of memory, those of a small one at a multiple of their size.
    alignment = PAGE_NBYTES if body.nbytes >= PAGE_NBYTES else 16
    with h5py.File(
        file,
        "w",
        libver=FORMAT_BOUNDS,
        alignment_threshold=max(1, body.nbytes),
        alignment_interval=alignment,
        **file_options,
    ) as h5:
        dataset = _create_dataset(h5py, h5, name, shape, dtype)
        describe(h5, dataset)
        offset = dataset.id.get_offset()
    if offset is None:  # no elements
        return VirtualFileContent([BytesSegment(file.read_range(0, file.size))])
    header = file.read_range(0, offset)
    trailer = file.read_range(offset + body.nbytes, file.size)
    return VirtualFileContent([BytesSegment(header), body, BytesSegment(trailer)])


def _create_dataset(h5py: Any, h5: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    creation.set_obj_track_times(False)
    space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
    dataset = h5py.Dataset(h5py.h5d.create(h5.id, None, _file_type(h5py, dtype), space, creation))
    h5[name.encode("utf-8", "replace").decode()] = dataset
    return dataset


def _file_type(h5py: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "mM":
        dtype = h5py.opaque_dtype(dtype)
    return h5py.h5t.py_create(dtype, logical=True)


# -- attributes ------------------------------------------------------------------------------------------------


def attribute_values(attributes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that HDF5 can represent, as values for h5py.

    Numbers, text, lists of them and NumPy scalars are stored as such, and all other JSON values as JSON text.
    Attributes that are too large are omitted.
    """
    total = 0
    for name, value in islice(attributes.items(), MAX_ATTRIBUTES):
        if not is_valid_name(name) or json_memory_nbytes(value, MAX_VALUE_MEMORY) > MAX_VALUE_MEMORY:
            continue
        converted = _attribute_value(value)
        nbytes = len(converted.encode()) if isinstance(converted, str) else _nbytes(converted)
        if nbytes <= MAX_MESSAGE_NBYTES and total + nbytes + len(name) <= MAX_ATTRIBUTES_NBYTES:
            total += nbytes + len(name)
            yield name, converted


def _attribute_value(value: Any) -> Any:
    if isinstance(value, str) and _is_text(value):
        return value
    if isinstance(value, np.generic) or _is_number(value):
        return value
    if isinstance(value, list | tuple) and value:
        kinds = {bool if isinstance(entry, bool) else type(entry) for entry in value}
        if kinds <= {int, float} and all(map(_is_number, value)):
            array = np.array(value)
            if array.dtype.kind in "iuf":  # not for a mixture of large positive and negative integers
                return array
        if kinds == {bool}:
            return np.array(value)
        if kinds == {str} and all(map(_is_text, value)):
            return list(value)
    return json.dumps(value, allow_nan=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (
        isinstance(value, int) and (isinstance(value, bool) or value in INTEGERS)
    )


def is_valid_name(name: str) -> bool:
    """Return whether HDF5 can store a name."""
    return bool(name) and _is_text(name) and len(name.encode()) <= MAX_NAME_NBYTES


def _is_text(value: str) -> bool:
    """Whether the text can be stored as null-terminated UTF-8."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _nbytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(len(entry.encode()) + 16 for entry in value) if isinstance(value, list) else 8


# -- the file --------------------------------------------------------------------------------------------------


class _MetadataFile:
    """A sparse file in memory, with the interface that h5py expects of Python file objects.

    Attributes:
        size: the size of the file in bytes.
    """

    def __init__(self) -> None:
        self.size = 0
        self._position = 0
        self._pages: dict[int, bytearray] = {}

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[
            whence
        ] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        for number, start, done, count in _pages(self._position, len(view)):
            page = self._pages.setdefault(number, bytearray(PAGE_NBYTES))
            page[start : start + count] = view[done : done + count]
        self._position += len(view)
        self.size = max(self.size, self._position)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self.size - self._position))
        view[:count] = self.read_range(self._position, self._position + count)
        self._position += count
        return count

    def read(self, size: int = -1) -> bytes:
        buffer = bytearray(max(0, self.size - self._position if size < 0 else size))
        return bytes(buffer[: self.readinto(buffer)])

    def truncate(self, size: int | None = None) -> int:
        self.size = self._position if size is None else size
        return self.size

    def flush(self) -> None:
        """Do nothing: the file is in memory."""

    def read_range(self, start: int, stop: int) -> bytes:
        """Return the bytes of a range. Bytes that were not written are 0."""
        data = bytearray(stop - start)
        for number, first, done, count in _pages(start, stop - start):
            page = self._pages.get(number)
            if page is not None:
                data[done : done + count] = page[first : first + count]
        return bytes(data)


def _pages(position: int, nbytes: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (page, offset in the page, offset in the range, length) for each page that a range intersects."""
    done = 0
    while done < nbytes:
        number, start = divmod(position + done, PAGE_NBYTES)
        count = min(PAGE_NBYTES - start, nbytes - done)
        yield number, start, done, count
        done += count
