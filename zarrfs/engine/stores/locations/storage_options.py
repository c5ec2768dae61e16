"""Storage options of a location: their type, and the check of boolean ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.errors import OptionError

__all__ = ["EXTERNAL", "Options", "boolean_options"]

Options = Mapping[str, Any] | None

EXTERNAL = "allow_external"
"""The storage option that every location accepts."""


def boolean_options(description: str, options: Options, *known: str) -> dict[str, bool]:
    """Return the storage options of a location that accepts only the boolean options ``known``.

    Raises OptionError for an unknown option or a value that is not a bool. ``description`` names the location in
    messages.
    """
    for name, value in (options or {}).items():
        if name not in known:
            accepted = f"it accepts {', '.join(map(repr, known))}" if known else "it accepts none"
            raise OptionError(f"{description} does not accept the storage option {name!r}; {accepted}")
        if not isinstance(value, bool):
            raise OptionError(
                f"{description}: storage option {name!r} must be true or false, found {value!r}"
            )
    return dict(options or {})
