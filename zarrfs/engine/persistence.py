"""Saving NumPy arrays in one call and loading them again, as ``numpy.save`` and ``numpy.load`` do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Unpack

import numpy as np

from zarrfs.engine.creation.array_options import FilledOptions, lists_options
from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.node import StoredNode
from zarrfs.engine.open import open as open_node
from zarrfs.engine.open import open_group
from zarrfs.engine.routines import array as create_from
from zarrfs.engine.stores.base import Store

__all__ = ["SavedArrays", "load", "save", "save_array", "save_group"]


def save(
    store: Location,
    *args: Any,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    path: str | None = None,
    **kwargs: Any,
) -> None:
    """Save one array at a location, or a group of several, replacing what is there.

    One positional argument and nothing else becomes an array. Otherwise positional arguments become the members
    ``arr_0``, ``arr_1`` ..., and keyword arguments members of these names.
    """
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], zarr_format=zarr_format, zarr_version=zarr_version, path=path)
    else:
        save_group(store, *args, zarr_format=zarr_format, zarr_version=zarr_version, path=path, **kwargs)


@lists_options(FilledOptions)
def save_array(
    store: Location,
    arr: Any,
    *,
    path: str | None = None,
    storage_options: dict[str, Any] | None = None,
    **options: Unpack[FilledOptions],
) -> None:
    """Save an array at a location, replacing what is there; options as ``create_array``."""
    values = _values(arr, "arr")
    options.setdefault("overwrite", True)
    with _opened(store, storage_options) as (place, inner):
        create_from(values, place, _joined(inner, path), **options)


def save_group(
    store: Location,
    *args: Any,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    path: str | None = None,
    storage_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Save several arrays as members of a group, replacing what is there; see ``save`` for their names."""
    arrays = {f"arr_{number}": value for number, value in enumerate(args)}
    doubled = sorted(set(arrays) & set(kwargs))
    if doubled:
        raise ValueError(f"{doubled[0]!r} is the name of a positional argument and of a keyword argument")
    arrays |= kwargs
    if not arrays:
        raise ValueError("at least one array must be given")
    found = {name: _values(value, name) for name, value in arrays.items()}
    with _opened(store, storage_options) as (place, inner):
        group = open_group(
            place, _joined(inner, path), "w", zarr_format=zarr_format, zarr_version=zarr_version
        )
        for name, values in found.items():
            group.array(name, data=values)


def load(
    store: Location,
    path: str | None = None,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    *,
    storage_options: dict[str, Any] | None = None,
) -> Any:
    """Return an array at a location as a NumPy array, or a group as a mapping of names to NumPy arrays. The arrays of
    a group are read when they are asked for, once.
    """
    node = open_node(
        store,
        path,
        "r",
        storage_options=storage_options,
        zarr_format=zarr_format,
        zarr_version=zarr_version,
    )
    if isinstance(node, Group):
        return SavedArrays(node)
    try:
        return node[...]
    finally:
        if _is_opened_here(store):
            node.store.close()


class SavedArrays(Mapping[str, Any]):
    """The arrays of a group by name, each read when it is asked for, and kept. A group in it is a mapping too."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            node = self.group[name]
            self._read[name] = node[...] if isinstance(node, Array) else SavedArrays(node)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.group)

    def __len__(self) -> int:
        return len(self.group)

    def __contains__(self, name: object) -> bool:
        return name in self.group

    def __repr__(self) -> str:
        return f"<zarrfs.SavedArrays: {', '.join(self)}>"


def _values(value: Any, name: str) -> Any:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return value
    if isinstance(value, list | tuple | int | float | complex | bool):
        return np.asarray(value)
    raise TypeError(f"{name} must be an array, found {type(value).__name__}")


def _joined(*parts: str | None) -> str:
    return "/".join(part for part in parts if part)


def _is_opened_here(store: Location) -> bool:
    return not isinstance(store, Store | Mapping | StoredNode)


@contextmanager
def _opened(store: Location, storage_options: dict[str, Any] | None) -> Iterator[tuple[Store, str]]:
    """Yield the store at a location, and the path in it; closed afterwards if it was opened for that, so that an
    archive is complete.
    """
    place, inner = open_store(store, mode="a", storage_options=storage_options)
    try:
        yield place, inner
    finally:
        if _is_opened_here(store):
            place.close()
