"""Typed access to JSON objects that may be invalid. Invalid members are ignored and recorded by JSON pointer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.text import short_repr

__all__ = ["Reader", "is_number"]

MAX_PROBLEMS = 200
"""The maximum number of recorded problems of one document."""


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number (not a boolean) within the range of a float."""
    # The comparison is false for NaN, and works for integers too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e308 < value < 1e308


class Reader:
    """One JSON object at a JSON pointer. All readers of a document share the list ``problems``."""

    def __init__(self, document: Mapping[str, Any], pointer: str, problems: list[str]) -> None:
        self.document = document
        self.pointer = pointer
        self.problems = problems

    def note(self, key: str, message: str) -> None:
        """Record a problem at a key, or a path of keys, of this object."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"{self.pointer}/{key}: {message}")

    def string(self, key: str) -> str | None:
        """Return the string at ``key``; None if it is missing or invalid."""
        value: str | None = self._typed(key, str, "a string")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """Return the boolean at ``key``; ``default`` if it is missing or invalid."""
        value = self._typed(key, bool, "true or false")
        return default if value is None else value

    def integer(self, key: str) -> int | None:
        """Return the integer at ``key`` (2.0 is accepted); None if it is missing or invalid."""
        value = self.number(key)
        if value is None:
            return None
        if value != int(value):
            self.note(key, f"expected an integer, found {short_repr(value)}: ignored")
            return None
        return int(value)

    def number(self, key: str) -> float | None:
        """Return the finite number at ``key`` as int or float; None if it is missing or invalid."""
        value = self.document.get(key)
        if value is None:
            return None
        if not is_number(value):
            self.note(key, f"expected a finite number, found {short_repr(value)}: ignored")
            return None
        number: float = value
        return number

    def mapping(self, key: str) -> Reader | None:
        """Return a reader of the object at ``key``; None if it is missing or invalid."""
        value = self._typed(key, Mapping, "an object")
        return None if value is None else Reader(value, f"{self.pointer}/{key}", self.problems)

    def mappings(self, key: str) -> Iterator[Reader]:
        """Yield a reader of each object in the list at ``key``."""
        for index, item in enumerate(self._typed(key, list, "a list") or []):
            if isinstance(item, Mapping):
                yield Reader(item, f"{self.pointer}/{key}/{index}", self.problems)
            else:
                self.note(f"{key}/{index}", f"expected an object, found {short_repr(item)}: ignored")

    def strings(self, key: str) -> Iterator[str]:
        """Yield the strings in the list at ``key``."""
        for index, item in enumerate(self._typed(key, list, "a list") or []):
            if isinstance(item, str):
                yield item
            else:
                self.note(f"{key}/{index}", f"expected a string, found {short_repr(item)}: ignored")

    def _typed(self, key: str, kind: Any, description: str) -> Any:
        value = self.document.get(key)
        if value is None or isinstance(value, kind):
            return value
        self.note(key, f"expected {description}, found {short_repr(value)}: ignored")
        return None
