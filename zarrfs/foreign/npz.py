"""NumPy archives (.npz) as groups of arrays."""

from __future__ import annotations

import os
import zipfile
from typing import Any

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError
from zarrfs.foreign.contiguous import path_stamp
from zarrfs.foreign.npy import array_of_npy
from zarrfs.foreign.presented_store import PresentedArray, PresentedStore
from zarrfs.foreign.stored_values import spooled

__all__ = ["open_npz"]

MAX_MEMBERS = 10_000


def open_npz(path: str) -> PresentedStore:
    """Return a store with the numeric arrays of a .npz file, as ``numpy.savez`` and ``savez_compressed`` write it.

    Compressed members are written to temporary files. Raises LocationError for a damaged file.
    """
    os.close(open_regular_file(path))  # not a FIFO or a device
    nodes: dict[str, PresentedArray | dict[str, Any]] = {}
    descriptors: list[int] = []
    reasons: list[str] = []

    def close() -> None:
        while descriptors:
            os.close(descriptors.pop())

    try:
        with zipfile.ZipFile(path) as archive:
            members = [item for item in archive.infolist() if item.filename.endswith(".npy")]
            if len(members) > MAX_MEMBERS:
                raise LocationError(f"{path} has {len(members)} arrays; at most {MAX_MEMBERS} are presented")
            for item in members:
                with archive.open(item) as stream:
                    fd = spooled(stream, item.file_size)
                descriptors.append(fd)
                try:
                    nodes[item.filename.removesuffix(".npy")] = array_of_npy(fd, f"{path}: {item.filename}")
                except UnsupportedError as error:
                    reasons.append(str(error))
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        close()
        if isinstance(error, LocationError):
            raise
        raise LocationError(f"{path} cannot be read as a NumPy archive: {error}") from error
    except BaseException:
        close()
        raise
    if not nodes:
        close()
        raise UnsupportedError(reasons[0] if reasons else f"{path} contains no arrays")
    return PresentedStore(f"file://{path}", nodes, lambda: path_stamp(path), close)
