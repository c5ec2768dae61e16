""".raw: the elements in C order, without a header, in the byte order of the dtype (see the .json file)."""

from __future__ import annotations

from typing import ClassVar

from zarrfs.mount.reading.content import ArraySegment, VirtualFileContent
from zarrfs.mount.views.base import PresentedArray, View, fixed_size_refusal

__all__ = ["RawView", "raw_reference_refusal"]


class RawView(View):
    """The bytes of the elements without a header."""

    suffix: ClassVar[str] = ".raw"
    listed: ClassVar[bool] = True
    needs_attributes: ClassVar[bool] = False
    has_shared_size: ClassVar[bool] = True

    def refusal(self, presented: PresentedArray) -> str | None:
        return fixed_size_refusal(presented.array)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        return VirtualFileContent([ArraySegment(presented.array)])


def raw_reference_refusal(presented: PresentedArray) -> str | None:
    """Return the reason why a header cannot refer to the .raw file of an array by its name, or None if it can."""
    name = presented.name
    # MetaIO and teem read a list of files for the word LIST or for a format such as %03d.
    if not name.isprintable() or name != name.strip() or name.startswith("LIST") or "%" in name:
        return "the header would have to contain the name of the array, in which some characters have a special meaning"
    return None
