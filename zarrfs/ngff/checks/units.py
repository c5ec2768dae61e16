"""The units that OME-NGFF recommends for axes, which are names of UDUNITS-2."""

from __future__ import annotations

__all__ = ["SPACE_UNITS", "TIME_UNITS"]

PREFIXES = [
    "yocto",
    "zepto",
    "atto",
    "femto",
    "pico",
    "nano",
    "micro",
    "milli",
    "centi",
    "deci",
    "hecto",
    "kilo",
    "mega",
    "giga",
    "tera",
    "peta",
    "exa",
    "zetta",
    "yotta",
]

SPACE_UNITS = frozenset(
    [
        "meter",
        *(prefix + "meter" for prefix in PREFIXES),
        "angstrom",
        "foot",
        "inch",
        "mile",
        "parsec",
        "yard",
    ]
)
TIME_UNITS = frozenset(["second", *(prefix + "second" for prefix in PREFIXES), "minute", "hour", "day"])
