"""The creation routines of groups under the names of zarr-python: ``group.zeros``, ``group.create_dataset`` ...

All of them go through ``create_array`` and ``require_array``, which a group defines.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Unpack

from zarrfs.engine.creation.array_options import ArrayOptions, FilledOptions, StorageOptions, lists_options
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.similar_arrays import options_like, spec_of

__all__ = ["GroupRoutines"]


class GroupRoutines(ABC):
    """The creation routines of a group. ``name`` may be a path; groups on the way to it are created."""

    @abstractmethod
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group."""

    @abstractmethod
    def require_array(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name, created if there is none."""

    @lists_options(ArrayOptions)
    def create(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``."""
        return self.create_array(name, **options)

    @lists_options(ArrayOptions)
    def create_dataset(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``, under the name that h5py has for it."""
        return self.create_array(name, **options)

    @lists_options(FilledOptions)
    def require_dataset(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name; the same as ``require_array``, under the name that h5py has for it."""
        return self.require_array(name, shape, dtype, exact, **options)

    @lists_options(ArrayOptions)
    def array(self, name: str, data: Any = None, **options: Any) -> Array:
        """Create an array that holds the data; without data an empty one, for which ``shape`` is needed.

        Of an array of this package or of zarr-python everything is kept that the options do not say otherwise, as by
        ``zarrfs.from_array``.
        """
        spec = None if data is None else spec_of(data)
        if spec is None:
            return self.create_array(name, data=data, **options)
        made = {"attributes": dict(spec.attributes)} | options_like(data, self._in_own_format(options))
        return self.create_array(name, **made, copy_from=data)

    @lists_options(FilledOptions)
    def empty(self, name: str, shape: Any, **options: Unpack[FilledOptions]) -> Array:
        """Create an array that reads as the default value of its data type."""
        return self.create_array(name, shape=shape, **options)

    @lists_options(StorageOptions)
    def zeros(self, name: str, shape: Any, **options: Unpack[StorageOptions]) -> Array:
        """Create an array of zeros."""
        return self.create_array(name, shape=shape, fill_value=0, **options)

    @lists_options(StorageOptions)
    def ones(self, name: str, shape: Any, **options: Unpack[StorageOptions]) -> Array:
        """Create an array of ones."""
        return self.create_array(name, shape=shape, fill_value=1, **options)

    @lists_options(StorageOptions)
    def full(self, name: str, fill_value: Any, shape: Any, **options: Unpack[StorageOptions]) -> Array:
        """Create an array that reads as ``fill_value`` everywhere."""
        return self.create_array(name, shape=shape, fill_value=fill_value, **options)

    @lists_options(ArrayOptions)
    def empty_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array like another one; with its fill value if it has one."""
        return self.create_array(name, **options_like(data, self._in_own_format(options)))

    @lists_options(StorageOptions)
    def zeros_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of zeros like another one."""
        return self.empty_like(name, data, **{**options, "fill_value": 0})

    @lists_options(StorageOptions)
    def ones_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of ones like another one."""
        return self.empty_like(name, data, **{**options, "fill_value": 1})

    @lists_options(StorageOptions)
    def full_like(self, name: str, data: Any, fill_value: Any = None, **options: Any) -> Array:
        """Create an array like another one, reading as ``fill_value``; without one as the other array does where
        nothing was written.
        """
        given = options if fill_value is None else {**options, "fill_value": fill_value}
        return self.empty_like(name, data, **given)

    def _in_own_format(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return options with the format of the group, unless they have one."""
        if options.get("zarr_format") is not None or options.get("zarr_version") is not None:
            return options
        zarr_format: int | str = self.zarr_format  # type: ignore[attr-defined]
        return {**options, "zarr_format": 2 if zarr_format == 1 else zarr_format}
