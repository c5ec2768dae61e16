"""What a spec says of an array's metadata: checked against an array that is there, or made into a new one's.

A spec has a schema, which is free of formats, and ``metadata`` in the words of one; ``Wanted`` is both together.
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
from zarrfs.engine.nodes.array import Array
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.codecs import (
    Chain,
    chain_from_json,
    check_chain,
    completed,
    is_sharded,
    merged_chains,
    sharding_shape,
)
from zarrfs.tensorstore.schema import Grid, Schema, merged, schema_from_json
from zarrfs.tensorstore.units import units_from_json

__all__ = ["FORMATS", "Wanted", "check", "creation_options", "wanted_from_json"]

FORMATS: dict[str, int] = {"zarr3": 3, "zarr": 2, "zarr2": 2}
"""Drivers, and the ``zarr_format`` of their arrays."""


@dataclass(frozen=True)
class Wanted:
    """What a spec asks of an array.

    Attributes:
        schema: what can be said of an array of any format.
        names: of the dimensions; None within for one that must have none.
        attributes: these, among others.
        keys: the chunk key encoding as JSON (v3).
        members: of a v2 document, to be as they are given.
    """

    driver: str
    schema: Schema
    names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    keys: Any = None
    members: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data_type(self) -> DataType | None:
        """The data type, None where none is asked for."""
        dtype = self.schema.dtype
        return None if dtype is None else data_type_from_v3(dtype, "dtype")

    @property
    def chain(self) -> Chain | None:
        """The codecs (v3), None where nothing is said of them."""
        chain: Chain | None = None
        codec = self.schema.codec
        while codec is not None:
            driver = codec.get("driver", self.driver)
            if FORMATS.get(driver) != FORMATS[self.driver]:
                raise MetadataError(f"codec/driver: {driver!r} is asked for of an array of {self.driver!r}")
            if "codecs" in codec:
                chain = merged_chains(chain, chain_from_json(codec["codecs"], "codecs"), "codecs")
            codec = codec.get("and")
        return chain


def wanted_from_json(driver: str, metadata: Any, schema: Schema) -> Wanted:
    """Return what ``metadata`` and a schema ask together. Raises MetadataError that names the member."""
    if metadata is None:
        return Wanted(driver, schema)
    if not isinstance(metadata, Mapping):
        raise MetadataError(f"metadata: expected an object, found {metadata!r}")
    parse = _from_v3 if FORMATS[driver] == 3 else _from_v2
    found = parse(driver, metadata)
    return replace(found, schema=merged(found.schema, schema))


def _from_v3(driver: str, metadata: Mapping[str, Any]) -> Wanted:
    for name, value in metadata.items():
        if name not in ARRAY_KEYS and not (
            isinstance(value, Mapping) and value.get("must_understand") is False
        ):
            raise MetadataError(
                f"metadata/{name}: there is no such member; there are {', '.join(ARRAY_KEYS)}"
            )
    for name, only in (("zarr_format", 3), ("node_type", "array")):
        if metadata.get(name, only) != only:
            raise MetadataError(f"metadata/{name}: expected {only!r}, found {metadata[name]!r}")
    if metadata.get("storage_transformers"):
        raise MetadataError("metadata/storage_transformers: none is known here")
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
    write = Grid(ChunkConstraint(_chunk_shape(metadata.get("chunk_grid"))))
    schema = replace(
        schema,
        dtype=dtype,
        write=write,
        units=None if units is None else units_from_json(units, "metadata/attributes/dimension_units"),
    )
    return Wanted(
        driver,
        schema,
        names=None if names is None else tuple(names),
        attributes=attributes,
        keys=metadata.get("chunk_key_encoding"),
    )


def _mapping(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = metadata.get(name, {})
    if not isinstance(value, Mapping):
        raise MetadataError(f"metadata/{name}: expected an object, found {value!r}")
    return value


def _chunk_shape(grid: Any) -> tuple[int, ...]:
    if grid is None:
        return ()
    if not isinstance(grid, Mapping) or grid.get("name", "regular") != "regular":
        raise MetadataError(f"metadata/chunk_grid: expected a regular grid, found {grid!r}")
    shape = _mapping(grid, "configuration").get("chunk_shape", ())
    if not isinstance(shape, list | tuple):
        raise MetadataError(f"metadata/chunk_grid: expected a list of lengths, found {shape!r}")
    return tuple(shape)


V2_SCHEMA = ("zarr_format", "shape", "chunks", "dtype")
V2_MEMBERS = ("compressor", "filters", "order", "fill_value", "dimension_separator")


def _from_v2(driver: str, metadata: Mapping[str, Any]) -> Wanted:
    for name in metadata:
        if name not in (*V2_SCHEMA, *V2_MEMBERS):
            known = ", ".join((*V2_SCHEMA, *V2_MEMBERS))
            raise MetadataError(f"metadata/{name}: there is no such member; there are {known}")
    if metadata.get("zarr_format", 2) != 2:
        raise MetadataError(f"metadata/zarr_format: expected 2, found {metadata['zarr_format']!r}")
    dtype = None
    if "dtype" in metadata:
        dtype = data_type_from_v2(metadata["dtype"], "metadata/dtype").name
    chunks = Grid(ChunkConstraint(tuple(metadata.get("chunks", ()))))
    schema = schema_from_json(
        {"domain": {"shape": metadata["shape"]} if "shape" in metadata else None}, "metadata"
    )
    return Wanted(
        driver,
        replace(schema, dtype=dtype, read=chunks, write=chunks),
        members={name: metadata[name] for name in V2_MEMBERS if name in metadata}
        | ({"dtype": metadata["dtype"]} if "dtype" in metadata else {}),
    )


# -- an array that is there ------------------------------------------------------------------------------------


def check(array: Array, wanted: Wanted) -> None:
    """Raise MetadataError that says which constraint the array does not meet. Soft ones are not looked at."""
    spec, schema = array.spec, wanted.schema

    def differs(what: str, asked: Any, found: Any) -> MetadataError:
        return MetadataError(
            f"{array.storage.where}: the spec does not fit the array: {what} {_shown(asked)} is asked for, "
            f"found is {_shown(found)}"
        )

    if spec.zarr_format != FORMATS[wanted.driver]:
        raise differs("zarr_format", FORMATS[wanted.driver], spec.zarr_format)
    rank = schema.rank if schema.rank is not None else _rank(schema)
    for what, asked, found in (
        ("rank", rank, array.ndim),
        ("dtype", wanted.data_type and wanted.data_type.name, spec.data_type.name),
        ("shape", _said(schema.shape, array.shape), array.shape),
        ("inner_order", schema.inner_order, _inner_order(spec.codecs, array.ndim)),
    ):
        if asked is not None and asked != found:
            raise differs(what, asked, found)
    written = array.shards or array.chunks
    for what, grid, lengths in (
        ("read_chunk", schema.read, array.chunks),
        ("write_chunk", schema.write, written),
    ):
        for dimension, length in enumerate(grid.hard.shape):
            asked = max(1, array.shape[dimension]) if length == -1 else length
            if length and asked != lengths[dimension]:
                raise differs(f"{what} shape of dimension {dimension}", asked, lengths[dimension])
    if schema.fill_value is not None:
        fill = _fill(schema.fill_value, spec.data_type)
        if not _same_scalar(fill, spec.fill_value):
            raise differs("fill_value", fill, spec.fill_value)
    if schema.labels is not None:
        names = array.dimension_names or (None,) * array.ndim
        if any(label and label != name for label, name in zip(schema.labels, names, strict=True)):
            raise differs("labels", schema.labels, names)
    if wanted.names is not None and wanted.names != (array.dimension_names or (None,) * array.ndim):
        raise differs("dimension_names", wanted.names, array.dimension_names)
    if schema.units is not None and array.dimension_units is not None:
        pairs = zip(schema.units, array.dimension_units, strict=True)
        if any(unit is not None and unit != _normal_unit(found) for unit, found in pairs):
            raise differs("dimension_units", schema.units, array.dimension_units)
    for name, value in wanted.attributes.items():
        if spec.attributes.get(name) != value:
            raise differs(f"attribute {name!r}", value, spec.attributes.get(name))
    if wanted.keys is not None:
        keys = chunk_key_encoding_from_json(wanted.keys, "metadata/chunk_key_encoding")
        if keys != spec.chunk_key_encoding:
            raise differs("chunk_key_encoding", keys, spec.chunk_key_encoding)
    for name, value in wanted.members.items():
        if spec.document.get(name, V2_DEFAULTS.get(name)) != value:
            raise differs(name, value, spec.document.get(name))
    chain = wanted.chain
    if chain is not None and spec.zarr_format == 3:
        stored = chain_from_json([codec_to_json(codec) for codec in spec.codecs], "codecs")
        check_chain(chain, stored, f"{array.storage.where}: codecs")


def _said(shape: tuple[int | None, ...] | None, found: tuple[int, ...]) -> tuple[int | None, ...] | None:
    """Return the shape asked for, with lengths that are not said as they are found."""
    if shape is None or len(shape) != len(found):
        return shape
    return tuple(length if asked is None else asked for asked, length in zip(shape, found, strict=True))


V2_DEFAULTS = {"dimension_separator": "."}


def _shown(value: Any) -> str:
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
    """Return the dimensions in the order in which elements lie in a chunk, the slowest first."""
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


def _same_scalar(one: Any, other: Any) -> bool:
    if isinstance(one, np.generic) and isinstance(other, np.generic):
        return one.tobytes() == other.tobytes()
    return bool(one == other)


# -- an array to be made ---------------------------------------------------------------------------------------


def creation_options(wanted: Wanted) -> dict[str, Any]:
    """Return the options of ``array_spec`` for a new array. Raises MetadataError where shape or dtype are missing."""
    schema = wanted.schema
    data_type = wanted.data_type
    shape = _whole(schema.shape)
    if shape is None:
        raise MetadataError("a new array needs a shape: give metadata/shape or the domain of the schema")
    if data_type is None:
        raise MetadataError(
            "a new array needs a data type: give metadata/data_type or the dtype of the schema"
        )
    names = wanted.names
    if names is None and schema.labels is not None:
        names = tuple(label or None for label in schema.labels)
    options: dict[str, Any] = {
        "shape": shape,
        "dtype": data_type,
        "zarr_format": FORMATS[wanted.driver],
        "attributes": dict(wanted.attributes),
        "dimension_names": names if names is not None and any(names) else None,
        "dimension_units": schema.units if schema.units is not None and any(schema.units) else None,
    }
    if schema.fill_value is not None:
        options["fill_value"] = _fill(schema.fill_value, data_type)
    make: Callable[[Wanted, DataType], dict[str, Any]] = (
        _v3_options if FORMATS[wanted.driver] == 3 else _v2_options
    )
    return options | make(wanted, data_type)


def _whole(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Return the shape if all of it is said."""
    lengths = () if shape is None else tuple(length for length in shape if length is not None)
    return None if shape is None or len(lengths) < len(shape) else lengths


