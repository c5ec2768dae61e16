"""JSON pointers (RFC 6901): changing one value of a JSON document. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from zarrfs.errors import OptionError

__all__ = ["with_value", "without_value"]


def with_value(document: Mapping[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """Return the document with another value at a pointer. The argument is not changed.

    Missing objects on the way are created. The index ``-`` appends to a list. A pointer without a leading slash is the
    name of a member of the document.

    Raises OptionError if the pointer leads through a value that is neither an object nor a list, or to an index that
    does not exist.
    """
    edited = deepcopy(dict(document))
    parts = _parts(pointer)
    parent = _parent(edited, parts, pointer, create=True)
    last = parts[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif last == "-":
        parent.append(value)
    else:
        parent[_index(parent, last, pointer)] = value
    return edited


def without_value(document: Mapping[str, Any], pointer: str) -> dict[str, Any]:
    """Return the document without the value at a pointer. The argument is not changed.

    Raises OptionError if there is no value.
    """
    edited = deepcopy(dict(document))
    parts = _parts(pointer)
    parent = _parent(edited, parts, pointer, create=False)
    if isinstance(parent, list):
        del parent[_index(parent, parts[-1], pointer)]
    elif parts[-1] in parent:
        del parent[parts[-1]]
    else:
        raise OptionError(f"{pointer}: there is no such attribute{_candidates(parent)}")
    return edited


def _parts(pointer: str) -> list[str]:
    if not pointer:
        raise OptionError("the name of an attribute is empty")
    if not pointer.startswith("/"):
        return [pointer]
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def _parent(
    document: dict[str, Any], parts: list[str], pointer: str, create: bool
) -> dict[str, Any] | list[Any]:
    """Return the object or list that contains the value."""
    node: Any = document
    for part in parts[:-1]:
        if isinstance(node, list):
            node = node[_index(node, part, pointer)]
        elif part in node:
            node = node[part]
        elif create:
            node[part] = {}
            node = node[part]
        else:
            raise OptionError(f"{pointer}: there is no {part!r}{_candidates(node)}")
        if not isinstance(node, dict | list):
            raise OptionError(f"{pointer}: {part!r} is {_kind(node)}, not an object or a list")
    return node  # type: ignore[no-any-return]  # checked in the loop


def _index(values: list[Any], part: str, pointer: str) -> int:
    if not part.isdecimal() or int(part) >= len(values):
        raise OptionError(f"{pointer}: expected an index below {len(values)}, found {part!r}")
    return int(part)


def _candidates(node: Mapping[str, Any]) -> str:
    names = [repr(name) for name in list(node)[:10]]
    return f"; found {', '.join(names)}" if names else ""


def _kind(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
