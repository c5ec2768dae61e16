"""Units of length and time: UDUNITS names, as in OME-NGFF, and the symbols that other software writes.

See https://ngff.openmicroscopy.org/0.5/#axes-md for the names.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["PREFIXES", "convert", "is_length", "is_time", "unit_name"]

PREFIXES = {
    "yotta": 24,
    "zetta": 21,
    "exa": 18,
    "peta": 15,
    "tera": 12,
    "giga": 9,
    "mega": 6,
    "kilo": 3,
    "hecto": 2,
    "": 0,
    "deci": -1,
    "centi": -2,
    "milli": -3,
    "micro": -6,
    "nano": -9,
    "pico": -12,
    "femto": -15,
    "atto": -18,
    "zepto": -21,
    "yocto": -24,
}
"""The decimal exponent of each SI prefix."""

SYMBOL_PREFIXES = {"k": 3, "": 0, "d": -1, "c": -2, "m": -3, "u": -6, "n": -9, "p": -12}

LENGTHS: dict[str, Fraction] = {
    **{f"{prefix}meter": Fraction(10) ** exponent for prefix, exponent in PREFIXES.items()},
    **{f"{prefix}m": Fraction(10) ** exponent for prefix, exponent in SYMBOL_PREFIXES.items()},
    "angstrom": Fraction(1, 10**10),
    "micron": Fraction(1, 10**6),
    "inch": Fraction(254, 10000),
    "foot": Fraction(3048, 10000),
    "yard": Fraction(9144, 10000),
    "mile": Fraction(1609344, 1000),
    "parsec": Fraction(30856775814913673),
}
"""The length of each unit in metres."""

TIMES: dict[str, Fraction] = {
    **{f"{prefix}second": Fraction(10) ** exponent for prefix, exponent in PREFIXES.items()},
    **{f"{prefix}s": Fraction(10) ** exponent for prefix, exponent in SYMBOL_PREFIXES.items()},
    "sec": Fraction(1),
    "msec": Fraction(1, 1000),
    "minute": Fraction(60),
    "min": Fraction(60),
    "hour": Fraction(3600),
    "h": Fraction(3600),
    "day": Fraction(86400),
    "d": Fraction(86400),
}
"""The duration of each unit in seconds."""

SYMBOLS = {"Å": "angstrom", "\u212b": "angstrom", '"': "inch", "in": "inch", "ft": "foot"}


def convert(value: float, unit: str | None, target: str) -> float | None:
    """Return a value in ``unit`` converted to ``target``, rounded once.

    None if one of the units is unknown, if one is a length and the other one a time, or if the result is not a
    floating-point number other than 0 although the value is. ``value`` is finite.
    """
    for table in (LENGTHS, TIMES):
        factor, divisor = _find(unit, table), _find(target, table)
        if factor is not None and divisor is not None:
            try:
                # The shortest decimal number that stands for the value is converted exactly: 0.65 µm is 0.00065 mm.
                result = float(Fraction(repr(float(value))) * factor / divisor)
            except OverflowError:
                return None
            return None if result == 0 and value != 0 else result
    return None


def is_length(unit: str | None) -> bool:
    """Return whether the unit is a known unit of length."""
    return _find(unit, LENGTHS) is not None


def is_time(unit: str | None) -> bool:
    """Return whether the unit is a known unit of time."""
    return _find(unit, TIMES) is not None


def unit_name(unit: str | None) -> str | None:
    """Return the name that OME-NGFF uses for a unit, such as ``micrometer`` for ``um``; None for an unknown unit."""
    for table in (LENGTHS, TIMES):
        size = _find(unit, table)
        if size is not None:
            return next(name for name in table if table[name] == size and len(name) > 3)
    return None


def _find(unit: str | None, table: dict[str, Fraction]) -> Fraction | None:
    if not unit:
        return None
    name = SYMBOLS.get(unit, unit)
    # The micro sign and the Greek letter mu.
    name = name.replace("\u00b5", "u").replace("\u03bc", "u")
    if name in table:
        return table[name]
    name = name.lower().replace("metre", "meter")
    for candidate in (name, name.removesuffix("s"), name.removesuffix("es")):
        if len(candidate) > 3 and candidate in table:
            return table[candidate]
    return None
