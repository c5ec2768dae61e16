"""Checks of the names and types of the options of public functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from zarrfs.engine.values import describe_value
from zarrfs.errors import OptionError

__all__ = ["check_option_names", "check_option_type", "with_fill_value"]


def check_option_names(function: str, names: Iterable[str], valid_names: Collection[str]) -> None:
    """Raise OptionError for the first name that is not in ``valid_names``. It suggests the closest valid name."""
    for name in names:
        if name not in valid_names:
            from difflib import get_close_matches

            close = get_close_matches(name, valid_names, 1, 0.6)
            advice = (
                f"did you mean {close[0]!r}?"
                if close
                else f"the options are {', '.join(sorted(valid_names))}"
            )
            raise OptionError(f"{function} has no option {name!r}; {advice}")


def check_option_type(name: str, value: Any, expected: type | tuple[type, ...], description: str) -> None:
    """Raise OptionError unless the value of an option is None or has one of the types."""
    wrong_bool = isinstance(value, bool) and bool not in (
        expected if isinstance(expected, tuple) else (expected,)
    )
    if value is not None and (not isinstance(value, expected) or wrong_bool):
        raise OptionError(f"{name} must be {description}, found {describe_value(value)}")


def with_fill_value(function: str, options: Mapping[str, Any], fill_value: int) -> dict[str, Any]:
    """Return the options with the fill value of ``zeros`` or ``ones``. Raises OptionError if they contain another."""
    if "fill_value" in options:
        raise OptionError(
            f"{function} has no option 'fill_value': its arrays read as {fill_value}; use the function that starts "
            "with 'full' for another value"
        )
    return {**options, "fill_value": fill_value}
