"""Units of length and time: UDUNITS names, as in OME-NGFF, and the symbols that other software writes.

See https://ngff.openmicroscopy.org/0.5/#axes-md for the names.
"""

from __future__ import annotations

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

Ratio = tuple[int, int]
"""A rational number: numerator and denominator. The module ``fractions`` needs 400 KiB of memory."""


def _power(exponent: int) -> Ratio:
    """Return a power of ten."""
    return (10**exponent, 1) if exponent >= 0 else (1, 10**-exponent)


LENGTHS: dict[str, Ratio] = {
    **{f"{prefix}meter": _power(exponent) for prefix, exponent in PREFIXES.items()},
    **{f"{prefix}m": _power(exponent) for prefix, exponent in SYMBOL_PREFIXES.items()},
    "angstrom": _power(-10),
    "micron": _power(-6),
    "inch": (254, 10000),
    "foot": (3048, 10000),
    "yard": (9144, 10000),
    "mile": (1609344, 1000),
    "parsec": (30856775814913673, 1),
}
"""The length of each unit in metres."""

TIMES: dict[str, Ratio] = {
    **{f"{prefix}second": _power(exponent) for prefix, exponent in PREFIXES.items()},
    **{f"{prefix}s": _power(exponent) for prefix, exponent in SYMBOL_PREFIXES.items()},
    "sec": (1, 1),
    "msec": _power(-3),
    "minute": (60, 1),
    "min": (60, 1),
    "hour": (3600, 1),
    "h": (3600, 1),
    "day": (86400, 1),
    "d": (86400, 1),
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
                number, denominator = _decimal(value)
                # The division of integers is rounded correctly.
                result = (number * factor[0] * divisor[1]) / (denominator * factor[1] * divisor[0])
            except OverflowError:
                return None
            return None if result == 0 and value != 0 else result
    return None


def _decimal(value: float) -> Ratio:
    """Return the shortest decimal number that represents a value as a ratio: 0.65 is 65 / 100, so that 0.65 µm is
    0.00065 mm.
    """
    mantissa, _, exponent = repr(float(value)).partition("e")
    whole, _, digits = mantissa.partition(".")
    numerator, denominator = _power(int(exponent or 0) - len(digits))
    return int(whole + digits) * numerator, denominator


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
            return next(name for name in table if table[name] == size and len(name) > 2)
    return None


def _find(unit: str | None, table: dict[str, Ratio]) -> Ratio | None:
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
