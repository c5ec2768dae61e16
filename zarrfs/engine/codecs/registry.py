"""The registry of codecs by name, and the ``codecs`` list of Zarr v3 metadata.

The module of a codec is imported when the codec is first used, so that opening an array does not import every
compressor. Other packages register codecs through the entry point group ``zarrfs.codecs`` (name -> subclass of
Codec) or ``register_codec``. The rules for names, the short-hand form and ``must_understand`` are in the section
"Extensions" of the Zarr v3 core specification.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec, CodecError
from zarrfs.engine.codecs.numcodecs.table import ADAPTERS, IMAGECODECS_PREFIX, adapter_class
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.logs import logger
from zarrfs.plugins import find_plugin
from zarrfs.text import short_repr

__all__ = [
    "check_element_type",
    "codec_class",
    "codec_from_json",
    "codec_names",
    "codec_to_json",
    "codecs_from_json",
    "register_codec",
    "registrations",
]

ENTRY_POINTS = "zarrfs.codecs"

PACKAGE = "zarrfs.engine.codecs"

BUILT_IN = {
    "bytes": "array_to_bytes.bytes:BytesCodec",
    "transpose": "array_to_array.transpose:TransposeCodec",
    "sharding_indexed": "sharding.codec:ShardingCodec",
    "gzip": "bytes_to_bytes.gzip:GzipCodec",
    "zstd": "bytes_to_bytes.zstd:ZstdCodec",
    "blosc": "bytes_to_bytes.blosc:BloscCodec",
    "crc32c": "bytes_to_bytes.crc32c:Crc32cCodec",
    "vlen-utf8": "array_to_bytes.vlen:VlenUtf8Codec",
    "vlen-bytes": "array_to_bytes.vlen:VlenBytesCodec",
    "packbits": "array_to_bytes.packbits:PackBitsCodec",
    "cast_value": "array_to_array.cast_value:CastValueCodec",
    "scale_offset": "array_to_array.scale_offset:ScaleOffsetCodec",
    "reshape": "array_to_array.reshape:ReshapeCodec",
    "bitround": "array_to_array.bitround:BitroundCodec",
    "conditional": "conditional:ConditionalCodec",
    "zfp": "array_to_bytes.zfp:ZfpCodec",
    "n5_default": "n5.block:N5BlockCodec",
    "n5_lz4": "n5.lz4:N5Lz4Codec",
}

ALIASES = {
    "endian": "bytes",
    "numcodecs.bitround": "bitround",
    "numcodecs.vlen-utf8": "vlen-utf8",
    "numcodecs.vlen-bytes": "vlen-bytes",
    "numcodecs.vlen-array": "vlen-array",
    "zarrs.zfp": "zfp",
    "zarrs.bitround": "bitround",
    "https://codec.zarrs.dev/array_to_array/bitround": "bitround",
    "https://codec.zarrs.dev/array_to_bytes/zfpy": "numcodecs.zfpy",
    "https://codec.zarrs.dev/array_to_bytes/pcodec": "numcodecs.pcodec",
    "https://codec.zarrs.dev/array_to_bytes/vlen_array": "vlen-array",
    "https://codec.zarrs.dev/bytes_to_bytes/bz2": "numcodecs.bz2",
    "https://codec.zarrs.dev/bytes_to_bytes/fletcher32": "numcodecs.fletcher32",
    "https://purl.org/zarr/spec/codec/bytes/1.0": "bytes",
    "https://codec.zarrs.dev/array_to_bytes/vlen_utf8": "vlen-utf8",
}

PREFIX = "numcodecs."

MAX_CODECS = 64
"""The largest number of codecs in a chain. It bounds the work that metadata can cause for each chunk."""

_classes: dict[str, type[Codec]] = {}
_registrations = 0


def register_codec(name: str, codec: type[Codec]) -> None:
    """Register a codec under a name. It replaces a codec that is registered under that name."""
    global _registrations
    _classes[name] = codec
    _registrations += 1


def registrations() -> int:
    """Return the number of calls of ``register_codec``: what was derived from codecs before a call may be outdated."""
    return _registrations


def codec_names() -> list[str]:
    """Return the sorted names of all built-in codecs and of those registered by ``register_codec``."""
    numcodecs = {PREFIX + name for name, adapter in ADAPTERS.items() if adapter.in_v3} - set(ALIASES)
    return sorted({*BUILT_IN, "vlen-array", *numcodecs, *_classes})


def codec_class(name: str) -> type[Codec] | None:
    """Return the class of a codec by its name or alias, or None if it is unknown."""
    name = ALIASES.get(name, name)
    codec_type = _classes.get(name)
    if codec_type is None:
        codec_type = _load(name)
        if codec_type is not None:
            _classes[name] = codec_type
    return codec_type


def _load(name: str) -> type[Codec] | None:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        loaded: type[Codec] = getattr(import_module(f"{PACKAGE}.{module}"), attribute)
        return loaded
    bare = name.removeprefix(PREFIX)
    if (name != bare or name == "vlen-array") and bare in ADAPTERS:
        return adapter_class(bare) if ADAPTERS[bare].in_v3 else None
    if name.startswith(IMAGECODECS_PREFIX):
        from zarrfs.engine.codecs.numcodecs.images import imagecodecs_adapter  # few arrays need it

        return imagecodecs_adapter(name)
    third_party: type[Codec] | None = find_plugin(ENTRY_POINTS, name, type[Codec], CodecError)
    return third_party


# -- metadata --------------------------------------------------------------------------------------------------


def codec_from_json(entry: Any, where: str) -> Codec | None:
    """Return the codec of an entry of a v3 ``codecs`` list, or None for an unknown one with ``must_understand`` false.

    ``where`` is the location of the entry for messages. Raises MetadataError, or UnsupportedError for an unknown codec.
    """
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, Mapping):
        raise MetadataError(f"{where}: expected a codec as an object or a name, found {short_repr(entry)}")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise MetadataError(f"{where}/name: expected a codec name as a string, found {short_repr(name)}")
    for key in entry:
        if key not in ("name", "configuration", "must_understand"):
            raise MetadataError(
                f"{where}: unknown key {short_repr(key)}; expected 'name', 'configuration' and 'must_understand'"
            )
    configuration = entry.get("configuration", {})
    if not isinstance(configuration, Mapping):
        raise MetadataError(f"{where}/configuration: expected an object, found {short_repr(configuration)}")
    codec_type = codec_class(name)
    if codec_type is None:
        if entry.get("must_understand") is False:
            return None
        raise UnsupportedError(
            f"{where}: unknown codec {short_repr(name)}; expected one of {', '.join(codec_names())}. "
            f"Packages can add codecs through the entry point group {ENTRY_POINTS!r}"
        )
    try:
        return codec_type.from_configuration(configuration)
    except MetadataError as error:
        raise type(error)(f"{where}: {error}") from error


def codecs_from_json(entries: Any, where: str) -> tuple[Codec, ...]:
    """Return the codec chain of a v3 ``codecs`` list. Raises MetadataError for an invalid order of the codecs."""
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        raise MetadataError(f"{where}: expected a list of codecs, found {short_repr(entries)}")
    if len(entries) > MAX_CODECS:
        raise MetadataError(f"{where}: expected at most {MAX_CODECS} codecs, found {len(entries)}")
    parsed = [codec_from_json(entry, f"{where}/{position}") for position, entry in enumerate(entries)]
    for position, (codec, entry) in enumerate(zip(parsed, entries, strict=True)):
        if codec is None:
            logger.warning(
                "%s/%s: unknown codec %s is ignored, because it has must_understand: false; if it changes the stored "
                "bytes, the values read are wrong",
                where,
                position,
                short_repr(entry["name"]),
            )
    codecs = tuple(codec for codec in parsed if codec is not None)
    check_order(codecs, where)
    return codecs


def check_order(codecs: Sequence[Codec], where: str) -> None:
    """Raise MetadataError unless the kinds of the codecs are in the order that the specification requires."""
    kinds = [_kind(codec) for codec in codecs]
    if kinds.count(1) != 1 or kinds != sorted(kinds):
        names = ", ".join(f"{codec.name} ({KINDS[kind]})" for codec, kind in zip(codecs, kinds, strict=True))
        raise MetadataError(
            f"{where}: expected any number of array->array codecs, then exactly one array->bytes codec, then any "
            f"number of bytes->bytes codecs; found {names or 'none'}"
        )


def check_element_type(codecs: Sequence[Codec], element_type: type | None, where: str) -> None:
    """Raise MetadataError if a codec decodes to objects of a type other than ``element_type`` (None: any type)."""
    for codec in codecs:
        check_element_type(getattr(codec, "codecs", ()), element_type, where)  # The codecs of inner chunks.
        decoded_type = codec.element_type if isinstance(codec, ArrayBytesCodec) else None
        if element_type is not None and decoded_type not in (None, element_type):
            raise MetadataError(
                f"{where}: codec {codec.name!r} needs elements of the type {decoded_type.__name__}, the data type has "
                f"elements of the type {element_type.__name__}"
            )


KINDS = ("array->array", "array->bytes", "bytes->bytes")


def _kind(codec: Codec) -> int:
    return next(
        i
        for i, kind in enumerate((ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec))
        if isinstance(codec, kind)
    )


def codec_to_json(codec: Codec) -> dict[str, Any]:
    """Return the entry of a v3 ``codecs`` list for the codec."""
    configuration = codec.configuration()
    # zarr-python requires a configuration for codecs of numcodecs, even if it is empty.
    if configuration or codec.name.startswith("numcodecs."):
        return {"name": codec.name, "configuration": configuration}
    return {"name": codec.name}
