"""A checksum of all that is stored of an array, as zarr-python 2 has it: of bytes, not of values.

Two arrays of the same values, encoded otherwise, differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.errors import UnsupportedError

__all__ = ["stored_digest"]


def stored_digest(storage: ArrayStorage, document_keys: Iterable[str], hashname: str) -> bytes:
    """Return the hash of the stored chunks in C order of the grid, followed by the metadata documents.

    ``hashname`` is a name that ``hashlib`` accepts. Missing chunks contribute nothing. Requires a listing where the
    store supports it.
    """
    try:
        checksum = hashlib.new(hashname, usedforsecurity=False)
    except ValueError as error:
        names = ", ".join(sorted(hashlib.algorithms_guaranteed))
        raise UnsupportedError(
            f"{hashname!r} is no hash that is known here; expected one of {names}"
        ) from error
    for coords in storage.present_chunks():
        checksum.update(storage.store.get(storage.key(coords)) or b"")
    for key in document_keys:
        checksum.update(storage.store.get(key) or b"")
    return checksum.digest()
