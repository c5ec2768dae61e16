"""Interpreting documents of arrays that differ only in their user attributes once.

Groups of thousands of arrays usually have few different documents. A template is the specification of an array without
what depends on its attributes, by the parsed document without them. The parts of a specification are immutable and are
shared by all arrays of a template.

Checking and interpreting a document takes 25 times as long as parsing it. A faster parser is no alternative to the one
of the standard library: orjson and msgspec accept keys that occur twice, and refuse NaN.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from typing import Any

from zarrfs.engine.codecs import registry
from zarrfs.engine.model import ArraySpec

__all__ = ["ArrayTemplates"]

MAX_TEMPLATES = 256

MAX_TEMPLATE_NBYTES = 4096
"""The maximum size of a document without its attributes. A larger document is interpreted each time."""

ATTRIBUTES = "attributes"

IGNORABLE = b"must_understand"
"""A document with this word has no template: parts of it may be ignored with a warning, which each such document must
cause.
"""


class ArrayTemplates:
    """Templates of documents that were interpreted. Thread-safe.

    A document has the attributes in its member ``attributes``, if there are any. ``with_attributes`` returns the
    specification of an array by its template and its attributes.
    """

    def __init__(self, with_attributes: Callable[[ArraySpec, dict[str, Any]], ArraySpec]) -> None:
        self._with_attributes = with_attributes
        self._specs: dict[tuple[bytes, int], ArraySpec] = {}

    def match(self, document: Mapping[str, Any]) -> ArraySpec | None:
        """Return the template of a parsed document, or None if no such document has been interpreted.

        It is the same object for all documents that differ in their attributes only, as long as it is referenced.
        """
        key = _key(document)
        return None if key is None else self._specs.get(key)

    def find(self, document: Mapping[str, Any]) -> ArraySpec | None:
        """Return the array that a parsed document describes, or None if it has to be interpreted."""
        template = self.match(document)
        return None if template is None else self._with_attributes(template, document.get(ATTRIBUTES, {}))

    def add(self, document: Mapping[str, Any], template: ArraySpec) -> None:
        """Remember the array that a parsed document describes, without what depends on its attributes."""
        key = _key(document)
        # A structured fill value can be changed in place, so that it cannot be shared.
        kind = template.data_type.numpy
        if key is None or len(key[0]) > MAX_TEMPLATE_NBYTES or kind.kind == "V" or kind.hasobject:
            return
        if len(self._specs) >= MAX_TEMPLATES:
            self._specs.clear()
        self._specs[key] = template


def _key(document: Mapping[str, Any]) -> tuple[bytes, int] | None:
    """Return a value that is equal for documents that differ in their attributes only, None if there is none."""
    rest = dict(document)
    if ATTRIBUTES in rest:
        if not isinstance(rest[ATTRIBUTES], dict):
            return None
        rest[ATTRIBUTES] = None  # The attributes keep their place among the members.
    try:
        text = marshal.dumps(rest, 2)  # This version depends on the values only.
    except ValueError:  # The nesting is too deep.
        return None
    return None if IGNORABLE in text else (text, registry.registrations())
