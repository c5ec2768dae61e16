"""Interpreting documents of arrays that differ only in their user attributes once.

Groups of thousands of arrays usually have few different documents. A template is the specification of an array without
what depends on its attributes, by the parsed document without them. The parts of a specification are immutable and are
shared by all arrays of a template.

Interpreting a document takes much longer than parsing it. Listings of thousands of arrays need the template and the
attributes only, and parse documents without a call of a Python function for each object (``parse_pairs``: 5 instead of
11 microseconds). A faster parser is no alternative: orjson and msgspec need 2 and
5, but accept keys that occur twice and refuse NaN, so that the parser of the standard library would be needed as well.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from zarrfs.engine.codecs import registry
from zarrfs.engine.formats.json_document import pairs_of, value_of_pairs
from zarrfs.engine.model import ArraySpec

__all__ = ["ArrayTemplates"]

MAX_TEMPLATES = 512
"""Each template has two keys."""

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
        key = _key(document.items())
        return None if key is None else self._specs.get(key)

    def match_pairs(
        self, document: tuple[tuple[str, Any], ...], where: str
    ) -> tuple[ArraySpec, dict[str, Any]] | None:
        """Return the template of a document in the form of ``parse_pairs``, and its attributes; None as ``match``.

        Raises MetadataError if the attributes are not valid.
        """
        key = _key(document)
        template = None if key is None else self._specs.get(key)
        if template is None:
            return None
        attributes = next((value for name, value in document if name == ATTRIBUTES), ())
        return template, value_of_pairs(attributes, where)

    def find(self, document: Mapping[str, Any]) -> ArraySpec | None:
        """Return the array that a parsed document describes, or None if it has to be interpreted."""
        template = self.match(document)
        return None if template is None else self._with_attributes(template, document.get(ATTRIBUTES, {}))

    def add(self, document: Mapping[str, Any], template: ArraySpec) -> None:
        """Remember the array that a parsed document describes, without what depends on its attributes."""
        key = _key(document.items())
        # A structured fill value can be changed in place, so that it cannot be shared.
        kind = template.data_type.numpy
        if key is None or len(key[0]) > MAX_TEMPLATE_NBYTES or kind.kind == "V" or kind.hasobject:
            return
        if len(self._specs) >= MAX_TEMPLATES:
            self._specs.clear()
        self._specs[key] = template
        pairs_key = _key(pairs_of(document))
        if pairs_key is not None:
            self._specs[pairs_key] = template


def _key(members: Iterable[tuple[str, Any]]) -> tuple[bytes, int] | None:
    """Return a value that is equal for documents with the same form that differ in their attributes only.

    None if there is none. ``members`` are the names and values of a document.
    """
    rest = []
    for name, value in members:
        if name != ATTRIBUTES:
            rest.append((name, value))
        elif isinstance(value, dict | tuple):
            rest.append((name, None))  # The attributes keep their place among the members.
        else:
            return None
    try:
        text = marshal.dumps(rest, 2)  # This version depends on the values only.
    except ValueError:  # The nesting is too deep.
        return None
    return None if IGNORABLE in text else (text, registry.registrations())
