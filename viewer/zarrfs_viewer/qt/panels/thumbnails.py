"""Little pictures, made by a worker when they come into sight."""

from __future__ import annotations

from collections.abc import Callable

from PyQt6.QtCore import QObject
from PyQt6.QtGui import QColor, QIcon, QImage, QPainter, QPixmap

from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.thumbnail import thumbnail

__all__ = ["SIDE", "Thumbnails", "icon_of", "placeholder"]

SIDE = 96
"""Pixels along a side, on a screen of ordinary density."""


class Thumbnails(QObject):
    """The thumbnails of one dataset, each asked for once.

    ``show`` is called with the key that was asked for, and the icon; ``fail`` with the key and the reason.
    """

    def __init__(
        self,
        worker: Worker,
        show: Callable[[object, QIcon], None],
        fail: Callable[[object, str], None],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._show = show
        self._fail = fail
        self._owner = f"thumbnails {id(self)}"
        self._asked: set[object] = set()

    def forget(self) -> None:
        """Begin anew: what is under way is dropped."""
        self._worker.forget(self._owner)
        self._asked.clear()

    def want(self, key: object, dataset: Dataset, path: Callable[[], str]) -> None:
        """Ask for the picture of an image; ``path`` is called on the worker and may read metadata."""
        if key in self._asked:
            return
        self._asked.add(key)
        self._worker.submit(
            lambda: thumbnail(dataset.open_image(path()), SIDE),
            lambda pixels: self._show(key, icon_of(pixels)),
            lambda error: self._fail(key, str(error)),
            self._owner,
            last=True,
        )


def icon_of(pixels: Pixels) -> QIcon:
    """Return a picture as an icon, in the middle of a square."""
    height, width = pixels.shape
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
    square = QPixmap(SIDE, SIDE)
    square.fill(QColor(0, 0, 0))
    painter = QPainter(square)
    painter.drawImage((SIDE - width) // 2, (SIDE - height) // 2, image)
    painter.end()
    return QIcon(square)


def placeholder() -> QIcon:
    """Return the icon of a picture that is not there yet."""
    square = QPixmap(SIDE, SIDE)
    square.fill(QColor(40, 42, 50))
    return QIcon(square)
