"""Checking a codec's ``configuration`` object. Errors name the key, the value found and the expected values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zarrfs.errors import MetadataError

__all__ = ["check_keys", "choice", "flag", "integer", "number", "shown"]

_MISSING: Any = object()


MAX_SHOWN = 80


def shown(value: Any) -> str:
    """Return a value of a document as text of at most ``MAX_SHOWN`` characters for a message."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def check_keys(name: str, configuration: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise MetadataError for a key that is not in ``known``."""
    for key in configuration:
        if key not in known:
            expected = ", ".join(map(repr, known)) or "no keys"
            raise MetadataError(
                f"codec {name!r}: unknown configuration key {shown(key)}; expected {expected}"
            )


def _value(name: str, configuration: Mapping[str, Any], key: str, default: Any) -> Any:
    if key in configuration:
        return configuration[key]
    if default is _MISSING:
        raise MetadataError(f"codec {name!r}: configuration key {key!r} is missing")
    return default


def integer(
    name: str, configuration: Mapping[str, Any], key: str, low: int, high: int, default: Any = _MISSING
) -> int:
    """Return the integer of a key. Raises MetadataError unless it is ``low`` to ``high``, both included."""
    value = _value(name, configuration, key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise MetadataError(
            f"codec {name!r}: {key} must be an integer from {low} to {high}, found {shown(value)}"
        )
    return value


def choice(
    name: str, configuration: Mapping[str, Any], key: str, allowed: Collection[str], default: Any = _MISSING
) -> str:
    """Return the string of a key. Raises MetadataError unless it is one of ``allowed``."""
    value = _value(name, configuration, key, default)
    if not isinstance(value, str) or value not in allowed:
        raise MetadataError(
            f"codec {name!r}: {key} must be one of {', '.join(map(repr, allowed))}, found {shown(value)}"
        )
    return value


def flag(name: str, configuration: Mapping[str, Any], key: str, default: Any = _MISSING) -> bool:
    """Return the boolean of a key. Raises MetadataError for another value."""
    value = _value(name, configuration, key, default)
    if not isinstance(value, bool):
        raise MetadataError(f"codec {name!r}: {key} must be true or false, found {shown(value)}")
    return value


def number(name: str, configuration: Mapping[str, Any], key: str, low: float) -> int | float:
    """Return the number of a key. Raises MetadataError unless it is finite and at least ``low``."""
    value = _value(name, configuration, key, _MISSING)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value < float("inf"):
        raise MetadataError(f"codec {name!r}: {key} must be a number of at least {low}, found {shown(value)}")
    return value
