"""Thumbnails, which a worker thread renders when their items become visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject
from PyQt6.QtGui import QColor, QIcon, QImage, QPainter, QPixmap

from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.thumbnail import Limits, ThumbnailValues, read_thumbnail, thumbnail

__all__ = ["THUMBNAIL_SIZE", "ThumbnailLoader", "placeholder", "to_icon"]

THUMBNAIL_SIZE = 96
"""Width and height of a thumbnail in device-independent pixels."""


class ThumbnailLoader(QObject):
    """Loads the thumbnails of one dataset, each at most once.

    ``show`` is called with the requested key and the icon, ``fail`` with the key and the reason, on the GUI thread.
    With ``show_values``, that is called instead of ``show``, with the key and the values of all channels.

    Attributes:
        find_limits: returns the contrast limits that the thumbnails share. It is called on a worker thread and may
            block. It is not called by two threads at a time.
    """

    def __init__(
        self,
        worker: Worker,
        show: Callable[[object, QIcon], None],
        fail: Callable[[object, str], None],
        parent: QObject,
        show_values: Callable[[object, ThumbnailValues], None] | None = None,
    ) -> None:
        super().__init__(parent)
        self._worker = worker
        self._show_values = show_values
        self._show = show
        self._fail = fail
        self._owner = f"thumbnails {id(self)}"
        self._requested: set[object] = set()
        self.find_limits: Callable[[], Limits] = tuple

    def clear(self) -> None:
        """Cancel all requests, so that every thumbnail can be requested again."""
        self._worker.cancel(self._owner)
        self._requested.clear()

    def request(self, key: object, dataset: Dataset, path: Callable[[], str]) -> None:
        """Request the thumbnail of an image. ``path`` is called on the worker thread and may read metadata."""
        if key in self._requested:
            return
        self._requested.add(key)
        find_limits, show_values = self.find_limits, self._show_values
        read = thumbnail if show_values is None else read_thumbnail

        def show(found: Any) -> None:
            if show_values is None:
                self._show(key, to_icon(found))
            else:
                show_values(key, found)

        self._worker.submit(
            lambda: read(dataset.open_image(path()), THUMBNAIL_SIZE, find_limits()),
            show,
            lambda error: self._fail(key, str(error)),
            self._owner,
            low_priority=True,
        )


def to_icon(pixels: Pixels) -> QIcon:
    """Return pixels as an icon, centred in a square. A small picture is enlarged by a whole number."""
    height, width = pixels.shape
    image = QImage(pixels.tobytes(), width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied)
    square = QPixmap(THUMBNAIL_SIZE, THUMBNAIL_SIZE)
    square.fill(QColor(0, 0, 0))
    painter = QPainter(square)
    factor = max(1, THUMBNAIL_SIZE // max(width, height, 1))
    width, height = factor * width, factor * height
    painter.drawImage(
        (THUMBNAIL_SIZE - width) // 2, (THUMBNAIL_SIZE - height) // 2, image.scaled(width, height)
    )
    painter.end()
    icon = QIcon(square)
    icon.addPixmap(square, QIcon.Mode.Selected)  # otherwise Qt tints the picture of a selected item
    return icon


def placeholder() -> QIcon:
    """Return the icon of a thumbnail that has not been loaded."""
    square = QPixmap(THUMBNAIL_SIZE, THUMBNAIL_SIZE)
    square.fill(QColor(40, 42, 50))
    return QIcon(square)
