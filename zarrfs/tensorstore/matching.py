"""Checking of an existing array against the constraints of a spec."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.chunks.chunk_key_encodings import chunk_key_encoding_from_json
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.codecs import (
    chain_from_json,
    check_chain,
)
from zarrfs.tensorstore.metadata import FORMATS, V3_DRIVER, ArrayConstraints, fill_of, inner_order_of
from zarrfs.tensorstore.schema import Schema
from zarrfs.tensorstore.units import units_from_json
from zarrfs.text import short_repr

__all__ = ["check_array"]

V2_DEFAULTS = {"dimension_separator": "."}


def check_array(array: Array, constraints: ArrayConstraints) -> None:
    """Raise MetadataError, which names the constraint, unless the array meets all hard constraints."""
    spec, schema = array.spec, constraints.schema

    def differs(property_name: str, expected: Any, actual: Any) -> MetadataError:
        return MetadataError(
            f"{array.storage.where}: the array does not match the spec: expected {property_name} {_display(expected)}, "
            f"found {_display(actual)}"
        )

    if spec.zarr_format != FORMATS[constraints.driver]:
        raise differs("zarr_format", FORMATS[constraints.driver], spec.zarr_format)
    rank = schema.rank if schema.rank is not None else _rank(schema)
    for property_name, expected, actual in (
        ("rank", rank, array.ndim),
        ("dtype", constraints.data_type and constraints.data_type.name, spec.data_type.name),
        ("shape", _with_actual_lengths(schema.shape, array.shape), array.shape),
        ("inner_order", schema.inner_order, inner_order_of(spec.codecs, array.ndim)),
    ):
        if expected is not None and expected != actual:
            raise differs(property_name, expected, actual)
    write_chunks = array.shards or array.chunks
    for property_name, grid, lengths in (
        ("read_chunk", schema.read, array.chunks),
        ("write_chunk", schema.write, write_chunks),
    ):
        for dimension, length in enumerate(grid.hard.shape):
            expected = max(1, array.shape[dimension]) if length == -1 else length
            if length and expected != lengths[dimension]:
                raise differs(f"{property_name} shape of dimension {dimension}", expected, lengths[dimension])
    if schema.fill_value is not None:
        fill = fill_of(schema.fill_value, spec.data_type)
        if not _equal_scalars(fill, spec.fill_value):
            raise differs("fill_value", fill, spec.fill_value)
    if schema.labels is not None:
        names = array.dimension_names or (None,) * array.ndim
        if any(label and label != name for label, name in zip(schema.labels, names, strict=True)):
            raise differs("labels", schema.labels, names)
    if constraints.names is not None and constraints.names != (array.dimension_names or (None,) * array.ndim):
        raise differs("dimension_names", constraints.names, array.dimension_names)
    if schema.units is not None and array.dimension_units is not None:
        pairs = zip(schema.units, array.dimension_units, strict=True)
        if any(unit is not None and unit != _normal_unit(actual) for unit, actual in pairs):
            raise differs("dimension_units", schema.units, array.dimension_units)
    for name, value in constraints.attributes.items():
        if spec.attributes.get(name) != value:
            raise differs(f"attribute {short_repr(name)}", value, spec.attributes.get(name))
    if constraints.keys is not None:
        keys = chunk_key_encoding_from_json(constraints.keys, "metadata/chunk_key_encoding")
        if keys != spec.chunk_key_encoding:
            raise differs("chunk_key_encoding", keys, spec.chunk_key_encoding)
    for name, value in constraints.members.items():
        if spec.document.get(name, V2_DEFAULTS.get(name)) != value:
            raise differs(name, value, spec.document.get(name))
    chain = constraints.chain
    if chain is not None and constraints.driver == V3_DRIVER:
        stored = chain_from_json([codec_to_json(codec) for codec in spec.codecs], "codecs")
        check_chain(chain, stored, f"{array.storage.where}: codecs")


def _with_actual_lengths(
    shape: tuple[int | None, ...] | None, actual: tuple[int, ...]
) -> tuple[int | None, ...] | None:
    """Return ``shape`` with unconstrained lengths replaced by those of the array."""
    if shape is None or len(shape) != len(actual):
        return shape
    return tuple(
        length if expected is None else expected for expected, length in zip(shape, actual, strict=True)
    )


def _display(value: Any) -> str:
    return str(list(value)) if isinstance(value, tuple) else repr(value)


def _rank(schema: Schema) -> int | None:
    for value in (
        schema.shape,
        schema.labels,
        schema.inner_order,
        schema.read.hard.shape,
        schema.write.hard.shape,
    ):
        if value:
            return len(value)
    return None


def _normal_unit(unit: str | None) -> str | None:
    return None if unit is None else units_from_json([unit], "dimension_units")[0]


def _equal_scalars(one: Any, other: Any) -> bool:
    if isinstance(one, np.generic) and isinstance(other, np.generic):
        return one.tobytes() == other.tobytes()
    return bool(one == other)
