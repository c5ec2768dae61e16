"""Whether the displayed data have been changed, moved or deleted in their store since they were opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Hashable
from typing import Any, Literal

import zarrfs
from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.reading import stored_array

__all__ = ["Change", "StoredDocuments"]

Change = Literal["changed", "missing"]


class StoredDocuments:
    """The metadata documents of a dataset and of level 0 of its image, or the file that contains them.

    The documents of remote stores are compared by the versions that the server states, a request each.
    """

    def __init__(self, dataset: Dataset, image: Image | None) -> None:
        self.is_remote = False
        self._file = dataset.location
        self._documents: list[tuple[Any, str]] = []
        self._first: dict[tuple[str, str], Hashable] | None = None
        nodes = [dataset.node, None if image is None else stored_array(image.levels[0].array)]
        for node in nodes:
            if isinstance(node, zarrfs.Array | zarrfs.Group):
                self.is_remote = self.is_remote or node.store.is_remote
                self._documents += [(node.store, key) for key in _document_keys(node)]

    def find_change(self) -> Change | None:
        """Return how the documents differ from those at the first call; None if they are equal. Blocks on the store.
        Raises ZarrError.
        """
        found = {(store.url, key): _stamp(store, key) for store, key in self._documents}
        found["", self._file] = _file_stamp(self._file)
        if self._first is None:
            self._first = {place: stamp for place, stamp in found.items() if stamp is not None}
            # A format has names of documents that no node has all of.
            self._documents = [
                (store, key) for store, key in self._documents if (store.url, key) in self._first
            ]
            return None
        if any(found.get(place) is None for place in self._first):
            return "missing"
        return "changed" if any(found[place] != stamp for place, stamp in self._first.items()) else None


def _document_keys(node: zarrfs.Array | zarrfs.Group) -> list[str]:
    from zarrfs.engine.formats import api as formats  # the engine takes long to import
    from zarrfs.engine.stores.locations import METADATA_NAMES

    names = formats.features(node.zarr_format).determining_documents or METADATA_NAMES
    return [f"{node.path}/{name}" if node.path else name for name in names]


def _stamp(store: Any, key: str) -> Hashable | None:
    """Return a value that changes if a document changes; None if it is missing."""
    from zarrfs.engine.stores.base import IMMUTABLE

    version: Hashable | None = store.version(key)
    if version is not None and version != IMMUTABLE:
        return version
    value = store.get(key)
    return None if value is None else bytes(value)


def _file_stamp(location: str) -> Hashable | None:
    """Return a value that changes if the file at a location changes; None if it is no file."""
    try:
        found = os.stat(location)
    except (OSError, ValueError):
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_mtime_ns, found.st_size, found.st_ino) if is_file else None
