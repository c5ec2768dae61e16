"""Reading JSON objects that may be wrong anywhere: what does not fit is noted with its JSON pointer and left
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zarrfs.text import short_repr

__all__ = ["Reader", "is_number"]

MAX_PROBLEMS = 200
"""The number of problems of one document that are recorded."""


def is_number(value: Any) -> bool:
    """Tell whether a JSON value is a number that a float can hold (true and false are none)."""
    # The comparison is false for NaN, and works for integers too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e308 < value < 1e308


class Reader:
    """One JSON object at a JSON pointer. All readers of a document share the list ``problems``."""

    def __init__(self, document: Mapping[str, Any], pointer: str, problems: list[str]) -> None:
        self.document = document
        self.pointer = pointer
        self.problems = problems

    def note(self, key: str, message: str) -> None:
        """Note a problem at a key (or a path of keys) of this object."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(f"{self.pointer}/{key}: {message}")

    def string(self, key: str) -> str | None:
        """Return the string at ``key``; None where there is none."""
        value: str | None = self._typed(key, str, "a string")
        return value

    def boolean(self, key: str, default: bool) -> bool:
        """Return the truth value at ``key``."""
        value = self._typed(key, bool, "true or false")
        return default if value is None else value

    def integer(self, key: str) -> int | None:
        """Return the whole number at ``key`` (2.0 is one); None where there is none."""
        value = self.number(key)
        if value is None:
            return None
        if value != int(value):
            self.note(key, f"expected a whole number, found {short_repr(value)}: left out")
            return None
        return int(value)

    def number(self, key: str) -> float | None:
        """Return the finite number at ``key``, an int where the document has one; None where there is
        none.
        """
        value = self.document.get(key)
        if value is None:
            return None
        if not is_number(value):
            self.note(key, f"expected a finite number, found {short_repr(value)}: left out")
            return None
        number: float = value
        return number

    def mapping(self, key: str) -> Reader | None:
        """Return a reader of the object at ``key``; None where there is none."""
        value = self._typed(key, Mapping, "an object")
        return None if value is None else Reader(value, f"{self.pointer}/{key}", self.problems)

    def mappings(self, key: str) -> Iterator[Reader]:
        """Yield a reader for each object in the list at ``key``."""
        for number, item in enumerate(self._typed(key, list, "a list") or []):
            if isinstance(item, Mapping):
                yield Reader(item, f"{self.pointer}/{key}/{number}", self.problems)
            else:
                self.note(f"{key}/{number}", f"expected an object, found {short_repr(item)}: left out")

    def strings(self, key: str) -> Iterator[str]:
        """Yield the strings in the list at ``key``."""
        for number, item in enumerate(self._typed(key, list, "a list") or []):
            if isinstance(item, str):
                yield item
            else:
                self.note(f"{key}/{number}", f"expected a string, found {short_repr(item)}: left out")

    def _typed(self, key: str, kind: Any, words: str) -> Any:
        value = self.document.get(key)
        if value is None or isinstance(value, kind):
            return value
        self.note(key, f"expected {words}, found {short_repr(value)}: left out")
        return None
