"""Icons of the toolbar in the colours of the theme, and the icon of the windows.

``qt/icons`` contains a drawing (SVG) and two masks (PNG) of each icon. The masks are drawn here, because the library
that draws SVG needs 1.5 MiB of memory. ``packaging/icons.py`` makes the masks.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from PyQt6.QtGui import QColor, QIcon, QImage, QPainter, QPalette, QPixmap

__all__ = ["DIRECTORY", "SIZES", "icon", "mask_file", "window_icon"]

DIRECTORY = Path(__file__).parent.parent / "icons"
SIZES = (20, 40)
"""Pixels. The larger one is for screens with a scale factor of 2."""


RESOURCES = Path(__file__).parents[2] / "resources"
WINDOW_ICON_SIZES = (48, 128)


def window_icon() -> QIcon:
    """Return the icon of the windows, for desktops without the desktop entry of the viewer."""
    result = QIcon()
    for size in WINDOW_ICON_SIZES:
        result.addFile(str(RESOURCES / f"zarrfs-viewer-{size}.png"))
    return result


def mask_file(name: str, size: int) -> Path:
    """Return the file of a mask, whose alpha channel is the shape of the icon."""
    return DIRECTORY / f"{name}-{size}.png"


def icon(name: str, palette: QPalette) -> QIcon:
    """Return an icon in the text colour of a palette; gray while disabled."""
    role = QPalette.ColorRole.ButtonText
    active, disabled = (
        palette.color(group, role) for group in (QPalette.ColorGroup.Active, QPalette.ColorGroup.Disabled)
    )
    return _drawn(name, active.rgba(), disabled.rgba())


@lru_cache(maxsize=64)
def _drawn(name: str, active: int, disabled: int) -> QIcon:
    """Return an icon in two colours. Those of both themes are kept: drawing all takes 6 ms."""
    result = QIcon()
    for size in SIZES:
        mask = QImage(str(mask_file(name, size)))
        for mode, color in ((QIcon.Mode.Normal, active), (QIcon.Mode.Disabled, disabled)):
            picture = mask.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)
            painter = QPainter(picture)
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
            painter.fillRect(picture.rect(), QColor.fromRgba(color))
            painter.end()
            result.addPixmap(QPixmap.fromImage(picture), mode)
    return result
