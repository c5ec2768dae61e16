"""Interpreting equal ``.zarray`` documents once.

Groups of thousands of arrays usually have few different documents. A template is the text of a document with the array
that it describes, apart from the user attributes, which are in another document. The parts of the specification are
immutable and are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from zarrfs.engine.codecs import registry
from zarrfs.engine.formats.dimension_names import dimension_names_from_attributes
from zarrfs.engine.formats.json_document import parse_object
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Buffer
from zarrfs.errors import MetadataError

__all__ = ["V2Templates"]

MAX_TEMPLATES = 256

MAX_TEMPLATE_NBYTES = 4096
"""The maximum size of a template. A larger document is interpreted each time."""

MAX_NAMES = 64
"""The maximum number of different dimension names of the arrays of one template."""


class _Template(NamedTuple):
    """An array without attributes, and the same array with other names of its dimensions, by the names."""

    spec: ArraySpec
    named: dict[tuple[str | None, ...] | None, ArraySpec]


class V2Templates:
    """Templates of documents that were interpreted. Thread-safe."""

    def __init__(self) -> None:
        self._templates: dict[tuple[bytes, int], _Template] = {}

    def is_cached(self, data: Buffer) -> bool:
        """Return whether ``find`` returns an array for the bytes of a ``.zarray``."""
        return len(data) <= MAX_TEMPLATE_NBYTES and self._key(data) in self._templates

    def find(self, data: Buffer, attributes: Mapping[str, Any]) -> ArraySpec | None:
        """Return the array that a document and its attributes describe, or None if it has to be interpreted."""
        spec = self._template(data, attributes)
        if spec is None:
            return None
        return replace(spec, attributes=dict(attributes), document=dict(spec.document))

    def match(self, data: Buffer, attributes: Buffer | None) -> tuple[ArraySpec, Mapping[str, Any]] | None:
        """Return the array that a document describes, without its attributes, and the attributes of a ``.zattrs``.

        The arrays of equal templates are the same object as long as it is referenced. None if the documents have to be
        interpreted.
        """
        parsed: Mapping[str, Any] = {}
        if attributes is not None:
            try:
                parsed = parse_object(attributes, "", len(attributes))
            except MetadataError:  # reported when the document is interpreted
                return None
        spec = self._template(data, parsed)
        return None if spec is None else (spec, parsed)

    def add(self, data: Buffer, spec: ArraySpec) -> None:
        """Remember the array that a document describes. The document describes all of it except its attributes."""
        if len(data) > MAX_TEMPLATE_NBYTES or spec.document.get("dimension_separator") is None:
            return
        # A structured fill value can be changed in place, so that it cannot be shared.
        if spec.data_type.numpy.kind == "V" or spec.data_type.numpy.hasobject:
            return
        if len(self._templates) >= MAX_TEMPLATES:
            self._templates.clear()
        named = replace(spec, attributes={}, document=dict(spec.document))
        self._templates[self._key(data)] = _Template(named, {named.dimension_names: named})

    def _template(self, data: Buffer, attributes: Mapping[str, Any]) -> ArraySpec | None:
        template = self._templates.get(self._key(data))
        if template is None:
            return None
        names = dimension_names_from_attributes(attributes, len(template.spec.shape))
        found = template.named.get(names)
        if found is None:
            if len(template.named) >= MAX_NAMES:
                return None
            found = template.named.setdefault(names, replace(template.spec, dimension_names=names))
        return found

    def _key(self, data: Buffer) -> tuple[bytes, int]:
        return bytes(data), registry.registrations()
