"""Makes the masks of the icons of the toolbar from their drawings: ``NAME-20.png`` and ``NAME-40.png`` of ``NAME.svg``.

    python packaging/icons.py [DIRECTORY]        by default that of the icons

Needs the extra ``viewer``. Run it after a drawing has changed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PyQt6.QtCore import QByteArray, QRectF, Qt
from PyQt6.QtGui import QGuiApplication, QImage, QPainter
from PyQt6.QtSvg import QSvgRenderer
from zarrfs_viewer.qt.support.icons import DIRECTORY, SIZES, mask_file

__all__ = ["draw_mask", "write_masks"]


def draw_mask(drawing: Path, size: int) -> QImage:
    """Return a drawing as a black picture with an alpha channel. Needs a QGuiApplication."""
    text = drawing.read_text(encoding="utf-8").replace("currentColor", "#000000")
    picture = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(Qt.GlobalColor.transparent)
    painter = QPainter(picture)
    QSvgRenderer(QByteArray(text.encode("utf-8"))).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return picture


def write_masks(directory: Path) -> None:
    """Write the masks of all drawings to a directory."""
    for drawing in sorted(DIRECTORY.glob("*.svg")):
        for size in SIZES:
            file = directory / mask_file(drawing.stem, size).name
            if not draw_mask(drawing, size).save(str(file), "PNG"):
                raise SystemExit(f"{file} cannot be written")


if __name__ == "__main__":
    application = QGuiApplication(sys.argv[:1])
    write_masks(Path(sys.argv[1]) if len(sys.argv) > 1 else DIRECTORY)
