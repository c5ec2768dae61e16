"""What the schemas of all versions require of members: their kinds, and lists of objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.reader import is_number
from zarrfs.text import short_repr

__all__ = [
    "BOOLEAN",
    "COUNT",
    "INDEX",
    "INTEGER",
    "NUMBER",
    "OBJECT",
    "STRING",
    "Kind",
    "field",
    "items",
]

Kind = tuple[str, Callable[[Any], bool]]

STRING: Kind = ("a string", lambda value: isinstance(value, str))
NUMBER: Kind = ("a number", is_number)
BOOLEAN: Kind = ("true or false", lambda value: isinstance(value, bool))
INTEGER: Kind = ("an integer", lambda value: is_number(value) and value == int(value))
COUNT: Kind = ("a positive integer", lambda value: INTEGER[1](value) and value > 0)
INDEX: Kind = ("a non-negative integer", lambda value: INTEGER[1](value) and value >= 0)
OBJECT: Kind = ("an object", lambda value: isinstance(value, Mapping))


def field(
    item: Mapping[str, Any], location: str, key: str, kind: Kind, required: bool = False
) -> Iterator[Finding]:
    """Check the kind of a member, and that it exists if it is required."""
    if key not in item:
        if required:
            yield Finding(location, f"{short_repr(key)} is missing")
    elif not kind[1](item[key]):
        yield Finding(location + pointer(key), f"expected {kind[0]}, found {short_repr(item[key])}")


def items(
    item: Mapping[str, Any],
    location: str,
    key: str,
    check: Callable[[Mapping[str, Any], str], Iterator[Finding]],
    unique: bool = True,
) -> Iterator[Finding]:
    """Check a required, non-empty list of objects, which must be distinct if ``unique``."""
    values = item.get(key)
    list_location = location + pointer(key)
    if key not in item:
        yield Finding(location, f"{short_repr(key)} is missing")
        return
    if not isinstance(values, list) or not values:
        yield Finding(list_location, f"expected a non-empty list, found {short_repr(values)}")
        return
    first_positions: dict[str, int] = {}
    for number, value in enumerate(values):
        if not isinstance(value, Mapping):
            yield Finding(list_location + pointer(number), f"expected an object, found {short_repr(value)}")
            continue
        if unique:
            earlier = first_positions.setdefault(canonical_json(value), number)
            if earlier != number:
                yield Finding(list_location + pointer(number), f"duplicate of item {earlier}")
        yield from check(value, list_location + pointer(number))


def canonical_json(value: Any) -> str:
    """Return JSON text that is equal for equal values, independent of the order of keys."""
    return json.dumps(value, sort_keys=True)
