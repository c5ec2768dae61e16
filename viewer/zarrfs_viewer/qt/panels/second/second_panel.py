"""The panel of the second image: its arrangement relative to the first one, and its channels."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QComboBox, QFormLayout, QPushButton, QSlider, QVBoxLayout, QWidget

from zarrfs_viewer.qt.canvas.second_image import SecondImage
from zarrfs_viewer.qt.panels.channels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, allow_narrow, plain, plain_name
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused
from zarrfs_viewer.rendering.contrast import channel_values, histogram

__all__ = ["SecondPanel"]

ARRANGEMENTS = (
    ("Side by side, linked", "beside"),
    ("Overlay: translucent", "translucent"),
    ("Overlay: additive", "additive"),
    ("Overlay: minimum", "minimum"),
    ("Overlay: difference", "difference"),
)

TRANSLUCENT_OPACITY = 0.5


class SecondPanel(QWidget):
    """The settings of the second image."""

    def __init__(self, session: Session, second: SecondImage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._second = second
        self.title = PlainLabel()
        allow_narrow(self.title)
        self.arrangement = QComboBox()
        self.arrangement.setAccessibleName("Arrangement of the two images")
        for title, name in ARRANGEMENTS:
            self.arrangement.addItem(plain(title), name)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setAccessibleName("Opacity of the second image")
        ignore_wheel_unless_focused(self.arrangement, self.opacity)
        self.remove = QPushButton("Close second image")
        self.channels = ChannelsPanel()
        form = QFormLayout()
        form.addRow(self.title)
        form.addRow("Display", self.arrangement)
        form.addRow("Opacity", self.opacity)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addLayout(form)
        layout.addWidget(self.channels, 1)
        layout.addWidget(self.remove)
        self.arrangement.activated.connect(lambda _: self._choose_arrangement())
        self.opacity.valueChanged.connect(lambda _: self._arrange())
        self.remove.clicked.connect(lambda _: second.close_image())
        self.channels.changed.connect(lambda number, changes: second.change_channel(number, **changes))
        self.channels.visibility_changed.connect(second.change_visibility)
        self.channels.auto.connect(second.auto_contrast)
        self.channels.histogram_requested.connect(self._load_histogram)
        second.image_changed.connect(self._show_image)
        second.settings_changed.connect(self._show_settings)
        second.arranged.connect(self._show_arrangement)

    def _choose_arrangement(self) -> None:
        """Use another arrangement with its default opacity: a difference is black only at full opacity."""
        name = self.arrangement.currentData()
        self._second.arrange(name, TRANSLUCENT_OPACITY if name in ("beside", "translucent") else 1.0)

    def _arrange(self) -> None:
        self._second.arrange(self.arrangement.currentData(), self.opacity.value() / 100)

    def _show_arrangement(self) -> None:
        self.arrangement.setCurrentIndex(self.arrangement.findData(self._second.arrangement))
        self.opacity.blockSignals(True)
        self.opacity.setValue(round(self._second.opacity * 100))
        self.opacity.blockSignals(False)
        self.opacity.setEnabled(self._second.arrangement != "beside")

    def _show_image(self) -> None:
        image, settings = self._second.image, self._second.settings
        if image is None or settings is None:
            self.channels.show_channels((), "u", False)
            return
        self.title.setText(plain_name(image.name or image.path))
        self.channels.show_channels(
            settings.channels, image.dtype.kind, image.rgb_axis is not None, image.value_unit
        )
        self._show_settings()

    def _show_settings(self) -> None:
        if self._second.settings is not None:
            self.channels.show_settings(self._second.settings.channels)

    def _load_histogram(self, number: int, volume: bool) -> None:
        image, settings = self._second.image, self._second.displayed_settings()
        if image is None or settings is None or image.rgb_axis is not None:
            return
        self._session.worker.cancel("second histogram")
        self._session.worker.submit(
            lambda: histogram(channel_values(image, settings.channels[number], settings, volume)),
            lambda result: (
                self.channels.show_histogram(number, result) if self._second.image is image else None
            ),
            lambda _: self.channels.show_histogram(number, None),
            "second histogram",
        )
