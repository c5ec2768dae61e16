"""The options of functions that create arrays: their names and types, and zarr-python's names for them.

The typed dictionaries declare the options once, for ``create_array`` and for all functions that pass options to it.
``engine_options`` translates the options of a caller to those of ``nodes.creation.new_nodes.create_array``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np

from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.dtypes import DataType
from zarrfs.engine.formats import api as formats
from zarrfs.engine.io.access import Access
from zarrfs.engine.stores.wrappers.synchronizers import Synchronizer
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = [
    "ArrayOptions",
    "CreateOptions",
    "FilledOptions",
    "LocationOptions",
    "OpenArrayOptions",
    "OpenGroupOptions",
    "UnfilledCreateOptions",
    "UnfilledOptions",
    "engine_options",
    "with_options_signature",
    "without_defaults",
]


class UnfilledOptions(TypedDict, total=False):
    """All options for creating an array except its shape and content.

    The first block has the names of this package, which are those of zarr-python 3 if it has the option. The second
    block has other names that zarr-python 2 or 3 accepts. ``create_array`` documents the options.
    """

    dtype: Any
    chunks: Any
    shards: Any
    filters: Any
    serializer: Any
    compressors: Any
    codecs: Sequence[Any] | None
    order: Literal["C", "F"] | None
    zarr_format: int | str | None
    attributes: Mapping[str, Any] | None
    dimension_names: Sequence[str | None] | None
    dimension_units: Sequence[str | None] | None
    dimension_separator: Literal[".", "/"] | None
    chunk_key_encoding: Any
    overwrite: bool
    write_empty_chunks: bool | None
    access: Access | None

    compressor: Any
    object_codec: Any
    chunk_shape: Any
    compression: Any
    compression_opts: Any
    config: Any
    zarr_version: int | None
    read_only: bool | None
    cache_metadata: bool | None
    cache_attrs: bool | None
    chunk_store: None
    meta_array: None
    partial_decompress: bool | None


class FilledOptions(UnfilledOptions, total=False):
    """The options of functions that take the shape or the data as a separate argument."""

    fill_value: Any
    fillvalue: Any


class ArrayOptions(FilledOptions, total=False):
    """All options for creating an array. A missing option has its default."""

    shape: Any
    data: Any
    copy_from: Any
    write_data: bool


class LocationOptions(TypedDict, total=False):
    """The options of functions that open a store for a location. ``open`` documents them."""

    cache_size: int | None
    storage_options: dict[str, Any] | None
    synchronizer: Synchronizer | None


class UnfilledCreateOptions(LocationOptions, UnfilledOptions, total=False):
    """The options of functions that create an array at a location, with a given shape and fill value."""


class CreateOptions(LocationOptions, FilledOptions, total=False):
    """The options of functions that create an array at a location, with a given shape or data."""


class OpenArrayOptions(LocationOptions, ArrayOptions, total=False):
    """The options of functions that open an array or create one."""

    allow_pickle: bool
    allow_external: bool


class OpenGroupOptions(LocationOptions, total=False):
    """The options of functions that open a group or create one.

    ``cache_attrs``, ``chunk_store`` and ``meta_array`` are accepted for compatibility with zarr-python.
    """

    allow_pickle: bool
    allow_external: bool
    access: Access | None
    use_consolidated: bool | None
    zarr_format: int | str | None
    zarr_version: int | None
    attributes: Mapping[str, Any] | None
    cache_attrs: bool | None
    chunk_store: None
    meta_array: None


Function = TypeVar("Function", bound=Callable[..., Any])


def with_options_signature(options: type) -> Callable[[Function], Function]:
    """Return a decorator that adds the keys of ``options`` to the signature of a function with ``**options``.

    Type checkers and editors use the annotation. Interactive completion and ``help`` use the signature.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        listed = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=NOT_GIVEN, annotation=annotation)
            for name, annotation in options.__annotations__.items()
            if name not in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        return function

    return decorate


