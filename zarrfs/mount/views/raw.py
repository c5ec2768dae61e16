""".raw: the elements in C order and nothing else, in the byte order that the dtype says (see the .json beside it)."""

from __future__ import annotations

from typing import ClassVar

from zarrfs.engine.nodes.array import Array
from zarrfs.mount.content import ArraySegment, VirtualFileContent
from zarrfs.mount.views.base import View, fixed_size_refusal

__all__ = ["RawView"]


class RawView(View):
    """The bare elements."""

    suffix: ClassVar[str] = ".raw"
    listed: ClassVar[bool] = True
    needs_attributes: ClassVar[bool] = False

    def refusal(self, array: Array) -> str | None:
        return fixed_size_refusal(array)

    def layout(self, array: Array, name: str) -> VirtualFileContent:
        return VirtualFileContent([ArraySegment(array)])
