"""The differences between the metadata of two nodes. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import zarrfs
from zarrfs.engine.json_checks import pointer

__all__ = ["ComparedValue", "compare_nodes", "compare_values", "node_values"]

MAX_VALUES = 20_000
"""The maximum number of values of a node that are compared. Further ones are ignored."""

MAX_DEPTH = 60
"""Values that are nested deeper are compared as a whole."""


@dataclass(frozen=True)
class ComparedValue:
    """One value. ``name`` is the JSON pointer of an attribute, or the name of a property. A text is None if the node
    does not have the value.
    """

    name: str
    left: str | None
    right: str | None

    @property
    def is_different(self) -> bool:
        return self.left != self.right


def compare_nodes(
    left: zarrfs.Array | zarrfs.Group, right: zarrfs.Array | zarrfs.Group
) -> list[ComparedValue]:
    """Return the properties and the attributes of two nodes: in the order of the left one.

    Nothing is read from the store.
    """
    return compare_values(node_values(left), node_values(right))


def node_values(node: zarrfs.Array | zarrfs.Group) -> dict[str, str]:
    """Return the properties and attributes of a node as texts by name."""
    from zarrfs.engine.hierarchy.summary import array_summary, group_summary

    summary = array_summary(node) if isinstance(node, zarrfs.Array) else group_summary(node)
    attributes = summary.pop("attributes")
    properties = {key: _text(value) for key, value in summary.items() if value is not None and key != "path"}
    return properties | dict(islice(_flattened(attributes, "", 0), MAX_VALUES))


def compare_values(left: Mapping[str, str], right: Mapping[str, str]) -> list[ComparedValue]:
    """Return the values of two nodes side by side."""
    names = dict.fromkeys((*left, *right))
    return [ComparedValue(name, left.get(name), right.get(name)) for name in names]


def _flattened(value: Any, place: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the values that are not objects or lists of them, by JSON pointer."""
    is_nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value)
    )
    if not is_nested or not value or depth > MAX_DEPTH:
        if place or value:
            yield place, _text(value)
        return
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in members:
        yield from _flattened(inner, pointer(place, str(key)), depth + 1)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
