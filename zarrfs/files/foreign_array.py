"""Arrays of other formats, whose chunks are encoded as Zarr v3 when they are read."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.engine.codecs.base import ChunkSpec
from zarrfs.engine.codecs.pipeline.pipeline import CodecPipeline
from zarrfs.engine.create.array_spec import array_spec, data_type_of_option
from zarrfs.engine.dtypes import default_fill, fill_to_v3
from zarrfs.engine.formats.api import check_writable, write_node
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import UnsupportedError

__all__ = ["MAX_CHUNK_NBYTES", "EncodedForeignArray", "ForeignArray", "is_presentable", "plane_chunks"]

Region = tuple[slice, ...]
"""One slice with start and stop per dimension, inside of the shape."""

MAX_CHUNK_NBYTES = 1 << 26
"""Chunks of the file that are larger are divided."""

CHUNK_NBYTES = 1 << 19
"""The approximate size of the chunks of files that have none."""

MAX_LISTED_CHUNKS = 10_000_000
"""The keys of more chunks are not listed. A small file can declare any number of chunks."""


@dataclass(frozen=True)
class ForeignArray:
    """An array of numbers of another format.

    ``read`` returns the values of a region with the data type ``dtype``; it is called from several threads at once.
    ``stored`` returns the coordinates of the chunks that the file contains; the others are ``fill_value``, or 0 if that
    is None. None: it contains all. ``stamp`` returns the version of the file that contains a chunk; None: that of the
    store. Arrays with other elements are an ``EncodedForeignArray``.
    """

    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[Region], npt.NDArray[Any]]
    names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    stored: Callable[[], Iterator[tuple[int, ...]]] | None = None
    fill_value: Any = None
    stamp: Callable[[Sequence[int]], Hashable] | None = None

    def document(self) -> dict[str, Any]:
        """Return the metadata document of the array. See the Zarr v3 core specification, "Array metadata"."""
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
    def chunk_nbytes(self) -> int | None:
        """The size of each chunk in bytes. None: it depends on the values."""
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
        """Return the bytes of a chunk. One at the edge is filled up with zeros or empty texts."""
        region = tuple(
            slice(number * chunk, min((number + 1) * chunk, length))
            for number, chunk, length in zip(coordinates, self.chunks, self.shape, strict=True)
        )
        values = self.read(region)
        dtype = self._encoded_type
        if values.shape != self.chunks:
            whole = np.full(self.chunks, "", object) if dtype.hasobject else np.zeros(self.chunks, dtype)
            whole[tuple(slice(0, part.stop - part.start) for part in region)] = values
            values = whole
        # ascontiguousarray would add a dimension to a scalar
        return self._encode(np.asarray(values, dtype, order="C"))

    @property
    def _encoded_type(self) -> np.dtype[Any]:
        """The data type of the values that ``_encode`` accepts."""
        return self.dtype.newbyteorder("<")

    def _encode(self, values: npt.NDArray[Any]) -> bytes:
        return values.tobytes()


@dataclass(frozen=True)
class EncodedForeignArray(ForeignArray):
    """An array of another format whose elements are not numbers: bytes of a fixed length, records, or texts.

    ``dtype`` is ``object`` for texts. The codecs are those with which zarrfs creates an array of this data type.
    """

    @cached_property
    def _spec(self) -> ArraySpec:
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
        """Raise MetadataError or UnsupportedError if Zarr v3 has no data type for the elements."""
        check_writable(self._spec)

    def document(self) -> dict[str, Any]:
        """Return the metadata document of the array, as zarrfs writes it."""
        written = MemoryStore()
        write_node(written, "", self._spec)
        described: dict[str, Any] = json.loads(bytes(written.get("zarr.json") or b""))
        return described

    @property
    def chunk_nbytes(self) -> int | None:
        """The size of each chunk in bytes. None: it depends on the texts."""
        return None if self.dtype.hasobject else super().chunk_nbytes

    @property
    def _encoded_type(self) -> np.dtype[Any]:
        return self._spec.data_type.numpy

    def _encode(self, values: npt.NDArray[Any]) -> bytes:
        return bytes(self._pipeline.encoder.encode(values, keep_filled=True))


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
