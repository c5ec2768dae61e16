"""Every exception that zarrfs raises on purpose. This module imports nothing of ours.

::

    ZarrError                      the root: catch this to catch all of ours
    ├── LocationError              the location is no store that can be opened (unknown scheme, no Zarr data)
    │   └── LocationNotFoundError  (FileNotFoundError) there is no such file or directory
    ├── NodeNotFoundError          (KeyError, FileNotFoundError) no array and no group at that path
    ├── NodeTypeError              (TypeError, ValueError) a group where an array was asked for, or the reverse
    ├── NodeExistsError            (FileExistsError, ValueError) creating would replace a node that is there already
    ├── MetadataError              (ValueError) a metadata document is broken or breaks its specification
    │   └── UnsupportedError       it asks for a codec, data type, grid or extension that is unknown here
    ├── ChunkDecodeError           a chunk is present, but its bytes cannot be decoded
    ├── MissingChunkError          a chunk is absent, of an array opened so that this is an error
    ├── ChunkEncodeError           data cannot be encoded by the array's codecs
    ├── SelectionError             (IndexError) the selection does not fit the array
    ├── KeyNameError               (ValueError) a key or node name that would leave the store or is not allowed
    ├── StoreError                 (OSError) the store failed: I/O error, permission, network
    │   └── ReadOnlyError          (PermissionError, ValueError) a write to something that was opened for reading
    └── MountError                 FUSE is not usable, or a mount could not be made or removed

A message says what, where (location, node, key, chunk), what was found against what was expected, and what
to do. Where an exception of another library or of the operating system is the cause it is chained with ``from``.

The built-in classes in parentheses are those that zarr-python 2 or 3 raises for the same fault, so that ``except``
clauses written for it still work.
"""

__all__ = [
    "ChunkDecodeError",
    "ChunkEncodeError",
    "KeyNameError",
    "LocationError",
    "LocationNotFoundError",
    "MetadataError",
    "MissingChunkError",
    "MountError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "ReadOnlyError",
    "SelectionError",
    "StoreError",
    "UnsupportedError",
    "ZarrError",
]


class ZarrError(Exception):
    """The root of all exceptions of zarrfs."""

    def __str__(self) -> str:
        # KeyError, which one child is, would show the repr of its argument.
        return " ".join(str(arg) for arg in self.args)


class LocationError(ZarrError):
    """The location names nothing that can be opened as a store."""


class LocationNotFoundError(LocationError, FileNotFoundError):
    """There is no file or directory at the location."""


class NodeNotFoundError(ZarrError, KeyError, FileNotFoundError):
    """There is neither an array nor a group at the path."""


class NodeTypeError(ZarrError, TypeError, ValueError):
    """The node at the path is of the other kind."""


class NodeExistsError(ZarrError, FileExistsError, ValueError):
    """Creating a node would replace one that exists."""


class MetadataError(ZarrError, ValueError):
    """A metadata document is broken, or breaks its specification."""


class UnsupportedError(MetadataError):
    """A metadata document requires something that is not known here."""


class ChunkDecodeError(ZarrError):
    """A chunk that is present cannot be decoded. A missing chunk is no error: it is the fill value."""


class MissingChunkError(ZarrError):
    """A chunk is not there, of an array that was opened with ``Access(fill_missing=False)``."""


class ChunkEncodeError(ZarrError):
    """The data given for a chunk cannot be encoded by the codecs of the array."""


class SelectionError(ZarrError, IndexError):
    """A selection does not fit the array's shape or the kind of indexing."""


class KeyNameError(ZarrError, ValueError):
    """A store key or node name that is not allowed, for instance one with a ``..`` segment."""


class StoreError(ZarrError, OSError):
    """A store failed to do what was asked. ``errno`` is that of the cause where there is one."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class ReadOnlyError(StoreError, PermissionError, ValueError):
    """A write was asked of a store or node that was opened read-only."""


class MountError(ZarrError):
    """FUSE is not usable here, or a mount could not be made, found or removed."""
