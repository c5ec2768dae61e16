"""zarrfs: a Zarr engine with a FUSE filesystem and a desktop viewer.

This module is the public API of the engine. Functions and classes have the names and semantics of zarr-python;
``docs/coming-from-zarr-python.md`` lists the differences.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs._version import __version__
from zarrfs.errors import (
    ChunkDecodeError,
    ChunkEncodeError,
    CompatibilityWarning,
    ConflictError,
    DataError,
    DataShapeError,
    FillValueError,
    KeyNameError,
    LocationError,
    LocationNotFoundError,
    MetadataError,
    MissingChunkError,
    MountError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    ReadOnlyError,
    SelectionError,
    ServerError,
    StoreError,
    UnsupportedError,
    ZarrError,
)
from zarrfs.plugins import provide

# In stores that cannot list (web servers) the names of members are derived from OME-NGFF metadata.
provide("zarrfs.member_names", "zarrfs.ngff.members:named_members")

if TYPE_CHECKING:
    from zarrfs import codecs, storage
    from zarrfs.api.open import (
        create_array,
        create_group,
        group,
        open,
        open_array,
        open_consolidated,
        open_group,
    )
    from zarrfs.api.persistence import load, save, save_array, save_group
    from zarrfs.api.routines import (
        array,
        create,
        empty,
        empty_like,
        from_array,
        full,
        full_like,
        ones,
        ones_like,
        open_like,
        zeros,
        zeros_like,
    )
    from zarrfs.engine.access import ReadWriteOptions
    from zarrfs.engine.access import ReadWriteOptions as Access
    from zarrfs.engine.array.array import Array
    from zarrfs.engine.create.chunk_shapes import ChunkConstraint
    from zarrfs.engine.group.group import Group
    from zarrfs.engine.hierarchy.subtrees import tree
    from zarrfs.engine.stores.wrappers.synchronizers import ProcessSynchronizer, ThreadSynchronizer
    from zarrfs.tools.consolidation import consolidate_metadata
    from zarrfs.tools.zarr2_copies import copy, copy_all, copy_store

__all__ = [
    "Access",
    "Array",
    "ChunkConstraint",
    "ChunkDecodeError",
    "ChunkEncodeError",
    "CompatibilityWarning",
    "ConflictError",
    "DataError",
    "DataShapeError",
    "FillValueError",
    "Group",
    "KeyNameError",
    "LocationError",
    "LocationNotFoundError",
    "MetadataError",
    "MissingChunkError",
    "MountError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "OptionError",
    "ProcessSynchronizer",
    "ReadOnlyError",
    "ReadWriteOptions",
    "SelectionError",
    "ServerError",
    "StoreError",
    "ThreadSynchronizer",
    "UnsupportedError",
    "ZarrError",
    "__version__",
    "array",
    "codecs",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "zeros",
    "zeros_like",
]

_LAZY_IMPORTS = {
    "Access": "zarrfs.engine.access:ReadWriteOptions",
    "Array": "zarrfs.engine.array.array:Array",
    "ChunkConstraint": "zarrfs.engine.create.chunk_shapes:ChunkConstraint",
    "Group": "zarrfs.engine.group.group:Group",
    "ReadWriteOptions": "zarrfs.engine.access:ReadWriteOptions",
    "ProcessSynchronizer": "zarrfs.engine.stores.wrappers.synchronizers:ProcessSynchronizer",
    "ThreadSynchronizer": "zarrfs.engine.stores.wrappers.synchronizers:ThreadSynchronizer",
    "array": "zarrfs.api.routines:array",
    "codecs": "zarrfs.codecs",
    "consolidate_metadata": "zarrfs.tools.consolidation:consolidate_metadata",
    "copy": "zarrfs.tools.zarr2_copies:copy",
    "copy_all": "zarrfs.tools.zarr2_copies:copy_all",
    "copy_store": "zarrfs.tools.zarr2_copies:copy_store",
    "create": "zarrfs.api.routines:create",
    "create_array": "zarrfs.api.open:create_array",
    "create_group": "zarrfs.api.open:create_group",
    "empty": "zarrfs.api.routines:empty",
    "empty_like": "zarrfs.api.routines:empty_like",
    "from_array": "zarrfs.api.routines:from_array",
    "full": "zarrfs.api.routines:full",
    "full_like": "zarrfs.api.routines:full_like",
    "group": "zarrfs.api.open:group",
    "load": "zarrfs.api.persistence:load",
    "ones": "zarrfs.api.routines:ones",
    "ones_like": "zarrfs.api.routines:ones_like",
    "open": "zarrfs.api.open:open",
    "open_array": "zarrfs.api.open:open_array",
    "open_consolidated": "zarrfs.api.open:open_consolidated",
    "open_group": "zarrfs.api.open:open_group",
    "open_like": "zarrfs.api.routines:open_like",
    "save": "zarrfs.api.persistence:save",
    "save_array": "zarrfs.api.persistence:save_array",
    "save_group": "zarrfs.api.persistence:save_group",
    "storage": "zarrfs.storage",
    "tree": "zarrfs.engine.hierarchy.subtrees:tree",
    "zeros": "zarrfs.api.routines:zeros",
    "zeros_like": "zarrfs.api.routines:zeros_like",
}
"""Name -> module and name in it, for names that are imported on first use: the command line starts without NumPy."""

_STORES_OF_ZARR_2 = (
    *("DBMStore", "DictStore", "DirectoryStore", "KVStore", "LMDBStore", "LRUStoreCache", "MemoryStore"),
    *("MongoDBStore", "RedisStore", "SQLiteStore", "TempStore", "ZipStore"),
)
_CODECS_OF_ZARR_2 = (
    *("Adler32", "AsType", "BZ2", "Base64", "BitRound", "Blosc", "CRC32", "Categorize", "Delta"),
    *(
        "FixedScaleOffset",
        "Fletcher32",
        "GZip",
        "JSON",
        "JenkinsLookup3",
        "LZ4",
        "LZMA",
        "MsgPack",
        "PackBits",
    ),
    *("Pickle", "Quantize", "Shuffle", "VLenArray", "VLenBytes", "VLenUTF8", "Zlib", "Zstd"),
    *("get_codec",),
)
"""Top-level names of zarr-python 2, for compatibility. The codecs are those of numcodecs."""


def __getattr__(name: str) -> Any:
    if name in _LAZY_IMPORTS:
        module, _, attribute = _LAZY_IMPORTS[name].partition(":")
        try:
            imported = import_module(module)
        except OSError as error:
            from zarrfs.errors import import_failure

            raise import_failure(error) from error
        value = getattr(imported, attribute) if attribute else imported
        globals()[name] = value
        return value
    if name in _STORES_OF_ZARR_2:
        return getattr(import_module("zarrfs.storage"), name)
    if name in _CODECS_OF_ZARR_2:
        return getattr(import_module("numcodecs"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
