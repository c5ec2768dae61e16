"""The documents of Zarr v2 arrays, ``.zarray``, including common deviations from the specification."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from zarrfs.engine.chunks.chunk_grids import RegularGrid, check_chunk_shape
from zarrfs.engine.chunks.chunk_key_encodings import Separator, V2Keys
from zarrfs.engine.dtypes import (
    DataType,
    data_type_from_v2,
    data_type_to_v2,
    fill_from_v2,
    fill_to_v2,
)
from zarrfs.engine.formats.byte_order import stored_data_type
from zarrfs.engine.formats.dimension_names import dimension_names_from_attributes
from zarrfs.engine.formats.v2_codecs import chain_from_v2, chain_to_v2
from zarrfs.engine.json_checks import (
    expect_list,
    expect_object,
    expect_shape,
    expect_string,
    unexpected_value,
)
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["array_document", "check_units", "check_version", "parse_array"]

_ARRAY_KEYS = (
    "zarr_format",
    "shape",
    "chunks",
    "dtype",
    "compressor",
    "fill_value",
    "order",
    "filters",
    "dimension_separator",
)
_REQUIRED_ARRAY_KEYS = _ARRAY_KEYS[:8]

_OBJECT_CODECS = {"vlen-utf8": "string", "vlen-bytes": "bytes"}


def check_version(document: Mapping[str, Any], where: str) -> None:
    """Raise MetadataError unless the ``zarr_format`` of a document is the integer 2."""
    version = document.get("zarr_format")
    if isinstance(version, bool) or version != 2 or not isinstance(version, int):
        raise unexpected_value(f"{where}: /zarr_format", "2", version)


def parse_array(
    document: Mapping[str, Any],
    attributes: Mapping[str, Any],
    where: str,
    *,
    separator: Separator | None = None,
    allow_pickle: bool = False,
) -> ArraySpec:
    """Return the array that a ``.zarray`` and its ``.zattrs`` describe.

    ``separator`` is the dimension separator of chunk keys if the document has none; the default is ``"."``, as in the
    specification. Unknown keys are ignored, as the specification requires. Raises MetadataError that names the invalid
    key, and UnsupportedError for unsupported codecs and data types.
    """
    check_version(document, where)
    for key in _REQUIRED_ARRAY_KEYS:
        if key not in document and key != "filters":
            raise MetadataError(f'{where}: the key "{key}" is missing; an array needs it')
    shape = expect_shape(document["shape"], f"{where}: /shape")
    chunks = expect_shape(document["chunks"], f"{where}: /chunks")
    check_chunk_shape(chunks, shape, f"{where}: /chunks")
    filters = document.get("filters")
    if filters is not None:
        filters = list(expect_list(filters, f"{where}: /filters", "null, or a list of filters"))
    compressor = document["compressor"]
    if compressor is not None:
        expect_object(compressor, f"{where}: /compressor", "null, or an object with the id of a compressor")
    data_type = data_type_from_v2(document["dtype"], f"{where}: /dtype")
    if data_type.numpy.hasobject:
        data_type = _object_type(data_type, filters, compressor)
    order: Literal["C", "F"] = (
        "F" if expect_string(document["order"], f"{where}: /order", ("C", "F")) == "F" else "C"
    )
    codecs = chain_from_v2(
        dtype=data_type.numpy,
        is_object=data_type.numpy.hasobject,
        order=order,
        filters=filters,
        compressor=compressor,
        ndim=len(shape),
        where=where,
        allow_pickle=allow_pickle,
    )
    return ArraySpec(
        zarr_format=2,
        shape=shape,
        data_type=data_type,
        chunk_grid=RegularGrid(chunks),
        chunk_key_encoding=V2Keys(_separator(document, where) or separator or "."),
        codecs=codecs,
        fill_value=fill_from_v2(data_type, document["fill_value"], f"{where}: /fill_value"),
        dimension_names=dimension_names_from_attributes(attributes, len(shape)),
        attributes=dict(attributes),
        order=order,
        document=dict(document),
    )


def _separator(document: Mapping[str, Any], where: str) -> Separator | None:
    value = document.get("dimension_separator")
    if value is None:
        return None
    return "/" if expect_string(value, f"{where}: /dimension_separator", (".", "/")) == "/" else "."


def _object_type(data_type: DataType, filters: list[Any] | None, compressor: Any) -> DataType:
    """Return the data type of object elements, which is determined by the object codec: a filter or the compressor."""
    for codec in [*(filters or ()), compressor]:
        codec_id = codec.get("id") if isinstance(codec, Mapping) else None
        name = _OBJECT_CODECS.get(codec_id) if isinstance(codec_id, str) else None
        if name is not None:
            return DataType(name, data_type.numpy)
    return data_type


def array_document(spec: ArraySpec) -> dict[str, Any]:
    """Return the ``.zarray`` of an array. Unknown keys of the parsed document are preserved.

    Raises UnsupportedError for features that v2 does not have.
    """
    if not isinstance(spec.chunk_grid, RegularGrid):
        raise UnsupportedError(
            f'Zarr v2 has regular chunks only, not the chunk grid "{spec.chunk_grid.name}"'
        )
    if not isinstance(spec.chunk_key_encoding, V2Keys):
        raise UnsupportedError(
            f'Zarr v2 does not support the chunk key encoding "{spec.chunk_key_encoding.name}"'
        )
    order, filters, compressor = chain_to_v2(spec.codecs)
    if len(spec.shape) < 2:
        order = spec.order  # no effect on the chunks, but preserved
    document = {
        "zarr_format": 2,
        "shape": list(spec.shape),
        "chunks": list(spec.chunk_grid.chunk_shape),
        "dtype": data_type_to_v2(stored_data_type(spec)),
        "compressor": compressor,
        "fill_value": fill_to_v2(spec.data_type, spec.fill_value),
        "order": order,
        "filters": filters,
        "dimension_separator": spec.chunk_key_encoding.separator,
    }
    if spec.document.get("zarr_format") == 2:
        document |= {key: value for key, value in spec.document.items() if key not in _ARRAY_KEYS}
    return document


def check_units(dtype: np.dtype[Any]) -> None:
    """Raise UnsupportedError for datetime and timedelta types without a unit: the specification requires one."""
    if dtype.names is not None:
        for name in dtype.names:
            check_units(dtype[name].base)
    elif dtype.kind in "mM" and np.datetime_data(dtype)[0] == "generic":
        raise UnsupportedError(
            f'Zarr v2 does not support {dtype} without a unit; use a data type such as "{dtype.kind}8[ns]"'
        )
