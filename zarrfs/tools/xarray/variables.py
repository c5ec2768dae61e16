"""Lazy xarray variables of arrays, with the attributes and, except for texts in format 2, the encoding of xarray's own
Zarr engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from zarrfs.engine.array.array import Array
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.v2_codecs import filters_and_compressor
from zarrfs.libraries import import_library

__all__ = ["LazyArray", "make_variable", "named_dimensions", "visible_attributes"]

DIMENSIONS = "_ARRAY_DIMENSIONS"
FILL = "_FillValue"
TEXT_FILTER = "vlen-utf8"
NETCDF_PREFIX = "_nc"
"""The prefix (in any case) of NCZarr attributes, which describe the storage."""

STRING_TYPE = getattr(np.dtypes, "StringDType", None)
"""NumPy's variable-length string type, which zarr-python returns; None before NumPy 2."""


class LazyArray(BackendArray):
    """An array that is read when it is indexed. Only the chunks of the selection are read.

    ``values`` are the elements of a one-dimensional array that have been read already; None if they have not. They are
    kept until all of them have been requested at once: xarray then has them.
    """

    def __init__(self, array: Array, values: np.ndarray[Any, Any] | None = None) -> None:
        self._array = array  # xarray examines an attribute named array
        self.shape = array.shape
        text = array.spec.data_type.name == "string" and STRING_TYPE is not None
        self.dtype: np.dtype[Any] = STRING_TYPE() if text and STRING_TYPE is not None else array.dtype
        self._values = values

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        array, values = self._array, self._values
        read: Callable[[Any], Any]
        if isinstance(key, indexing.VectorizedIndexer):
            read = array.get_coordinate_selection
            support = indexing.IndexingSupport.VECTORIZED
        elif isinstance(key, indexing.OuterIndexer):
            read = array.get_orthogonal_selection
            support = indexing.IndexingSupport.OUTER
        else:
            read = array.get_basic_selection
            support = indexing.IndexingSupport.BASIC
        if values is not None:
            read = values.__getitem__
            if key.tuple in ((slice(None),), (slice(0, len(values), 1),)):
                self._values = None
        return indexing.explicit_indexing_adapter(
            key, array.shape, support, lambda raw: np.asarray(read(raw), self.dtype)
        )

    async def async_getitem(self, key: indexing.ExplicitIndexer) -> Any:
        """Return a selection, which is read on a thread: ``Dataset.load_async`` reads all variables at once."""
        return await asyncio.to_thread(self.__getitem__, key)


def named_dimensions(array: Array) -> tuple[str, ...] | None:
    """Return the dimension names; None if there are none. Those of a scalar are ``()``.

    A dimension without a name among named ones is ``ARRAY_dim_AXIS``, which no other array of a dataset has.
    """
    names = array.dimension_names or nczarr_dimensions(array)
    if names is None:
        return () if array.ndim == 0 else None
    if len(names) != array.ndim or (names and all(name is None for name in names)):
        return None
    own = array.path.rpartition("/")[2]
    return tuple(
        (f"{own}_dim_{axis}" if own else f"dim_{axis}") if name is None else str(name)
        for axis, name in enumerate(names)
    )


def nczarr_dimensions(array: Array) -> tuple[str, ...] | None:
    """Return the dimension names that netCDF-C writes: the last components of fully qualified names."""
    for holder, key in ((array.metadata, "_NCZARR_ARRAY"), (array.attrs, "_nczarr_array")):
        found = holder.get(key)
        names = (
            found.get("dimrefs", found.get("dimension_references")) if isinstance(found, Mapping) else None
        )
        if isinstance(names, list):
            return tuple(str(name).rpartition("/")[2] for name in names)
    return None


def visible_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without those by which NCZarr describes the storage."""
    return {key: value for key, value in attributes.items() if not key.lower().startswith(NETCDF_PREFIX)}


def make_variable(
    array: Array,
    dimensions: tuple[str, ...],
    mask: bool | None,
    values: np.ndarray[Any, Any] | None = None,
) -> Variable:
    """Return the variable of an array. ``mask``: whether the fill value is the missing value (None: by the
    convention of the format). ``values``: as in ``LazyArray``.
    """
    lazy = LazyArray(array, values)
    attributes = dict(array.attrs)
    features = formats.features(array.zarr_format)
    if not features.dimension_names:
        # Names and units of dimensions, which are lists, are not attributes of the variable. Its unit is a string.
        lists = (*features.name_attributes, *features.unit_attributes)
        attributes = {
            key: value
            for key, value in visible_attributes(attributes).items()
            if key != DIMENSIONS and not (key in lists and isinstance(value, list))
        }
    chunks = compact_chunks(array)
    encoding: dict[str, Any] = {
        "chunks": chunks,
        "preferred_chunks": dict(zip(dimensions, chunks, strict=True)),
        "shards": array.shards,
        **codec_encoding(array),
    }
    if lazy.dtype.kind == "T":
        encoding["dtype"] = lazy.dtype
    if features.fill_is_missing if mask is None else mask:
        if array.spec.fill_value is not None:
            attributes[FILL] = array.fill_value
    else:
        if features.fill_value and not features.fill_is_missing:
            encoding["fill_value"] = array.fill_value
        if FILL in attributes:
            attributes[FILL] = decoded_fill_value(attributes[FILL], lazy.dtype)
    return Variable(dimensions, indexing.LazilyIndexedArray(lazy), attributes, encoding)


def decoded_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Decode a missing value that xarray has stored in attributes. Other values are returned unchanged."""
    try:
        return FillValueCoder.decode(value, "string" if dtype.kind in "TO" else dtype)
    except (TypeError, ValueError):
        return value


def compact_chunks(array: Array) -> tuple[Any, ...]:
    """Return the chunk shape, with a tuple of lengths for each dimension in which they differ."""
    return tuple(
        side if isinstance(side, int) else side[0] if len(set(side)) == 1 else tuple(side)
        for side in array.chunks
    )


def codec_encoding(array: Array) -> dict[str, Any]:
    """Return the codecs as xarray's ``to_zarr`` accepts them: numcodecs objects in format 2, else JSON documents."""
    features = formats.features(array.zarr_format)
    if features.filters:
        filters, compressor = filters_and_compressor(array.spec)
        return {
            "compressors": () if compressor is None else (numcodecs_object(compressor),),
            # zarr-python adds the filter of texts itself. With this one xarray writes an array of texts of a fixed
            # length that nothing can decode.
            "filters": tuple(numcodecs_object(entry) for entry in filters if entry["id"] != TEXT_FILTER),
        }
    codecs = array.spec.codecs
    if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        codecs = codecs[0].codecs
    found: dict[str, Any] = {
        "compressors": tuple(codec_to_json(codec) for codec in codecs if isinstance(codec, BytesBytesCodec)),
        "filters": tuple(codec_to_json(codec) for codec in codecs if isinstance(codec, ArrayArrayCodec)),
    }
    for codec in codecs if features.codec_chain else ():
        if isinstance(codec, ArrayBytesCodec):
            found["serializer"] = codec_to_json(codec)
    return found


def numcodecs_object(document: Mapping[str, Any]) -> Any:
    """Return the numcodecs object of a document, or the document itself if numcodecs has no such codec."""
    try:
        return import_library("numcodecs").get_codec(dict(document))
    except (ValueError, TypeError, KeyError):
        return dict(document)
