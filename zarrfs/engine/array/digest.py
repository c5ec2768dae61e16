"""A checksum of the encoded chunks and metadata documents of an array, as in zarr-python 2.

Arrays with equal values but different codecs have different checksums.
"""

from __future__ import annotations

from collections.abc import Iterable

from zarrfs.engine.array_context import ArrayContext
from zarrfs.errors import UnsupportedError

__all__ = ["stored_digest"]


def stored_digest(storage: ArrayContext, document_keys: Iterable[str], hashname: str) -> bytes:
    """Return the hash of the stored chunks in C order of the grid, followed by the metadata documents.

    ``hashname`` is a name that ``hashlib`` accepts. Missing chunks contribute nothing. Requires a listing where the
    store supports it.
    """
    import hashlib  # loads OpenSSL

    try:
        checksum = hashlib.new(hashname, usedforsecurity=False)
    except ValueError as error:
        names = ", ".join(sorted(hashlib.algorithms_guaranteed))
        raise UnsupportedError(
            f"{hashname!r} is not a known hash algorithm; expected one of {names}"
        ) from error
    for coords in storage.present_chunks():
        checksum.update(storage.store.get(storage.key(coords)) or b"")
    for key in document_keys:
        checksum.update(storage.store.get(key) or b"")
    return checksum.digest()
