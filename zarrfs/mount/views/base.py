"""The contract of a view: one kind of virtual file that an array is shown as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from zarrfs.engine.nodes.array import Array
from zarrfs.mount.content import VirtualFileContent

__all__ = ["View"]


MAX_FILE_NBYTES = 2**63 - 1 - (1 << 20)
"""The largest size that the system can express, less room for a header."""


class View(ABC):
    """One kind of virtual file. What it needs to know is in the array's metadata; no chunk is read for it.

    Attributes:
        suffix: what is added to the array's name, the dot included.
        listed: whether directory listings show it without being asked to. It opens by name in any case.
        needs_attributes: whether the file depends on the user attributes of the array. If not, the array that it gets
            may lack them where they are very large.
    """

    suffix: ClassVar[str]
    listed: ClassVar[bool] = False
    needs_attributes: ClassVar[bool] = True

    @abstractmethod
    def refusal(self, array: Array) -> str | None:
        """Return why the array cannot be shown in this way, or None if it can."""

    @abstractmethod
    def layout(self, array: Array, name: str) -> VirtualFileContent:
        """Return the file. ``name`` is the array's name in the mount, for files that refer to another one."""


def fixed_size_refusal(array: Array) -> str | None:
    """Return why the array has no flat bytes, or None if it has."""
    if array.dtype.hasobject:
        return f"its elements ({array.spec.data_type.name}) vary in length and have no fixed place in a file"
    if array.nbytes > MAX_FILE_NBYTES:
        return f"its {array.nbytes:,} bytes are more than a file can have ({MAX_FILE_NBYTES:,})"
    if array.dtype.itemsize == 0:
        return f"its elements ({array.dtype}) are empty"
    return None