def _v3_options(wanted: Wanted, data_type: DataType) -> dict[str, Any]:
    schema, chain = wanted.schema, wanted.chain
    shape = _whole(schema.shape)
    assert shape is not None
    read, write = schema.read, schema.write
    if chain is not None and not is_sharded(chain):
        # These codecs were chosen without shards: one shape then, that of both.
        read = write = merged(Schema(read=read), Schema(read=write)).read
    elif chain is not None:
        inner = sharding_shape(chain)
        if inner is not None:
            read = merged(Schema(read=read), Schema(read=Grid(ChunkConstraint(inner)))).read
    try:
        inner_shape, outer_shape = choose_read_write(shape, read.wanted, write.wanted)
    except MetadataError:
        # Wishes give way.
        inner_shape, outer_shape = choose_read_write(shape, read.hard, write.hard)
    if chain is not None and not is_sharded(chain):
        outer_shape = inner_shape
    order = schema.inner_order or schema.soft_inner_order
    codecs = completed(chain, data_type, inner_shape, outer_shape, order)
    lies = _inner_order(codecs_from_json(codecs, "codecs"), len(shape))
    if schema.inner_order is not None and schema.inner_order != lies:
        raise MetadataError(
            f"inner_order: {list(schema.inner_order)} is asked for, the codecs give {list(lies)}"
        )
    return {"chunks": outer_shape, "codecs": codecs, "chunk_key_encoding": wanted.keys}


def _v2_options(wanted: Wanted, data_type: DataType) -> dict[str, Any]:
    schema, members = wanted.schema, wanted.members
    shape = _whole(schema.shape)
    assert shape is not None
    both = merged(Schema(read=schema.read), Schema(read=schema.write)).read
    chunks, _ = choose_read_write(shape, both.wanted, both.wanted)
    order = schema.inner_order or schema.soft_inner_order
    backwards = order is not None and len(order) > 1 and order == tuple(range(len(order)))[::-1]
    options: dict[str, Any] = {
        "chunks": chunks,
        "order": members.get("order", "F" if backwards else "C"),
        "compressors": members.get("compressor", USUAL_V2_COMPRESSOR),
        "filters": members.get("filters"),
        "dimension_separator": members.get("dimension_separator"),
    }
    if "dtype" in members:
        options["dtype"] = data_type_from_v2(members["dtype"], "metadata/dtype")
    if members.get("fill_value") is not None:
        options["fill_value"] = members["fill_value"]
    return options


USUAL_V2_COMPRESSOR = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": -1, "blocksize": 0}
