"""The exceptions of zarrfs.

::

    ZarrError                      the base class of all exceptions of zarrfs
    ├── LocationError              a location cannot be opened as a store (unknown scheme, no Zarr data)
    │   └── LocationNotFoundError  (FileNotFoundError, ValueError) the file or directory does not exist
    ├── NodeNotFoundError          (KeyError, FileNotFoundError, ValueError) there is no array or group at the path
    ├── NodeTypeError              (TypeError, ValueError) the node is a group instead of an array, or the reverse
    ├── NodeExistsError            (FileExistsError, ValueError) creating a node would replace an existing one
    ├── MetadataError              (ValueError) a metadata document is invalid
    │   ├── FillValueError         (OverflowError, TypeError) a fill value does not fit the data type
    │   └── UnsupportedError       it requires an unknown codec, data type, grid or extension
    ├── ChunkDecodeError           a stored chunk cannot be decoded
    ├── MissingChunkError          a chunk is missing, and the array was opened with ``fill_missing=False``
    ├── ChunkEncodeError           data cannot be encoded by the codecs of the array
    │   └── DataError              (OverflowError, ValueError, TypeError) a value does not fit the data type
    ├── SelectionError             (IndexError) a selection does not fit the array
    │   └── DataShapeError         (ValueError) the shape of the data does not fit the selection
    ├── OptionError                (TypeError, ValueError) an option is unknown or has an invalid value
    ├── KeyNameError               (ValueError) a key or node name is not allowed, for instance because of ``..``
    ├── StoreError                 (OSError) an operation of a store failed: I/O error, permission, network
    │   ├── ReadOnlyError          (PermissionError, ValueError) a write to a store or node that is open read-only
    │   ├── ConflictError          another writer has changed a value since it was read
    │   └── ServerError            a server cannot be reached, or does not answer as expected
    ├── IncompleteCopyError        members of a source cannot be read, or cannot be written to the destination
    └── MountError                 FUSE is not usable, or a mount cannot be created, found or removed

A message contains the problem, the location (store, node, key, chunk), the found and the expected value, and what to
do. Exceptions of other libraries and of the operating system are chained with ``from``. The text of an exception is
safe to display: control characters are escaped, credentials are removed, and very long text is shortened.

``CompatibilityWarning`` is a warning (``UserWarning``): a result differs from that of zarr-python.

The built-in classes in parentheses are the additional base classes. They are the classes that zarr-python 2 or 3 raises
for the same problem, so that existing ``except`` clauses work.
"""

from zarrfs.credentials import hide_credentials
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = [
    "ChunkDecodeError",
    "ChunkEncodeError",
    "CompatibilityWarning",
    "ConflictError",
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
    "ServerError",
    "StoreError",
    "UnsupportedError",
    "ZarrError",
    "describe_error",
    "import_failure",
]


class ZarrError(Exception):
    """The base class of all exceptions of zarrfs."""

    def __str__(self) -> str:
        # KeyError, a base of NodeNotFoundError, would return the repr of its argument.
        return safe_text(hide_credentials(" ".join(str(arg) for arg in self.args)), MAX_MESSAGE)


class CompatibilityWarning(UserWarning):
    """The result of an operation differs from that of zarr-python, which other code may expect. Warned of once."""


class LocationError(ZarrError):
    """A location cannot be opened as a store."""


class LocationNotFoundError(LocationError, FileNotFoundError, ValueError):
    """The file or directory of a location does not exist."""


class NodeNotFoundError(ZarrError, KeyError, FileNotFoundError, ValueError):
    """There is no array or group at the path."""


class NodeTypeError(ZarrError, TypeError, ValueError):
    """The node at the path is a group instead of an array, or an array instead of a group."""


class NodeExistsError(ZarrError, FileExistsError, ValueError):
    """Creating a node would replace an existing one."""


class MetadataError(ZarrError, ValueError):
    """A metadata document is invalid."""


class FillValueError(MetadataError, OverflowError, TypeError):
    """A fill value does not fit the data type of the array."""


class UnsupportedError(MetadataError):
    """A metadata document requires a feature that zarrfs does not support."""


class ChunkDecodeError(ZarrError):
    """A stored chunk cannot be decoded. A missing chunk does not raise this error; it reads as the fill value."""


class MissingChunkError(ZarrError):
    """A chunk is missing, and the array was opened with ``Access(fill_missing=False)``."""


class ChunkEncodeError(ZarrError):
    """The data of a chunk cannot be encoded by the codecs of the array."""


class DataError(ChunkEncodeError, OverflowError, ValueError, TypeError):
    """A value does not fit the data type of the array. Nothing was written.

    NumPy raises an OverflowError, a ValueError or a TypeError, depending on the value; this error is all three.
    """


class SelectionError(ZarrError, IndexError):
    """A selection does not fit the shape of the array, or is not valid for the kind of indexing."""


class DataShapeError(SelectionError, ValueError):
    """The assigned data cannot be broadcast to the shape of the selection. Nothing was written."""


class OptionError(ZarrError, TypeError, ValueError):
    """An option of a function is unknown or has an invalid value."""


class KeyNameError(ZarrError, ValueError):
    """A store key or node name is not allowed, for instance because it has a ``..`` segment."""


class StoreError(ZarrError, OSError):
    """An operation of a store failed. ``errno`` is the error number of the cause, or None."""

    def __init__(self, message: str, errno: int | None = None) -> None:
        super().__init__(message)
        self.errno = errno


class ReadOnlyError(StoreError, PermissionError, ValueError):
    """A write to a store or node that is open read-only."""


class ConflictError(StoreError):
    """Another writer has changed a value since it was read. Read it again, and repeat the change."""


class ServerError(StoreError):
    """A server cannot be reached, does not respond in time, or does not answer as expected.

    It concerns the whole store: functions that leave out members which cannot be read raise this error.
    """


class IncompleteCopyError(ZarrError):
    """A copy is incomplete: members of the source cannot be read, or cannot be written to the destination."""


class MountError(ZarrError):
    """FUSE is not usable, or a mount cannot be created, found or removed."""


def describe_error(error: BaseException) -> str:
    """Return the message of any exception as text that is safe to display.

    For an exception that is not a ZarrError or OSError it begins with the name of the class.
    """
    text = str(error)
    if not isinstance(error, ZarrError | OSError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return safe_text(hide_credentials(text), MAX_MESSAGE)


def import_failure(error: OSError) -> StoreError:
    """Return the error for a module that the operating system could not read, such as when too many files are open.

    Most modules are imported when they are needed.
    """
    name = f" {error.filename}" if error.filename else ""
    return StoreError(f"the module{name} cannot be imported: {error.strerror or error}", error.errno)
