"""The options that create an array like another one: for ``zeros_like``, ``from_array`` and copies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from zarrfs.engine.chunking.chunk_grids import RegularGrid
from zarrfs.engine.chunking.chunk_key_encodings import V2Keys
from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.creation.array_options import AUTOMATIC, engine_options
from zarrfs.engine.formats import v2, v3
from zarrfs.engine.formats.v2_codecs import chain_to_v2
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes.array import Array

__all__ = ["copy_values", "options_like", "spec_of"]

CHAIN = ("codecs", "filters", "serializer", "compressors")
"""Options that are the codecs of an array."""

MAX_COMPARED_CHUNKS = 100_000
"""The number of chunk lengths that are compared to find the largest."""

KEYS = ("chunk_key_encoding", "dimension_separator")
"""Options that say how the keys of chunks are made."""


def options_like(other: Any, given: Mapping[str, Any], *, keep: str = "keep") -> dict[str, Any]:
    """Return options for ``create_array`` that make an array like another one, unless ``given`` says otherwise.

    Of an array of this package or of zarr-python everything but attributes and values is kept: shape, data type,
    chunks, shards, codecs, fill value, order, chunk keys, names and units of dimensions, format. In another format
    what that format has. Of other arrays (h5py, Dask) shape, dtype and chunks are kept, of NumPy's shape and dtype.

    An option that is given as ``"keep"`` counts as not given.
    """
    chosen = {name: value for name, value in given.items() if not (isinstance(value, str) and value == keep)}
    wanted = engine_options(chosen)
    spec = spec_of(other)
    found = _of_any(other) if spec is None else _of_spec(spec, wanted)
    for name, value in chosen.items():
        # "auto" asks for the default, and filters=None for none: neither for what the other array has.
        if (isinstance(value, str) and value in AUTOMATIC) or (name == "filters" and value is None):
            found.pop(_ours(name), None)
    if any(name in wanted for name in CHAIN):
        _replace_codecs(found, wanted)
    if any(name in wanted for name in KEYS):
        for name in KEYS:
            found.pop(name, None)
    if "chunks" in wanted and "shards" not in wanted:
        found.pop("shards", None)
    return found | wanted


def _ours(name: str) -> str:
    return {"compressor": "compressors", "chunk_shape": "chunks"}.get(name, name)


def _replace_codecs(found: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    """Leave of the codecs of the other array those that go with the ones that are given."""
    if "codecs" in wanted:
        for name in CHAIN:
            found.pop(name, None)
        return
    for name in CHAIN:
        if name in wanted:
            found.pop(name, None)


def spec_of(other: Any) -> ArraySpec | None:
    """Return the metadata of an array of this package or of zarr-python; None for any other."""
    if isinstance(other, Array):
        return other.spec
    metadata: Any = getattr(other, "metadata", None)
    if not type(other).__module__.startswith("zarr.") or not hasattr(metadata, "to_dict"):
        return None
    # Through JSON, as it would be stored: the dictionary may hold objects of zarr-python.
    document = json.loads(json.dumps(metadata.to_dict()))
    where = f"metadata of {other!r}"
    if document.get("zarr_format") == 2:
        attributes = document.pop("attributes", {})
        return v2.parse_array(document, attributes, where)
    return v3.parse_array(document, where)


def _of_any(other: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"shape": tuple(int(n) for n in other.shape), "dtype": other.dtype}
    chunks = getattr(other, "chunks", None)
    if isinstance(chunks, tuple):
        # Dask gives all lengths of each dimension.
        found["chunks"] = tuple(max(side) if isinstance(side, tuple) else int(side) for side in chunks)
    return found


def _of_spec(spec: ArraySpec, wanted: Mapping[str, Any]) -> dict[str, Any]:
    own = 2 if spec.zarr_format == 1 else spec.zarr_format
    target = wanted.get("zarr_format", own)
    found: dict[str, Any] = {
        "shape": spec.shape,
        "dtype": spec.data_type,
        "fill_value": spec.fill_value,
        "zarr_format": own,
        "dimension_names": spec.dimension_names,
    }
    if target == 3 or target == own:
        found["dimension_units"] = spec.dimension_units
    codecs = list(spec.codecs)
    if isinstance(spec.chunk_grid, RegularGrid):
        found["chunks"] = spec.chunk_grid.chunk_shape
        sharding = codecs[0] if len(codecs) == 1 else None
        if isinstance(sharding, ShardingCodec):
            found["chunks"] = sharding.chunk_shape
            if target == 3:
                found["shards"] = spec.chunk_grid.chunk_shape
            codecs = list(sharding.codecs)
    elif target == own:
        found["chunks"] = spec.chunk_grid
    else:
        found["chunks"] = _largest_chunk(spec)
    if isinstance(found.get("chunks"), tuple):
        found["chunks"] = tuple(max(1, side) for side in found["chunks"])
    if target == 2:
        found |= _chain_for_v2(spec, codecs)
    else:
        found |= _chain(codecs, own == target)
    if target == own and target == 3:
        found["chunk_key_encoding"] = spec.chunk_key_encoding
    elif target == own == 2 and isinstance(spec.chunk_key_encoding, V2Keys):
        found["dimension_separator"] = spec.chunk_key_encoding.separator
    return found


def _largest_chunk(spec: ArraySpec) -> tuple[int, ...] | None:
    """Return the largest chunk length in each dimension, for formats whose chunks have one shape.

    None where there are too many chunks to look at each length.
    """
    axes = [spec.chunk_grid.axis(i, length) for i, length in enumerate(spec.shape)]
    counts = [axis.find(axis.length - 1) + 1 if axis.length else 0 for axis in axes]
    if sum(counts) > MAX_COMPARED_CHUNKS:
        return None
    return tuple(
        max((axis.size(i) for i in range(count)), default=1) for axis, count in zip(axes, counts, strict=True)
    )


def _chain_for_v2(spec: ArraySpec, codecs: list[Codec]) -> dict[str, Any]:
    if spec.zarr_format in (1, 2):
        order, filters, compressor = chain_to_v2(codecs)
        return {"order": order, "filters": filters, "compressors": compressor}
    found = _chain([codec for codec in codecs if codec.name != "crc32c"], same_format=False)
    compressors = found.pop("compressors")
    found["filters"] = [*(found.get("filters") or ()), *compressors[:-1]]
    return {**found, "compressors": compressors[-1:] or None}


def _chain(codecs: list[Codec], same_format: bool) -> dict[str, Any]:
    """Return codecs as the options filters, serializer and compressors, and the order that the filters make."""
    found: dict[str, Any] = {}
    filters = [codec for codec in codecs if isinstance(codec, ArrayArrayCodec)]
    if filters and _reverses(filters[0]):
        found["order"] = "F"
        del filters[0]
    found["filters"] = [codec_to_json(codec) for codec in filters]
    if same_format:
        found["serializer"] = next(codec_to_json(c) for c in codecs if isinstance(c, ArrayBytesCodec))
    found["compressors"] = [codec_to_json(codec) for codec in codecs if isinstance(codec, BytesBytesCodec)]
    return found


def _reverses(codec: Codec) -> bool:
    return isinstance(codec, TransposeCodec) and codec.order == tuple(range(len(codec.order)))[::-1]


# -- values ----------------------------------------------------------------------------------------------------


def copy_values(source: Any, target: Array) -> None:
    """Write the values of an array of the same shape, one stored chunk of the target after the other, so that neither
    is in memory as a whole.
    """
    if isinstance(source, np.ndarray) or not target.shape:
        target[...] = source[...] if target.shape else np.asarray(source)[()]
        return
    grid = target.spec.chunk_grid
    shape = grid.chunk_shape if isinstance(grid, RegularGrid) else target.shape
    steps = [max(1, side) for side in shape]
    starts = [range(0, length, step) for length, step in zip(target.shape, steps, strict=True)]
    for corner in product(*starts):
        region = tuple(slice(start, start + step) for start, step in zip(corner, steps, strict=True))
        target[region] = source[region]
