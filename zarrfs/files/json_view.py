""".json: the metadata of the array, its views, and the reasons why other views are not available."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.summary import array_metadata_summary, group_metadata_summary, json_safe
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.json_memory import json_memory_nbytes
from zarrfs.files.result_cache import ResultCache
from zarrfs.files.view import PresentedArray, View

__all__ = ["JsonLayout", "JsonView", "group_json"]

MAX_FRAGMENT_NBYTES = 256 << 10
"""A value that occupies at most this many bytes of memory is encoded in one call."""

NUMBER_TYPES = frozenset((int, float, bool, type(None)))

SCALAR_TYPES = frozenset((str, int, bool, type(None)))

MAX_FRAGMENT_ENTRIES = 1000
"""The maximum number of entries of a long list that are encoded in one call."""

MAX_SMALL_NBYTES = 64 << 10
"""Documents whose parts occupy at most this much memory are composed of the texts of the parts."""

MAX_LAYOUTS = 64

MAX_INDENTED_NBYTES = 2 << 20
"""A document that occupies more bytes of memory is not indented."""


NAME, PART = "\x01", "\x02"
"""In place of the name of an array, and of a part of the text. JSON text contains no other control characters than
line breaks.
"""


class JsonLayout(NamedTuple):
    """The JSON text of the metadata of arrays that differ in their names and attributes only.

    Text that many arrays share is composed once: indented text is expensive.

    Attributes:
        unsupported_reasons: by suffix, the reasons why views are not available. The reference keeps their identity, by
            which a layout is found.
        summary: the texts of the properties. Their identity belongs to the layout as well.
        parts: the texts before the path, between the path and the attributes, and after these, with ``NAME`` in place
            of the name without the final quotation mark.
    """

    unsupported_reasons: Mapping[str, str | None]
    summary: dict[str, str]
    parts: tuple[str, str, str]

    def text(self, path: str, name: str, attributes: Mapping[str, Any]) -> str | None:
        """Return the text, in ASCII, of the array at a path (``/a/b``), named ``name`` in the mount.

        None for large attributes, whose text is composed in another way.
        """
        if json_memory_nbytes(attributes, MAX_SMALL_NBYTES) > MAX_SMALL_NBYTES:
            return None
        before, between, after = self.parts
        return "".join(
            (
                before,
                json.dumps(path),
                between,
                _attributes_text(attributes),
                # The text of a name contains no control character.
                after.replace(NAME, json.dumps(name)[:-1]),
            )
        )


class JsonView(View):
    """The metadata as one JSON object."""

    suffix: ClassVar[str] = ".json"
    listed: ClassVar[bool] = True

    def __init__(self, unsupported_reasons: Callable[[PresentedArray], Mapping[str, str | None]]) -> None:
        """``unsupported_reasons`` returns, by suffix of the view, the reason why it cannot present an array, or None if
        it can.
        """
        self._unsupported_reasons = unsupported_reasons
        self._summaries = ResultCache(_summary_texts)
        self._layouts: dict[tuple[int, int], JsonLayout] = {}

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, name = presented.array, presented.name
        unsupported_reasons = self._unsupported_reasons(presented)
        attributes = array.attrs.asdict()
        layout = self._layout(presented, unsupported_reasons)
        text = None if layout is None else layout.text(array.name, name, attributes)
        if text is not None:
            return VirtualFileContent([BytesSegment(text.encode("ascii"))])
        document = {
            **array_metadata_summary(array),
            "attributes": attributes,
            "views": [name + suffix for suffix, reason in unsupported_reasons.items() if reason is None],
            "not_available": {
                name + suffix: _reason(suffix, reason)
                for suffix, reason in unsupported_reasons.items()
                if reason is not None
            },
        }
        return VirtualFileContent([BytesSegment(_encode_document(document))])

    def layout(self, presented: PresentedArray) -> JsonLayout | None:
        """Return the layout of the text for an array and all arrays with the same ``shared_key``.

        None if its metadata are large. Raises StoreError if the metadata of a group cannot be read.
        """
        return self._layout(presented, self._unsupported_reasons(presented))

    def _layout(
        self, presented: PresentedArray, unsupported_reasons: Mapping[str, str | None]
    ) -> JsonLayout | None:
        summary = self._summaries.get(presented)
        if summary is None:
            return None
        key = id(unsupported_reasons), id(summary)
        found = self._layouts.get(key)
        if found is not None:
            return found
        stem = f"    {NAME}"
        views = [
            f"{stem}{json.dumps(suffix)[1:]}"
            for suffix, reason in unsupported_reasons.items()
            if reason is None
        ]
        not_available = [
            f"{stem}{json.dumps(suffix)[1:]}: {json.dumps(_reason(suffix, reason))}"
            for suffix, reason in unsupported_reasons.items()
            if reason is not None
        ]
        items = {
            **summary,
            "path": PART,
            "attributes": PART,
            "views": _joined("[", views, "]"),
            "not_available": _joined("{", not_available, "}"),
        }
        text = ",\n".join([f'  "{key}": {item}' for key, item in items.items()])
        before, between, after = f"{{\n{text}\n}}\n".split(PART)
        layout = JsonLayout(unsupported_reasons, summary, (before, between, after))
        if len(self._layouts) >= MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[key] = layout
        return layout


def _reason(suffix: str, reason: str) -> str:
    return f"the array cannot be presented as {suffix}: {reason}"


def _joined(opening: str, lines: list[str], closing: str) -> str:
    text = ",\n".join(lines)
    return f"{opening}\n{text}\n  {closing}" if lines else opening + closing


def _summary_texts(presented: PresentedArray) -> dict[str, str] | None:
    """Return the properties of an array as JSON texts, None for a large document."""
    summary = array_metadata_summary(presented.array)
    if json_memory_nbytes(summary, MAX_SMALL_NBYTES) > MAX_SMALL_NBYTES:
        return None
    return {key: _indented(value) for key, value in summary.items()}


def _attributes_text(attributes: Mapping[str, Any]) -> str:
    """Return the JSON text of attributes, a value of an object."""
    if all(type(value) in SCALAR_TYPES for value in attributes.values()):
        # The encoder of the standard library is slow if it indents.
        lines = [f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in attributes.items()]
        return _joined("{", lines, "}")
    return _indented(attributes)


def _indented(value: Any) -> str:
    """Return the JSON text of a value of an object."""
    return _encode(value, 2).replace("\n", "\n  ")


def group_json(group: Group) -> bytes:
    """Return the content of the file ``.group.json`` of a group."""
    return _encode_document({**group_metadata_summary(group), "attributes": group.attrs.asdict()})


def _encode_document(value: dict[str, Any]) -> bytes:
    if json_memory_nbytes(value, MAX_INDENTED_NBYTES) <= MAX_INDENTED_NBYTES:
        return (_encode(value, 2) + "\n").encode("ascii")
    # Indentation would multiply the size of a large, deeply nested document.
    text = bytearray()
    for fragment in _encode_fragments(value):
        text += fragment.encode("ascii")
    return bytes(text + b"\n")


def _encode_fragments(value: Any) -> Iterator[str]:
    """Yield the JSON text of a large value in fragments. ``json.dumps`` would use many times the memory of the text."""
    if isinstance(value, Mapping) and json_memory_nbytes(value, MAX_FRAGMENT_NBYTES) > MAX_FRAGMENT_NBYTES:
        separator = "{"
        for key, item in value.items():
            yield f"{separator}{json.dumps(str(key))}: "
            yield from _encode_fragments(item)
            separator = ", "
        yield "}"
    elif (
        isinstance(value, list | tuple)
        and json_memory_nbytes(value, MAX_FRAGMENT_NBYTES) > MAX_FRAGMENT_NBYTES
    ):
        separator = "["
        for start in range(0, len(value), MAX_FRAGMENT_ENTRIES):
            entries = value[start : start + MAX_FRAGMENT_ENTRIES]
            if (
                NUMBER_TYPES.issuperset(map(type, entries))
                or json_memory_nbytes(entries, MAX_FRAGMENT_NBYTES) <= MAX_FRAGMENT_NBYTES
            ):
                yield separator + _encode(entries)[1:-1]
            else:
                for item in entries:
                    yield separator
                    yield from _encode_fragments(item)
                    separator = ", "
            separator = ", "
        yield "]"
    else:
        yield _encode(value)


def _encode(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError):
        # The value contains values that strict JSON cannot represent, such as NaN.
        return json.dumps(json_safe(value), indent=indent, allow_nan=False)
