"""The units that OME-NGFF recommends for axes, which are names of UDUNITS-2."""

from __future__ import annotations

from zarrfs.ngff.units import PREFIXES

__all__ = ["SPACE_UNITS", "TIME_UNITS"]

SPACE_UNITS = frozenset(
    [*(f"{prefix}meter" for prefix in PREFIXES), "angstrom", "foot", "inch", "mile", "parsec", "yard"]
)
TIME_UNITS = frozenset([*(f"{prefix}second" for prefix in PREFIXES), "minute", "hour", "day"])
