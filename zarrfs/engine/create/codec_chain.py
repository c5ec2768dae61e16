"""The codec chain of a new array, from codecs given as metadata of v3 or v2, with defaults filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import codec_to_json, codecs_from_json
from zarrfs.engine.dtypes import DataType
from zarrfs.engine.formats.v2_codecs import chain_from_v2
from zarrfs.engine.values import describe_value
from zarrfs.errors import MetadataError
from zarrfs.libraries import import_library

__all__ = ["default_serializer", "sharded", "v2_chain", "v3_chain"]


def _default_compressor(data_type: DataType) -> dict[str, Any]:
    """Return Blosc, which supports partial decoding and releases the interpreter lock; Zstandard for objects."""
    if data_type.numpy.hasobject:
        return {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
    return {"name": "blosc", "configuration": _blosc_options(data_type)}


def _blosc_options(data_type: DataType) -> dict[str, Any]:
    """Return the default configuration of Blosc for elements of this type."""
    itemsize = 1 if data_type.numpy.hasobject else data_type.numpy.itemsize
    shuffle = "bitshuffle" if itemsize == 1 else "shuffle"
    return {
        "cname": "zstd",
        "clevel": 3,
        "shuffle": shuffle,
        "typesize": max(1, min(itemsize, 255)),
        "blocksize": 0,
    }


def _completed(codec: Any, data_type: DataType) -> Any:
    """Return the v3 metadata of a codec, with defaults for missing options of Blosc and ``bytes``, also within shards.

    The specification requires these options in the metadata.
    """
    entry = {"name": codec} if isinstance(codec, str) else codec
    if not isinstance(entry, Mapping) or entry.get("name") not in ("blosc", "bytes", "sharding_indexed"):
        return codec
    given = entry.get("configuration", {})
    if not isinstance(given, Mapping):
        return codec
    if entry["name"] == "sharding_indexed":
        if not isinstance(given.get("codecs"), list | tuple):
            return codec
        inner = [_completed(_codec_json(part), data_type) for part in given["codecs"]]
        return {**entry, "configuration": {**given, "codecs": inner}}
    if entry["name"] == "bytes":
        is_multibyte = not data_type.numpy.hasobject and data_type.numpy.itemsize > 1
        return {**entry, "configuration": {"endian": "little"} | dict(given)} if is_multibyte else codec
    return {**entry, "configuration": _blosc_options(data_type) | dict(given)}


def v3_chain(
    data_type: DataType,
    order: str,
    codecs: Sequence[Any] | None,
    filters: Sequence[Any] | None,
    serializer: Any,
    compressors: Any,
    ndim: int,
) -> tuple[Codec, ...]:
    if codecs is not None:
        if filters is not None or serializer != "auto" or compressors != "auto":
            raise MetadataError("specify either codecs, or filters, serializer and compressors, not both")
        return _checked_for_encoding(
            codecs_from_json(
                [_completed(_codec_json(codec), data_type) for codec in _listed("codecs", codecs)], "codecs"
            )
        )
    chain: list[Any] = [_codec_json(codec) for codec in _listed("filters", filters)]
    if order == "F" and ndim > 1:
        chain.insert(0, {"name": "transpose", "configuration": {"order": list(range(ndim))[::-1]}})
    chain.append(_completed(_codec_json(serializer), data_type))
    chain += [_completed(_codec_json(codec), data_type) for codec in _compressor_list(compressors, data_type)]
    return _checked_for_encoding(codecs_from_json(chain, "codecs"))


def _checked_for_encoding(chain: tuple[Codec, ...]) -> tuple[Codec, ...]:
    """Return the chain if its codecs can encode, else raise.

    Some parameters are accepted for reading although they cannot be used for encoding.
    """
    for codec in chain:
        codec.check_encoding()
    return chain


def _listed(option: str, codecs: Any) -> list[Any]:
    """Return the value of an option as a list of codecs. The value is a list, a single codec, or None."""
    if codecs is None:
        return []
    if (
        isinstance(codecs, str | Mapping | Codec)
        or hasattr(codecs, "get_config")
        or hasattr(codecs, "to_dict")
    ):
        return [codecs]
    if isinstance(codecs, Iterable):
        return list(codecs)
    raise MetadataError(f"{option}: expected a list of codecs, found {describe_value(codecs)}")


def default_serializer(data_type: DataType, *, keep_byte_order: bool) -> dict[str, Any]:
    """Return the default array->bytes codec of a data type: little-endian unless the byte order is kept."""
    if data_type.numpy.hasobject:
        return {"name": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}
    if data_type.numpy.itemsize == 1 and data_type.numpy.names is None:
        return {"name": "bytes"}
    is_big = keep_byte_order and data_type.numpy.str[0] == ">"
    return {"name": "bytes", "configuration": {"endian": "big" if is_big else "little"}}


def _compressor_list(compressors: Any, data_type: DataType) -> list[Any]:
    if isinstance(compressors, str) and compressors == "auto":
        return [_default_compressor(data_type)]
    if compressors is None:
        return []
    return list(compressors) if isinstance(compressors, list | tuple) else [compressors]


def _codec_json(codec: Any) -> Any:
    """Return the v3 metadata of a codec given as metadata of v3 or v2, as a Codec, or as a numcodecs codec."""
    if isinstance(codec, Codec):
        return codec_to_json(codec)
    if hasattr(codec, "get_config"):
        codec = codec.get_config()
    if isinstance(codec, Mapping) and "id" in codec and "name" not in codec:
        _refuse_unknown_parameters(codec)
        configuration = {key: value for key, value in codec.items() if key != "id"}
        return {"name": f"numcodecs.{codec['id']}", "configuration": configuration}
    if isinstance(codec, str | Mapping):
        return codec
    if hasattr(codec, "to_dict"):
        return _of_zarr_python(codec)
    raise MetadataError(
        f"{describe_value(codec)} is not a codec: expected a name, metadata, or a codec object"
    )


def _of_zarr_python(codec: Any) -> Any:
    """Return the v3 metadata of a codec object of zarr-python, without parameters that follow from the data type."""
    document = codec.to_dict()
    configuration = document.get("configuration") if isinstance(document, Mapping) else None
    if not isinstance(configuration, Mapping):
        return document
    # Blosc: zarr-python has placeholders for the parameters that were not given, until the data type is known.
    tunable = getattr(codec, "_tunable_attrs", ())
    kept = {name: value for name, value in configuration.items() if name not in tunable}
    if document.get("name") == "sharding_indexed" and hasattr(codec, "codecs"):
        kept["codecs"] = [_codec_json(inner) for inner in codec.codecs]
    return {**document, "configuration": kept}


def _refuse_unknown_parameters(entry: Mapping[str, Any]) -> None:
    """Raise MetadataError if the codec of numcodecs does not have a parameter of its v2 metadata.

    Readers that construct the codec from its metadata, such as zarr-python and TensorStore, refuse such an array. When
    reading, zarrfs ignores the parameter.
    """
    try:
        import_library("numcodecs").get_codec(dict(entry))
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2]
        raise MetadataError(f"codec {entry['id']!r} has no parameter {unknown}") from error
    except Exception:
        # Unknown codecs and invalid values are reported when the chain is built.
        return


def v2_chain(
    data_type: DataType, order: str, filters: Sequence[Any] | None, compressors: Any, codecs: Any, ndim: int
) -> tuple[Codec, ...]:
    if codecs is not None:
        raise MetadataError("zarr_format 2 has no option codecs; specify filters and compressors")
    is_object = data_type.numpy.hasobject
    filter_list = [_v2_json(codec) for codec in _listed("filters", filters)]
    if not filter_list and data_type.name in ("string", "bytes"):
        filter_list = [{"id": "vlen-utf8" if data_type.name == "string" else "vlen-bytes"}]
    listed = _compressor_list(compressors, data_type)
    if len(listed) > 1:
        raise MetadataError(
            f"zarr_format 2 allows one compressor, found {len(listed)}; specify the others as filters"
        )
    return _checked_for_encoding(
        chain_from_v2(
            dtype=data_type.numpy,
            is_object=is_object,
            order=order,
            filters=filter_list or None,
            compressor=_v2_json(listed[0]) if listed else None,
            ndim=ndim,
            where="create_array",
        )
    )


SHUFFLE_NUMBERS = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}


def _v2_json(codec: Any) -> dict[str, Any]:
    if isinstance(codec, str):
        return {"id": codec}
    if hasattr(codec, "get_config"):
        return dict(codec.get_config())
    if isinstance(codec, Codec):
        codec = codec_to_json(codec)
    if not isinstance(codec, Mapping):
        raise MetadataError(
            f"{describe_value(codec)} is not a codec: expected a name, metadata, or a codec object"
        )
    entry = dict(codec)
    if "id" in entry:
        _refuse_unknown_parameters(entry)
        return entry
    options = entry.get("configuration", {})
    if "name" not in entry or not isinstance(options, Mapping):
        raise MetadataError(
            f'{describe_value(codec)} is not codec metadata: expected {{"id": ...}}, or {{"name": ..., '
            '"configuration": {...}}'
        )
    options = dict(options)
    if isinstance(options.get("shuffle"), str):
        options["shuffle"] = SHUFFLE_NUMBERS[options["shuffle"]]
        options.pop("typesize", None)
    return {"id": str(entry["name"]).removeprefix("numcodecs."), **options}


def sharded(
    chain: tuple[Codec, ...], chunk_shape: tuple[int, ...], index_location: str = "end"
) -> tuple[Codec, ...]:
    from zarrfs.engine.codecs.sharding.codec import ShardingCodec

    index = codecs_from_json(
        [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}], "index_codecs"
    )
    return (ShardingCodec(chunk_shape, chain, index, index_location),)
