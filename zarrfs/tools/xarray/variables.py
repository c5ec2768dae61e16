"""An array as a lazy variable of xarray, with the attributes and the encoding that xarray's own Zarr engine gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xarray import Variable
from xarray.backends import BackendArray
from xarray.backends.zarr import FillValueCoder
from xarray.core import indexing

from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.nodes.array import Array

__all__ = ["LazyArray", "make_variable", "named_dimensions", "visible_attributes"]

DIMENSIONS = "_ARRAY_DIMENSIONS"
FILL = "_FillValue"
NETCDF_PREFIX = "_nc"
"""Attributes of NCZarr, which describe the storage, begin with this in any case of letters."""

STRING_TYPE = getattr(np.dtypes, "StringDType", None)
"""NumPy's type for text of any length, which zarr-python returns; from NumPy 2 on."""


class LazyArray(BackendArray):
    """An array that is read when it is indexed, and no more of it than is needed."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.shape = array.shape
        text = array.spec.data_type.name == "string" and STRING_TYPE is not None
        self.dtype: np.dtype[Any] = STRING_TYPE() if text and STRING_TYPE is not None else array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        array = self.array
        if isinstance(key, indexing.VectorizedIndexer):
            read = array.get_coordinate_selection
            support = indexing.IndexingSupport.VECTORIZED
        elif isinstance(key, indexing.OuterIndexer):
            read = array.get_orthogonal_selection
            support = indexing.IndexingSupport.OUTER
        else:
            read = array.get_basic_selection
            support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(
            key, array.shape, support, lambda raw: np.asarray(read(raw), self.dtype)
        )


def named_dimensions(array: Array) -> tuple[str, ...] | None:
    """Return the names of the dimensions; None if one of them has none. A scalar has no dimensions to name."""
    names = array.dimension_names or nczarr_dimensions(array)
    if names is None:
        return () if array.ndim == 0 else None
    if len(names) != array.ndim or any(name is None for name in names):
        return None
    return tuple(str(name) for name in names)


def nczarr_dimensions(array: Array) -> tuple[str, ...] | None:
    """Return the names that netCDF-C writes: the last parts of fully qualified names."""
    for holder, key in ((array.metadata, "_NCZARR_ARRAY"), (array.attrs, "_nczarr_array")):
        found = holder.get(key)
        names = (
            found.get("dimrefs", found.get("dimension_references")) if isinstance(found, Mapping) else None
        )
        if isinstance(names, list):
            return tuple(str(name).rpartition("/")[2] for name in names)
    return None


def visible_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without those of NCZarr that describe the storage."""
    return {key: value for key, value in attributes.items() if not key.lower().startswith(NETCDF_PREFIX)}


def make_variable(array: Array, dimensions: tuple[str, ...], mask: bool | None) -> Variable:
    """Return an array as a variable; ``mask`` says whether its fill value means missing (None: in version 2 only)."""
    lazy = LazyArray(array)
    attributes = dict(array.attrs)
    if array.zarr_format == 2:
        attributes = {
            key: value for key, value in visible_attributes(attributes).items() if key != DIMENSIONS
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
    if array.zarr_format == 2 if mask is None else mask:
        if array.spec.fill_value is not None:
            attributes[FILL] = array.fill_value
    else:
        if array.zarr_format == 3:
            encoding["fill_value"] = array.fill_value
        if FILL in attributes:
            attributes[FILL] = decoded_fill_value(attributes[FILL], lazy.dtype)
    return Variable(dimensions, indexing.LazilyIndexedArray(lazy), attributes, encoding)


def decoded_fill_value(value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a missing value as xarray stores it in attributes; one that is stored otherwise is returned as it is."""
    try:
        return FillValueCoder.decode(value, "string" if dtype.kind in "TO" else dtype)
    except (TypeError, ValueError):
        return value


def compact_chunks(array: Array) -> tuple[Any, ...]:
    """Return the chunk shape, with a tuple of lengths for a dimension whose chunks differ."""
    return tuple(
        side if isinstance(side, int) else side[0] if len(set(side)) == 1 else tuple(side)
        for side in array.chunks
    )


def codec_encoding(array: Array) -> dict[str, Any]:
    """Return the codecs as ``to_zarr`` of xarray takes them: objects of numcodecs in version 2, else JSON documents."""
    if array.zarr_format == 2:
        document = array.metadata
        compressor, filters = document.get("compressor"), document.get("filters")
        return {
            "compressors": () if compressor is None else (numcodecs_object(compressor),),
            "filters": tuple(numcodecs_object(entry) for entry in filters or ()),
        }
    codecs = array.spec.codecs
    if len(codecs) == 1 and isinstance(codecs[0], ShardingCodec):
        codecs = codecs[0].codecs
    found: dict[str, Any] = {
        "compressors": tuple(codec_to_json(codec) for codec in codecs if isinstance(codec, BytesBytesCodec)),
        "filters": tuple(codec_to_json(codec) for codec in codecs if isinstance(codec, ArrayArrayCodec)),
    }
    for codec in codecs if array.zarr_format == 3 else ():
        if isinstance(codec, ArrayBytesCodec):
            found["serializer"] = codec_to_json(codec)
    return found


def numcodecs_object(document: Mapping[str, Any]) -> Any:
    """Return the codec of a document, or the document itself for one that numcodecs does not know."""
    try:
        return import_library("numcodecs").get_codec(dict(document))
    except (ValueError, TypeError, KeyError):
        return dict(document)
