"""Translation between the ``order``, ``filters`` and ``compressor`` of Zarr v2 and a codec chain.

A v2 chunk is encoded by its filters in order and then by the compressor. The metadata does not declare the output type
of a filter. In the chain, filters on elements become array->array codecs before ``bytes``, and filters on bytes become
bytes->bytes codecs after it. A filter that encodes Python objects becomes the array->bytes codec in place of ``bytes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zarrfs.engine.codecs.array_to_array.transpose import TransposeCodec
from zarrfs.engine.codecs.array_to_bytes.bytes import BytesCodec
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, ChunkSpec, Codec
from zarrfs.engine.codecs.numcodecs.table import ADAPTERS, adapter_class
from zarrfs.engine.codecs.registry import MAX_CODECS, PREFIX
from zarrfs.engine.json_checks import describe_json, unexpected_value
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.text import short_repr

__all__ = ["chain_from_v2", "chain_to_v2", "filters_and_compressor"]

SHUFFLE_NUMBERS = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def chain_from_v2(
    *,
    dtype: np.dtype[Any],
    is_object: bool,
    order: str,
    filters: Sequence[Mapping[str, Any]] | None,
    compressor: Mapping[str, Any] | None,
    ndim: int,
    where: str,
    allow_pickle: bool = False,
) -> tuple[Codec, ...]:
    """Return the codec chain of a v2 array.

    ``dtype`` is the dtype in memory (object if ``is_object``); ``where`` is the document's location, for messages.
    Raises MetadataError, and UnsupportedError for codecs that are unsupported or not allowed (pickle).
    """
    entries = [
        (f"{where}: /filters/{i}", _entry(f, f"{where}: /filters/{i}")) for i, f in enumerate(filters or ())
    ]
    if compressor is not None:
        entries.append((f"{where}: /compressor", _entry(compressor, f"{where}: /compressor")))
    if len(entries) > MAX_CODECS:
        raise MetadataError(f"{where}: expected at most {MAX_CODECS} codecs, found {len(entries)}")
    array_codecs: list[Codec] = []
    if order == "F" and ndim > 1:
        array_codecs.append(TransposeCodec(tuple(range(ndim))[::-1]))
    array_bytes: Codec | None = None
    bytes_codecs: list[Codec] = []
    stored = dtype
    for location, (codec_id, options) in entries:
        if codec_id == "pickle" and not allow_pickle:
            raise UnsupportedError(
                f"{location}: codec 'pickle' is refused, because unpickling can run arbitrary code from the data; for "
                "data that you trust, use zarrfs.open(..., allow_pickle=True) in Python"
            )
        try:
            adapter = ADAPTERS.get(codec_id)
            if adapter is None or adapter.encodes == "bytes":
                bytes_codecs.append(_bytes_codec(codec_id, options))
                continue
            if array_bytes is not None or bytes_codecs:
                previous = (bytes_codecs[-1] if bytes_codecs else array_bytes).name  # type: ignore[union-attr]
                raise MetadataError(
                    f"codec {codec_id!r} works on the elements of an array and cannot follow "
                    f"{previous.removeprefix(PREFIX)!r}, which produces bytes"
                )
            if adapter.encodes in ("objects", "variable"):
                if adapter.encodes == "variable" and not is_object:
                    raise MetadataError(
                        f"codec {codec_id!r} is for elements of variable length (dtype '|O'), not for {stored}"
                    )
                array_bytes = _array_bytes_codec(codec_id, options)
            elif is_object:
                raise MetadataError(
                    f"codec {codec_id!r} does not support elements of variable length (dtype '|O')"
                )
            elif adapter.encodes == "numbers":
                array_bytes = _array_bytes_codec(codec_id, options)
            else:
                codec = _array_codec(codec_id, options)
                spec = ChunkSpec((8,), stored, np.zeros((), stored)[()])
                codec.check(spec)
                stored = codec.encoded_spec(spec).dtype
                array_codecs.append(codec)
        except MetadataError as error:
            raise type(error)(f"{location}: {error}") from error
    if array_bytes is None:
        if is_object:
            raise MetadataError(
                f"{where}: dtype '|O' needs a filter (or compressor) that encodes objects, such as 'vlen-utf8'; "
                f"found {describe_json([codec_id for _, (codec_id, _) in entries])}"
            )
        array_bytes = BytesCodec(_endian(stored))
    return (*array_codecs, array_bytes, *bytes_codecs)


def _entry(entry: Any, where: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
        raise unexpected_value(where, "an object with a codec name under 'id'", entry)
    return entry["id"], {key: value for key, value in entry.items() if key != "id"}


def _endian(dtype: np.dtype[Any]) -> str | None:
    """Return ``endian`` for the bytes codec, or None if the dtype has no byte order or each field has its own."""
    if dtype.names is not None or dtype.subdtype is not None:
        return None
    if dtype.byteorder == "=":
        return "little" if np.dtype("<u2").isnative else "big"
    return {"<": "little", ">": "big"}.get(dtype.byteorder)


def _array_bytes_codec(codec_id: str, options: Mapping[str, Any]) -> ArrayBytesCodec:
    codec_type = adapter_class(codec_id)
    if codec_type is None:
        supported = [
            name for name, adapter in ADAPTERS.items() if adapter.location and adapter.encodes == "objects"
        ]
        raise UnsupportedError(
            f"codec {short_repr(codec_id)} is not supported; expected one of {', '.join(supported)}"
        )
    # v2 has no parameters for strings and bytes of variable length; others are ignored.
    has_parameters = codec_id not in ("vlen-utf8", "vlen-bytes")
    codec = codec_type.from_configuration(options if has_parameters else {})
    assert isinstance(codec, ArrayBytesCodec)
    return codec


def _array_codec(codec_id: str, options: Mapping[str, Any]) -> ArrayArrayCodec:
    codec_type = adapter_class(codec_id)
    assert codec_type is not None
    codec = codec_type.from_configuration(options)
    assert isinstance(codec, ArrayArrayCodec)
    return codec


def _bytes_codec(codec_id: str, options: Mapping[str, Any]) -> BytesBytesCodec:
    codec_type = adapter_class(codec_id)
    if codec_type is None:
        from zarrfs.engine.codecs.numcodecs.bytes import bytes_adapter

        codec_type = bytes_adapter(codec_id)
    codec = codec_type.from_configuration(options)
    assert isinstance(codec, BytesBytesCodec)
    return codec


# -- a codec chain to the keys of a document -------------------------------------------------------------------


def chain_to_v2(codecs: Sequence[Codec]) -> tuple[str, list[dict[str, Any]] | None, dict[str, Any] | None]:
    """Return (order, filters, compressor) for a codec chain. Raises UnsupportedError if v2 cannot represent it."""
    order = "C"
    entries: list[dict[str, Any]] = []
    for position, codec in enumerate(codecs):
        if isinstance(codec, TransposeCodec):
            if position or codec.order != tuple(range(len(codec.order)))[::-1]:
                raise UnsupportedError(
                    f"Zarr v2 can only reverse the dimensions; it has no transpose with the order {codec.order}"
                )
            order = "F"
        elif isinstance(codec, BytesCodec):
            continue
        else:
            entries.append(_to_entry(codec))
    compressor = (
        entries.pop()
        if entries and not isinstance(codecs[-1], ArrayArrayCodec | BytesCodec) and _is_compressor(entries)
        else None
    )
    return order, entries or None, compressor


def _is_compressor(entries: list[dict[str, Any]]) -> bool:
    adapter = ADAPTERS.get(entries[-1]["id"])
    return adapter is not None and adapter.compresses


def _to_entry(codec: Codec) -> dict[str, Any]:
    name = codec.name.removeprefix(PREFIX)
    options = codec.configuration()
    adapter = ADAPTERS.get(name)
    if not codec.name.startswith(PREFIX):
        if adapter is None or not adapter.is_core:
            raise UnsupportedError(f"Zarr v2 has no codec {codec.name!r}")
        if name == "blosc":
            options["shuffle"] = SHUFFLE_NUMBERS[options["shuffle"]]
            options.pop("typesize")
    elif adapter is None and isinstance(codec, ArrayBytesCodec):
        raise UnsupportedError(f"Zarr v2 has no codec {codec.name!r}")
    return {"id": name, **options}


def filters_and_compressor(spec: ArraySpec) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the filters and the compressor of an array as v2 metadata: those of its document, if it has them.

    Raises UnsupportedError for codecs that v2 does not have.
    """
    if spec.document.get("zarr_format") == 2:
        return list(spec.document.get("filters") or ()), spec.document.get("compressor")
    _, filters, compressor = chain_to_v2(spec.codecs)
    return filters or [], compressor
