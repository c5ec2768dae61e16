"""Which chunk an element is in, under which key it is stored, and which chunks there are.

The only part of the viewer that looks behind an array's public face; a double without ``storage`` simply has
no keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from zarrfs_viewer.images.reading import Lifted, SourceArray, uniform_chunks

__all__ = ["chunk_key", "chunk_of", "stored", "stored_chunk_shape"]


def _storage(array: SourceArray) -> Any:
    return getattr(array.array if isinstance(array, Lifted) else array, "storage", None)


def stored_chunk_shape(array: SourceArray) -> tuple[int, ...]:
    """Return the shape of what has a key of its own: a shard where there are shards, else a chunk."""
    inner = array.array if isinstance(array, Lifted) else array
    shards = getattr(inner, "shards", None)
    shape = tuple(shards) if shards is not None else uniform_chunks(inner)
    return (1,) * (len(array.shape) - len(shape)) + shape


def chunk_of(array: SourceArray, element: Sequence[int]) -> tuple[int, ...]:
    """Return the coordinates, in the grid of stored chunks, of the chunk that holds an element."""
    storage = _storage(array)
    if storage is not None:
        own = element[len(element) - len(storage.axes) :]
        return tuple(axis.find(index) for axis, index in zip(storage.axes, own, strict=True))
    shape = stored_chunk_shape(array)
    return tuple(index // length for index, length in zip(element, shape, strict=True))


def chunk_key(array: SourceArray, element: Sequence[int]) -> str | None:
    """Return the store key of the chunk that holds an element; None where keys are not known."""
    storage = _storage(array)
    return None if storage is None else str(storage.key(chunk_of(array, element)))


def stored(array: SourceArray, elements: Iterable[Sequence[int]]) -> list[bool]:
    """Tell for each element whether its chunk is stored (True where that cannot be told). Asks the store:
    blocks.
    """
    storage = _storage(array)
    known: dict[tuple[int, ...], bool] = {}
    answers = []
    for element in elements:
        if storage is None:
            answers.append(True)
            continue
        coords = chunk_of(array, element)
        if coords not in known:
            known[coords] = bool(storage.store.exists(storage.key(coords)))
        answers.append(known[coords])
    return answers
