"""The base class of views. A view is one kind of virtual file that presents an array."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from zarrfs.engine.nodes.array import Array
from zarrfs.mount.content import VirtualFileContent

__all__ = ["View"]


MAX_FILE_NBYTES = 2**63 - 1 - (1 << 20)
"""The largest size that the system can express, less room for a header."""


class View(ABC):
    """One kind of virtual file. Its size depends on the metadata of the array only; no chunk is read to create it.

    Attributes:
        suffix: the suffix that is appended to the name of the array, including the dot.
        listed: whether directory listings contain the file by default. It can always be opened by name.
        needs_attributes: whether the content depends on the user attributes of the array. If False, ``content`` may
            receive an array without its user attributes if they are very large.
    """

    suffix: ClassVar[str]
    listed: ClassVar[bool] = False
    needs_attributes: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, array: Array) -> str | None:
        """Return the reason why the view cannot present the array, or None if it can."""

    @abstractmethod
    def content(self, array: Array, name: str) -> VirtualFileContent:
        """Return the content of the file. ``name`` is the name of the array in the mount."""


def fixed_size_refusal(array: Array) -> str | None:
    """Return the reason why the elements of the array have no fixed size, or None if they have one."""
    if array.dtype.hasobject:
        return f"its elements ({array.spec.data_type.name}) vary in length"
    if array.nbytes > MAX_FILE_NBYTES:
        return f"its {array.nbytes:,} bytes exceed the maximum file size ({MAX_FILE_NBYTES:,})"
    if array.dtype.itemsize == 0:
        return f"its elements ({array.dtype}) are empty"
    return None
