"""Icons of the toolbar, drawn from SVG files in the colours of the theme."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QByteArray, QRectF, Qt
from PyQt6.QtGui import QColor, QIcon, QPainter, QPalette, QPixmap
from PyQt6.QtSvg import QSvgRenderer

__all__ = ["icon"]

DIRECTORY = Path(__file__).parent.parent / "icons"
SIZES = (20, 40)
"""Pixels. The larger one is for screens with a scale factor of 2."""


def icon(name: str, palette: QPalette) -> QIcon:
    """Return the icon of a file in ``qt/icons``, in the text colour of a palette; greyed while disabled."""
    source = (DIRECTORY / f"{name}.svg").read_text(encoding="utf-8")
    result = QIcon()
    for mode, group in (
        (QIcon.Mode.Normal, QPalette.ColorGroup.Active),
        (QIcon.Mode.Disabled, QPalette.ColorGroup.Disabled),
    ):
        color = palette.color(group, QPalette.ColorRole.ButtonText)
        for size in SIZES:
            result.addPixmap(_draw(source, color, size), mode)
    return result


def _draw(source: str, color: QColor, size: int) -> QPixmap:
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", color.name()).encode("utf-8")))
    pixmap = QPixmap(size, size)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    return pixmap
