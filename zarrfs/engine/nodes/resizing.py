"""Changes of an array's shape: checks of the new shape, and deletion of the chunks outside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.errors import DataShapeError, SelectionError

__all__ = ["appended_shape", "checked_axis", "checked_shape", "delete_outside"]


def checked_shape(arguments: Sequence[Any], ndim: int, where: str) -> tuple[int, ...]:
    """Return the shape that the arguments of ``resize`` state: one integer per dimension, or one tuple of them.

    ``where`` names the array in messages. Raises SelectionError if they are not ``ndim`` non-negative integers.
    """
    is_tuple = len(arguments) == 1 and isinstance(arguments[0], tuple | list)
    shape = tuple(arguments[0]) if is_tuple else tuple(arguments)
    if len(shape) != ndim or not all(isinstance(n, int | np.integer) and n >= 0 for n in shape):
        raise SelectionError(
            f"{where}: {shape} is not a valid shape for an array of {ndim} dimensions; expected {ndim} integers of at "
            "least 0"
        )
    return tuple(int(n) for n in shape)


def checked_axis(axis: Any, ndim: int, where: str) -> int:
    """Return the dimension along which data are appended, from 0. Raises SelectionError if there is no such one."""
    if not ndim:
        raise SelectionError(f"{where}: nothing can be appended to an array without dimensions")
    if not isinstance(axis, int | np.integer) or not -ndim <= axis < ndim:
        raise SelectionError(
            f"{where}: axis {axis!r} is out of range for an array of {ndim} dimensions; expected an integer from "
            f"{-ndim} to {ndim - 1}"
        )
    return int(axis) % ndim


def appended_shape(
    shape: tuple[int, ...], data_shape: tuple[int, ...], axis: int, where: str
) -> tuple[int, ...]:
    """Return the shape after data are appended along ``axis``.

    Raises DataShapeError if the data differ from the array in another dimension.
    """
    if len(data_shape) != len(shape) or any(i != axis and n != data_shape[i] for i, n in enumerate(shape)):
        raise DataShapeError(
            f"{where}: data of shape {data_shape} cannot be appended to {shape} in dimension {axis}; the other "
            "dimensions must be the same"
        )
    return tuple(n + data_shape[i] if i == axis else n for i, n in enumerate(shape))


def delete_outside(
    storage: ArrayStorage, stored: Iterable[tuple[int, ...]], grid_shape: tuple[int, ...]
) -> None:
    """Delete those of the stored chunks, given by their coordinates, that are outside a grid of ``grid_shape``."""
    for coords in stored:
        if any(c >= n for c, n in zip(coords, grid_shape, strict=True)):
            storage.store.delete(storage.key(coords))
