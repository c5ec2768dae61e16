"""Views, the kinds of virtual files in a mount: subclass ``View``, and return a ``VirtualFileContent`` of segments."""

from __future__ import annotations

from zarrfs.files.content.content import ArraySegment, BytesSegment, PartSegment, Segment, VirtualFileContent
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import ArrayAxis, Geometry, PhysicalGrid

__all__ = [
    "ArrayAxis",
    "ArraySegment",
    "BytesSegment",
    "Geometry",
    "PartSegment",
    "PhysicalGrid",
    "PresentedArray",
    "Segment",
    "View",
    "VirtualFileContent",
    "fixed_size_unsupported_reason",
]
