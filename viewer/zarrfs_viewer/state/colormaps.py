"""Colour maps by name, as tables of 256 colours.

viridis, magma, inferno and plasma are by Smith and van der Walt (CC0), cividis by Nuñez, Anderton and
Renslow, turbo by Mikhailov (Apache-2.0), batlow by Crameri (MIT). Each is stored as evenly spaced colours.
Linear interpolation between them differs from the original by at most 2 of 255 (cividis: 4).
"""

from __future__ import annotations

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from zarrfs_viewer.state.luts import cmap_table, lut_table, lut_title

__all__ = ["CHOICES", "COLOR_BLIND_SAFE", "NAMES", "colormap_title", "is_colormap", "lookup"]

Table = npt.NDArray[np.uint8]

ANCHORS = {
    "gray": "000000ffffff",
    "viridis": (
        "440154471164482071472e7c443b843f488939558c34618d2f6c8e2a768e26818e228b8d1f958b1fa08824aa832fb47c"
        "40bd7256c66770cf578bd646a8db34c5e021e2e418fde725"
    ),
    "magma": (
        "000004060518110c2f1e11492f1163420f7556147d671b807822818928819b2e7fad347cbf3a77d0416fe04c67ed5a5f"
        "f66c5cfa815ffd9869feac76fec185fed597fde9aafcfdbf"
    ),
    "inferno": (
        "0000040403120b0724160b39230c4c310a5c3e09664d0d6c5a116e67166e741a6e801f6c8f24699b2964a82e5fb43359"
        "c13a50cc4248d74b3fe05536e9612bef6e21f57b17f8890cfb9706fca80dfbb81df9c72ff6d746f2e865f3f586fcffa4"
    ),
    "plasma": (
        "0d08871b068d2605912f059638049a41049d4903a05102a35901a56100a76900a87100a87801a88004a88707a68e0ca4"
        "9511a19c179ea21d9aa82296ae2892b42e8dba3388bf3984c43e7fc9447acd4a76d24f71d6556dda5b69de6164e26660"
        "e66c5ce97257ed7953f07f4ff3854bf58c46f79342f99a3efba139fca835fdaf31feb72dfebe2afdc627fcce25fbd724"
        "f8df25f6e826f3f027f0f921"
    ),
    "cividis": (
        "00224e002656002a5f002d68003070083370163770203a6f273e6e2e416d34456c3a486c3f4c6c444f6c49536c4e566c"
        "535a6d575d6d5c616e60646f656870696b716d6f727272747676767a7a787e7d788381798885788d8878928c78969077"
        "9b9476a09875a59c74aaa073afa471b5a86fbaac6dbfb06bc4b468c9b965cfbd62d4c15fdac65bdfca57e5cf52ead34c"
        "f0d846f6dd3ffce236fee838"
    ),
    "turbo": (
        "30123b392a734040a24559cb476ee64682f84196ff33adf725c0e71ad2d218e0bd22ebaa3cf58e59fb7379fe5996fe44"
        "affa37c3f134d7e535e7d739f5c53afcb336fe9e2ffc8725f76f1aed5510e2430ad43305c32503ac1701950d017a0403"
    ),
    "batlow": (
        "0119590c2f5d114160154f621e5d622f675c4470525b7745747e388f862dad8c2dca923ce39754f59f74fdaa97fdb5b8"
        "fcc0d8faccfa"
    ),
    "phase": "ff0000ffff0000ff0000ffff0000ffff00ffff0000",
}

NAMES: tuple[str, ...] = (*ANCHORS, "hilo")
"""The named colour maps. ``phase`` is cyclic. ``hilo`` is gray with the lowest colour blue and the highest red."""

COLORS = {
    "#ff0000": "red",
    "#00ff00": "green",
    "#0000ff": "blue",
    "#00ffff": "cyan",
    "#ff00ff": "magenta",
    "#ffff00": "yellow",
}
"""The colours that a microscopist expects first, with their names."""

OTHER_COLORS = {
    "#ffffff": "white",
    "#ff8000": "orange",
    "#ff4040": "light red",
    "#40ff40": "light green",
    "#4060ff": "light blue",
    "#8000ff": "violet",
    "#ff80c0": "pink",
    "#800000": "dark red",
    "#008000": "dark green",
    "#000080": "dark blue",
    "#808000": "olive",
    "#008080": "teal",
    "#800080": "purple",
    "#804000": "brown",
    "#808080": "grey",
    "#80ff00": "lime",
    "#0080ff": "azure",
    "#000000": "black",
}
"""Names for other colours: the nearest of these and of ``COLORS`` is used."""

CHOICES: tuple[str, ...] = (*COLORS, "gray", *(name for name in NAMES if name != "gray"))
"""The colour maps in the order in which they are offered."""

COLOR_BLIND_SAFE: frozenset[str] = frozenset(
    {"gray", "viridis", "magma", "inferno", "plasma", "cividis", "batlow"}
)
"""Colour maps that are suitable for people with colour vision deficiency."""


def is_colormap(name: str) -> bool:
    """Return whether ``lookup`` accepts the name."""
    if name.startswith(("lut:", "cmap:")):
        return _other_table(name) is not None
    return name in NAMES or re.fullmatch(r"#[0-9a-fA-F]{6}", name) is not None


def colormap_title(name: str) -> str:
    """Return the title of a colour map for people: ``green`` for ``#00ff00``, and the nearest colour for others."""
    if not name.startswith("#"):
        return "grey" if name == "gray" else lut_title(name)
    value = name.lower()
    if value in COLORS:
        return COLORS[value]
    names = {**COLORS, **OTHER_COLORS}
    nearest = min(names, key=lambda other: _distance(value, other))
    return names[nearest] if nearest == value else f"custom, {names[nearest]}"


def _distance(first: str, second: str) -> float:
    """Return the squared distance of two colours."""
    a, b = (np.frombuffer(bytes.fromhex(color[1:]), np.uint8).astype(float) for color in (first, second))
    return float(((a - b) ** 2).sum())


@lru_cache(maxsize=256)
def _other_table(name: str) -> Table | None:
    """Return the table of an imported lookup table or of a colour map of cmap, or None."""
    return lut_table(name) if name.startswith("lut:") else cmap_table(name)


@lru_cache(maxsize=256)
def lookup(name: str) -> Table:
    """Return the colours as a read-only array of shape (256, 3), RGB.

    ``#RRGGBB`` is the linear ramp from black to that colour. ``state.luts`` describes other names.

    Raises ValueError for an unknown name.
    """
    if not is_colormap(name):
        raise ValueError(f"unknown colour map {name!r}: expected one of {', '.join(NAMES)}, or #RRGGBB")
    other = _other_table(name) if name.startswith(("lut:", "cmap:")) else None
    if other is not None:
        other.flags.writeable = False
        return other
    digits = f"000000{name[1:]}" if name.startswith("#") else ANCHORS.get(name, ANCHORS["gray"])
    anchors = np.frombuffer(bytes.fromhex(digits), np.uint8).reshape(-1, 3)
    positions = np.linspace(0, 255, len(anchors))
    channels = [np.interp(np.arange(256), positions, anchors[:, channel]) for channel in range(3)]
    table = np.stack(channels, axis=1).round().astype(np.uint8)
    if name == "hilo":
        table[0], table[-1] = (0, 64, 255), (255, 0, 0)
    table.flags.writeable = False
    return table
