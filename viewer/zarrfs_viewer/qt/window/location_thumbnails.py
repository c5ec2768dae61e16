"""Thumbnails of open locations for the start page."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import QObject, QTimer
from PyQt6.QtGui import QImage

from zarrfs_viewer.qt.canvas.canvas import Canvas
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.window.recent import RecentLocations
from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["LocationThumbnails"]

DELAY_MILLISECONDS = 300
"""The thumbnail of a location is saved when its picture has been complete for this long."""


class LocationThumbnails(QObject):
    """Saves the first complete picture of each open location."""

    def __init__(self, session: Session, canvas: Canvas, recent: RecentLocations, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._canvas = canvas
        self._recent = recent
        self._saved_location = self._written_location = ""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(DELAY_MILLISECONDS)
        self._timer.timeout.connect(self._save)

    def show_frame(self, frame: Frame) -> None:
        """Schedule saving of the thumbnail if a displayed frame is complete."""
        dataset = self._session.dataset
        if frame.complete and dataset is not None and dataset.location != self._saved_location:
            self._timer.start()

    def stop(self) -> None:
        """Stop the timer. If the thumbnail is not written yet, it is written now, which takes a few milliseconds.

        A picture that is not complete does not replace an older thumbnail.
        """
        self._timer.stop()
        shown = self._picture()
        if shown is not None and shown[0] != self._written_location:
            location, picture, is_complete = shown
            if location in self._recent.locations() and (
                is_complete or not self._recent.thumbnail(location).is_file()
            ):
                self._recent.save_thumbnail(location, picture)

    def _picture(self) -> tuple[str, QImage, bool] | None:
        """Return the displayed location, its picture, and whether it is complete. None without a picture."""
        dataset, frame = self._session.dataset, self._canvas.frame
        if dataset is None or frame is None or frame.state.image is not self._session.image:
            return None
        if not frame.pixels.size:  # the image is outside of the canvas
            return None
        height, width = frame.pixels.shape
        data: Any = frame.pixels.data
        picture = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied).copy()
        return dataset.location, picture, frame.complete

    def _save(self) -> None:
        shown = self._picture()
        if shown is None:
            return
        location, picture, _ = shown
        self._saved_location = location
        if location not in self._recent.locations():
            return
        self._session.worker.submit(
            lambda: self._recent.save_thumbnail(location, picture),
            lambda _: self._remember_written(location),
            lambda _: None,
        )

    def _remember_written(self, location: str) -> None:
        self._written_location = location
        if location not in self._recent.locations():  # it was removed in the meantime
            self._recent.thumbnail(location).unlink(missing_ok=True)
