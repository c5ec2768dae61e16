"""Automatic contrast limits and histograms, computed on worker threads."""

from __future__ import annotations

from PyQt6.QtCore import QObject, QTimer

from zarrfs_viewer.qt.panels.channels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.rendering.contrast import auto_limits, channel_histogram, channel_values
from zarrfs_viewer.rendering.renderer import Frame

__all__ = ["ContrastActions"]

HISTOGRAM_DELAY_MILLISECONDS = 150
"""The histogram is computed when the slice has not changed for this long."""


class ContrastActions(QObject):
    """Sets automatic limits of channels, and keeps the histogram of the channels panel up to date."""

    def __init__(self, session: Session, channels: ChannelsPanel, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._channels = channels
        self._histogram_source: object = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(HISTOGRAM_DELAY_MILLISECONDS)
        self._timer.timeout.connect(channels.request_histogram)
        channels.auto.connect(self.auto_contrast_of)
        channels.histogram_requested.connect(self._load_histogram)

    def set_per_image(self, on: bool) -> None:
        """Choose new contrast limits for each well, field or series, or keep those of the previous image."""
        self._session.auto_contrast_per_image = on

    def auto_contrast(self) -> None:
        """Choose new contrast limits for every channel."""
        settings = self._session.settings
        for number in range(len(settings.channels) if settings is not None else 0):
            self.auto_contrast_of(number)

    def auto_contrast_of(self, number: int) -> None:
        """Choose new contrast limits for one channel."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        self._session.run_for_image(
            lambda: auto_limits(channel_values(image, settings.channels[number], settings)),
            lambda limits: self._session.change_channel(number, limits=limits),
            f"contrast {number}",
        )

    def forget_slice(self) -> None:
        """Forget the slice of the histogram, because another image is displayed. The histogram of the new image is
        computed after its first complete picture.
        """
        self._histogram_source = None
        self._timer.stop()

    def show_frame(self, frame: Frame) -> None:
        """Start the timer for a new histogram if another slice is displayed."""
        settings = frame.state.settings
        source = frame.state.image.uid, settings.displayed, settings.position, settings.projection
        if frame.finished and source != self._histogram_source:
            is_first, self._histogram_source = self._histogram_source is None, source
            if is_first or not self._channels.volume.isChecked():
                self._timer.start()

    @property
    def is_current(self) -> bool:
        """Whether the histogram of the displayed slice has been requested."""
        return not self._timer.isActive()

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.stop()

    def _load_histogram(self, number: int, volume: bool) -> None:
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None or image.rgb_axis is not None or self._histogram_source is None:
            return  # the first picture is not delayed by a histogram
        self._session.worker.cancel("histogram")
        self._session.worker.submit(
            lambda: channel_histogram(image, settings.channels[number], settings, volume),
            lambda result: (
                self._channels.show_histogram(number, result) if self._session.image is image else None
            ),
            # Read errors are reported by the panes.
            lambda _: self._channels.show_histogram(number, None),
            "histogram",
        )
