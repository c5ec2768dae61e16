"""The array creation methods of groups under the names of zarr-python: ``group.zeros``, ``group.create_dataset`` ...

All of them call ``create_array`` or ``require_array``, which ``Group`` implements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Unpack

from zarrfs.engine.creation.array_options import (
    ArrayOptions,
    FilledOptions,
    UnfilledOptions,
    with_options_signature,
)
from zarrfs.engine.formats import api as formats
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.creation.similar_arrays import options_like, spec_of
from zarrfs.engine.options import with_fill_value

__all__ = ["GroupRoutines"]


class GroupRoutines(ABC):
    """The array creation methods of a group. A base class of ``Group``.

    ``name`` may be a path; missing ancestors are created. The errors are those of ``create_array``.
    """

    @abstractmethod
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group."""

    @abstractmethod
    def require_array(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name, and create it if it does not exist."""

    @with_options_signature(ArrayOptions)
    def create(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``."""
        return self.create_array(name, **options)

    @with_options_signature(ArrayOptions)
    def create_dataset(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``, under the name that h5py uses."""
        return self.create_array(name, **options)

    @with_options_signature(FilledOptions)
    def require_dataset(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name; the same as ``require_array``, under the name that h5py uses."""
        return self.require_array(name, shape, dtype, exact, **options)

    @with_options_signature(ArrayOptions)
    def array(self, name: str, data: Any = None, **options: Any) -> Array:
        """Create an array from ``data``; without data, an empty one, which requires ``shape``.

        If ``data`` is a ``zarrfs.Array`` or an array of zarr-python, its metadata are the defaults of the options, as
        with ``zarrfs.from_array``.
        """
        spec = None if data is None else spec_of(data)
        if spec is None:
            return self.create_array(name, data=data, **options)
        defaults = {"attributes": dict(spec.attributes)}
        like = defaults | options_like(data, self._in_own_format(options))
        return self.create_array(name, **like, copy_from=data)

    @with_options_signature(FilledOptions)
    def empty(self, name: str, shape: Any, **options: Unpack[FilledOptions]) -> Array:
        """Create an array without data. It reads as its fill value, by default the default value of its data type."""
        return self.create_array(name, shape=shape, **options)

    @with_options_signature(UnfilledOptions)
    def zeros(self, name: str, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array of zeros."""
        return self.create_array(name, shape=shape, **with_fill_value("zeros()", options, 0))

    @with_options_signature(UnfilledOptions)
    def ones(self, name: str, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array of ones."""
        return self.create_array(name, shape=shape, **with_fill_value("ones()", options, 1))

    @with_options_signature(UnfilledOptions)
    def full(self, name: str, fill_value: Any, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array that reads as ``fill_value`` everywhere."""
        return self.create_array(name, shape=shape, fill_value=fill_value, **options)

    @with_options_signature(ArrayOptions)
    def empty_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array without data, with the metadata of another array; with its fill value if it has one."""
        return self.create_array(name, **options_like(data, self._in_own_format(options)))

    @with_options_signature(UnfilledOptions)
    def zeros_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of zeros with the metadata of another array."""
        return self.empty_like(name, data, **with_fill_value("zeros_like()", options, 0))

    @with_options_signature(UnfilledOptions)
    def ones_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of ones with the metadata of another array."""
        return self.empty_like(name, data, **with_fill_value("ones_like()", options, 1))

    @with_options_signature(UnfilledOptions)
    def full_like(self, name: str, data: Any, fill_value: Any = None, **options: Any) -> Array:
        """Create an array that reads as ``fill_value``, with the metadata of another array.

        The default of ``fill_value`` is the fill value of the other array.
        """
        given = options if fill_value is None else {**options, "fill_value": fill_value}
        return self.empty_like(name, data, **given)

    def _in_own_format(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with the format of the group as the default of ``zarr_format``."""
        if options.get("zarr_format") is not None or options.get("zarr_version") is not None:
            return options
        return {**options, "zarr_format": formats.writable_format(self.zarr_format)}  # type: ignore[attr-defined]
