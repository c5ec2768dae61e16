"""Stamps of metadata documents: values that change when a document of a node changes."""

from __future__ import annotations

from collections.abc import Hashable

from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.stores.base import Store

__all__ = ["document_stamps"]

STAMPED_NAMES: dict[int | str, tuple[str, ...]] = {
    3: ("zarr.json",),
    2: ("zarr.json", ".zarray", ".zgroup", ".zattrs"),
}
"""By format, the documents that determine a node: its own, and those of the formats that take precedence. For other
formats, all documents.
"""


def document_stamps(store: Store, path: str, zarr_format: int | str | None) -> Hashable | None:
    """Return a value that changes if a metadata document at the path changes, or None if it is not available.

    High-latency stores are excluded: there a stamp costs as much as reading the document.
    """
    if store.concurrency > 1:
        return None
    prefix = f"{path}/" if path else ""
    try:
        if zarr_format is None:
            stamp = store.stamp(prefix + "zarr.json")
            if stamp is not None:
                return (stamp,)
            names: tuple[str, ...] = tuple(METADATA_NAMES)
        else:
            names = STAMPED_NAMES.get(zarr_format, tuple(METADATA_NAMES))
        stamps = tuple([store.stamp(prefix + name) for name in names])
    except Exception:  # opening the node reports the error
        return None
    if all(stamp is None for stamp in stamps):
        return None
    # As many stamps as a node of unknown format has.
    return stamps[:1] if stamps[0] is not None else stamps + (None,) * (len(METADATA_NAMES) - len(stamps))
