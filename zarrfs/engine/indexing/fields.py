"""Field names of records in an index expression."""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.values import describe_value
from zarrfs.errors import SelectionError

__all__ = ["check_fields", "pop_fields"]


def pop_fields(selection: Any, dtype: np.dtype[Any]) -> tuple[str | list[str] | None, Any]:
    """Split a selection into its field names (a name, a list of names, or None) and the remaining selection."""
    if isinstance(selection, str):
        return check_fields(selection, dtype), ()
    if isinstance(selection, list) and selection and all(isinstance(part, str) for part in selection):
        return check_fields(selection, dtype), ()
    if isinstance(selection, tuple):
        names = [part for part in selection if isinstance(part, str)]
        if names:
            rest = tuple(part for part in selection if not isinstance(part, str))
            return check_fields(names[0] if len(names) == 1 else names, dtype), rest
    return None, selection


def check_fields(fields: str | list[str], dtype: np.dtype[Any]) -> str | list[str]:
    """Return the field names if the dtype has them. Raises SelectionError."""
    if not isinstance(fields, str) and not (
        isinstance(fields, list) and fields and all(isinstance(name, str) for name in fields)
    ):
        raise SelectionError(f"fields must be a name or a list of names, found {describe_value(fields)}")
    for name in [fields] if isinstance(fields, str) else fields:
        if dtype.names is None:
            raise SelectionError(f"field {name!r} cannot be selected: an array of {dtype} has no fields")
        if name not in dtype.names:
            raise SelectionError(
                f"there is no field {name!r}; the fields are {', '.join(map(repr, dtype.names))}"
            )
    return fields
