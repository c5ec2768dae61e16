"""Checks of JSON values taken from metadata documents. Each failure names where, what was expected and what
was found.

``where`` is the location of the document, a colon and the JSON pointer of the value
(``image.zarr/0/zarr.json: /chunk_grid/configuration``), so that a message starts with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from zarrfs.errors import MetadataError

__all__ = [
    "MAX_LENGTH",
    "MAX_RANK",
    "check_keys",
    "expect_integer",
    "expect_list",
    "expect_object",
    "expect_shape",
    "expect_string",
    "fail",
    "found",
    "named_configuration",
    "pointer",
]

MAX_RANK = 64
"""The most dimensions an array may have: NumPy's own limit (since version 2; before, NumPy itself refuses
above 32).
"""

MAX_LENGTH = 2**63 - 1
"""The longest a dimension may be: indices are 64-bit."""

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (Mapping, "an object"),
    ((list, tuple), "a list"),
)


def found(value: Any) -> str:
    """Return a JSON value as short text for a message."""
    if value is None:
        return "null"
    kind = next((words for types, words in _KINDS if isinstance(value, types)), type(value).__name__)
    if isinstance(value, Mapping | list | tuple) and len(value) > 8:
        return f"{kind} of {len(value)} entries"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return kind
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({kind})"


def pointer(where: str, *parts: str | int) -> str:
    """Return ``where`` continued by the parts of a JSON pointer, escaped as RFC 6901 says."""
    return where + "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def fail(where: str, expected: str, value: Any, advice: str = "") -> MetadataError:
    """Return (not raise) the error of a value that is not what was expected."""
    return MetadataError(
        f"{where}: expected {expected}, found {found(value)}" + (f"; {advice}" if advice else "")
    )


def expect_object(value: Any, where: str, expected: str = "an object") -> Mapping[str, Any]:
    """Return the value if it is a JSON object."""
    if not isinstance(value, Mapping):
        raise fail(where, expected, value)
    return value


def expect_list(value: Any, where: str, expected: str = "a list") -> Sequence[Any]:
    """Return the value if it is a JSON array."""
    if not isinstance(value, list | tuple):
        raise fail(where, expected, value)
    return value


def expect_string(value: Any, where: str, choices: Collection[str] | None = None) -> str:
    """Return the value if it is a string, and one of the choices where they are given."""
    expected = "a string" if choices is None else "one of " + ", ".join(f'"{choice}"' for choice in choices)
    if not isinstance(value, str) or (choices is not None and value not in choices):
        raise fail(where, expected, value)
    return value


def expect_integer(value: Any, where: str, low: int | None = None, high: int | None = None) -> int:
    """Return the value if it is a JSON integer (no boolean, no float) within the bounds, which are
    inclusive.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or (low is not None and value < low)
        or (high is not None and value > high)
    ):
        top = "2^63-1" if high == MAX_LENGTH else high
        bounds = {
            (False, False): "",
            (True, False): f" of at least {low}",
            (False, True): f" of at most {top}",
            (True, True): f" from {low} to {top}",
        }[low is not None, high is not None]
        raise fail(where, f"an integer{bounds}", value)
    return value


def expect_shape(value: Any, where: str, low: int = 0) -> tuple[int, ...]:
    """Return a list of integers from ``low`` to MAX_LENGTH as a tuple; at most MAX_RANK of them."""
    lengths = expect_list(value, where, f"a list of integers of at least {low}")
    if len(lengths) > MAX_RANK:
        raise MetadataError(f"{where}: expected at most {MAX_RANK} dimensions, found {len(lengths)}")
    return tuple(
        expect_integer(length, pointer(where, index), low, MAX_LENGTH) for index, length in enumerate(lengths)
    )


def check_keys(value: Mapping[str, Any], where: str, known: Collection[str]) -> None:
    """Raise MetadataError if the object has a key that is not known."""
    for key in value:
        if key not in known:
            names = ", ".join(f'"{name}"' for name in known) or "no key at all"
            raise MetadataError(f"{pointer(where, key)}: unknown key, expected {names}")


def named_configuration(value: Any, where: str, what: str) -> tuple[str, Mapping[str, Any]]:
    """Return name and configuration of a v3 extension: a short-hand name, or an object with ``name``.

    ``must_understand: false`` is refused: the specification does not support it for data type, chunk grid
    and chunk key encoding, which are the ones that come here.
    """
    if isinstance(value, str):
        return value, {}
    extension = expect_object(
        value, where, f'the name of a {what}, or an object with "name" and "configuration"'
    )
    if "name" not in extension:
        raise MetadataError(f'{where}: the {what} has no "name"')
    check_keys(extension, where, ("name", "configuration", "must_understand"))
    if extension.get("must_understand", True) is not True:
        raise MetadataError(
            f"{where}/must_understand: a {what} must be understood, leave the key out; "
            f"found {found(extension['must_understand'])}"
        )
    configuration = extension.get("configuration", {})
    return (
        expect_string(extension["name"], f"{where}/name"),
        expect_object(configuration, f"{where}/configuration"),
    )
