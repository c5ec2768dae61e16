"""Detection of arrays that another program deletes while they are read. Deleted chunks read as the fill value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.stores.base import Store
from zarrfs.errors import StoreError

__all__ = ["check_presence", "unless_deleted"]


def check_presence(store: Store, path: str, activity: str, advice: str) -> None:
    """Raise StoreError if the metadata of an array are not stored. ``activity`` is what was done with it meanwhile."""
    if not _is_present(store, path):
        raise StoreError(
            f"{store.url}: the array {path or '/'!r} was deleted by another program while it was {activity}; {advice}"
        )


@contextmanager
def unless_deleted(activity: str, *arrays: Array) -> Iterator[None]:
    """Raise StoreError at the end of the context if one of the arrays was deleted within it.

    Put this into the context that replaces a node or a file, so that the replaced one remains.
    """
    # Consolidated metadata can describe an array that has no metadata of its own.
    present = [array for array in arrays if _is_present(array.store, array.path)]
    yield
    # A resumed run would keep incomplete chunks.
    advice = "new chunks may be incomplete: run this again with if_exists='replace' if the array exists"
    for array in present:
        check_presence(array.store, array.path, activity, advice)


def _is_present(store: Store, path: str) -> bool:
    return formats.read_kind(store, path) == "array"
