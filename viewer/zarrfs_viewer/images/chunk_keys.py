"""Chunk coordinates and store keys of array elements, and which chunks are stored.

This is the only module of the viewer that uses ``Array.storage``, which is not public. An array-like object
without ``storage`` has no keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from zarrfs_viewer.images.reading import SourceArray, stored_array, uniform_chunks

__all__ = [
    "Region",
    "chunk_key",
    "chunk_of",
    "lists_chunks",
    "stored",
    "stored_chunk_shape",
    "stored_regions",
]

Region = tuple[slice, ...]
"""The elements of a stored chunk: one slice for each axis."""

MAX_LOCAL_KEYS = 1 << 18
MAX_REMOTE_KEYS = 1 << 14
"""The maximum number of keys that are listed, in local and in remote stores: about a second."""


def _storage(array: SourceArray) -> Any:
    return getattr(stored_array(array), "storage", None)


def stored_chunk_shape(array: SourceArray) -> tuple[int, ...]:
    """Return the shape of a shard if the array is sharded, otherwise of a chunk: the values that have one key."""
    inner = stored_array(array)
    shards = getattr(inner, "shards", None)
    shape = tuple(shards) if shards is not None else uniform_chunks(inner)
    return (1,) * (len(array.shape) - len(shape)) + shape


def chunk_of(array: SourceArray, element: Sequence[int]) -> tuple[int, ...]:
    """Return the coordinates of the stored chunk (or shard) that contains an element."""
    storage = _storage(array)
    if storage is not None:
        stored_element = element[len(element) - len(storage.axes) :]
        return tuple(axis.find(index) for axis, index in zip(storage.axes, stored_element, strict=True))
    shape = stored_chunk_shape(array)
    return tuple(index // length for index, length in zip(element, shape, strict=True))


def chunk_key(array: SourceArray, element: Sequence[int]) -> str | None:
    """Return the store key of the chunk that contains an element, or None if it is not known."""
    storage = _storage(array)
    return None if storage is None else str(storage.key(chunk_of(array, element)))


def stored(array: SourceArray, elements: Iterable[Sequence[int]]) -> list[bool]:
    """Return for each element whether its chunk is stored; True if the array has no store. Blocks on the store."""
    storage = _storage(array)
    exists: dict[tuple[int, ...], bool] = {}
    results = []
    for element in elements:
        if storage is None:
            results.append(True)
            continue
        coords = chunk_of(array, element)
        if coords not in exists:
            exists[coords] = bool(storage.store.exists(storage.key(coords)))
        results.append(exists[coords])
    return results


def lists_chunks(array: SourceArray) -> bool:
    """Return whether the store of an array lists the stored chunks."""
    storage = _storage(array)
    return storage is not None and bool(storage.store.listable)


def stored_regions(array: SourceArray) -> Iterator[Region]:
    """Yield the region of each stored chunk (or shard), of very many chunks only the first ones; none if the store does
    not list them. Blocks. Raises ZarrError.
    """
    storage = _storage(array)
    if storage is None or not storage.store.listable:
        return
    limit = MAX_REMOTE_KEYS if storage.store.is_remote else MAX_LOCAL_KEYS
    added = (slice(0, 1),) * (len(array.shape) - len(storage.axes))
    for coords in islice(storage.stored_chunks(), limit):
        parts = []
        for axis, chunk in zip(storage.axes, coords, strict=True):
            start = axis.begin(chunk)
            parts.append(slice(start, min(start + axis.size(chunk), axis.length)))
        yield (*added, *parts)
