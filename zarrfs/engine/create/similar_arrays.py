"""Creation options that are taken from another array, for ``zeros_like``, ``from_array`` and copies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.chunks.chunk_key_encodings import V2Keys
from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.create.array_options import AUTOMATIC, ArrayOptions, described, engine_options
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.v2_codecs import chain_to_v2
from zarrfs.engine.indexing.axes import Axis
from zarrfs.engine.model import ArraySpec

__all__ = ["copy_values", "options_like", "spec_of"]

CHAIN = ("codecs", "filters", "serializer", "compressors")
"""The options that determine the codecs of an array."""

MAX_COMPARED_CHUNKS = 100_000
"""The maximum number of chunk lengths that are compared to find the largest."""

KEYS = ("chunk_key_encoding", "dimension_separator")
"""The options that determine the keys of chunks."""


def options_like(other: Any, explicit: Mapping[str, Any], *, keep: str = "keep") -> dict[str, Any]:
    """Return options for ``create_array`` that create an array like ``other``; ``explicit`` options take precedence.

    For a ``zarrfs.Array`` or an array of zarr-python these are all properties except attributes and values: shape, data
    type, chunks, shards, codecs, fill value, order, chunk keys, dimension names and units, and format. If ``explicit``
    has another format, only properties that exist in that format are included. For datasets of h5py they are shape,
    dtype, chunks and fill value, for Dask arrays shape, dtype and chunks, for NumPy arrays shape and dtype.

    An option with the value ``keep`` is treated as missing.
    """
    chosen = {
        name: value for name, value in explicit.items() if not (isinstance(value, str) and value == keep)
    }
    translated = engine_options(chosen)
    spec = spec_of(other)
    inherited = _options_of_array_like(other) if spec is None else _options_of_spec(spec, translated)
    known = described(ArrayOptions)
    for name, value in chosen.items():
        # "auto" selects the default, and filters=None no filters, instead of the value of the other array.
        if (isinstance(value, str) and value in AUTOMATIC) or (name == "filters" and value is None):
            inherited.pop(known[name].alias_of or name if name in known else name, None)
    if any(name in translated for name in CHAIN):
        _remove_replaced_codecs(inherited, translated)
    if any(name in translated for name in KEYS):
        for name in KEYS:
            inherited.pop(name, None)
    if "chunks" in translated and "shards" not in translated:
        inherited.pop("shards", None)
    return inherited | translated


def _remove_replaced_codecs(options: dict[str, Any], explicit: Mapping[str, Any]) -> None:
    """Remove the inherited codec options that the explicit options replace."""
    replaced = CHAIN if "codecs" in explicit else [name for name in CHAIN if name in explicit]
    for name in replaced:
        options.pop(name, None)


def spec_of(other: Any) -> ArraySpec | None:
    """Return the metadata of a ``zarrfs.Array`` or of an array of zarr-python; None for any other object."""
    if isinstance(other, Array):
        return other.spec
    metadata: Any = getattr(other, "metadata", None)
    if not type(other).__module__.startswith("zarr.") or not hasattr(metadata, "to_dict"):
        return None
    # Convert to JSON and back, because the dictionary may contain objects of zarr-python.
    document = json.loads(json.dumps(metadata.to_dict()))
    return formats.array_from_document(document, f"metadata of {other!r}")


def _options_of_array_like(other: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"shape": tuple(int(n) for n in other.shape), "dtype": other.dtype}
    chunks = getattr(other, "chunks", None)
    if isinstance(chunks, tuple):
        # Dask gives the lengths of all chunks of each dimension.
        options["chunks"] = tuple(max(side) if isinstance(side, tuple) else int(side) for side in chunks)
    fill_value = getattr(other, "fillvalue", None)
    if fill_value is not None and np.dtype(other.dtype).kind in "biufcSV":
        # h5py; for strings of variable length its value is not a value of the data type.
        options["fill_value"] = fill_value
    return options


def _options_of_spec(spec: ArraySpec, explicit: Mapping[str, Any]) -> dict[str, Any]:
    own = formats.writable_format(spec.zarr_format)
    target = explicit.get("zarr_format", own)
    features = formats.features(target)
    options: dict[str, Any] = {
        "shape": spec.shape,
        "dtype": spec.data_type,
        "fill_value": spec.fill_value,
        "zarr_format": own,
        "dimension_names": spec.dimension_names,
    }
    if features.dimension_units or target == own:
        options["dimension_units"] = spec.dimension_units
    codecs = list(spec.codecs)
    if isinstance(spec.chunk_grid, RegularGrid):
        options["chunks"] = spec.chunk_grid.chunk_shape
        sharding = codecs[0] if len(codecs) == 1 else None
        if isinstance(sharding, ShardingCodec):
            options["chunks"] = sharding.chunk_shape
            if features.sharding:
                shards = spec.chunk_grid.chunk_shape
                location = sharding.index_location
                options["shards"] = (
                    shards if location == "end" else {"shape": shards, "index_location": location}
                )
            codecs = list(sharding.codecs)
    elif target == own:
        options["chunks"] = spec.chunk_grid
    else:
        options["chunks"] = _largest_chunk(spec)
    if isinstance(options.get("chunks"), tuple):
        options["chunks"] = tuple(max(1, side) for side in options["chunks"])
    if features.filters:
        options |= _chain_for_v2(spec, codecs)
    else:
        options |= _chain(codecs, own == target)
        if own != target:
            options = {name: value for name, value in options.items() if name not in _unsupported(features)}
    if target == own and features.key_encodings:
        options["chunk_key_encoding"] = spec.chunk_key_encoding
    elif target == own and isinstance(spec.chunk_key_encoding, V2Keys):
        options["dimension_separator"] = spec.chunk_key_encoding.separator
    return options


def _largest_chunk(spec: ArraySpec) -> tuple[int, ...] | None:
    """Return the largest chunk length in each dimension, for formats whose chunks have one shape.

    None if there are more than MAX_COMPARED_CHUNKS lengths.
    """
    axes = [spec.chunk_grid.axis(i, length) for i, length in enumerate(spec.shape)]
    counts = [axis.find(axis.length - 1) + 1 if axis.length else 0 for axis in axes]
    if sum(counts) > MAX_COMPARED_CHUNKS:
        return None
    return tuple(
        max((axis.size(i) for i in range(count)), default=1) for axis, count in zip(axes, counts, strict=True)
    )


def _chain_for_v2(spec: ArraySpec, codecs: list[Codec]) -> dict[str, Any]:
    if formats.features(spec.zarr_format).filters:
        order, filters, compressor = chain_to_v2(codecs)
        return {"order": order, "filters": filters, "compressors": compressor}
    options = _chain([codec for codec in codecs if codec.name != "crc32c"], same_format=False)
    compressors = options.pop("compressors")
    options["filters"] = [*(options.get("filters") or ()), *compressors[:-1]]
    return {**options, "compressors": compressors[-1:] or None}


def _chain(codecs: list[Codec], same_format: bool) -> dict[str, Any]:
    """Return codecs as the options ``filters``, ``serializer`` and ``compressors``.

    A first filter that reverses the dimensions becomes ``order="F"``. The serializer is omitted for another format.
    """
    options: dict[str, Any] = {}
    filters = [codec for codec in codecs if isinstance(codec, ArrayArrayCodec)]
    if filters and _reverses(filters[0]):
        options["order"] = "F"
        del filters[0]
    options["filters"] = [codec_to_json(codec) for codec in filters]
    if same_format:
        options["serializer"] = next(codec_to_json(c) for c in codecs if isinstance(c, ArrayBytesCodec))
    options["compressors"] = [codec_to_json(codec) for codec in codecs if isinstance(codec, BytesBytesCodec)]
    return options


def _unsupported(features: FormatFeatures) -> list[str]:
    """Return the options for the encoding of chunks that a format does not have. They do not change the values."""
    supported = {"filters": features.codec_chain, "order": features.memory_order}
    return [name for name, is_supported in supported.items() if not is_supported]


def _reverses(codec: Codec) -> bool:
    return isinstance(codec, TransposeCodec) and codec.order == tuple(range(len(codec.order)))[::-1]


# -- values ----------------------------------------------------------------------------------------------------


def copy_values(source: Any, target: Array) -> None:
    """Copy the values of an array of the same shape, one stored chunk of the target at a time.

    Neither array is in memory as a whole.
    """
    if isinstance(source, np.ndarray) or not target.shape:
        target[...] = source[...] if target.shape else np.asarray(source)[()]
        return
    grid = target.spec.chunk_grid
    for region in product(*(_chunk_slices(grid.axis(i, n)) for i, n in enumerate(target.shape))):
        target[region] = source[region]


def _chunk_slices(axis: Axis) -> Iterator[slice]:
    """Yield the range of each chunk along a dimension."""
    start = 0
    while start < axis.length:
        size = axis.size(axis.find(start))
        yield slice(start, min(start + size, axis.length))
        start += size
