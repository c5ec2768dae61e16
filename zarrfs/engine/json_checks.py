"""Checks of JSON values from metadata documents. Each error names the location, the expected and the found value.

``where`` is the location of the document, a colon, and the JSON pointer of the value, for example
``image.zarr/0/zarr.json: /chunk_grid/configuration``. Messages begin with it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = [
    "MAX_LENGTH",
    "MAX_RANK",
    "check_keys",
    "describe_json",
    "expect_boolean",
    "expect_integer",
    "expect_list",
    "expect_number",
    "expect_object",
    "expect_shape",
    "expect_string",
    "named_configuration",
    "pointer",
    "unexpected_value",
]

MAX_RANK = 64
"""The maximum number of dimensions of an array, which is NumPy's limit since version 2. Before, it was 32."""

MAX_LENGTH = 2**63 - 1
"""The maximum length of a dimension: indices are signed 64-bit integers."""

MAX_NAMES = 600
"""The maximum length of the names that are expected instead of an unknown one, in characters."""

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (Mapping, "an object"),
    ((list, tuple), "a list"),
)


def describe_json(value: Any) -> str:
    """Return a short description of a JSON value for messages."""
    if value is None:
        return "null"
    kind = next((name for types, name in _KINDS if isinstance(value, types)), type(value).__name__)
    if isinstance(value, Mapping | list | tuple) and len(value) > 8:
        return f"{kind} of {len(value)} entries"
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return kind
    return f"{safe_text(text, MAX_VALUE)} ({kind})"


def pointer(where: str, *parts: str | int) -> str:
    """Return ``where`` extended by the parts of a JSON pointer, escaped according to RFC 6901."""
    return where + "".join(
        "/" + safe_text(str(part), MAX_VALUE).replace("~", "~0").replace("/", "~1") for part in parts
    )


def unexpected_value(where: str, expected: str, value: Any, advice: str = "") -> MetadataError:
    """Return (do not raise) the error for a value that is not as expected."""
    return MetadataError(
        f"{where}: expected {expected}, found {describe_json(value)}" + (f"; {advice}" if advice else "")
    )


def expect_object(value: Any, where: str, expected: str = "an object") -> Mapping[str, Any]:
    """Return the value if it is a JSON object. Raises MetadataError."""
    if not isinstance(value, Mapping):
        raise unexpected_value(where, expected, value)
    return value


def expect_list(value: Any, where: str, expected: str = "a list") -> Sequence[Any]:
    """Return the value if it is a JSON array. Raises MetadataError."""
    if not isinstance(value, list | tuple):
        raise unexpected_value(where, expected, value)
    return value


def expect_string(value: Any, where: str, choices: Collection[str] | None = None) -> str:
    """Return the value if it is a string and, if ``choices`` are given, one of them. Raises MetadataError."""
    expected = "a string" if choices is None else f"one of {_quoted(choices)}"
    if not isinstance(value, str) or (choices is not None and value not in choices):
        raise unexpected_value(where, expected, value)
    return value


def expect_integer(value: Any, where: str, low: int | None = None, high: int | None = None) -> int:
    """Return the value if it is a JSON integer, not a boolean or float, within the inclusive bounds.

    Raises MetadataError.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or (low is not None and value < low)
        or (high is not None and value > high)
    ):
        upper = "2^63-1" if high == MAX_LENGTH else high
        bounds = {
            (False, False): "",
            (True, False): f" of at least {low}",
            (False, True): f" of at most {upper}",
            (True, True): f" from {low} to {upper}",
        }[low is not None, high is not None]
        raise unexpected_value(where, f"an integer{bounds}", value)
    return value


def expect_number(value: Any, where: str, low: float) -> int | float:
    """Return the value if it is a finite JSON number of at least ``low``. Raises MetadataError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value < float("inf"):
        raise unexpected_value(where, f"a number of at least {low}", value)
    return value


def expect_boolean(value: Any, where: str) -> bool:
    """Return the value if it is a JSON boolean. Raises MetadataError."""
    if not isinstance(value, bool):
        raise unexpected_value(where, "true or false", value)
    return value


def expect_shape(value: Any, where: str, low: int = 0) -> tuple[int, ...]:
    """Return a list of at most MAX_RANK integers from ``low`` to MAX_LENGTH as a tuple. Raises MetadataError."""
    lengths = expect_list(value, where, f"a list of integers of at least {low}")
    if len(lengths) > MAX_RANK:
        raise MetadataError(f"{where}: expected at most {MAX_RANK} dimensions, found {len(lengths)}")
    return tuple(
        expect_integer(length, pointer(where, index), low, MAX_LENGTH) for index, length in enumerate(lengths)
    )


def _quoted(names: Collection[str]) -> str:
    # The names can be those of the fields of a structured data type, which come from a document.
    return safe_text(", ".join(f'"{name}"' for name in names), MAX_NAMES)


def check_keys(value: Mapping[str, Any], where: str, known: Collection[str]) -> None:
    """Raise MetadataError if the object has a key that is not in ``known``."""
    for key in value:
        if key not in known:
            names = _quoted(known) or "no key at all"
            raise MetadataError(f"{pointer(where, key)}: unknown key, expected {names}")


def named_configuration(value: Any, where: str, kind: str) -> tuple[str, Mapping[str, Any]]:
    """Return the name and configuration of a v3 extension, given as a name or as an object with ``name``.

    ``must_understand: false`` is refused, because the specification does not allow it for data types, chunk grids and
    chunk key encodings, the extension points that use this function. Raises MetadataError.
    """
    if isinstance(value, str):
        return value, {}
    extension = expect_object(
        value, where, f'the name of a {kind}, or an object with "name" and "configuration"'
    )
    if "name" not in extension:
        raise MetadataError(f'{where}: the {kind} has no "name"')
    check_keys(extension, where, ("name", "configuration", "must_understand"))
    if extension.get("must_understand", True) is not True:
        raise MetadataError(
            f"{where}/must_understand: a {kind} must be understood; remove the key; "
            f"found {describe_json(extension['must_understand'])}"
        )
    configuration = extension.get("configuration", {})
    return (
        expect_string(extension["name"], f"{where}/name"),
        expect_object(configuration, f"{where}/configuration"),
    )
