"""The metadata constraints of a spec: checking an existing array against them, and deriving those of a new array.

A spec has a schema, which does not depend on the format, and ``metadata``, which does. ``ArrayConstraints`` has both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zarrfs.engine.chunking.chunk_key_encodings import chunk_key_encoding_from_json
from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.creation.chunk_shapes import ChunkConstraint, choose_read_write
from zarrfs.engine.dtypes import (
    DataType,
    data_type_from_v2,
    data_type_from_v3,
    fill_from_v3,
)
from zarrfs.engine.formats.v3 import ARRAY_KEYS
from zarrfs.engine.json_checks import expect_object, expect_shape
from zarrfs.engine.nodes.array import Array
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.codecs import (
    Chain,
    chain_from_json,
    check_chain,
    complete_chain,
    is_sharded,
    merge_chains,
    sharding_shape,
)
from zarrfs.tensorstore.schema import GridConstraints, Schema, merge_schemas, schema_from_json
from zarrfs.tensorstore.units import units_from_json

__all__ = ["FORMATS", "ArrayConstraints", "check", "constraints_from_json", "creation_options"]

V3_DRIVER = "zarr3"

FORMATS: dict[str, int] = {V3_DRIVER: 3, "zarr": 2, "zarr2": 2}
"""The ``zarr_format`` of the arrays of each driver."""


@dataclass(frozen=True)
class ArrayConstraints:
    """The constraints of a spec on an array.

    Attributes:
        schema: the constraints that do not depend on the format.
        names: the dimension names; an element of None means that the dimension has no name.
        attributes: required attributes. The array may have others.
        keys: the chunk key encoding as JSON (v3).
        members: required members of a v2 document.
    """

    driver: str
    schema: Schema
    names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    keys: Any = None
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data_type(self) -> DataType | None:
        """The data type; None if unconstrained."""
        dtype = self.schema.dtype
        return None if dtype is None else data_type_from_v3(dtype, "dtype")

    @property
    def chain(self) -> Chain | None:
        """The codecs (v3); None if unconstrained."""
        chain: Chain | None = None
        codec = self.schema.codec
        while codec is not None:
            driver = codec.get("driver", self.driver)
            if FORMATS.get(driver) != FORMATS[self.driver]:
                raise MetadataError(f"codec/driver: expected {self.driver!r}, found {driver!r}")
            if "codecs" in codec:
                chain = merge_chains(chain, chain_from_json(codec["codecs"], "codecs"), "codecs")
            codec = codec.get("and")
        return chain


def constraints_from_json(driver: str, metadata: Any, schema: Schema) -> ArrayConstraints:
    """Return the constraints of ``metadata`` and a schema. Raises MetadataError, which names the invalid member."""
    if metadata is None:
        return ArrayConstraints(driver, schema)
    metadata = expect_object(metadata, "metadata")
    parse = _from_v3 if driver == V3_DRIVER else _from_v2
    actual = parse(driver, metadata)
    return replace(actual, schema=merge_schemas(actual.schema, schema))


def _from_v3(driver: str, metadata: Mapping[str, Any]) -> ArrayConstraints:
    for name, value in metadata.items():
        if name not in ARRAY_KEYS and not (
            isinstance(value, Mapping) and value.get("must_understand") is False
        ):
            raise MetadataError(f"metadata/{name}: unknown member; expected one of {', '.join(ARRAY_KEYS)}")
    for name, only in (("zarr_format", 3), ("node_type", "array")):
        if metadata.get(name, only) != only:
            raise MetadataError(f"metadata/{name}: expected {only!r}, found {metadata[name]!r}")
    if metadata.get("storage_transformers"):
        raise MetadataError("metadata/storage_transformers: storage transformers are not supported")
    attributes = dict(_mapping(metadata, "attributes"))
    units = attributes.pop("dimension_units", None)
    names = metadata.get("dimension_names")
    schema = schema_from_json(
        {
            "domain": {"shape": metadata["shape"]} if "shape" in metadata else None,
            "codec": {"codecs": metadata["codecs"]} if "codecs" in metadata else None,
            "fill_value": metadata.get("fill_value"),
        },
        "metadata",
    )
    dtype = metadata.get("data_type")
    write = GridConstraints(ChunkConstraint(_chunk_shape(metadata.get("chunk_grid"))))
    schema = replace(
        schema,
        dtype=dtype,
        write=write,
        units=None if units is None else units_from_json(units, "metadata/attributes/dimension_units"),
    )
    return ArrayConstraints(
        driver,
        schema,
        names=None if names is None else tuple(names),
        attributes=attributes,
        keys=metadata.get("chunk_key_encoding"),
    )


def _mapping(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return expect_object(metadata.get(name, {}), f"metadata/{name}")


def _chunk_shape(grid: Any) -> tuple[int, ...]:
    if grid is None:
        return ()
    if not isinstance(grid, Mapping) or grid.get("name", "regular") != "regular":
        raise MetadataError(f"metadata/chunk_grid: expected a regular grid, found {grid!r}")
    shape = _mapping(grid, "configuration").get("chunk_shape", ())
    return expect_shape(shape, "metadata/chunk_grid/configuration/chunk_shape")


V2_SCHEMA = ("zarr_format", "shape", "chunks", "dtype")
V2_MEMBERS = ("compressor", "filters", "order", "fill_value", "dimension_separator")


def _from_v2(driver: str, metadata: Mapping[str, Any]) -> ArrayConstraints:
    for name in metadata:
        if name not in (*V2_SCHEMA, *V2_MEMBERS):
            known = ", ".join((*V2_SCHEMA, *V2_MEMBERS))
            raise MetadataError(f"metadata/{name}: unknown member; expected one of {known}")
    if metadata.get("zarr_format", 2) != 2:
        raise MetadataError(f"metadata/zarr_format: expected 2, found {metadata['zarr_format']!r}")
    dtype = None
    if "dtype" in metadata:
        dtype = data_type_from_v2(metadata["dtype"], "metadata/dtype").name
    chunks = GridConstraints(ChunkConstraint(tuple(metadata.get("chunks", ()))))
    schema = schema_from_json(
        {"domain": {"shape": metadata["shape"]} if "shape" in metadata else None}, "metadata"
    )
    return ArrayConstraints(
        driver,
        replace(schema, dtype=dtype, read=chunks, write=chunks),
        members={name: metadata[name] for name in V2_MEMBERS if name in metadata}
        | ({"dtype": metadata["dtype"]} if "dtype" in metadata else {}),
    )


# -- existing arrays -------------------------------------------------------------------------------------------


def check(array: Array, constraints: ArrayConstraints) -> None:
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
        ("inner_order", schema.inner_order, _inner_order(spec.codecs, array.ndim)),
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
        fill = _fill(schema.fill_value, spec.data_type)
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
            raise differs(f"attribute {name!r}", value, spec.attributes.get(name))
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


V2_DEFAULTS = {"dimension_separator": "."}


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


def _inner_order(chain: Sequence[Codec], rank: int) -> tuple[int, ...]:
    """Return the order of dimensions within an (inner) chunk, slowest-varying first."""
    order = tuple(range(rank))
    codecs = list(chain)
    while codecs:
        codec = codecs.pop(0)
        if isinstance(codec, TransposeCodec):
            order = tuple(order[axis] for axis in codec.order)
        elif isinstance(codec, ShardingCodec):
            codecs = list(codec.codecs)
    return order


def _fill(value: Any, data_type: DataType) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return np.asarray(value).astype(data_type.numpy)[()]
    return fill_from_v3(data_type, value, "fill_value")


def _equal_scalars(one: Any, other: Any) -> bool:
    if isinstance(one, np.generic) and isinstance(other, np.generic):
        return one.tobytes() == other.tobytes()
    return bool(one == other)


# -- new arrays ------------------------------------------------------------------------------------------------


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
        options["fill_value"] = _fill(schema.fill_value, data_type)
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
    codec_order = _inner_order(codecs_from_json(codecs, "codecs"), len(shape))
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


DEFAULT_V2_COMPRESSOR = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
