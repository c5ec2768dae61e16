""".json: the metadata of the array, its views, and the reasons why other views are not available."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.summary import array_metadata_summary, group_metadata_summary, json_safe
from zarrfs.mount.nodes.held import json_memory_nbytes
from zarrfs.mount.reading.content import BytesSegment, VirtualFileContent
from zarrfs.mount.views.base import PresentedArray, View
from zarrfs.mount.views.sharing import SharedResults

__all__ = ["JsonView", "group_json"]

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


class _Layout(NamedTuple):
    """The JSON texts of the reasons why views are not available, after the name of the array.

    Attributes:
        refusals: the reasons by suffix. The reference keeps their identity, by which a layout is found.
        views: the suffixes of available views.
        not_available: the suffixes and reasons of the others.
    """

    refusals: Mapping[str, str | None]
    views: list[str]
    not_available: list[str]


class JsonView(View):
    """The metadata as one JSON object."""

    suffix: ClassVar[str] = ".json"
    listed: ClassVar[bool] = True

    def __init__(self, refusals: Callable[[PresentedArray], Mapping[str, str | None]]) -> None:
        """``refusals`` returns, by suffix of the view, the reason why it cannot present an array, or None if it can."""
        self._refusals = refusals
        self._summaries = SharedResults(_summary_texts)
        self._layouts: dict[int, _Layout] = {}

    def refusal(self, presented: PresentedArray) -> str | None:
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, name = presented.array, presented.name
        refusals = self._refusals(presented)
        attributes = array.attrs.asdict()
        summary = self._summaries.get(presented)
        if summary is None or json_memory_nbytes(attributes, MAX_SMALL_NBYTES) > MAX_SMALL_NBYTES:
            document = {
                **array_metadata_summary(array),
                "attributes": attributes,
                "views": [name + suffix for suffix, reason in refusals.items() if reason is None],
                "not_available": {
                    name + suffix: _reason(suffix, reason)
                    for suffix, reason in refusals.items()
                    if reason is not None
                },
            }
            return VirtualFileContent([BytesSegment(_encode_document(document))])
        # The text is composed of texts that many arrays share: indented text is expensive.
        layout = self._layout(refusals)
        stem = f"    {json.dumps(name)[:-1]}"
        items = {
            **summary,
            "path": json.dumps(array.name),
            "attributes": _attributes_text(attributes),
            "views": _joined("[", [stem + text for text in layout.views], "]"),
            "not_available": _joined("{", [stem + text for text in layout.not_available], "}"),
        }
        text = ",\n".join([f'  "{key}": {item}' for key, item in items.items()])
        return VirtualFileContent([BytesSegment(f"{{\n{text}\n}}\n".encode("ascii"))])

    def _layout(self, refusals: Mapping[str, str | None]) -> _Layout:
        found = self._layouts.get(id(refusals))
        if found is not None:
            return found
        layout = _Layout(
            refusals,
            [json.dumps(suffix)[1:] for suffix, reason in refusals.items() if reason is None],
            [
                f"{json.dumps(suffix)[1:]}: {json.dumps(_reason(suffix, reason))}"
                for suffix, reason in refusals.items()
                if reason is not None
            ],
        )
        if len(self._layouts) >= MAX_LAYOUTS:
            self._layouts.clear()
        self._layouts[id(refusals)] = layout
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
