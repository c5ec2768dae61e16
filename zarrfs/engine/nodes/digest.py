"""A checksum of all that is stored of an array, as zarr-python 2 has it: of bytes, not of values.

Two arrays of the same values, encoded otherwise, differ.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from zarrfs.engine.formats import api as formats
from zarrfs.errors import UnsupportedError

if TYPE_CHECKING:
    from zarrfs.engine.nodes.array import Array

__all__ = ["stored_digest"]


def stored_digest(array: Array, hashname: str) -> bytes:
    """Return the hash of the stored chunks in the order of the grid, then of the array's documents, attributes last.

    ``hashname`` is a name that ``hashlib`` knows. What is absent adds nothing. Costs a listing, where the store lists.
    """
    try:
        checksum = hashlib.new(hashname, usedforsecurity=False)
    except ValueError as error:
        names = ", ".join(sorted(hashlib.algorithms_guaranteed))
        raise UnsupportedError(
            f"{hashname!r} is no hash that is known here; expected one of {names}"
        ) from error
    layout, store = array.storage, array.store
    for coords in layout.present_chunks():
        checksum.update(store.get(layout.key(coords)) or b"")
    for key in formats.document_keys(store, array.path, array.spec):
        checksum.update(store.get(key) or b"")
    return checksum.digest()
