"""NumPy archives (.npz) as groups of arrays."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import path_stamp
from zarrfs.files.foreign_array import ForeignArray
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.npy.reader import array_of_npy
from zarrfs.files.stored_values import spooled

__all__ = ["open_npz"]

MAX_MEMBERS = 10_000


def open_npz(path: str) -> ForeignStore:
    """Return a store with the numeric arrays of a .npz file, as ``numpy.savez`` and ``savez_compressed`` write it.

    Members are written to temporary files. Those that are not numeric raise UnsupportedError when they are opened.
    Raises LocationError for a damaged file.
    """
    os.close(open_regular_file(path))  # not a FIFO or a device
    nodes: dict[str, ForeignArray | dict[str, Any] | ZarrError] = {}
    descriptors: list[int] = []

    def close() -> None:
        while descriptors:
            os.close(descriptors.pop())

    try:
        with zipfile.ZipFile(path) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
            if len(members) > MAX_MEMBERS:
                raise LocationError(f"{path} has {len(members)} arrays; at most {MAX_MEMBERS} are presented")
            for item in members:
                where = f"{path}: {item.filename}"
                try:
                    with archive.open(item) as stream:
                        fd = spooled(stream, item.file_size)
                    descriptors.append(fd)
                    node: ForeignArray | ZarrError = array_of_npy(fd, where)
                except UnsupportedError as error:
                    node = error
                except LocationError as error:
                    raise LocationError(f"{where}: {error}") from error
                nodes[item.filename.removesuffix(".npy")] = node
    except ZarrError:
        close()
        raise
    except Exception as error:  # zipfile and the decompressors raise errors of many kinds for damaged files
        close()
        raise LocationError(f"{path} cannot be read as a NumPy archive: {error}") from error
    except BaseException:
        close()
        raise
    errors = [node for node in nodes.values() if isinstance(node, ZarrError)]
    if len(errors) == len(nodes):
        close()
        raise errors[0] if errors else UnsupportedError(f"{path} contains no arrays")
    return ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), close)
