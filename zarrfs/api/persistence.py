"""The functions ``save`` and ``load``, which store and load NumPy arrays in one call like ``numpy.save``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Unpack

import numpy as np

from zarrfs.api.open import open as open_node
from zarrfs.api.open import open_group
from zarrfs.api.routines import array as create_from
from zarrfs.engine.array.array import Array
from zarrfs.engine.create.array_options import FilledOptions, with_options_signature
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import Location, open_store

__all__ = ["SavedArrays", "load", "save", "save_array", "save_group"]


def save(
    store: Location,
    *args: Any,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    path: str | None = None,
    storage_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Save one array at a location, or several in a group. An existing node is replaced.

    A single positional argument is saved as an array. Otherwise a group is saved: positional arguments become its
    members ``arr_0``, ``arr_1`` ..., keyword arguments become members of these names.
    """
    place: dict[str, Any] = {
        "zarr_format": zarr_format,
        "zarr_version": zarr_version,
        "path": path,
        "storage_options": storage_options,
    }
    if len(args) == 1 and not kwargs:
        save_array(store, args[0], **place)
    else:
        save_group(store, *args, **place, **kwargs)


@with_options_signature(FilledOptions)
def save_array(
    store: Location,
    arr: Any,
    *,
    path: str | None = None,
    storage_options: dict[str, Any] | None = None,
    **options: Unpack[FilledOptions],
) -> None:
    """Save an array at a location. An existing node is replaced. Options are those of ``create_array``.

    Raises TypeError if ``arr`` is not an array, a list, a tuple or a number.
    """
    values = _as_array(arr, "arr")
    options.setdefault("overwrite", True)
    with _opened(store, storage_options) as (opened, inner):
        create_from(values, opened, _joined(inner, path), **options)


def save_group(
    store: Location,
    *args: Any,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    path: str | None = None,
    storage_options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Save several arrays as members of a group; see ``save`` for their names. An existing node is replaced.

    Raises ValueError if there is no array or if two have the same name.
    """
    members = {f"arr_{number}": value for number, value in enumerate(args)}
    duplicates = sorted(set(members) & set(kwargs))
    if duplicates:
        raise ValueError(f"{duplicates[0]!r} is the name of a positional argument and of a keyword argument")
    members |= kwargs
    if not members:
        raise ValueError("at least one array must be given")
    arrays = {name: _as_array(value, name) for name, value in members.items()}
    with _opened(store, storage_options) as (opened, inner):
        group = open_group(
            opened, _joined(inner, path), "w", zarr_format=zarr_format, zarr_version=zarr_version
        )
        for name, array in arrays.items():
            group.array(name, data=array)


def load(
    store: Location,
    path: str | None = None,
    zarr_format: int | str | None = None,
    zarr_version: int | None = None,
    *,
    storage_options: dict[str, Any] | None = None,
) -> Any:
    """Load the array at a location as a NumPy array, or the group as a mapping of names to NumPy arrays.

    The arrays of a group are read on first access and retained in the mapping.
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
    """A mapping of names to the arrays of a group. Each is read on first access and retained.

    A subgroup is a mapping of this kind. The store stays open as long as the mapping exists.
    """

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


def _as_array(value: Any, name: str) -> Any:
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
    """Yield the store of a location and the path in it. A store that was opened here is closed, which completes an
    archive.
    """
    opened, inner = open_store(store, mode="a", storage_options=storage_options)
    with opened if _is_opened_here(store) else nullcontext():
        yield opened, inner
