"""References in Parquet files (kerchunk): a directory with the metadata documents and the references of each array.

The directory contains ``.zmetadata``, a JSON object with the documents of format 2 by key (``metadata``) and the number
of references in a file (``record_size``). The references of the array ``NAME`` are in ``NAME/refs.N.parq``: one row for
each chunk in C order, with the columns ``path``, ``offset``, ``size`` and ``raw``. The bytes of a chunk are in ``raw``,
or they are ``size`` bytes from ``offset`` of the file ``path``, or the whole file if both are 0. A row without path and
bytes, and a file that does not exist, are missing chunks. See ``LazyReferenceMapper`` of fsspec and
https://fsspec.github.io/kerchunk/.

The reader of fsspec needs pandas, reads a damaged file as missing chunks, and does not know relative targets.
"""

from __future__ import annotations

import io
import itertools
import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from fsspec.implementations.reference import LazyReferenceMapper

from zarrfs.errors import LocationError, StoreError
from zarrfs.libraries import load_library

__all__ = ["ParquetReferences"]

MAX_FILES_IN_MEMORY = 16
"""The number of Parquet files whose references are kept."""

MAX_RECORD_SIZE = 10_000_000

MAX_FILE_NBYTES = 1 << 30
"""The maximum number of bytes of the decoded columns of a file."""

COLUMNS = ("path", "offset", "size", "raw")

Reference = bytes | list[Any]


class _Place(NamedTuple):
    """The place of the reference of a chunk: its array, and the number of the chunk in C order."""

    array: str
    number: int


