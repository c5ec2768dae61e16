"""Reading saved views field by field: every value is checked, and an error names the key. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, overload

from zarrfs.errors import MetadataError
from zarrfs_viewer.state.colormaps import is_colormap

__all__ = ["Fields"]

Choice = TypeVar("Choice", bound=str)


class _Required:
    """Stands for "no default": the key must be there."""


REQUIRED = _Required()


class Fields:
    """One JSON object. Raises MetadataError for what does not fit."""

    def __init__(self, document: Any, pointer: str) -> None:
        if not isinstance(document, Mapping):
            raise MetadataError(
                f"saved view, {pointer or 'the whole'}: expected an object, found {document!r}"
            )
        self._document = document
        self._pointer = pointer

    def error(self, key: str, message: str) -> MetadataError:
        """Return the error to raise for a key."""
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
        """Return the object at a key, None where there is none."""
        return None if self._document.get(key) is None else self.inner(key)

    def items(self, key: str) -> Iterator[Fields]:
        """Yield the objects of the list at a key."""
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
        """Return the text at a key."""
        value = self._value(key, default)
        if isinstance(value, str) or value is default:
            return None if value is None else str(value)
        raise self.error(key, f"expected text, found {value!r}")

    def boolean(self, key: str, default: bool) -> bool:
        """Return the truth value at a key."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {value!r}")
        return value

    def integer(self, key: str, default: Any = REQUIRED) -> int | None:
        """Return the whole number at a key."""
        value = self._value(key, default)
        if value is None and default is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(key, f"expected a whole number, found {value!r}")
        return value

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """Return the finite number at a key."""
        value = self._value(key, default)
        if not _is_number(value):
            raise self.error(key, f"expected a finite number, found {value!r}")
        return float(value)

    def positive(self, key: str, default: Any = REQUIRED) -> float:
        """Return the number above 0 at a key."""
        value = self.number(key, default)
        if value <= 0:
            raise self.error(key, f"expected a number above 0, found {value!r}")
        return value

    def numbers(self, key: str, count: int | None = None) -> tuple[float, ...]:
        """Return the list of numbers at a key."""
        values = self._value(key, REQUIRED)
        if not isinstance(values, list | tuple) or not all(_is_number(value) for value in values):
            raise self.error(key, f"expected a list of finite numbers, found {values!r}")
        if count is not None and len(values) != count:
            raise self.error(key, f"expected {count} numbers, found {len(values)}")
        return tuple(float(value) for value in values)

    def integers(self, key: str, count: int) -> tuple[int, ...]:
        """Return the list of whole numbers at a key."""
        values = self.numbers(key, count)
        if any(value != int(value) for value in values):
            raise self.error(key, f"expected whole numbers, found {values!r}")
        return tuple(int(value) for value in values)

    def pair(self, key: str) -> tuple[float, float] | None:
        """Return two numbers, None where there are none. Whole numbers stay whole, however large."""
        if self._document.get(key) is None:
            return None
        self.numbers(key, 2)
        low, high = self._document[key]
        return low, high

    def choice(self, key: str, choices: tuple[Choice, ...]) -> Choice:
        """Return one of some words, the first by default."""
        value = self._value(key, choices[0])
        for word in choices:
            if value == word:
                return word
        raise self.error(key, f"expected one of {', '.join(choices)}, found {value!r}")

    def colormap(self, key: str) -> str:
        """Return the name of a colour map."""
        value = self.string(key, "gray")
        if not is_colormap(value):
            raise self.error(key, f"unknown colour map {value!r}")
        return value


def _is_number(value: Any) -> bool:
    # The comparison is false for NaN, and works for integers too large for a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e308 < value < 1e308
