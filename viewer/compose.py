"""From planes of values to one picture: colour, contrast, sum of channels, labels on top. Pure NumPy.

Pixels are uint32 ``0xffRRGGBB`` (Qt's Format_RGB32), C-contiguous.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from viewer.state import ChannelSettings, LabelsSettings, Rgb
from zarrfs.ngff import ImageLabel

__all__ = ["Pixels", "blend_labels", "compose", "compose_rgb", "label_color", "lookup_table"]

Pixels = npt.NDArray[np.uint32]
NAN_COLOR: Rgb = (96, 0, 96)
"""How not-a-number is drawn, unlike any value of the usual colour maps at low intensity."""


def compose(
    planes: Sequence[npt.NDArray[Any]],
    channels: Sequence[ChannelSettings],
    out: Pixels | None = None,
    background: Rgb = (0, 0, 0),
) -> Pixels:
    """Add up channels: ``planes[i]``, all of one shape (rows, columns), drawn as ``channels[i]`` says.

    ``limits`` None is the data type's range (0 to 1 for floats). Visibility is the caller's business: everything
    given is drawn. Fills and returns ``out`` where given.
    """
    raise NotImplementedError


def compose_rgb(plane: npt.NDArray[Any], channel: ChannelSettings, out: Pixels | None = None) -> Pixels:
    """Draw (rows, columns, 3 or 4) samples as they are: uint8 unchanged, others scaled by ``limits``; alpha lies
    over black."""
    raise NotImplementedError


def blend_labels(
    pixels: Pixels, labels: npt.NDArray[Any], settings: LabelsSettings, image_label: ImageLabel | None = None
) -> None:
    """Lay labels over ``pixels`` in place. Label 0 is nothing. Colours are those of ``image_label``, else a stable
    palette by the label's value."""
    raise NotImplementedError


def label_color(value: int, image_label: ImageLabel | None = None) -> tuple[int, int, int, int]:
    """Return the colour (r, g, b, a) of one label."""
    raise NotImplementedError
