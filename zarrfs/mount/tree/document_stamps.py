"""Stamps of metadata documents: values that change when a document of a node changes."""

from __future__ import annotations

from collections.abc import Hashable

from zarrfs.engine.formats import api as formats
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import METADATA_NAMES

__all__ = ["document_stamps"]


def document_stamps(store: Store, path: str, zarr_format: int | str | None) -> Hashable | None:
    """Return a value that changes if a metadata document at the path changes, or None if it is not available.

    High-latency stores are excluded: there a stamp costs as much as reading the document.
    """
    if store.is_remote:
        return None
    prefix = f"{path}/" if path else ""
    try:
        if zarr_format is None:
            stamp = store.stamp(prefix + METADATA_NAMES[0])
            if stamp is not None:
                return (stamp,)
            names: tuple[str, ...] = METADATA_NAMES
        else:
            names = formats.features(zarr_format).determining_documents or METADATA_NAMES
        stamps = tuple([store.stamp(prefix + name) for name in names])
    except Exception:  # opening the node reports the error
        return None
    if all(stamp is None for stamp in stamps):
        return None
    # As many stamps as a node of unknown format has.
    return stamps[:1] if stamps[0] is not None else stamps + (None,) * (len(METADATA_NAMES) - len(stamps))
