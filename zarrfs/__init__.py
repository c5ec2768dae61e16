"""zarrfs: one Zarr engine with two doors, a FUSE filesystem and a desktop viewer."""

from zarrfs._version import __version__
from zarrfs.engine.access import Access
from zarrfs.engine.array import Array
from zarrfs.engine.chunk_shapes import ChunkConstraint
from zarrfs.engine.group import Group
from zarrfs.engine.open import create_array, create_group, open, open_array, open_group
from zarrfs.engine.routines import (
    array,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    open_like,
    zeros,
    zeros_like,
)
from zarrfs.engine.stores.synchronizers import ProcessSynchronizer, ThreadSynchronizer
from zarrfs.errors import (
    ChunkDecodeError,
    ChunkEncodeError,
    DataError,
    DataShapeError,
    FillValueError,
    KeyNameError,
    LocationError,
    MetadataError,
    MissingChunkError,
    MountError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    OptionError,
    ReadOnlyError,
    SelectionError,
    StoreError,
    UnsupportedError,
    ZarrError,
)
from zarrfs.plugins import provide

# Stores that cannot list (web servers) learn the names of members from OME-NGFF metadata.
provide("zarrfs.member_names", "zarrfs.ngff.members:named_members")

__all__ = [
    "Access",
    "Array",
    "ChunkConstraint",
    "ChunkDecodeError",
    "ChunkEncodeError",
    "DataError",
    "DataShapeError",
    "FillValueError",
    "Group",
    "KeyNameError",
    "LocationError",
    "MetadataError",
    "MissingChunkError",
    "MountError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "OptionError",
    "ProcessSynchronizer",
    "ReadOnlyError",
    "SelectionError",
    "StoreError",
    "ThreadSynchronizer",
    "UnsupportedError",
    "ZarrError",
    "__version__",
    "array",
    "create_array",
    "create_group",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_group",
    "open_like",
    "zeros",
    "zeros_like",
]
