""".json: what the array is, and why it may lack other views."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.summary import array_facts, group_facts, json_safe
from zarrfs.mount.content import BytesSegment, VirtualFileContent
from zarrfs.mount.held import held_nbytes
from zarrfs.mount.views.base import View

__all__ = ["JsonView", "group_json"]

PIECE = 256 << 10
"""A value of at most this many bytes of memory is encoded at once."""

NUMBERS = frozenset((int, float, bool, type(None)))

RUN = 1000
"""How many entries of a long list are encoded at once."""

MAX_INDENTED = 2 << 20
"""The largest document, in bytes of memory, that is indented."""


class JsonView(View):
    """The metadata as one JSON object."""

    suffix: ClassVar[str] = ".json"
    listed: ClassVar[bool] = True

    def __init__(self, refusals: Callable[[Array], Mapping[str, str | None]]) -> None:
        """``refusals`` returns, for each view by its suffix, why it cannot show an array, or None if it can."""
        self._refusals = refusals

    def refusal(self, array: Array) -> str | None:
        return None

    def layout(self, array: Array, name: str) -> VirtualFileContent:
        refusals = self._refusals(array)
        views = {
            "views": [name + suffix for suffix, reason in refusals.items() if reason is None],
            "not_available": {
                name + suffix: f"the array cannot be shown as {suffix}: {reason}"
                for suffix, reason in refusals.items()
                if reason is not None
            },
        }
        return VirtualFileContent(
            [BytesSegment(_dump({**array_facts(array), "attributes": array.attrs.asdict(), **views}))]
        )


def group_json(group: Group) -> bytes:
    """Return the contents of a directory's ``.group.json``."""
    return _dump({**group_facts(group), "attributes": group.attrs.asdict()})


def _dump(value: dict[str, Any]) -> bytes:
    if held_nbytes(value, MAX_INDENTED) <= MAX_INDENTED:
        return (_encoded(value, 2) + "\n").encode("ascii")
    # Indented, a document that is large and deep would become many times as large.
    text = bytearray()
    for piece in _pieces(value):
        text += piece.encode("ascii")
    return bytes(text + b"\n")


def _pieces(value: Any) -> Iterator[str]:
    """Yield a large value as JSON, piece by piece: the encoder of the standard library takes many times its size."""
    if isinstance(value, Mapping) and held_nbytes(value, PIECE) > PIECE:
        separator = "{"
        for key, item in value.items():
            yield f"{separator}{json.dumps(str(key))}: "
            yield from _pieces(item)
            separator = ", "
        yield "}"
    elif isinstance(value, list | tuple) and held_nbytes(value, PIECE) > PIECE:
        separator = "["
        for start in range(0, len(value), RUN):
            run = value[start : start + RUN]
            if NUMBERS.issuperset(map(type, run)) or held_nbytes(run, PIECE) <= PIECE:
                yield separator + _encoded(run)[1:-1]
            else:
                for item in run:
                    yield separator
                    yield from _pieces(item)
                    separator = ", "
            separator = ", "
        yield "]"
    else:
        yield _encoded(value)


def _encoded(value: Any, indent: int | None = None) -> str:
    try:
        return json.dumps(value, indent=indent, allow_nan=False)
    except (TypeError, ValueError):
        # It holds what strict JSON has no words for, such as NaN.
        return json.dumps(json_safe(value), indent=indent, allow_nan=False)