class _NotGiven:
    """The default value of an option in a signature. The engine chooses the actual value."""

    def __repr__(self) -> str:
        return "<default>"


NOT_GIVEN = _NotGiven()

AUTOMATIC = ("auto", "default")
"""The values for the default codecs in zarr-python 3 and 2."""

IGNORED_OPTIONS = ("cache_attrs", "partial_decompress")
"""Options of zarr-python that have no effect: attributes are cached in the same way as metadata, and chunks are always
decoded partially if possible.
"""


def engine_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the options of ``create_array`` to those of ``nodes.creation.new_nodes.create_array``.

    Options whose value means the default are removed. Raises MetadataError for contradictory options, and
    UnsupportedError for options of zarr-python that have no equivalent.
    """
    options = without_defaults(options)
    options.pop("read_only", None)  # the caller applies it to the returned array
    _refuse_unsupported(options)
    for name in IGNORED_OPTIONS:
        options.pop(name, None)
    _rename(options, "zarr_version", "zarr_format")
    _rename(options, "chunk_shape", "chunks")
    _rename(options, "fillvalue", "fill_value")
    _translate_compression(options)
    _rename(options, "compressor", "compressors")
    if _is_automatic(options.get("compressors")):
        del options["compressors"]
    _translate_filters(options)
    if "dtype" in options:
        options["dtype"] = _dtype(options["dtype"], options.get("filters", ()))
    if options.get("chunk_key_encoding") is not None:
        _translate_chunk_keys(options)
    _translate_config(options)
    if options.pop("cache_metadata", None) is False:
        options["access"] = replace(options.get("access") or Access(), recheck_metadata=True)
    if options.pop("write_data", True) is False and "data" in options:
        data = options.pop("data")
        is_sequence = not hasattr(data, "dtype")
        data = np.asarray(data) if is_sequence else data
        options.setdefault("shape", tuple(int(n) for n in data.shape))
        options.setdefault("dtype", str if data.dtype.kind == "U" and is_sequence else data.dtype)
    return options


DEFAULT_IF_NONE = (
    *("shape", "dtype", "data", "chunks", "codecs", "order", "zarr_format", "zarr_version", "attributes"),
    *("dimension_separator", "chunk_key_encoding", "object_codec", "chunk_shape", "config", "access"),
    *("chunk_store", "meta_array", "cache_metadata", "cache_attrs", "read_only", "partial_decompress"),
)
"""Options for which None means the default."""


def without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those whose value is None and means the default."""
    return {name: value for name, value in options.items() if not (value is None and name in DEFAULT_IF_NONE)}


def _refuse_unsupported(options: Mapping[str, Any]) -> None:
    if "chunk_store" in options:
        raise UnsupportedError("chunk_store is not supported: metadata and chunks must be in one store")
    if "meta_array" in options:
        raise UnsupportedError("meta_array is not supported: arrays are read into NumPy arrays")


def _rename(options: dict[str, Any], old: str, new: str) -> None:
    if old not in options:
        return
    value = options.pop(old)
    if new in options and not _is_automatic(options[new]):
        if _is_automatic(value):
            return
        raise MetadataError(f"specify either {new} or {old}, not both")
    options[new] = value


def _is_automatic(value: Any) -> bool:
    return isinstance(value, str) and value in AUTOMATIC


def _translate_compression(options: dict[str, Any]) -> None:
    """Accept ``compression`` and ``compression_opts``, the names of h5py that zarr-python 2 accepts, too.

    ``compression_opts`` are the parameters of a codec that is given by its name: a mapping, a list, or the first one.
    """
    if "compression" not in options:
        if "compression_opts" in options:
            raise MetadataError("compression_opts needs compression, the name of a codec")
        return
    compression, parameters = options.pop("compression"), options.pop("compression_opts", None)
    if isinstance(compression, str) and compression == "none":
        compression = None
    if isinstance(compression, str) and parameters is not None:
        compression = _codec_of_numcodecs(compression, parameters)
    options["compression"] = compression
    _rename(options, "compression", "compressors")


