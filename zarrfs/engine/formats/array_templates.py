"""Interpreting array documents that differ only in their user attributes once.

Groups of thousands of arrays usually have few different documents. Interpreting a document takes much longer than
reading it. A template is the text of a document before and after the value of the attributes, with the array that it
describes. If the text before the value is equal, the parser is in the same state, so that only the value has to be
parsed. A document without attributes is its own template. The template of a document that is parsed already, as in
consolidated metadata, is its value without the attributes. The parts of the specification are immutable and are shared.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from zarrfs.engine.codecs import registry
from zarrfs.engine.formats.json_document import MAX_DEPTH, reject_duplicates
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.base import Buffer

__all__ = ["MAX_DOCUMENT_NBYTES", "ArrayTemplates"]

MAX_TEMPLATES = 256

MAX_TEMPLATE_NBYTES = 4096
"""The maximum size of a template. A larger document is interpreted each time."""

MAX_DOCUMENT_NBYTES = 64 << 10
"""The maximum size of a document with its attributes."""

ATTRIBUTES = b'"attributes"'

IGNORABLE = b"must_understand"
"""A document with this word has no template: parts of it may be ignored with a warning, which each such document must
cause.
"""

_COLON = re.compile(r"[ \t\n\r]*:[ \t\n\r]*")

PROBE = '{"zarrfs probe": 1}'


class _Parts(NamedTuple):
    """A document as the text before the value of the attributes, the value, and the text after it.

    The value is None if there are no attributes; the text is then before it.
    """

    before: bytes
    attributes: Any
    after: str


class ArrayTemplates:
    """Templates of documents that were interpreted. Thread-safe.

    ``with_attributes`` returns a specification with other attributes: what depends on them is determined again.
    """

    def __init__(self, with_attributes: Callable[[ArraySpec, dict[str, Any]], ArraySpec]) -> None:
        self._with_attributes = with_attributes
        self._specs: dict[tuple[bytes, str | None, int], ArraySpec] = {}

    def find(self, data: Buffer) -> ArraySpec | None:
        """Return the array that a document describes, or None if it has to be interpreted."""
        parts = _split(data)
        if parts is None:
            return None
        return self._cached(parts.before, parts.after, parts.attributes)

    def match(self, data: Buffer) -> tuple[ArraySpec, Mapping[str, Any]] | None:
        """Return the array that a document describes, without what depends on its attributes, and the attributes.

        The arrays of equal templates are the same object as long as it is referenced. None if the document has to be
        interpreted.
        """
        parts = _split(data)
        if parts is None:
            return None
        spec = self._specs.get((parts.before, parts.after, registry.registrations()))
        return None if spec is None else (spec, parts.attributes or {})

    def add(self, data: Buffer, document: Mapping[str, Any], spec: ArraySpec) -> None:
        """Remember the array that a document describes. ``document`` is its parsed value."""
        parts = _split(data)
        if parts is None:
            return
        if parts.attributes is None:
            # The name of the member may contain escape sequences.
            if "attributes" not in document:
                self._remember(parts.before, parts.after, spec)
            return
        # The text may contain the word "attributes" at another place than the member of the document.
        probe = parts.before.decode("utf-8-sig") + PROBE + parts.after
        if json.loads(probe) == {**document, "attributes": json.loads(PROBE)}:
            self._remember(parts.before, parts.after, spec)

    def find_parsed(self, document: Mapping[str, Any]) -> ArraySpec | None:
        """Return the array that a parsed document describes, or None if it has to be interpreted."""
        text = _without_attributes(document)
        return None if text is None else self._cached(text, None, document.get("attributes"))

    def match_parsed(self, document: Mapping[str, Any]) -> ArraySpec | None:
        """Return the array that a parsed document describes, without what depends on its attributes; as ``match``."""
        text = _without_attributes(document)
        return None if text is None else self._specs.get((text, None, registry.registrations()))

    def add_parsed(self, document: Mapping[str, Any], spec: ArraySpec) -> None:
        """Remember the array that a parsed document describes."""
        text = _without_attributes(document)
        if text is not None:
            self._remember(text, None, spec)

    def _cached(
        self, before: bytes, after: str | None, attributes: dict[str, Any] | None
    ) -> ArraySpec | None:
        spec = self._specs.get((before, after, registry.registrations()))
        if spec is None:
            return None
        if attributes is None:
            return replace(spec, attributes={}, document=dict(spec.document))
        return self._with_attributes(spec, attributes)

    def _remember(self, before: bytes, after: str | None, spec: ArraySpec) -> None:
        if len(before) + len(after or "") > MAX_TEMPLATE_NBYTES:
            return
        # A structured fill value can be changed in place, so that it cannot be shared.
        if spec.data_type.numpy.kind == "V" or spec.data_type.numpy.hasobject:
            return
        if len(self._specs) >= MAX_TEMPLATES:
            self._specs.clear()
        # The attributes keep their place among the members.
        document = {key: {} if key == "attributes" else value for key, value in spec.document.items()}
        key = before, after, registry.registrations()
        self._specs[key] = replace(spec, attributes={}, dimension_units=None, document=document)


_decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: reject_duplicates(pairs, ""))


def _split(data: Buffer) -> _Parts | None:
    """Return the parts of a document that contains the word "attributes" at most once, else None."""
    raw = bytes(data)
    if len(raw) > MAX_DOCUMENT_NBYTES or IGNORABLE in raw:
        return None
    count = raw.count(ATTRIBUTES)
    if count > 1:
        return None
    if count == 0:
        return _Parts(raw, None, "")
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        return None
    start = raw.index(ATTRIBUTES) + len(ATTRIBUTES)
    try:
        rest = raw[start:].decode("utf-8")
        colon = _COLON.match(rest)
        if colon is None:
            return None
        attributes, end = _decoder.raw_decode(rest, colon.end())
    except (ValueError, RecursionError):  # reported when the document is interpreted
        return None
    if not isinstance(attributes, dict):
        return None
    return _Parts(raw[:start] + colon.group().encode(), attributes, rest[end:])


def _without_attributes(document: Mapping[str, Any]) -> bytes | None:
    """Return bytes that represent a parsed document without its attributes, equal for equal documents only.

    None if the document has no template.
    """
    if not isinstance(document.get("attributes", {}), dict):
        return None
    rest = dict(document)
    rest.pop("attributes", None)
    try:
        text = marshal.dumps(rest, 2)  # this version depends on the values only
    except ValueError:  # The nesting is too deep.
        return None
    return None if IGNORABLE in text else text
