"""The options of functions that open and create nodes: one description of each, and zarr-python's names for them.

Each option is declared once, as a key of a typed dictionary: its name, its static type, and an ``Option`` with its
default, its meaning and how zarr-python's names relate to it. Typed dictionaries that combine others are the options of
a function. Signatures, checks, defaults and the documentation are derived from them. ``engine_options`` translates the
options of a caller to the arguments of ``new_nodes.create_array``, which creates the array.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypedDict, TypeVar

import numpy as np

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.dtypes import DataType
from zarrfs.engine.formats import api as formats
from zarrfs.engine.stores.wrappers.synchronizers import Synchronizer
from zarrfs.engine.values import describe_value
from zarrfs.errors import MetadataError, OptionError, UnsupportedError
from zarrfs.libraries import import_library

__all__ = [
    "ArrayOptions",
    "ConsolidatedOptions",
    "CreateArrayOptions",
    "CreateGroupOptions",
    "CreateOptions",
    "FilledOptions",
    "LocationOptions",
    "NodeOptions",
    "OpenArrayOptions",
    "OpenGroupOptions",
    "OpenNodeOptions",
    "Option",
    "UnfilledCreateOptions",
    "UnfilledOptions",
    "check_option_names",
    "check_option_types",
    "described",
    "engine_options",
    "with_fill_value",
    "with_options_signature",
    "without_defaults",
]


@dataclass(frozen=True)
class Option:
    """The description of an option: the annotation of a key of a typed dictionary, which has its name and type.

    Attributes:
        help: what it means. Empty for another name of an option, and if it is not supported or has no effect.
        default: the value that it has if it is not given, and for None.
        alias_of: the option of this package for which this is another name.
        none_is_value: whether None is a value of its own, instead of the default.
        applies_to_existing: whether it also applies to a node that exists.
        has_effect: whether it is more than a name that zarr-python accepts.
        unsupported: why no other value than None is accepted; empty if others are.
        accepts: the types of other values than None; empty if they are checked when the value is converted.
        form: what a value must be, for the error for another type.
    """

    help: str = ""
    default: Any = None
    _: KW_ONLY
    alias_of: str | None = None
    none_is_value: bool = False
    applies_to_existing: bool = False
    has_effect: bool = True
    unsupported: str = ""
    accepts: tuple[type, ...] = ()
    form: str = ""


class NodeOptions(TypedDict, total=False):
    """The options of functions that create arrays or groups."""

    zarr_format: Annotated[
        int | str | None, Option('3, 2, ``"n5"``, or ``"draft2019"`` for the draft of June 2019', 3)
    ]
    zarr_version: Annotated[int | None, Option(alias_of="zarr_format")]
    attributes: Annotated[Mapping[str, Any] | None, Option("the user attributes")]
    access: Annotated[
        ReadWriteOptions | None,
        Option(
            "how the node is read and written, see ``Access``",
            applies_to_existing=True,
            accepts=(ReadWriteOptions,),
            form="an Access",
        ),
    ]
    cache_attrs: Annotated[
        bool | None,
        # Attributes are cached in the same way as other metadata.
        Option(applies_to_existing=True, has_effect=False),
    ]
    chunk_store: Annotated[None, Option(unsupported="metadata and chunks must be in one store")]
    meta_array: Annotated[None, Option(unsupported="arrays are read into NumPy arrays")]


class UnfilledOptions(NodeOptions, total=False):
    """All options for creating an array except its shape and content."""

    dtype: Annotated[
        Any,
        Option(
            'the data type. Those of variable length are ``str``, ``bytes``, ``"array:<i4"`` (ragged arrays; v2), or '
            "``object`` with an object codec as filter (v2)",
            "float64",
        ),
    ]
    chunks: Annotated[
        Any,
        Option(
            "the chunk shape, or one length for all dimensions. A length of -1 or None means the whole dimension. "
            '``"auto"`` or True chooses chunks of about 1 MiB; False creates one chunk. A ChunkConstraint limits '
            "the choice. A list of lengths for a dimension, as in ``((3, 4, 3), 5)``, creates a rectilinear grid (v3). "
            "A ChunkGrid or its metadata is used unchanged",
            "auto",
        ),
    ]
    chunk_shape: Annotated[Any, Option(alias_of="chunks")]
    shards: Annotated[
        Any,
        Option(
            'the shard shape, a multiple of the chunk shape, or ``"auto"``; None stores each chunk under its own key '
            '(v3). ``{"shape": ..., "index_location": "start"}`` also chooses where the index is in the shard. A '
            "ChunkConstraint is solved together with ``chunks``; shards are created only if they are larger than the "
            "chunks",
            none_is_value=True,
        ),
    ]
    codecs: Annotated[
        Sequence[Any] | None,
        Option(
            "the complete chain of a v3 array as metadata or Codec objects. Excludes the next three options"
        ),
    ]
    filters: Annotated[Any, Option("array->array codecs (v3), or numcodecs filters (v2)", none_is_value=True)]
    serializer: Annotated[Any, Option("the array->bytes codec of a v3 array", "auto", none_is_value=True)]
    compressors: Annotated[
        Any,
        Option(
            'one or several bytes->bytes codecs; None for no compression. As v3 metadata (``{"name": "gzip", '
            '"configuration": {"level": 5}}``), v2 metadata (``{"id": "zlib", "level": 1}``), a name, or a '
            'numcodecs codec. ``"auto"`` is Blosc with Zstandard and shuffling',
            "auto",
            none_is_value=True,
        ),
    ]
    compression: Annotated[Any, Option(alias_of="compressors", none_is_value=True)]
    compression_opts: Annotated[
        Any, Option("the parameters of the codec that ``compression`` names, as in h5py and zarr-python 2")
    ]
    compressor: Annotated[Any, Option(alias_of="compressors", none_is_value=True)]
    object_codec: Annotated[Any, Option("one more filter, as in zarr-python 2")]
    order: Annotated[
        Literal["C", "F"] | None,
        Option('the memory order within chunks. In v3, ``"F"`` adds a transpose codec', "C"),
    ]
    dimension_names: Annotated[
        Sequence[str | None] | None,
        Option("the name of each dimension, None for one without a name", none_is_value=True),
    ]
    dimension_units: Annotated[
        Sequence[str | None] | None,
        Option('the unit of each dimension, for example ``"4 nm"`` (v3, N5)', none_is_value=True),
    ]
    dimension_separator: Annotated[
        Literal[".", "/"] | None,
        Option('the separator in chunk keys, ``"."`` or ``"/"``; the default depends on the format'),
    ]
    chunk_key_encoding: Annotated[
        Any, Option("the encoding of chunk keys as v3 metadata, instead of ``dimension_separator``")
    ]
    overwrite: Annotated[
        bool,
        Option(
            "whether an existing node is replaced, with everything below it; otherwise it is an error", False
        ),
    ]
    write_empty_chunks: Annotated[
        bool | None,
        Option(
            "whether chunks that contain only the fill value are stored. None: as in ``access``",
            applies_to_existing=True,
        ),
    ]
    config: Annotated[
        Any,
        Option(
            "a mapping with ``write_empty_chunks``, or an ArrayConfig of zarr-python 3",
            applies_to_existing=True,
        ),
    ]
    read_only: Annotated[bool | None, Option("whether the returned array is read-only")]
    cache_metadata: Annotated[
        bool | None,
        Option("False compares the metadata with the store at each access", applies_to_existing=True),
    ]
    partial_decompress: Annotated[
        bool | None,
        # Chunks are always decoded partially if possible.
        Option(applies_to_existing=True, has_effect=False),
    ]


class FilledOptions(UnfilledOptions, total=False):
    """The options of functions that take the shape or the data as a separate argument."""

    fill_value: Annotated[
        Any,
        Option(
            "the value of elements that were not written; the default is zero. None is undefined in v2, which stores "
            "``null``, and zero in other formats",
            none_is_value=True,
        ),
    ]
    fillvalue: Annotated[Any, Option(alias_of="fill_value", none_is_value=True)]


class ArrayOptions(FilledOptions, total=False):
    """All options for creating an array. A missing option has its default."""

    shape: Annotated[Any, Option("the shape of the array")]
    data: Annotated[
        Any,
        Option("the values to write. Shape, data type and chunks are taken from them if they are not given"),
    ]
    copy_from: Annotated[
        Any,
        Option(
            "an array of the same shape whose values are written. They are copied one stored chunk at a time, so that "
            "neither array is in memory as a whole. Excludes ``data``"
        ),
    ]
    write_data: Annotated[
        bool, Option("False takes only shape and data type from ``data``, and writes no values", True)
    ]


class LocationOptions(TypedDict, total=False):
    """The options of functions that open a store for a location."""

    cache_size: Annotated[
        int | None,
        Option(
            "the capacity in bytes of a cache of decoded chunks for this node and the nodes reached from it; 0 caches "
            "nothing. By default they use the cache that the whole process shares",
            accepts=(int, np.integer),
            form="a number of bytes, 0 to cache nothing, or None for the shared cache",
        ),
    ]
    storage_options: Annotated[
        dict[str, Any] | None,
        Option(
            "for a URL, the options of fsspec: ``anon``, ``key``, ``headers`` and others. For directories, archives "
            "and LMDB, ``durable``: if True, each write is flushed to the disk (fsync) before it returns; an archive "
            "is flushed when it is closed",
            accepts=(Mapping,),
            form="a mapping of names to values",
        ),
    ]
    synchronizer: Annotated[
        Synchronizer | None,
        Option(
            "provides the locks for writing. Use a ``ProcessSynchronizer`` if several processes write to one chunk or "
            "shard, or change the same metadata, in a store that is not a local directory, or together with "
            "zarr-python 2. Threads of one process, and processes that use a local directory, do not need one"
        ),
    ]


class OpenOptions(LocationOptions, total=False):
    """The options of functions that open existing nodes."""

    allow_pickle: Annotated[
        bool,
        Option(
            "whether object arrays that were stored by pickle may be read, in this node and below it. Unpickling "
            "executes code that the data contain; set this only for data that you trust",
            False,
        ),
    ]
    allow_external: Annotated[
        bool,
        Option(
            "whether data outside the store may be read if the store refers to them: by symbolic links that leave it, "
            "or by references to other hosts or directories. Set this only for data that you trust",
            False,
        ),
    ]


class ConsolidatedOptions(OpenOptions, total=False):
    """The options of functions that can open a group."""

    use_consolidated: Annotated[
        bool | None,
        Option(
            "whether members of a group are looked up in its consolidated metadata. True: yes, and raise MetadataError "
            "if there are none. False: no. None: if lookups in the store are slow"
        ),
    ]


class UnfilledCreateOptions(LocationOptions, UnfilledOptions, total=False):
    """The options of functions that create an array at a location, with a given shape and fill value."""


class CreateOptions(LocationOptions, FilledOptions, total=False):
    """The options of functions that create an array at a location, with a given shape or data."""


class CreateArrayOptions(LocationOptions, ArrayOptions, total=False):
    """The options of ``create_array``."""


class CreateGroupOptions(LocationOptions, NodeOptions, total=False):
    """The options of ``create_group`` apart from ``overwrite``."""


class OpenArrayOptions(OpenOptions, ArrayOptions, total=False):
    """The options of functions that open an array or create one."""


class OpenGroupOptions(ConsolidatedOptions, NodeOptions, total=False):
    """The options of functions that open a group or create one."""


class OpenNodeOptions(ConsolidatedOptions, ArrayOptions, total=False):
    """The options of ``open``."""


@cache
def described(options: type) -> Mapping[str, Option]:
    """Return the names of the options of a typed dictionary, with their descriptions."""
    # The annotations of this module are not postponed: get_type_hints would take 0.4 ms for each dictionary.
    return MappingProxyType({name: hint.__metadata__[0] for name, hint in options.__annotations__.items()})


def check_option_names(function: str, names: Iterable[str], valid_names: Collection[str]) -> None:
    """Raise OptionError for the first name that is not in ``valid_names``. It suggests the closest valid name."""
    for name in names:
        if name not in valid_names:
            from difflib import get_close_matches

            close = get_close_matches(name, valid_names, 1, 0.6)
            advice = (
                f"did you mean {close[0]!r}?"
                if close
                else f"the options are {', '.join(sorted(valid_names))}"
            )
            raise OptionError(f"{function} has no option {name!r}; {advice}")


def check_option_types(given: Mapping[str, Any]) -> None:
    """Raise OptionError for a value that is not None and has a type that its option does not accept."""
    known = described(OpenNodeOptions)
    for name, value in given.items():
        accepts = known[name].accepts if name in known else ()
        wrong_bool = isinstance(value, bool) and bool not in accepts
        if accepts and value is not None and (not isinstance(value, accepts) or wrong_bool):
            raise OptionError(f"{name} must be {known[name].form}, found {describe_value(value)}")


def with_fill_value(function: str, options: Mapping[str, Any], fill_value: int) -> dict[str, Any]:
    """Return the options with the fill value of ``zeros`` or ``ones``. Raises OptionError if they contain another."""
    if "fill_value" in options:
        raise OptionError(
            f"{function} has no option 'fill_value': its arrays read as {fill_value}; use the function that starts "
            "with 'full' for another value"
        )
    return {**options, "fill_value": fill_value}


class _NotGiven:
    """The default value of an option in a signature. The engine chooses the actual value."""

    def __repr__(self) -> str:
        return "<default>"


NOT_GIVEN = _NotGiven()

Function = TypeVar("Function", bound=Callable[..., Any])


def with_options_signature(options: type) -> Callable[[Function], Function]:
    """Return a decorator that adds ``options`` to the signature and the docstring of a function with ``**options``.

    Type checkers and editors use the annotation. Interactive completion and ``help`` use the signature and the text.
    """
    parameters, text = _documented(options)

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        named = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        listed = [p for p in parameters if p.name not in signature.parameters]
        function.__signature__ = signature.replace(parameters=[*named, *listed])  # type: ignore[attr-defined]
        if function.__doc__ and text:
            function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{text}"
        return function

    return decorate


@cache
def _documented(options: type) -> tuple[Sequence[inspect.Parameter], str]:
    """Return the parameters of a signature for options, and a section of a docstring that describes them."""
    parameters: list[inspect.Parameter] = []
    lines: list[str] = []
    for name, annotation in options.__annotations__.items():
        if hasattr(annotation, "__metadata__"):
            option, annotation = annotation.__metadata__[0], annotation.__origin__
            text = option.help or (option.alias_of and f"another name of ``{option.alias_of}``")
            if text:
                default = "" if option.default is None else f" Default: {option.default!r}."
                lines.append(f"    {name}: {text}.{default}")
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter(name, kind, default=NOT_GIVEN, annotation=annotation))
    return parameters, "\n".join(["Options:", *lines]) if lines else ""


AUTOMATIC = ("auto", "default")
"""The values for the default codecs in zarr-python 3 and 2."""


def engine_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the options of ``zarrfs.create_array`` to the arguments of ``new_nodes.create_array``.

    Options whose value means the default are removed. Raises MetadataError for contradictory options, and
    UnsupportedError for options of zarr-python that have no equivalent.
    """
    options = without_defaults(options)
    options.pop("read_only", None)  # the caller applies it to the returned array
    for name, option in described(ArrayOptions).items():
        if name in options and option.unsupported:
            raise UnsupportedError(f"{name} is not supported: {option.unsupported}")
        if not option.has_effect:
            options.pop(name, None)
    _translate_compression(options)
    for name, option in described(ArrayOptions).items():
        if option.alias_of is not None:
            _rename(options, name, option.alias_of)
    if _is_automatic(options.get("compressors")):
        del options["compressors"]
    _translate_filters(options)
    if "dtype" in options:
        options["dtype"] = _dtype(options["dtype"], options.get("filters", ()))
    if options.get("chunk_key_encoding") is not None:
        _translate_chunk_keys(options)
    _translate_config(options)
    if options.pop("cache_metadata", None) is False:
        options["access"] = replace(options.get("access") or ReadWriteOptions(), recheck_metadata=True)
    if options.pop("write_data", True) is False and "data" in options:
        data = options.pop("data")
        is_sequence = not hasattr(data, "dtype")
        data = np.asarray(data) if is_sequence else data
        options.setdefault("shape", tuple(int(n) for n in data.shape))
        options.setdefault("dtype", str if data.dtype.kind == "U" and is_sequence else data.dtype)
    return options


def without_defaults(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without those whose value is None and means the default."""
    known = described(ArrayOptions)
    return {
        name: value
        for name, value in options.items()
        if not (value is None and name in known and not known[name].none_is_value)
    }


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
