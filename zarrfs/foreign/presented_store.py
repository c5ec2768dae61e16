"""A read-only store that presents arrays of another format as a Zarr v3 hierarchy.

The documents are generated. A chunk is read from the file when its key is requested, so that the engine, its cache and
the viewer need no other path for these files.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.codecs.base import ChunkSpec
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.creation.array_spec import array_spec, data_type_of_option
from zarrfs.engine.dtypes import default_fill, fill_to_v3
from zarrfs.engine.formats.api import check_writable, write_node
from zarrfs.engine.formats.paths import join
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Buffer, Listing, Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError, UnsupportedError, ZarrError

__all__ = ["MAX_CHUNK_NBYTES", "PresentedArray", "PresentedStore", "is_presentable", "plane_chunks"]

Region = tuple[slice, ...]
"""One slice with start and stop per dimension, inside of the shape."""

MAX_CHUNK_NBYTES = 1 << 26
"""Chunks of the file that are larger are divided."""

CHUNK_NBYTES = 1 << 19
"""The approximate size of the chunks of files that have none."""

MAX_LISTED_CHUNKS = 10_000_000
"""The keys of more chunks are not listed. A small file can declare any number of chunks."""

MAX_KEPT_NBYTES = 1 << 25
"""The bytes of chunks that are kept, because the engine reads ranges of a chunk one after the other."""


@dataclass(frozen=True)
class PresentedArray:
    """An array of a file.

    ``read`` returns the values of a region with the data type ``dtype``; it is called from several threads at once.
    ``stored`` returns the coordinates of the chunks that the file contains; the others are ``fill_value``, or 0 if that
    is None. None: it contains all. ``dtype`` can also be that of bytes of a fixed length or of records, or ``object``
    for texts.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[Region], npt.NDArray[Any]]
    names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    stored: Callable[[], Iterator[tuple[int, ...]]] | None = None
    fill_value: Any = None

    @cached_property
    def _spec(self) -> ArraySpec:
        """The metadata of an array whose elements are not numbers."""
        return array_spec(
            shape=self.shape,
            dtype="string" if self.dtype.hasobject else self.dtype,
            chunks=self.chunks,
            compressors=None,
            attributes=self.attributes,
            dimension_names=self.names,
        )

    @cached_property
    def _pipeline(self) -> CodecPipeline:
        spec = self._spec
        return CodecPipeline(
            spec.codecs, ChunkSpec(self.chunks, spec.data_type.numpy, default_fill(spec.data_type))
        )

    def check(self) -> None:
        """Raise UnsupportedError if Zarr v3 has no data type for the elements."""
        if not is_presentable(self.dtype):
            check_writable(self._spec)

    def document(self) -> dict[str, Any]:
        """Return the metadata document of the array. See the Zarr v3 core specification, "Array metadata"."""
        if not is_presentable(self.dtype):
            written = MemoryStore()
            write_node(written, "", self._spec)
            described: dict[str, Any] = json.loads(bytes(written.get("zarr.json") or b""))
            return described
        zero: Any = False if self.dtype.kind == "b" else [0.0, 0.0] if self.dtype.kind == "c" else 0
        document: dict[str, Any] = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.chunks)}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": zero
            if self.fill_value is None
            else fill_to_v3(data_type_of_option(self.dtype.newbyteorder("=")), self.fill_value),
            "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
            "attributes": dict(self.attributes),
        }
        if self.names is not None:
            document["dimension_names"] = list(self.names)
        return document

    @property
    def grid(self) -> tuple[int, ...]:
        """The number of chunks along each dimension."""
        return tuple(-(-length // chunk) for length, chunk in zip(self.shape, self.chunks, strict=True))

    @property
    def chunk_nbytes(self) -> int:
        """The size of each chunk in bytes."""
        return math.prod(self.chunks) * self.dtype.itemsize

    def listed(self) -> Iterator[tuple[int, ...]]:
        """Yield the coordinates of the chunks that the file contains. Raises UnsupportedError if they are too many."""
        if self.stored is not None:
            yield from self.stored()
            return
        count = math.prod(self.grid)
        if count > MAX_LISTED_CHUNKS:
            raise UnsupportedError(
                f"the shape {self.shape} has {count:,} chunks; at most {MAX_LISTED_CHUNKS:,} are listed"
            )
        if count:
            yield from itertools.product(*map(range, self.grid))

    def chunk(self, coordinates: Sequence[int]) -> bytes:
        """Return the bytes of a chunk. One at the edge is filled up with zeros."""
        region = tuple(
            slice(number * chunk, min((number + 1) * chunk, length))
            for number, chunk, length in zip(coordinates, self.chunks, self.shape, strict=True)
        )
        values = self.read(region)
        is_plain = is_presentable(self.dtype)
        dtype = self.dtype.newbyteorder("<") if is_plain else self._spec.data_type.numpy
        if values.shape != self.chunks:
            whole = np.full(self.chunks, "", object) if dtype.hasobject else np.zeros(self.chunks, dtype)
            whole[tuple(slice(0, part.stop - part.start) for part in region)] = values
            values = whole
        if is_plain:
            return np.ascontiguousarray(values, dtype).tobytes()
        # ascontiguousarray would add a dimension to a scalar
        return bytes(self._pipeline.encoder.encode(np.asarray(values, dtype, order="C"), keep_filled=True))


def is_presentable(dtype: np.dtype[Any]) -> bool:
    """Return whether a data type has a core data type of Zarr v3 with numbers."""
    return dtype.kind in "biufc" and dtype.itemsize <= 16 and dtype.name not in ("float128", "longdouble")


def plane_chunks(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return chunks of whole rows of one plane, which are contiguous in a file in C order."""
    if not shape:
        return ()
    if len(shape) == 1:
        return (max(1, min(shape[0], CHUNK_NBYTES // itemsize)),)
    row_nbytes = max(1, shape[-1] * itemsize)
    rows = max(1, min(shape[-2], CHUNK_NBYTES // row_nbytes))
    columns = max(1, min(shape[-1], MAX_CHUNK_NBYTES // itemsize))
    return (*(1 for _ in shape[:-2]), rows, columns)


class PresentedStore(Store):
    """The arrays and groups of a file.

    ``nodes`` are arrays by path, and the attributes of groups; groups between them are added. An error instead is
    raised when the metadata of that node are read. ``stamp`` returns the version of the file; ``close_file`` is called
    once.
    """

    read_only = True

    def __init__(
        self,
        url: str,
        nodes: Mapping[str, PresentedArray | Mapping[str, Any] | ZarrError],
        stamp: Callable[[], Hashable | None],
        close_file: Callable[[], None],
    ) -> None:
        self._url = url
        self._stamp = stamp
        # Nodes refer to the store, and nobody closes it while they are in use: the last reference closes the file.
        self._finalizer = weakref.finalize(self, close_file)
        self._arrays = {path: node for path, node in nodes.items() if isinstance(node, PresentedArray)}
        self._documents: dict[str, bytes] = {}
        self._errors = {
            join(path, "zarr.json"): node for path, node in nodes.items() if isinstance(node, ZarrError)
        }
        groups = {path: dict(node) for path, node in nodes.items() if isinstance(node, Mapping)}
        for path in [*nodes]:
            while path:
                path = path.rpartition("/")[0]
                groups.setdefault(path, {})
        for path, attributes in groups.items():
            if path not in self._arrays:
                document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
                self._documents[join(path, "zarr.json")] = _encoded(document, url)
        for path, array in self._arrays.items():
            self._documents[join(path, "zarr.json")] = _encoded(array.document(), url)
        self._children: dict[str, set[str]] = {}
        for path in dict.fromkeys((*groups, *nodes)):
            if path:
                parent, _, name = path.rpartition("/")
                self._children.setdefault(parent, set()).add(name)
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._kept_nbytes = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._url

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        document = self._document(key)
        if document is not None:
            return document
        found = self._find_chunk(key)
        if found is None:
            return None
        version = key, self._stamp()
        with self._lock:
            kept = self._kept.get(version)
        return kept if kept is not None else self._read(key, version, *found)

    def _document(self, key: str) -> bytes | None:
        """Return the document with this key, or None if the key is not that of a document."""
        error = self._errors.get(key)
        if error is not None:
            raise type(error)(*error.args) from error
        return self._documents.get(key)

    def _read(
        self, key: str, version: Hashable, array: PresentedArray, coordinates: tuple[int, ...]
    ) -> bytes:
        try:
            value = array.chunk(coordinates)
        except ZarrError:
            raise
        except OSError as error:
            raise StoreError(
                f"{self._url}: {key} cannot be read: {error.strerror or error}", error.errno
            ) from error
        except Exception as error:  # the libraries raise errors of many kinds for damaged files
            raise StoreError(f"{self._url}: {key} cannot be read: {error}") from error
        with self._lock:
            if version not in self._kept and len(value) <= MAX_KEPT_NBYTES:
                self._kept[version] = value
                self._kept_nbytes += len(value)
                while self._kept_nbytes > MAX_KEPT_NBYTES:
                    self._kept_nbytes -= len(self._kept.popitem(last=False)[1])
        return value

    def _find_chunk(self, key: str) -> tuple[PresentedArray, tuple[int, ...]] | None:
        """Return the array and the chunk coordinates of a key, or None if it is not the key of a chunk."""
        match = re.fullmatch(r"(?:(.*)/)?c((?:/\d{1,18})*)", key)
        array = None if match is None else self._arrays.get(match[1] or "")
        if match is None or array is None:
            return None
        coordinates = tuple(int(part) for part in match[2].split("/")[1:])
        if len(coordinates) != len(array.shape) or any(
            number >= count for number, count in zip(coordinates, array.grid, strict=True)
        ):
            return None
        return array, coordinates

    def size(self, key: str) -> int | None:
        self._check_open()
        document = self._document(key)
        if document is not None:
            return len(document)
        found = self._find_chunk(key)
        if found is None:
            return None
        if found[0].dtype.hasobject:
            return len(memoryview(self.get(key) or b""))
        return found[0].chunk_nbytes

    def stamp(self, key: str) -> Hashable | None:
        return None if self.size(key) is None else self._stamp()

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        name = join(prefix, "zarr.json")
        keys = ["zarr.json"] if name in self._documents or name in self._errors else []
        prefixes = sorted(self._children.get(prefix, ()))
        array = self._arrays.get(prefix)
        if array is not None:
            prefixes = sorted({*prefixes, "c"}) if array.shape else prefixes
            return Listing(keys if array.shape else ["c", *keys], prefixes)
        if not keys:  # a directory of chunks
            names = {key[len(prefix) + 1 :].partition("/")[::2] for key in self.list_prefix(prefix)}
            return Listing(
                sorted(name for name, rest in names if not rest), sorted({n for n, rest in names if rest})
            )
        return Listing(keys, prefixes)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = f"{prefix}/" if prefix else ""
        for key in (*self._documents, *self._errors):
            if key.startswith(start):
                yield key
        for path, array in self._arrays.items():
            base = join(path, "c")
            if not (base.startswith(start) or start.startswith(f"{base}/")):
                continue
            for coordinates in self._listed(path, array):
                key = "/".join((base, *map(str, coordinates)))
                if key.startswith(start):
                    yield key

    def _listed(self, path: str, array: PresentedArray) -> Iterator[tuple[int, ...]]:
        try:
            yield from array.listed()
        except (OSError, RuntimeError, ValueError, UnsupportedError) as error:
            raise StoreError(f"{self._url}: the chunks of {path or '/'} cannot be listed: {error}") from error

    def close(self) -> None:
        if not self._closed:
            super().close()
            with self._lock:
                self._kept.clear()
                self._kept_nbytes = 0
            self._finalizer()


def _encoded(document: Mapping[str, Any], url: str) -> bytes:
    try:
        return json.dumps(document, allow_nan=True).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise ZarrError(f"{url}: the metadata cannot be presented: {error}") from error
