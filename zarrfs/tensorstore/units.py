"""Conversion of physical units of specs (``"4 nm"``, ``[4, "nm"]``, ``4`` or null) to strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["unit_from_json", "units_from_json"]

_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(.*)", re.DOTALL)


def units_from_json(value: Any, where: str) -> tuple[str | None, ...]:
    """Return the unit of each dimension; None for a dimension without unit."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MetadataError(f"{where}: expected a list of units, found {short_repr(value)}")
    return tuple(
        None if unit is None else unit_from_json(unit, f"{where}/{i}") for i, unit in enumerate(value)
    )


def unit_from_json(value: Any, where: str) -> str:
    """Return a unit as a string of multiplier (omitted if 1) and name; ``"1"`` if both are trivial."""
    if isinstance(value, bool):
        raise MetadataError(f"{where}: expected a unit, found {short_repr(value)}")
    if isinstance(value, int | float):
        return _text(float(value), "")
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        return _text(1.0, value.strip()) if match is None else _text(float(match[1]), match[2].strip())
    if isinstance(value, Sequence) and len(value) == 2 and isinstance(value[1], str):
        number = value[0]
        if isinstance(number, int | float) and not isinstance(number, bool):
            return _text(float(number), value[1].strip())
    raise MetadataError(f"{where}: expected a unit such as '4 nm', [4, 'nm'] or 4, found {short_repr(value)}")


def _text(multiplier: float, name: str) -> str:
    number = str(int(multiplier)) if multiplier == int(multiplier) else repr(multiplier)
    if not name:
        return number
    return name if multiplier == 1 else f"{number} {name}"
