"""On-disk formats: subclass ``TranslatedFormat`` to read a format, or ``Format`` to write it too."""

from __future__ import annotations

from zarrfs.engine.formats.base import Format, NodeKeys, NodeKind
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import read_object, write_object
from zarrfs.engine.formats.paths import join
from zarrfs.engine.formats.translated import TranslatedFormat
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec

__all__ = [
    "ArraySpec",
    "Format",
    "FormatFeatures",
    "GroupSpec",
    "NodeKeys",
    "NodeKind",
    "NodeSpec",
    "TranslatedFormat",
    "join",
    "read_object",
    "write_object",
]
