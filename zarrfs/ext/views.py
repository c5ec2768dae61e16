"""Views, the kinds of virtual files in a mount: subclass ``View``, and return a ``VirtualFileContent`` of segments."""

from __future__ import annotations

from zarrfs.mount.reading.content import ArraySegment, BytesSegment, PartSegment, Segment, VirtualFileContent
from zarrfs.mount.views.base import PresentedArray, View, fixed_size_refusal
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
    "fixed_size_refusal",
]
