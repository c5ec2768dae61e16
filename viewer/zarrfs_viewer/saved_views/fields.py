"""Checked access to the fields of saved views. Errors contain the key. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

from zarrfs.errors import MetadataError
from zarrfs_viewer.state.colormaps import is_colormap

__all__ = ["Fields"]

Choice = TypeVar("Choice", bound=str)


class _Required:
    """The type of the default of required keys."""


REQUIRED = _Required()


class Fields:
    """The fields of one JSON object. Its methods raise MetadataError for missing keys and invalid values."""

    def __init__(self, document: Any, pointer: str) -> None:
        if not isinstance(document, Mapping):
            raise MetadataError(f"saved view, {pointer or 'root'}: expected an object, found {document!r}")
        self._document = document
        self._pointer = pointer

    def error(self, key: str, message: str) -> MetadataError:
        """Return the error for a key. The caller raises it."""
        return MetadataError(f"saved view, {self._pointer}/{key}: {message}")

    def _value(self, key: str, default: Any) -> Any:
        value = self._document.get(key, default)
        if value is REQUIRED:
            raise self.error(key, "is missing")
        return value

    def inner(self, key: str) -> Fields:
        """Return the object at a key."""
        return Fields(self._value(key, REQUIRED), f"{self._pointer}/{key}")

    def optional(self, key: str) -> Fields | None:
        """Return the object at a key, or None if it is missing or null."""
        return None if self._document.get(key) is None else self.inner(key)

    def items(self, key: str) -> Iterator[Fields]:
        """Yield the objects of the list at a key, none if it is missing."""
        value = self._value(key, ())
        if not isinstance(value, list | tuple):
            raise self.error(key, f"expected a list, found {value!r}")
        for number, item in enumerate(value):
            yield Fields(item, f"{self._pointer}/{key}/{number}")

    @overload
    def string(self, key: str) -> str: ...
    @overload
    def string(self, key: str, default: str) -> str: ...
    @overload
    def string(self, key: str, default: None) -> str | None: ...
    def string(self, key: str, default: Any = REQUIRED) -> str | None:
        """Return the string at a key."""
        value = self._value(key, default)
        if isinstance(value, str) or value is default:
            return None if value is None else str(value)
        raise self.error(key, f"expected a string, found {value!r}")

    def boolean(self, key: str, default: bool) -> bool:
        """Return the boolean at a key."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {value!r}")
        return value

    def integer(self, key: str, default: Any = REQUIRED) -> int | None:
        """Return the integer at a key, or None if that is the default."""
        value = self._value(key, default)
        if value is None and default is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"expected an integer, found {value!r}")
        return value

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """Return the finite number at a key."""
        value = self._value(key, default)
        if not _is_number(value):
            raise self.error(key, f"expected a finite number, found {value!r}")
        return float(value)

    def positive(self, key: str, default: Any = REQUIRED) -> float:
        """Return the positive number at a key."""
        value = self.number(key, default)
        if value <= 0:
            raise self.error(key, f"expected a positive number, found {value!r}")
        return value

    def numbers(self, key: str, count: int | None = None) -> tuple[float, ...]:
        """Return the list of finite numbers at a key, of length ``count`` if that is given."""
        values = self._value(key, REQUIRED)
        if not isinstance(values, list | tuple) or not all(_is_number(value) for value in values):
            raise self.error(key, f"expected a list of finite numbers, found {values!r}")
        if count is not None and len(values) != count:
            raise self.error(key, f"expected {count} numbers, found {len(values)}")
        return tuple(float(value) for value in values)

    def integers(self, key: str, count: int) -> tuple[int, ...]:
        """Return the list of ``count`` integers at a key."""
        values = self.numbers(key, count)
        if any(value != int(value) for value in values):
            raise self.error(key, f"expected integers, found {values!r}")
        return tuple(int(value) for value in values)

    def pair(self, key: str) -> tuple[float, float] | None:
        """Return the two numbers at a key, or None if it is missing or null. Integers are not converted to floats."""
        if self._document.get(key) is None:
            return None
        self.numbers(key, 2)
        low, high = self._document[key]
        return low, high

    def choice(self, key: str, choices: tuple[Choice, ...]) -> Choice:
        """Return the string at a key, which is one of ``choices``. The first is the default."""
        value = self._value(key, choices[0])
        for choice in choices:
            if value == choice:
                return choice
        raise self.error(key, f"expected one of {', '.join(choices)}, found {value!r}")

    def colormap(self, key: str) -> str:
        """Return the name of a colour map at a key, by default ``gray``."""
        value = self.string(key, "gray")
        if not is_colormap(value):
            raise self.error(key, f"unknown colour map {value!r}")
        return value


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that is too large for a float
        return False
