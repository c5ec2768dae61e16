""".raw: the elements in C order, without a header, in the byte order of the dtype (see the .json file). .F.raw: the
same in Fortran order."""

from __future__ import annotations

from typing import ClassVar, Literal

from zarrfs.files.content.content import ArraySegment, VirtualFileContent
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason

__all__ = ["FortranRawView", "RawView", "raw_reference_unsupported_reason"]


class RawView(View):
    """The bytes of the elements in C order, without a header."""

    suffix: ClassVar[str] = ".raw"
    listed: ClassVar[bool] = True
    needs_attributes: ClassVar[bool] = False
    has_shared_size: ClassVar[bool] = True

    order: ClassVar[Literal["C", "F"]] = "C"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return fixed_size_unsupported_reason(presented.array)

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        return VirtualFileContent([ArraySegment(presented.array, self.order)])


class FortranRawView(RawView):
    """The bytes of the elements in Fortran order: the first dimension varies fastest."""

    suffix: ClassVar[str] = ".F.raw"
    listed: ClassVar[bool] = False
    order: ClassVar[Literal["C", "F"]] = "F"


def raw_reference_unsupported_reason(presented: PresentedArray) -> str | None:
    """Return the reason why a header cannot refer to the .raw file of an array by its name, or None if it can."""
    name = presented.name
    # MetaIO and teem read a list of files for the word LIST or for a format such as %03d.
    if not name.isprintable() or name != name.strip() or name.startswith("LIST") or "%" in name:
        return "the header would have to contain the name of the array, in which some characters have a special meaning"
    return None
