"""Every exception that zarrfs raises on purpose.

::

    ZarrError                      the root: catch this to catch all of ours
    ├── LocationError              the location is no store that can be opened (unknown scheme, no Zarr data)
    │   └── LocationNotFoundError  (FileNotFoundError) there is no such file or directory
    ├── NodeNotFoundError          (KeyError, FileNotFoundError) no array and no group at that path
    ├── NodeTypeError              (TypeError, ValueError) a group where an array was asked for, or the reverse
    ├── NodeExistsError            (FileExistsError, ValueError) creating would replace a node that is there already
    ├── MetadataError              (ValueError) a metadata document is broken or breaks its specification
    │   ├── FillValueError         (OverflowError, TypeError) a fill value does not fit the data type
    │   └── UnsupportedError       it asks for a codec, data type, grid or extension that is unknown here
    ├── ChunkDecodeError           a chunk is present, but its bytes cannot be decoded
    ├── MissingChunkError          a chunk is absent, of an array opened so that this is an error
    ├── ChunkEncodeError           data cannot be encoded by the array's codecs
    │   └── DataError              (OverflowError, ValueError, TypeError) a value does not fit the array's data type
    ├── SelectionError             (IndexError) the selection does not fit the array
    │   └── DataShapeError         (ValueError) the data have another shape than the selection
    ├── OptionError                (TypeError, ValueError) an option is unknown, or has a value that it cannot have
    ├── KeyNameError               (ValueError) a key or node name that would leave the store or is not allowed
    ├── StoreError                 (OSError) the store failed: I/O error, permission, network
    │   └── ReadOnlyError          (PermissionError, ValueError) a write to something that was opened for reading
    ├── IncompleteCopyError        a copy lacks members of its source that cannot be read or written
    └── MountError                 FUSE is not usable, or a mount could not be made or removed

A message says what, where (location, node, key, chunk), what was found against what was expected, and what
to do. Where an exception of another library or of the operating system is the cause it is chained with ``from``.
The text of an exception is safe to display: control characters are escaped, and it is shortened when it is very long.

The built-in classes in parentheses are those that zarr-python 2 or 3 raises for the same fault, so that ``except``
clauses written for it still work.
"""

from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = [
    "ChunkDecodeError",
    "ChunkEncodeError",
    "DataError",
    "DataShapeError",
    "FillValueError",
    "IncompleteCopyError",
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
    "ReadOnlyError",
    "SelectionError",
    "StoreError",
    "UnsupportedError",
    "ZarrError",
    "describe_error",
]


class ZarrError(Exception):
    """The root of all exceptions of zarrfs."""

    def __str__(self) -> str:
        # KeyError, which one child is, would show the repr of its argument.
        return safe_text(" ".join(str(arg) for arg in self.args), MAX_MESSAGE)


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


class FillValueError(MetadataError, OverflowError, TypeError):
    """A fill value does not fit the data type of the array."""


class UnsupportedError(MetadataError):
    """A metadata document requires something that is not known here."""


class ChunkDecodeError(ZarrError):
    """A chunk that is present cannot be decoded. A missing chunk is no error: it is the fill value."""


class MissingChunkError(ZarrError):
    """A chunk is not there, of an array that was opened with ``Access(fill_missing=False)``."""


class ChunkEncodeError(ZarrError):
    """The data given for a chunk cannot be encoded by the codecs of the array."""


class DataError(ChunkEncodeError, OverflowError, ValueError, TypeError):
    """A value does not fit the data type of the array. Nothing was written.

    NumPy raises an OverflowError, a ValueError or a TypeError, depending on the value; this error is all three.
    """


class SelectionError(ZarrError, IndexError):
    """A selection does not fit the array's shape or the kind of indexing."""


class DataShapeError(SelectionError, ValueError):
    """The data that are assigned do not broadcast to the shape of the selection. Nothing was written."""


class OptionError(ZarrError, TypeError, ValueError):
    """A function has no option of that name, or an option has a value that it cannot have."""


class KeyNameError(ZarrError, ValueError):
    """A store key or node name that is not allowed, for instance one with a ``..`` segment."""


class StoreError(ZarrError, OSError):
    """A store failed to do what was asked. ``errno`` is that of the cause where there is one."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class ReadOnlyError(StoreError, PermissionError, ValueError):
    """A write was asked of a store or node that was opened read-only."""


class IncompleteCopyError(ZarrError):
    """A copy lacks members of its source that cannot be read, or that the destination cannot hold."""


class MountError(ZarrError):
    """FUSE is not usable here, or a mount could not be made, found or removed."""


def describe_error(error: BaseException) -> str:
    """Return the message of any exception, safe to display; those of others begin with the name of their class."""
    text = str(error)
    if not isinstance(error, ZarrError | OSError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return safe_text(text, MAX_MESSAGE)