def _codec_of_numcodecs(name: str, parameters: Any) -> Any:
    get_codec = import_library("numcodecs").get_codec
    try:
        if isinstance(parameters, Mapping):
            return get_codec({"id": name, **parameters})
        positional = parameters if isinstance(parameters, list | tuple) else [parameters]
        return type(get_codec({"id": name}))(*positional)
    except (TypeError, ValueError) as error:
        raise MetadataError(f"compression={name!r}, compression_opts={parameters!r}: {error}") from error


def _translate_filters(options: dict[str, Any]) -> None:
    """Accept a single filter instead of a list, and zarr-python's ``object_codec``."""
    filters = options.pop("filters", None)
    object_codec = options.pop("object_codec", None)
    if filters is None or _is_automatic(filters):
        chain = []
    else:
        chain = list(filters) if isinstance(filters, list | tuple) else [filters]
    if object_codec is not None:
        chain.append(object_codec)
    if chain:
        options["filters"] = chain


OBJECT_CODECS = {"vlen-utf8": "string", "vlen-bytes": "bytes"}
"""The data types of the elements that v2 filters imply for an array with the dtype ``object``."""


def _dtype(dtype: Any, filters: Sequence[Any]) -> Any:
    """Return the ``dtype`` option with zarr-python's data types and ``object`` translated.

    A data type of zarr-python 3 becomes a NumPy dtype or its v3 metadata. ``object`` becomes the data type that the
    filters imply, as when the document is read. Other values are returned unchanged.
    """
    if dtype is object or (isinstance(dtype, str) and dtype in ("object", "O", "|O")):
        ids = [getattr(codec, "codec_id", None) or _codec_id(codec) for codec in filters]
        return next((OBJECT_CODECS[codec] for codec in ids if codec in OBJECT_CODECS), dtype)
    if isinstance(dtype, DataType) or not (hasattr(dtype, "to_native_dtype") and hasattr(dtype, "to_json")):
        return dtype
    native = dtype.to_native_dtype()
    return native if native.kind not in "OT" else dtype.to_json(zarr_format=3)


def _codec_id(codec: Any) -> Any:
    return codec.get("id", codec.get("name")) if isinstance(codec, Mapping) else codec


def _translate_chunk_keys(options: dict[str, Any]) -> None:
    """Accept zarr-python's short forms of ``chunk_key_encoding``, also for v2, where only the separator is stored."""
    encoding = options["chunk_key_encoding"]
    if hasattr(encoding, "to_dict"):
        encoding = encoding.to_dict()
    if isinstance(encoding, tuple) and len(encoding) == 2:
        encoding = {"name": encoding[0], "configuration": {"separator": encoding[1]}}
    elif isinstance(encoding, Mapping) and "separator" in encoding:
        encoding = {"name": encoding.get("name"), "configuration": {"separator": encoding["separator"]}}
    options["chunk_key_encoding"] = encoding
    zarr_format = options.get("zarr_format")
    if zarr_format is not None and formats.features(zarr_format).filters and isinstance(encoding, Mapping):
        if encoding.get("name") != "v2":
            raise MetadataError(
                f"zarr_format {zarr_format} has only the chunk key encoding 'v2', found {encoding!r}"
            )
        separator = encoding.get("configuration", {}).get("separator", ".")
        del options["chunk_key_encoding"]
        if options.setdefault("dimension_separator", separator) != separator:
            raise MetadataError("chunk_key_encoding and dimension_separator have different separators")


def _translate_config(options: dict[str, Any]) -> None:
    """Accept zarr-python's ``config``: a mapping or an ArrayConfig.

    Its ``order`` is the memory order of returned NumPy arrays and is ignored.
    """
    config = options.pop("config", None)
    if config is None:
        return
    values = config if isinstance(config, Mapping) else config.to_dict()
    if values.get("write_empty_chunks") is not None:
        options.setdefault("write_empty_chunks", bool(values["write_empty_chunks"]))
