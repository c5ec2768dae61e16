"""Colour maps by name, as tables of 256 colours. The list says which ones are safe for colour-blind eyes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["COLOR_BLIND_SAFE", "NAMES", "is_colormap", "lookup"]

NAMES: tuple[str, ...] = ("gray", "viridis", "magma", "inferno", "plasma", "cividis", "turbo", "hilo")
COLOR_BLIND_SAFE: frozenset[str] = frozenset({"gray", "viridis", "magma", "inferno", "plasma", "cividis"})


def is_colormap(name: str) -> bool:
    """Tell whether ``lookup`` knows the name."""
    raise NotImplementedError


def lookup(name: str) -> npt.NDArray[np.uint8]:
    """Return the colours, (256, 3) RGB, read-only. ``#RRGGBB`` is the ramp from black to that colour. Raises
    ValueError for an unknown name."""
    raise NotImplementedError
