"""The creation options of a new array that follow from the constraints of a spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zarrfs.engine.codecs.registry import codecs_from_json
from zarrfs.engine.create.chunk_shapes import ChunkConstraint, choose_read_write
from zarrfs.engine.dtypes import (
    DataType,
    data_type_from_v2,
)
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.codecs import (
    complete_chain,
    is_sharded,
    sharding_shape,
)
from zarrfs.tensorstore.metadata import FORMATS, V3_DRIVER, ArrayConstraints, fill_of, inner_order_of
from zarrfs.tensorstore.schema import GridConstraints, Schema, merge_schemas

__all__ = ["creation_options"]

DEFAULT_V2_COMPRESSOR = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}


def creation_options(constraints: ArrayConstraints) -> dict[str, Any]:
    """Return the arguments of ``array_spec`` for a new array. Raises MetadataError if shape or data type are
    missing.
    """
    schema = constraints.schema
    data_type = constraints.data_type
    shape = _complete_shape(schema.shape)
    if shape is None:
        raise MetadataError("a new array needs a shape; specify metadata/shape or the domain of the schema")
    if data_type is None:
        raise MetadataError(
            "a new array needs a data type; specify metadata/data_type or the dtype of the schema"
        )
    names = constraints.names
    if names is None and schema.labels is not None:
        names = tuple(label or None for label in schema.labels)
    options: dict[str, Any] = {
        "shape": shape,
        "dtype": data_type,
        "zarr_format": FORMATS[constraints.driver],
        "attributes": dict(constraints.attributes),
        "dimension_names": names if names is not None and any(names) else None,
        "dimension_units": schema.units if schema.units is not None and any(schema.units) else None,
    }
    if schema.fill_value is not None:
        options["fill_value"] = fill_of(schema.fill_value, data_type)
    format_options: Callable[[ArrayConstraints, DataType], dict[str, Any]] = (
        _v3_options if constraints.driver == V3_DRIVER else _v2_options
    )
    return options | format_options(constraints, data_type)


def _complete_shape(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Return the shape if all lengths are specified, else None."""
    lengths = () if shape is None else tuple(length for length in shape if length is not None)
    return None if shape is None or len(lengths) < len(shape) else lengths


def _v3_options(constraints: ArrayConstraints, data_type: DataType) -> dict[str, Any]:
    schema, chain = constraints.schema, constraints.chain
    shape = _complete_shape(schema.shape)
    assert shape is not None
    read, write = schema.read, schema.write
    if chain is not None and not is_sharded(chain):
        # The codecs do not include sharding. Read and write chunks therefore have the same shape.
        read = write = merge_schemas(Schema(read=read), Schema(read=write)).read
    elif chain is not None:
        inner = sharding_shape(chain)
        if inner is not None:
            read = merge_schemas(Schema(read=read), Schema(read=GridConstraints(ChunkConstraint(inner)))).read
    try:
        inner_shape, outer_shape = choose_read_write(shape, read.preferred, write.preferred)
    except MetadataError:
        # The soft constraints cannot be met.
        inner_shape, outer_shape = choose_read_write(shape, read.hard, write.hard)
    if chain is not None and not is_sharded(chain):
        outer_shape = inner_shape
    order = schema.inner_order or schema.soft_inner_order
    codecs = complete_chain(chain, data_type, inner_shape, outer_shape, order)
    codec_order = inner_order_of(codecs_from_json(codecs, "codecs"), len(shape))
    if schema.inner_order is not None and schema.inner_order != codec_order:
        raise MetadataError(
            f"inner_order: expected {list(schema.inner_order)}, but the codecs result in {list(codec_order)}"
        )
    return {"chunks": outer_shape, "codecs": codecs, "chunk_key_encoding": constraints.keys}


def _v2_options(constraints: ArrayConstraints, data_type: DataType) -> dict[str, Any]:
    schema, members = constraints.schema, constraints.members
    shape = _complete_shape(schema.shape)
    assert shape is not None
    chunk_constraints = merge_schemas(Schema(read=schema.read), Schema(read=schema.write)).read
    chunks, _ = choose_read_write(shape, chunk_constraints.preferred, chunk_constraints.preferred)
    order = schema.inner_order or schema.soft_inner_order
    is_reversed = order is not None and len(order) > 1 and order == tuple(range(len(order)))[::-1]
    options: dict[str, Any] = {
        "chunks": chunks,
        "order": members.get("order", "F" if is_reversed else "C"),
        "compressors": members.get("compressor", DEFAULT_V2_COMPRESSOR),
        "filters": members.get("filters"),
        "dimension_separator": members.get("dimension_separator"),
    }
    if "dtype" in members:
        options["dtype"] = data_type_from_v2(members["dtype"], "metadata/dtype")
    if members.get("fill_value") is not None:
        options["fill_value"] = members["fill_value"]
    return options