class ParquetReferences(LazyReferenceMapper):  # type: ignore[misc]  # fsspec is not typed
    """The references as a read-only mapping: key -> the bytes, or ``[target]`` or ``[target, offset, size]``.

    It takes the place of ``references`` in the file system of fsspec, which recognizes it by its base class.
    ``resolve`` makes a target absolute. Reading a key raises KeyError if it is missing, and StoreError for a damaged
    file.
    """

    def __init__(self, root: str, fs: Any, resolve: Callable[[str], str], display_url: str) -> None:
        self._parquet = load_library("pyarrow.parquet", "parquet", f"reading the references in {display_url}")
        self.root = root.rstrip("/")
        self.fs = fs
        self._resolve = resolve
        self._display_url = display_url
        self.zmetadata, self.record_size = self._read_metadata()
        self._documents = {name: json.dumps(value).encode() for name, value in self.zmetadata.items()}
        self._shapes = {
            name.removesuffix(".zarray").rstrip("/"): _grid_shape(value)
            for name, value in self.zmetadata.items()
            if name.rpartition("/")[2] == ".zarray"
        }
        self._rows = lru_cache(MAX_FILES_IN_MEMORY)(self._read_rows)

    def _read_metadata(self) -> tuple[dict[str, Any], int]:
        where = f"{self._display_url}: .zmetadata"
        try:
            document = json.loads(self.fs.cat_file(f"{self.root}/.zmetadata"))
            metadata, size = document["metadata"], document["record_size"]
        except FileNotFoundError as error:
            raise LocationError(f"{where} is missing: this is no directory with references") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise LocationError(
                f"{where} is not a JSON object with 'metadata' and 'record_size': {error or type(error).__name__}"
            ) from error
        if not isinstance(metadata, dict) or not isinstance(size, int) or not 1 <= size <= MAX_RECORD_SIZE:
            raise LocationError(
                f"{where}: expected an object 'metadata' and a 'record_size' from 1 to {MAX_RECORD_SIZE:,}, found "
                f"{type(metadata).__name__} and {size!r}"
            )
        return metadata, size

    def _read_rows(self, array: str, record: int) -> dict[str, Any] | None:
        """Return the columns of a file, or None if it does not exist."""
        name = f"{array}/refs.{record}.parq".lstrip("/")
        try:
            data = self.fs.cat_file(f"{self.root}/{name}")
        except FileNotFoundError:
            return None
        where = f"{self._display_url}: {name}"
        try:
            file = self._parquet.ParquetFile(io.BytesIO(data))
            nbytes = sum(
                file.metadata.row_group(index).total_byte_size for index in range(file.num_row_groups)
            )
            if file.metadata.num_rows > self.record_size or nbytes > MAX_FILE_NBYTES:
                raise StoreError(
                    f"{where} has {file.metadata.num_rows:,} references in {nbytes:,} bytes, expected at most "
                    f"{self.record_size:,} in {MAX_FILE_NBYTES:,} bytes"
                )
            present = [column for column in COLUMNS if column in file.schema_arrow.names]
            table = file.read(columns=present)
            return {column: table.column(column).combine_chunks() for column in present}
        except StoreError:
            raise
        except Exception as error:  # pyarrow raises errors of many classes for damaged files
            raise StoreError(f"{where} is damaged: {error}") from error

    # -- the mapping -------------------------------------------------------------------------------------------

    def __getitem__(self, key: str) -> Reference:
        document = self._documents.get(key)
        if document is not None:
            return document
        place = self._place(key)
        if place is None:
            raise KeyError(key)
        record, row = divmod(place.number, self.record_size)
        rows = self._rows(place.array, record)
        reference = None if rows is None else self._reference(rows, row)
        if reference is None:
            raise KeyError(key)
        return reference

    def _reference(self, rows: dict[str, Any], row: int) -> Reference | None:
        path, offset, size, raw = (
            rows[column][row].as_py() if column in rows and row < len(rows[column]) else None
            for column in COLUMNS
        )
        if raw is not None:
            return raw.encode() if isinstance(raw, str) else bytes(raw)
        if not path:
            return None
        target = self._resolve(path.decode() if isinstance(path, bytes) else str(path))
        return [target, int(offset or 0), int(size or 0)] if offset or size else [target]

    def _place(self, key: str) -> _Place | None:
        """Return the place of a chunk; None if no array has such a chunk."""
        array, _, name = key.rpartition("/")
        numbers = name.split(".")
        # With the separator "/" each number is a segment of the key.
        while array not in self._shapes and array:
            array, _, name = array.rpartition("/")
            numbers.insert(0, name)
        shape = self._shapes.get(array)
        if shape is None or not all(part.isascii() and part.isdecimal() for part in numbers):
            return None
        coords = [int(part) for part in numbers]
        if len(coords) != len(shape) or any(
            coord >= length for coord, length in zip(coords, shape, strict=True)
        ):
            return None
        number = 0
        for coord, length in zip(coords, shape, strict=True):
            number = number * length + coord
        return _Place(array, number)

    def _chunks(self, array: str) -> Iterator[tuple[str, Reference]]:
        """Yield the keys and references of the chunks of an array that exist."""
        shape = self._shapes[array]
        separator = self.zmetadata[f"{array}/.zarray".lstrip("/")].get("dimension_separator", ".")
        for number, coords in enumerate(itertools.product(*map(range, shape))):
            record, row = divmod(number, self.record_size)
            rows = self._rows(array, record)
            reference = None if rows is None else self._reference(rows, row)
            if reference is not None:
                yield f"{array}/{separator.join(map(str, coords))}".lstrip("/"), reference

    def __contains__(self, key: object) -> bool:
        try:
            self[str(key)]
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        yield from self._documents
        for array in self._shapes:
            yield from (key for key, _ in self._chunks(array))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Any:
        """Yield keys and references. This reads all files."""
        yield from self._documents.items()
        for array in self._shapes:
            yield from self._chunks(array)

    def values(self) -> Any:
        """Yield the references. This reads all files."""
        return (reference for _, reference in self.items())

    def __setitem__(self, key: str, value: Any) -> NoReturn:
        raise TypeError("the references are read-only")

    def __delitem__(self, key: str) -> NoReturn:
        raise TypeError("the references are read-only")

    # -- listing, for the file system of fsspec ----------------------------------------------------------------

    def listdir(self) -> set[str]:
        """Return the paths of all arrays and groups, and of those above them."""
        paths: set[str] = set()
        for name in self._documents:
            path = name.rpartition("/")[0]
            while path and path not in paths:
                paths.add(path)
                path = path.rpartition("/")[0]
        return paths

    def ls(self, path: str = "", detail: bool = True) -> list[Any]:
        """List the documents, chunks and nodes one level below a path, as a file system of fsspec does.

        Raises KeyError if there are none.
        """
        path = path.strip("/")
        start = f"{path}/" if path else ""

        def is_member(name: str) -> bool:
            return name.startswith(start) and "/" not in name[len(start) :]

        entries = {
            name: _entry(name, len(value)) for name, value in self._documents.items() if is_member(name)
        }
        entries |= {name: _entry(name, None) for name in self.listdir() if is_member(name)}
        if path in self._shapes:
            for key, reference in self._chunks(path):
                size = len(reference) if isinstance(reference, bytes) else (*reference, 0, 0)[2]
                name = key if is_member(key) else start + key[len(start) :].partition("/")[0]
                entries[name] = _entry(name, size if name == key else None)
        if not entries:
            raise KeyError(path)
        listed = [entries[name] for name in sorted(entries)]
        return listed if detail else [entry["name"] for entry in listed]


def _entry(name: str, size: int | None) -> dict[str, Any]:
    """Return the entry of a file, or of a directory if the size is None."""
    return {"name": name, "type": "directory" if size is None else "file", "size": size or 0}


def _grid_shape(document: Any) -> tuple[int, ...]:
    """Return the number of chunks along each dimension; the single chunk of an array without dimensions has "0"."""
    try:
        pairs = zip(document["shape"], document["chunks"], strict=True)
        return tuple(math.ceil(length / chunk) for length, chunk in pairs) or (1,)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return (0,)  # The engine raises the error of the document when it reads it.
