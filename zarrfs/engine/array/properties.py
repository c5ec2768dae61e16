"""Properties of arrays that follow from their metadata, and conversion of single values to numbers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v2_codecs import filters_and_compressor
from zarrfs.engine.hierarchy.summary import Info, complete_array_summary
from zarrfs.libraries import import_library

if TYPE_CHECKING:
    from zarrfs.engine.array_context import ArrayContext
    from zarrfs.engine.model import ArraySpec

__all__ = ["ArrayProperties"]


class ArrayProperties:
    """The properties of an array that follow from its metadata, under the names of zarr-python.

    A base class of ``Array``.
    """

    # -- shape and data type -----------------------------------------------------------------------------------

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of arrays that reading returns; object for variable-length elements."""
        return self._storage.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of one element in memory in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in memory in bytes; of the references only, for variable-length elements."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """The chunk shape; the inner chunk shape, if the array is sharded.

        If the chunks of the grid have different shapes, a tuple of chunk lengths for each dimension.
        """
        storage = self._current_storage
        sharding = storage.sharding()
        if sharding is not None:
            return sharding[1]
        if storage.chunk_shape is not None:
            return storage.chunk_shape
        return tuple(
            tuple(axis.size(i) for i in range(n))
            for axis, n in zip(storage.axes, storage.grid_shape, strict=True)
        )

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shard shape, or None if the array is not sharded."""
        return self._storage.chunk_shape if self._storage.sharding() is not None else None

    @property
    def fill_value(self) -> Any:
        """The value of elements of missing chunks; None if the metadata do not define it."""
        return self._spec.fill_value

    @property
    def order(self) -> Literal["C", "F"]:
        """The memory order of the elements in an encoded chunk."""
        return self._spec.order

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The name of each dimension, None for an unnamed one; None if no dimension has a name."""
        return self._current_storage.spec.dimension_names

    @property
    def dimension_units(self) -> tuple[str | None, ...] | None:
        """The unit of each dimension, such as ``"4 nm"``, None for one without a unit; None if there are no units."""
        return self._current_storage.spec.dimension_units

    @property
    def cdata_shape(self) -> tuple[int, ...]:
        """The number of chunks in each dimension; of inner chunks, if the array is sharded."""
        sharding = self._current_storage.sharding()
        if sharding is None:
            return self._current_storage.grid_shape
        return tuple(
            -(-n // chunk) for n, chunk in zip(self._current_storage.spec.shape, sharding[1], strict=True)
        )

    @property
    def nchunks(self) -> int:
        """The number of chunks in the grid; of inner chunks, if the array is sharded."""
        return prod(self.cdata_shape)

    @property
    def nchunks_initialized(self) -> int:
        """The number of stored chunks. Lists the keys of the array.

        If the array is sharded, the number of inner chunks in the stored shards, missing inner chunks included.
        """
        storage = self._current_storage
        sharding = storage.sharding()
        if sharding is None:
            return self.nshards_initialized
        axes, shape, inner_shape = storage.axes, storage.spec.shape, sharding[1]

        def count(dimension: int, index: int) -> int:
            # A shard at the end of the array may have inner chunks that are entirely outside the array.
            begin, size = axes[dimension].begin(index), axes[dimension].size(index)
            return -(-min(size, shape[dimension] - begin) // inner_shape[dimension])

        return sum(
            prod(count(dimension, index) for dimension, index in enumerate(chunk_coords))
            for chunk_coords in storage.stored_chunks()
        )

    @property
    def nshards(self) -> int:
        """The number of shards in the grid; of chunks, if the array is not sharded."""
        return prod(self._current_storage.grid_shape)

    @property
    def nshards_initialized(self) -> int:
        """The number of stored shards; of stored chunks, if the array is not sharded. Lists the keys of the array."""
        return sum(1 for _ in self._current_storage.stored_chunks())

    # -- codecs ------------------------------------------------------------------------------------------------

    @property
    def compressors(self) -> tuple[Any, ...]:
        """The bytes->bytes codecs of a chunk; of an inner chunk, if the array is sharded.

        For format 2 the compressor as a numcodecs object, for other formats codec objects with ``to_dict``.
        ``create_array`` accepts both.
        """
        if self._has_filters:
            compressor = _v2_codecs(self._current_storage.spec)[1]
            return () if compressor is None else (compressor,)
        return tuple(codec for codec in self._inner_codecs if isinstance(codec, BytesBytesCodec))

    @property
    def compressor(self) -> Any:
        """The compressor of an array of format 2 as a numcodecs object, or None. Raises TypeError for other formats."""
        if not self._has_filters:
            raise TypeError(
                f"an array of zarr_format {self._current_storage.spec.zarr_format!r} has no compressor; use compressors"
            )
        return _v2_codecs(self._current_storage.spec)[1]

    @property
    def filters(self) -> tuple[Any, ...]:
        """The array->array codecs: for format 2 the filters as numcodecs objects, for other formats codec objects with
        ``to_dict``.
        """
        if self._has_filters:
            return tuple(_v2_codecs(self._current_storage.spec)[0])
        return tuple(codec for codec in self._inner_codecs if isinstance(codec, ArrayArrayCodec))

    @property
    def serializer(self) -> Any:
        """The array->bytes codec of a chunk; of an inner chunk, if the array is sharded. None for format 2."""
        if self._has_filters:
            return None
        return next(codec for codec in self._inner_codecs if isinstance(codec, ArrayBytesCodec))

    @property
    def _has_filters(self) -> bool:
        return formats.features(self._current_storage.spec.zarr_format).filters

    @property
    def _inner_codecs(self) -> tuple[Codec, ...]:
        codecs = self._current_storage.spec.codecs
        inner = getattr(codecs[0], "codecs", None) if len(codecs) == 1 else None
        return codecs if inner is None else tuple(inner)

    # -- values ------------------------------------------------------------------------------------------------

    @property
    def T(self) -> np.ndarray[Any, Any]:  # noqa: N802 - NumPy's name
        """The transposed array as a NumPy array. Reads the whole array."""
        return np.asarray(self).T

    def info_complete(self) -> Info:
        """Return ``info`` with the stored size and the number of stored chunks. Lists the keys of the array."""
        return Info(complete_array_summary(self))  # type: ignore[arg-type]

    def _single(self, kind: str) -> Any:
        if prod(self._current_storage.spec.shape) != 1:
            raise TypeError(
                f"only an array of one element can be converted to {kind}; this one has the shape "
                f"{self._current_storage.spec.shape}"
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
        _storage: ArrayContext

        @property
        def _current_storage(self) -> ArrayContext: ...
        @property
        def shape(self) -> tuple[int, ...]: ...


def _v2_codecs(spec: ArraySpec) -> tuple[list[Any], Any]:
    """Return the filters and the compressor of an array of format 2 as numcodecs objects.

    A codec that numcodecs does not have, or not with these parameters, is returned as its metadata, a dictionary.
    """
    filters, compressor = filters_and_compressor(spec)
    return [_numcodecs_codec(entry) for entry in filters], (
        None if compressor is None else _numcodecs_codec(compressor)
    )


def _numcodecs_codec(entry: Any) -> Any:
    numcodecs = import_library("numcodecs")
    try:
        return numcodecs.get_codec(dict(entry))
    except Exception:  # reading does not need all parameters, and each class checks its own
        return dict(entry)
