"""A read-only store that presents arrays of another format as a Zarr v3 hierarchy.

The documents are generated. A chunk is read from the file when its key is requested, so that the engine, its cache and
the viewer need no special code for these files.
"""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

from zarrfs.engine.formats.paths import join
from zarrfs.engine.stores.base import Buffer, Listing, Store
from zarrfs.errors import StoreError, UnsupportedError, ZarrError
from zarrfs.files.foreign_array import ForeignArray

__all__ = ["ForeignStore"]

MAX_KEPT_NBYTES = 1 << 25
"""The bytes of chunks that are kept, because the engine reads ranges of a chunk one after the other."""


class ForeignStore(Store):
    """The arrays and groups of a file.

    ``nodes`` maps paths to arrays and to the attributes of groups; missing parent groups are added. A path can also map
    to an error, which is raised when the metadata of that node are read. ``stamp`` returns the version of the file;
    ``close_file`` is called once.
    """

    read_only = True
    ignored_metadata = ""
    """A sentence about metadata of the file that are not valid, so that the values are presented without them."""
    files: tuple[str, ...] = ()
    """The paths of the files of an image that consists of several files, as its metadata state."""
    description = ""
    """How the positions of several files were determined, for the user."""

    def __init__(
        self,
        url: str,
        nodes: Mapping[str, ForeignArray | Mapping[str, Any] | ZarrError],
        stamp: Callable[[], Hashable | None],
        close_file: Callable[[], None],
    ) -> None:
        self._url = url
        self._stamp = stamp
        # Nodes refer to the store, and nobody closes it while they are in use: the last reference closes the file.
        self._finalizer = weakref.finalize(self, close_file)
        self._arrays = {path: node for path, node in nodes.items() if isinstance(node, ForeignArray)}
        self._documents: dict[str, bytes] = {}
        self._errors = {
            join(path, "zarr.json"): node for path, node in nodes.items() if isinstance(node, ZarrError)
        }
        groups = {path: dict(node) for path, node in nodes.items() if isinstance(node, Mapping)}
        for path in [*nodes]:
            while path:
                path = path.rpartition("/")[0]
                groups.setdefault(path, {})
        for path, attributes in groups.items():
            if path not in self._arrays:
                document = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
                self._documents[join(path, "zarr.json")] = _encoded(document, url)
        for path, array in self._arrays.items():
            self._documents[join(path, "zarr.json")] = _encoded(array.document(), url)
        self._children: dict[str, set[str]] = {}
        for path in dict.fromkeys((*groups, *nodes)):
            if path:
                parent, _, name = path.rpartition("/")
                self._children.setdefault(parent, set()).add(name)
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._kept_nbytes = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return self._url

    @property
    def arrays(self) -> Mapping[str, ForeignArray]:
        """The arrays by their paths. Their values can be read while there is a reference to the store."""
        return self._arrays

    def get(self, key: str) -> Buffer | None:
        self._check_open()
        document = self._document(key)
        if document is not None:
            return document
        found = self._find_chunk(key)
        if found is None:
            return None
        version = key, self._chunk_stamp(*found)
        with self._lock:
            kept = self._kept.get(version)
        return kept if kept is not None else self._read(key, version, *found)

    def _document(self, key: str) -> bytes | None:
        """Return the document with this key, or None if the key is not that of a document."""
        error = self._errors.get(key)
        if error is not None:
            raise type(error)(*error.args) from error
        return self._documents.get(key)

    def _read(self, key: str, version: Hashable, array: ForeignArray, coordinates: tuple[int, ...]) -> bytes:
        try:
            value = array.chunk(coordinates)
        except ZarrError:
            raise
        except OSError as error:
            raise StoreError(
                f"{self._url}: {key} cannot be read: {error.strerror or error}", error.errno
            ) from error
        except Exception as error:  # the libraries raise errors of many kinds for damaged files
            raise StoreError(f"{self._url}: {key} cannot be read: {error}") from error
        with self._lock:
            if version not in self._kept and len(value) <= MAX_KEPT_NBYTES:
                self._kept[version] = value
                self._kept_nbytes += len(value)
                while self._kept_nbytes > MAX_KEPT_NBYTES:
                    self._kept_nbytes -= len(self._kept.popitem(last=False)[1])
        return value

    def _find_chunk(self, key: str) -> tuple[ForeignArray, tuple[int, ...]] | None:
        """Return the array and the chunk coordinates of a key, or None if it is not the key of a chunk."""
        match = re.fullmatch(r"(?:(.*)/)?c((?:/\d{1,18})*)", key)
        array = None if match is None else self._arrays.get(match[1] or "")
        if match is None or array is None:
            return None
        coordinates = tuple(int(part) for part in match[2].split("/")[1:])
        if len(coordinates) != len(array.shape) or any(
            number >= count for number, count in zip(coordinates, array.grid, strict=True)
        ):
            return None
        return array, coordinates

    def size(self, key: str) -> int | None:
        self._check_open()
        document = self._document(key)
        if document is not None:
            return len(document)
        found = self._find_chunk(key)
        if found is None:
            return None
        nbytes = found[0].chunk_nbytes
        return len(memoryview(self.get(key) or b"")) if nbytes is None else nbytes

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        if self._document(key) is not None:
            return self._stamp()
        found = self._find_chunk(key)
        return None if found is None else self._chunk_stamp(*found)

    def _chunk_stamp(self, array: ForeignArray, coordinates: tuple[int, ...]) -> Hashable | None:
        return self._stamp() if array.stamp is None else array.stamp(coordinates)

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        name = join(prefix, "zarr.json")
        keys = ["zarr.json"] if name in self._documents or name in self._errors else []
        prefixes = sorted(self._children.get(prefix, ()))
        array = self._arrays.get(prefix)
        if array is not None:
            prefixes = sorted({*prefixes, "c"}) if array.shape else prefixes
            return Listing(keys if array.shape else ["c", *keys], prefixes)
        if not keys:  # a directory of chunks
            names = {key[len(prefix) + 1 :].partition("/")[::2] for key in self.list_prefix(prefix)}
            return Listing(
                sorted(name for name, rest in names if not rest), sorted({n for n, rest in names if rest})
            )
        return Listing(keys, prefixes)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        self._check_open()
        start = f"{prefix}/" if prefix else ""
        for key in (*self._documents, *self._errors):
            if key.startswith(start):
                yield key
        for path, array in self._arrays.items():
            base = join(path, "c")
            if not (base.startswith(start) or start.startswith(f"{base}/")):
                continue
            for coordinates in self._listed(path, array):
                key = "/".join((base, *map(str, coordinates)))
                if key.startswith(start):
                    yield key

    def _listed(self, path: str, array: ForeignArray) -> Iterator[tuple[int, ...]]:
        try:
            yield from array.listed()
        except (OSError, RuntimeError, ValueError, UnsupportedError) as error:
            raise StoreError(f"{self._url}: the chunks of {path or '/'} cannot be listed: {error}") from error

    def close(self) -> None:
        if not self._closed:
            super().close()
            with self._lock:
                self._kept.clear()
                self._kept_nbytes = 0
            self._finalizer()


def _encoded(document: Mapping[str, Any], url: str) -> bytes:
    try:
        return json.dumps(document, allow_nan=True).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise ZarrError(f"{url}: the metadata cannot be presented: {error}") from error
