"""Positions on a scale of values, without overflow of large floats and exact for integers of any size."""

from __future__ import annotations

__all__ = ["fraction", "interpolated"]


def fraction(value: float, start: float, stop: float) -> float:
    """Return the position of a value between ``start`` (0.0) and ``stop`` (1.0); 0.0 if ``stop`` is not larger."""
    if not stop > start:
        return 0.0
    if isinstance(value, int) and isinstance(start, int) and isinstance(stop, int):
        return (value - start) / (stop - start)
    return (value / 2 - start / 2) / (stop / 2 - start / 2)


def interpolated(start: float, stop: float, part: float, is_integer: bool) -> float:
    """Return the value at a position, 0 to 1. With ``is_integer`` it is an int, and exact next to both ends."""
    if not is_integer:
        return start * (1 - part) + stop * part
    if isinstance(start, int) and isinstance(stop, int):
        distance = stop - start
        return start + round(distance * part) if part < 0.5 else stop - round(distance * (1 - part))
    return round(start * (1 - part) + stop * part)
