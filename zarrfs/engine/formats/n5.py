"""N5: ``attributes.json`` and blocks. https://github.com/saalfeldlab/n5#file-system-specification

N5 lists the fastest-varying dimension first, for example (x, y, z). In the model the dimensions are reversed, (z, y,
x), as in zarr-python 2, so that the last dimension varies fastest as in all other formats. Every directory is a group.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from zarrfs.engine.chunks.chunk_grids import RegularGrid, check_chunk_shape
from zarrfs.engine.chunks.chunk_key_encodings import ChunkKeyEncoding, Coords, DefaultKeys, V2Keys
from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.n5.block import N5BlockCodec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.dtypes import DataType, data_type_from_v3, default_fill
from zarrfs.engine.dtypes.integers import INTEGER_NAMES
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.features import ZARR_DOCUMENTS, FormatFeatures
from zarrfs.engine.formats.json_document import location, read_object, write_object
from zarrfs.engine.formats.n5_compression import codecs_of_compression, compression_of_codecs
from zarrfs.engine.formats.paths import join, paths_above
from zarrfs.engine.json_checks import expect_shape, expect_string, unexpected_value
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["NAME", "N5Format", "N5Keys", "array_attributes", "block_codecs", "parse_array", "parse_group"]

NAME = "n5"
KEY = "attributes.json"
VERSION = "2.0.0"
"""The N5 version that is written at the root. Readers refuse versions newer than their own; all features that are
written here are in this version.
"""

DATA_TYPES = (*INTEGER_NAMES, "float32", "float64")

_ARRAY_KEYS = ("dimensions", "blockSize", "dataType", "compression", "compressionType")
_AXES, _UNITS, _RESOLUTION = "axes", "units", "resolution"
"""The attributes in which TensorStore and neuroglancer store the names, units and spacings of the dimensions."""

_SPACING = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class N5Keys(ChunkKeyEncoding):
    """Keys with the fastest-varying dimension first: the key of chunk (1, 23, 45) is ``45/23/1``."""

    name: ClassVar[str] = "n5"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        return cls()

    def configuration(self) -> dict[str, Any]:
        return {}

    def encode(self, coords: Coords) -> str:
        return "/".join(map(str, reversed(coords)))

    def decode(self, key: str) -> Coords | None:
        coords = V2Keys("/").decode(key)
        return None if coords is None else coords[::-1]


def block_codecs(ndim: int, compressor: Sequence[Any]) -> tuple[Codec, ...]:
    """Return the codec chain of an N5 array: a transpose that reverses the ``ndim`` dimensions, then the block codec.

    ``compressor`` is the v3 metadata of at most one bytes->bytes codec.
    """
    transpose = {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}}
    inner = [transpose, {"name": "bytes", "configuration": {"endian": "big"}}, *compressor]
    block = {"name": "n5_default", "configuration": {"codecs": inner}}
    return codecs_from_json([transpose, block], "codecs")


# -- documents to the model --------------------------------------------------------------------------------


def is_array(document: Mapping[str, Any]) -> bool:
    """Return whether an ``attributes.json`` describes a dataset."""
    return "dimensions" in document and "dataType" in document


def parse_array(document: Mapping[str, Any], where: str) -> ArraySpec:
    """Return the array that the ``attributes.json`` of a dataset describes.

    Raises MetadataError that names the invalid key, and UnsupportedError for unsupported data types and compression.
    """
    for key in ("dimensions", "blockSize", "dataType"):
        if key not in document:
            raise MetadataError(f'{where}: the key "{key}" is missing; a dataset needs it')
    shape = expect_shape(document["dimensions"], f"{where}: /dimensions")[::-1]
    blocks = expect_shape(document["blockSize"], f"{where}: /blockSize", 1)[::-1]
    check_chunk_shape(blocks, shape, f"{where}: /blockSize")
    if not shape:
        raise MetadataError(f"{where}: /dimensions: expected at least one dimension, found none")
    data_type = _data_type(document["dataType"], f"{where}: /dataType")
    compression = document.get("compression")
    if compression is None and "compressionType" in document:
        compression = {"type": document["compressionType"]}
    if compression is None:
        raise MetadataError(f'{where}: the key "compression" is missing; a dataset needs it')
    codecs = codecs_of_compression(compression, data_type.numpy.itemsize, f"{where}: /compression")
    return ArraySpec(
        zarr_format=NAME,
        shape=shape,
        data_type=data_type,
        chunk_grid=RegularGrid(blocks),
        chunk_key_encoding=N5Keys(),
        codecs=block_codecs(len(shape), codecs),
        fill_value=default_fill(data_type),
        dimension_names=_reversed(document.get(_AXES), len(shape)),
        dimension_units=_units(document, len(shape)),
        attributes=_attributes(document),
        document=dict(document),
    )


def parse_group(document: Mapping[str, Any]) -> GroupSpec:
    """Return the group that an ``attributes.json`` describes."""
    return GroupSpec(NAME, _attributes(document), None, dict(document))


def _data_type(value: Any, where: str) -> DataType:
    name = expect_string(value, where)
    if name in ("string", "object"):
        raise UnsupportedError(f'{where}: the elements are Java objects ("{name}"), which are not supported')
    if name not in DATA_TYPES:
        raise unexpected_value(where, f"one of {', '.join(DATA_TYPES)}", value)
    return data_type_from_v3(name, where)


def _attributes(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in (*_ARRAY_KEYS, "n5")}


def _reversed(value: Any, ndim: int) -> tuple[Any, ...] | None:
    """Return a list of one string per dimension in reverse order, or None if ``value`` is not such a list."""
    if not isinstance(value, list) or len(value) != ndim or not all(isinstance(name, str) for name in value):
        return None
    return tuple(name or None for name in value)[::-1]


def _units(document: Mapping[str, Any], ndim: int) -> tuple[str | None, ...] | None:
    """Return the unit of each dimension with the spacing between elements, such as ``"4 nm"``, last dimension first."""
    units = _reversed(document.get(_UNITS), ndim)
    spacings = document.get(_RESOLUTION)
    if units is None or not isinstance(spacings, list) or len(spacings) != ndim:
        return units
    pairs = zip(spacings[::-1], units, strict=True)
    return tuple(
        None if unit is None else f"{_number_text(spacing)} {unit}" if _is_number(spacing) else unit
        for spacing, unit in pairs
    )


def _number_text(number: float) -> str:
    """Return a number as text with all digits, and without a fraction if it is an integer."""
    return str(int(number)) if number == number // 1 and abs(number) < 2**53 else repr(number)


def _split_unit(unit: str) -> tuple[float, str]:
    """Return the spacing and the base unit of a unit such as ``"4 nm"``."""
    match = _SPACING.match(unit)
    if match is None or not unit[match.end() :].strip():
        return 1, unit
    number = float(match[0])
    return int(number) if number == number // 1 else number, unit[match.end() :].strip()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# -- the model to documents --------------------------------------------------------------------------------


def array_attributes(spec: ArraySpec) -> dict[str, Any]:
    """Return the ``attributes.json`` of a dataset.

    Raises UnsupportedError for what N5 does not have: other data types, nonzero fill values, and codecs other than
    blocks with at most one compressor.
    """
    if not isinstance(spec.chunk_grid, RegularGrid):
        raise UnsupportedError(f'N5 has regular blocks only, not the chunk grid "{spec.chunk_grid.name}"')
    if not isinstance(spec.chunk_key_encoding, N5Keys):
        raise UnsupportedError(f'N5 does not support the chunk key encoding "{spec.chunk_key_encoding.name}"')
    _check_data_type(spec)
    if not spec.shape:
        raise UnsupportedError("N5 does not support arrays without dimensions")
    if spec.fill_value is not None and spec.fill_value != 0:
        raise UnsupportedError(f"N5 supports only the fill value 0, found {spec.fill_value}")
    reverse = tuple(range(len(spec.shape)))[::-1]
    first, block = (*spec.codecs, None, None)[:2]
    if (
        len(spec.codecs) != 2
        or not isinstance(block, N5BlockCodec)
        or not isinstance(first, TransposeCodec)
        or first.order != reverse
    ):
        names = ", ".join(codec.name for codec in spec.codecs)
        raise UnsupportedError(
            f"N5 supports only its own block codec with one compressor, found the codecs {names}"
        )
    document: dict[str, Any] = {
        "dimensions": list(spec.shape[::-1]),
        "blockSize": list(spec.chunk_grid.chunk_shape[::-1]),
        "dataType": spec.data_type.name,
        "compression": compression_of_codecs(block.codecs[2:]),
    }
    parsed = spec.document.get("compression")
    if parsed is not None and _same_compression(parsed, spec):
        document["compression"] = parsed
    attributes = dict(spec.attributes)
    if spec.dimension_names is not None and _AXES not in attributes:
        attributes[_AXES] = [name or "" for name in spec.dimension_names[::-1]]
    if spec.dimension_units is not None and _UNITS not in attributes:
        units = [unit or "" for unit in spec.dimension_units[::-1]]
        split = [_split_unit(unit) for unit in units]
        attributes[_UNITS] = units
        if _RESOLUTION not in attributes and units != [base for _, base in split]:
            attributes[_UNITS] = [base for _, base in split]
            attributes[_RESOLUTION] = [spacing for spacing, _ in split]
    return document | attributes


def _same_compression(compression: Any, spec: ArraySpec) -> bool:
    """Return whether the parsed compression describes the codecs of ``spec``.

    It may contain further options, such as the number of threads, which are then preserved.
    """
    try:
        codecs = codecs_of_compression(compression, spec.data_type.numpy.itemsize, "compression")
    except MetadataError:
        return False
    return block_codecs(len(spec.shape), codecs) == spec.codecs


def _check_data_type(spec: ArraySpec) -> None:
    if spec.data_type.name not in DATA_TYPES:
        raise UnsupportedError(
            f"N5 has no data type for {spec.data_type.name}; it has {', '.join(DATA_TYPES)}"
        )


def _check_options(spec: ArraySpec) -> None:
    """Raise UnsupportedError if the options of a new array specify what N5 stores in another way or not at all."""
    # A data type of variable length has a serializer of its own. The data type is the cause.
    _check_data_type(spec)
    found = None
    filters = [codec.name for codec in spec.codecs if isinstance(codec, ArrayArrayCodec)]
    serializer = next(codec for codec in spec.codecs if isinstance(codec, ArrayBytesCodec))
    if spec.order != "C":
        found = f"order {spec.order!r}", "N5 stores blocks in the order 'C'"
    elif filters:
        found = f"filters {', '.join(filters)}", "N5 stores a compressor only"
    elif not isinstance(serializer, BytesCodec):
        found = f"serializer {serializer.name}", "N5 stores the elements of a block one after another"
    elif spec.chunk_key_encoding not in (DefaultKeys("/"), V2Keys("/"), N5Keys()):
        keys = spec.chunk_key_encoding
        found = (
            f"chunk keys such as {keys.encode((0,) * len(spec.shape))!r}",
            "the coordinates in the keys of N5 blocks are separated by '/'",
        )
    if found is not None:
        raise UnsupportedError(f"{found[0]}: {found[1]}; omit the option, or choose another zarr_format")


class N5Format(Format):
    """An N5 container in a store. Its root is the root of the store."""

    features = FormatFeatures(
        title="N5",
        fill_value=False,
        memory_order=False,
        dimension_units=True,
        name_attributes=(_AXES,),
        unit_attributes=(_UNITS, _RESOLUTION),
        document_names=(*ZARR_DOCUMENTS, KEY),
    )

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        key = join(path, KEY)
        document = read_object(store, key)
        if document is not None:
            return (
                parse_array(document, location(store, key)) if is_array(document) else parse_group(document)
            )
        return parse_group({}) if self._is_implied(store, path) else None

    def _is_implied(self, store: Store, path: str) -> bool:
        """Return whether the path is a directory of a container and not a directory of blocks of a dataset."""
        if not path or not store.listable or not store.exists(KEY):
            return False
        if "n5" not in (read_object(store, KEY) or {}):
            return False
        for parent in paths_above(path):
            document = read_object(store, join(parent, KEY))
            if document is not None and is_array(document):
                return False
        listing = store.list_dir(path)
        return bool(listing.keys or listing.prefixes)

    def kind(self, store: Store, path: str) -> NodeKind | None:
        document = read_object(store, join(path, KEY))
        if document is not None:
            return "array" if is_array(document) else "group"
        return "group" if self._is_implied(store, path) else None

    def check(self, spec: NodeSpec) -> None:
        if isinstance(spec, ArraySpec):
            array_attributes(spec)

    def with_prescribed_encoding(self, spec: ArraySpec) -> ArraySpec:
        if any(isinstance(codec, N5BlockCodec) for codec in spec.codecs):
            return replace(spec, chunk_key_encoding=N5Keys())
        _check_options(spec)
        from zarrfs.engine.codecs.numcodecs.core import core_codec  # imports all compressors

        chunk = ChunkSpec(tuple(1 for _ in spec.shape), spec.data_type.numpy, default_fill(spec.data_type))
        compressor = [
            codec_to_json(core_codec(codec, chunk))
            for codec in spec.codecs
            if isinstance(codec, BytesBytesCodec)
        ]
        codecs = block_codecs(len(spec.shape), compressor)
        return replace(spec, chunk_key_encoding=N5Keys(), codecs=codecs, order="C")

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        document = array_attributes(spec) if isinstance(spec, ArraySpec) else dict(spec.attributes)
        root = document if not path else read_object(store, KEY) or {}
        if "n5" not in root:
            root["n5"] = VERSION
            if path:
                write_object(store, KEY, root)
        written = write_object(store, join(path, KEY), document)
        # The attributes include the names and units of dimensions, so a later change of an attribute preserves them.
        return replace(spec, document=written, attributes=_attributes(written))

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return (join(path, KEY),)

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        key = join(path, KEY)
        document = read_object(store, key) or {}
        structure = {name: document[name] for name in (*_ARRAY_KEYS, "n5") if name in document}
        written = write_object(store, key, {**spec.attributes, **structure})
        attributes = _attributes(written)
        if isinstance(spec, ArraySpec):
            names, units = _reversed(written.get(_AXES), len(spec.shape)), _units(written, len(spec.shape))
            return replace(
                spec, document=written, attributes=attributes, dimension_names=names, dimension_units=units
            )
        return replace(spec, document=written, attributes=attributes)
