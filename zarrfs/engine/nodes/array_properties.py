"""Properties of arrays that follow from their metadata, and conversion of single values to numbers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.formats.v2_codecs import chain_to_v2
from zarrfs.engine.nodes.summary import Info, complete_array_summary

if TYPE_CHECKING:
    from zarrfs.engine.io.storage import ArrayStorage
    from zarrfs.engine.model import ArraySpec

__all__ = ["ArrayProperties"]


class ArrayProperties:
    """What an array is, under the names of zarr-python. The base of ``Array``, which has the rest."""

    # -- shape -------------------------------------------------------------------------------------------------

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """The number of chunks in each dimension. Of an array with shards these are inner chunks."""
        sharding = self._current.sharding()
        if sharding is None:
            return self._current.grid_shape
        return tuple(-(-n // side) for n, side in zip(self._current.spec.shape, sharding[1], strict=True))

    @property
    def nchunks(self) -> int:
        """The number of chunks that the array can have. Of an array with shards these are inner chunks."""
        return prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """The number of chunks that are there; where there are shards, of inner chunks in shards that are there. Costs
        a listing of those.
        """
        sharding, shard = self._current.sharding(), self._current.chunk_shape
        if sharding is None or shard is None:
            return self.nshards_initialized
        # A shard at the end may overhang the array, by whole inner chunks.
        within = self.cdata_shape
        ratio = [outer // inner for outer, inner in zip(shard, sharding[1], strict=True)]
        return sum(
            prod(min(n, have - at * n) for at, n, have in zip(coords, ratio, within, strict=True))
            for coords in self._current.stored_chunks()
        )

    @property
    def nshards(self) -> int:
        """The number of objects that the array can have in the store: shards, or chunks where there are no shards."""
        return prod(self._current.grid_shape)

    @property
    def nshards_initialized(self) -> int:
        """The number of shards, or chunks where there are no shards, that are there. Costs a listing of those."""
        return sum(1 for _ in self._current.stored_chunks())

    # -- codecs ------------------------------------------------------------------------------------------------

    @property
    def compressors(self) -> tuple[Any, ...]:
        """The codecs that compress the bytes of a chunk, or of an inner chunk of a shard.

        In v2 the compressor as an object of numcodecs, in other formats objects with ``to_dict``. ``create_array``
        takes both.
        """
        if self._is_v2:
            compressor = _v2_codecs(self._current.spec)[1]
            return () if compressor is None else (compressor,)
        return tuple(codec for codec in self._inner_codecs if isinstance(codec, BytesBytesCodec))

    @property
    def compressor(self) -> Any:
        """The compressor of a v2 array as an object of numcodecs, or None. Raises TypeError for other formats."""
        if not self._is_v2:
            raise TypeError(
                f"an array of zarr_format {self._current.spec.zarr_format!r} has no compressor; use compressors"
            )
        return _v2_codecs(self._current.spec)[1]

    @property
    def filters(self) -> tuple[Any, ...]:
        """The codecs before the serializer: in v2 the filters as objects of numcodecs, in other formats objects with
        ``to_dict``.
        """
        if self._is_v2:
            return tuple(_v2_codecs(self._current.spec)[0])
        return tuple(codec for codec in self._inner_codecs if isinstance(codec, ArrayArrayCodec))

    @property
    def serializer(self) -> Any:
        """The codec that makes bytes of a chunk, or of an inner chunk of a shard; None in v2, which has none."""
        if self._is_v2:
            return None
        return next(codec for codec in self._inner_codecs if isinstance(codec, ArrayBytesCodec))

    @property
    def _is_v2(self) -> bool:
        return self._current.spec.zarr_format in (1, 2)

    @property
    def _inner_codecs(self) -> tuple[Codec, ...]:
        codecs = self._current.spec.codecs
        inner = getattr(codecs[0], "codecs", None) if len(codecs) == 1 else None
        return codecs if inner is None else tuple(inner)

    # -- values ------------------------------------------------------------------------------------------------

    @property
    def T(self) -> np.ndarray[Any, Any]:  # noqa: N802 - NumPy's name
        """The values with the dimensions in reverse order, as a NumPy array. Reads the whole array."""
        return np.asarray(self).T

    def info_complete(self) -> Info:
        """Return ``info``, and how much of the array is stored. Costs a listing."""
        return Info(complete_array_summary(self))  # type: ignore[arg-type]

    def _single(self, kind: str) -> Any:
        if prod(self._current.spec.shape) != 1:
            raise TypeError(
                f"only an array of one element can be converted to {kind}; this has {self._current.spec.shape}"
            )
        return np.asarray(self).reshape(())[()]

    def __float__(self) -> float:
        return float(self._single("float"))

    def __int__(self) -> int:
        return int(self._single("int"))

    def __complex__(self) -> complex:
        return complex(self._single("complex"))

    if TYPE_CHECKING:
        _spec: ArraySpec
        _storage: ArrayStorage

        @property
        def _current(self) -> ArrayStorage: ...


def _v2_codecs(spec: ArraySpec) -> tuple[list[Any], Any]:
    """Return filters and compressor of a v2 array as objects of numcodecs; as metadata where it has no such codec."""
    _, filters, compressor = chain_to_v2(spec.codecs)
    document = spec.document
    if document.get("zarr_format") == 2:
        filters, compressor = document.get("filters"), document.get("compressor")
    return [_numcodecs_codec(entry) for entry in filters or ()], (
        None if compressor is None else _numcodecs_codec(compressor)
    )


def _numcodecs_codec(entry: Any) -> Any:
    numcodecs = import_library("numcodecs")
    errors = import_library("numcodecs.errors")

    try:
        return numcodecs.get_codec(dict(entry))
    except errors.UnknownCodecError:
        return dict(entry)
