"""The parameters in a codec's ``configuration`` object, checked as ``json_checks`` does. Errors name codec and key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from zarrfs.engine import json_checks
from zarrfs.errors import MetadataError

__all__ = ["check_keys", "choice", "flag", "integer", "number"]

_MISSING: Any = object()


def check_keys(name: str, configuration: Mapping[str, Any], known: Collection[str]) -> None:
    """Raise MetadataError for a key that is not in ``known``."""
    json_checks.check_keys(configuration, f"codec {name!r}: configuration", known)


def _value(name: str, configuration: Mapping[str, Any], key: str, default: Any) -> tuple[Any, str]:
    """Return the value of a key and its location for messages."""
    if key not in configuration and default is _MISSING:
        raise MetadataError(f"codec {name!r}: configuration key {key!r} is missing")
    return configuration.get(key, default), f"codec {name!r}: {key}"


def integer(
    name: str, configuration: Mapping[str, Any], key: str, low: int, high: int, default: Any = _MISSING
) -> int:
    """Return the integer of a key. Raises MetadataError unless it is ``low`` to ``high``, both included."""
    return json_checks.expect_integer(*_value(name, configuration, key, default), low, high)


def choice(
    name: str, configuration: Mapping[str, Any], key: str, allowed: Collection[str], default: Any = _MISSING
) -> str:
    """Return the string of a key. Raises MetadataError unless it is one of ``allowed``."""
    return json_checks.expect_string(*_value(name, configuration, key, default), allowed)


def flag(name: str, configuration: Mapping[str, Any], key: str, default: Any = _MISSING) -> bool:
    """Return the boolean of a key. Raises MetadataError for another value."""
    return json_checks.expect_boolean(*_value(name, configuration, key, default))


def number(name: str, configuration: Mapping[str, Any], key: str, low: float) -> int | float:
    """Return the number of a key. Raises MetadataError unless it is finite and at least ``low``."""
    return json_checks.expect_number(*_value(name, configuration, key, _MISSING), low)
