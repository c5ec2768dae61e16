""".json: the metadata of the array, its views, and the reasons why other views are not available."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.summary import array_metadata_summary, group_metadata_summary, json_safe
from zarrfs.engine.json_memory import json_memory_nbytes
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.view import PresentedArray, View

__all__ = ["JsonSize", "JsonView", "group_json"]

MAX_FRAGMENT_NBYTES = 256 << 10
"""A value that occupies at most this many bytes of memory is encoded in one call."""

NUMBER_TYPES = frozenset((int, float, bool, type(None)))

MAX_FRAGMENT_ENTRIES = 1000
"""The maximum number of entries of a long list that are encoded in one call."""

MAX_INDENTED_NBYTES = 2 << 20
"""A document that occupies more bytes of memory is not indented."""

INDENT = 2
"""The number of spaces by which a value is indented more than the object that contains it."""


class JsonSize(NamedTuple):
    """The size of the text of arrays that differ in their names and attributes only. The text is indented.

    Attributes:
        fixed_nbytes: the size without the path, the names and the attributes.
        name_count: how often the text contains the name of the array.
    """

    fixed_nbytes: int
    name_count: int

    def nbytes(self, path: str, name: str, attributes: Mapping[str, Any]) -> int:
        """Return the size for the array at a path (``/a/b``), named ``name`` in the mount."""
        text = _encode(attributes, INDENT)
        # The attributes are a value of an object.
        attributes_nbytes = len(text) + INDENT * text.count("\n")
        return (
            self.fixed_nbytes
            + len(json.dumps(path))
            + self.name_count * len(json.dumps(name))
            + attributes_nbytes
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

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array, name = presented.array, presented.name
        unsupported_reasons = self._unsupported_reasons(presented)
        document = {
            **array_metadata_summary(array),
            "attributes": array.attrs.asdict(),
            "views": [name + suffix for suffix, reason in unsupported_reasons.items() if reason is None],
            "not_available": {
                name + suffix: f"the array cannot be presented as {suffix}: {reason}"
                for suffix, reason in unsupported_reasons.items()
                if reason is not None
            },
        }
        return VirtualFileContent([BytesSegment(_encode_document(document))])

    def size(self, presented: PresentedArray) -> JsonSize:
        """Return the size for an array and all arrays that differ in their names and attributes only.

        Its document must be small enough to be indented. Raises StoreError if the metadata of a group cannot be read.
        """
        array, name = presented.array, presented.name
        name_count = len(self._unsupported_reasons(presented))
        without = JsonSize(0, name_count).nbytes(array.name, name, array.attrs.asdict())
        return JsonSize(self.content(presented).size - without, name_count)


def group_json(group: Group) -> bytes:
    """Return the content of the file ``.group.json`` of a group."""
    return _encode_document({**group_metadata_summary(group), "attributes": group.attrs.asdict()})


def _encode_document(value: dict[str, Any]) -> bytes:
    if json_memory_nbytes(value, MAX_INDENTED_NBYTES) <= MAX_INDENTED_NBYTES:
        return (_encode(value, INDENT) + "\n").encode("ascii")
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
