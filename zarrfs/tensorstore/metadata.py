"""The metadata constraints of a spec.

A spec has a schema, which does not depend on the format, and ``metadata``, which does. ``ArrayConstraints`` has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.sharding.codec import ShardingCodec
from zarrfs.engine.create.chunk_shapes import ChunkConstraint
from zarrfs.engine.dtypes import (
    DataType,
    data_type_from_v2,
    data_type_from_v3,
    fill_from_v3,
)
from zarrfs.engine.formats.v3_arrays import ARRAY_KEYS
from zarrfs.engine.json_checks import (
    check_keys,
    expect_list,
    expect_object,
    expect_shape,
    expect_string,
    pointer,
)
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.codecs import (
    Chain,
    chain_from_json,
    merge_chains,
)
from zarrfs.tensorstore.schema import GridConstraints, Schema, merge_schemas, schema_from_json
from zarrfs.tensorstore.units import units_from_json
from zarrfs.text import short_repr

__all__ = ["FORMATS", "V3_DRIVER", "ArrayConstraints", "constraints_from_json", "fill_of", "inner_order_of"]

V3_DRIVER = "zarr3"

FORMATS: dict[str, int] = {V3_DRIVER: 3, "zarr": 2, "zarr2": 2}
"""The ``zarr_format`` of the arrays of each driver."""

V2_SCHEMA = ("zarr_format", "shape", "chunks", "dtype")

V2_MEMBERS = ("compressor", "filters", "order", "fill_value", "dimension_separator")


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
            driver = expect_string(codec.get("driver", self.driver), "codec/driver")
            if FORMATS.get(driver) != FORMATS[self.driver]:
                raise MetadataError(
                    f"codec/driver: expected {short_repr(self.driver)}, found {short_repr(driver)}"
                )
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
            raise MetadataError(
                f"{pointer('metadata', name)}: unknown member; expected one of {', '.join(ARRAY_KEYS)}"
            )
    for name, only in (("zarr_format", 3), ("node_type", "array")):
        if metadata.get(name, only) != only:
            raise MetadataError(
                f"metadata/{name}: expected {short_repr(only)}, found {short_repr(metadata[name])}"
            )
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
        names=None if names is None else tuple(expect_list(names, "metadata/dimension_names")),
        attributes=attributes,
        keys=metadata.get("chunk_key_encoding"),
    )


def _mapping(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return expect_object(metadata.get(name, {}), f"metadata/{name}")


def _chunk_shape(grid: Any) -> tuple[int, ...]:
    if grid is None:
        return ()
    if not isinstance(grid, Mapping) or grid.get("name", "regular") != "regular":
        raise MetadataError(f"metadata/chunk_grid: expected a regular grid, found {short_repr(grid)}")
    shape = _mapping(grid, "configuration").get("chunk_shape", ())
    return expect_shape(shape, "metadata/chunk_grid/configuration/chunk_shape")


def _from_v2(driver: str, metadata: Mapping[str, Any]) -> ArrayConstraints:
    check_keys(metadata, "metadata", (*V2_SCHEMA, *V2_MEMBERS))
    if metadata.get("zarr_format", 2) != 2:
        raise MetadataError(f"metadata/zarr_format: expected 2, found {short_repr(metadata['zarr_format'])}")
    dtype = None
    if "dtype" in metadata:
        dtype = data_type_from_v2(metadata["dtype"], "metadata/dtype").name
    chunks = GridConstraints(ChunkConstraint(expect_shape(metadata.get("chunks", ()), "metadata/chunks")))
    schema = schema_from_json(
        {"domain": {"shape": metadata["shape"]} if "shape" in metadata else None}, "metadata"
    )
    return ArrayConstraints(
        driver,
        replace(schema, dtype=dtype, read=chunks, write=chunks),
        members={name: metadata[name] for name in V2_MEMBERS if name in metadata}
        | ({"dtype": metadata["dtype"]} if "dtype" in metadata else {}),
    )


def inner_order_of(chain: Sequence[Codec], rank: int) -> tuple[int, ...]:
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


def fill_of(value: Any, data_type: DataType) -> Any:
    """Return the fill value of a schema, or of a document as JSON, as an element of the data type."""
    if isinstance(value, np.generic | np.ndarray):
        return np.asarray(value).astype(data_type.numpy)[()]
    return fill_from_v3(data_type, value, "fill_value")
