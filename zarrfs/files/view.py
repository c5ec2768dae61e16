"""The base class of views. A view is one kind of virtual file that presents an array."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import ClassVar

from zarrfs.engine.array.array import Array
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.ngff.geometry import Geometry, array_geometry

__all__ = [
    "MAX_FILE_NBYTES",
    "PresentedArray",
    "View",
    "fixed_size_unsupported_reason",
    "has_ordinary_name",
]


MAX_FILE_NBYTES = 2**63 - 1 - (1 << 20)
"""The maximum size of the elements in a file: the largest file size of the system, less room for a header."""

_ORDINARY_NAME = re.compile(r"(?!LIST)[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Names that have no special meaning in any format."""


class PresentedArray:
    """An array, with the name and the geometry that a view may need to present it. The geometry is determined when it
    is accessed.

    Attributes:
        array: the array.
        name: the name of the array in the mount, without the suffix of a view.
        uses_geometry: whether the geometry has been accessed, so that the result depends on it.
        failure: the exception with which the last access to the geometry failed, or None.
    """

    def __init__(
        self, array: Array, name: str = "array", geometry: Callable[[], Geometry] | None = None
    ) -> None:
        """``geometry`` returns the geometry of the array. By default it is that of the array's own metadata."""
        self.array = array
        self.name = name
        self.uses_geometry = False
        self.failure: Exception | None = None
        self._find_geometry = geometry
        self._geometry: Geometry | None = None
        self._shared_key: tuple[Array, tuple[Hashable, ...] | None, tuple[object, ...]] | None = None

    @property
    def geometry(self) -> Geometry:
        """The meaning, the unit and the position of each dimension, from the metadata of the array and its groups.

        Raises StoreError if the metadata of a group cannot be read.
        """
        self.uses_geometry = True
        if self._geometry is None:
            find = self._find_geometry
            try:
                self._geometry = array_geometry(self.array.spec) if find is None else find()
            except Exception as error:
                self.failure = error
                raise
        return self._geometry

    def shared_key(self) -> tuple[tuple[Hashable, ...] | None, tuple[object, ...]]:
        """Return a value that is equal for arrays that differ in their name and user attributes only, and the parts of
        the specification that it identifies. The value is None if results depend on the name.

        A part that is alive has its own identity, so that the key is valid as long as its parts are kept alive. Raises
        StoreError if the metadata of a group cannot be read, and TypeError if there is no such value.
        """
        geometry = self.geometry
        array = self.array
        known = self._shared_key
        if known is None or known[0] is not array:
            spec = array.spec
            parts = (
                spec.data_type,
                spec.chunk_grid,
                spec.chunk_key_encoding,
                spec.codecs,
                spec.fill_value,
                spec.dimension_names,
            )
            key = None
            if has_ordinary_name(self.name, geometry):
                key = (
                    *map(id, parts),
                    spec.shape,
                    spec.dimension_units,
                    spec.order,
                    spec.zarr_format,
                    geometry,
                )
            known = self._shared_key = array, key, parts
        return known[1], known[2]


def has_ordinary_name(name: str, geometry: Geometry) -> bool:
    """Return whether no result depends on the name of an array, except by containing it."""
    return _ORDINARY_NAME.fullmatch(name) is not None and all(axis.name != name for axis in geometry.axes)


class View(ABC):
    """One kind of virtual file. Its size depends on metadata only, unless ``depends_on_elements`` is True; no chunk is
    read to create it.

    Attributes:
        suffix: the suffix that is appended to the name of the array, including the dot.
        listed: whether directory listings contain the file by default. It can always be opened by name.
        needs_attributes: whether the content depends on the user attributes of the array. If False, ``content`` may
            receive an array without its user attributes if they are very large. The geometry is not affected.
        has_shared_size: whether the file has the same size for all arrays that differ in their name, their user
            attributes and their geometry only.
        depends_on_elements: whether the size of the file depends on the elements of the array. The content is then
            created each time the file is looked up, and not cached with the metadata.
    """

    suffix: ClassVar[str]
    listed: ClassVar[bool] = False
    needs_attributes: ClassVar[bool] = True
    has_shared_size: ClassVar[bool] = False
    depends_on_elements: ClassVar[bool] = False

    @abstractmethod
    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        """Return the reason why the view cannot present the array, or None if it can.

        Called for each array of a directory listing, and for each view to create a .json file.
        """

    @abstractmethod
    def content(self, presented: PresentedArray) -> VirtualFileContent:
        """Return the content of the file. Called only if ``unsupported_reason`` returns None for the array."""


def fixed_size_unsupported_reason(array: Array) -> str | None:
    """Return the reason why the elements of the array have no fixed size, or None if they have one."""
    if array.dtype.hasobject:
        return f"its elements ({array.spec.data_type.name}) vary in length"
    if array.nbytes > MAX_FILE_NBYTES:
        return f"its {array.nbytes:,} bytes exceed the maximum file size ({MAX_FILE_NBYTES:,})"
    if array.dtype.itemsize == 0:
        return f"its elements ({array.dtype}) are empty"
    return None
