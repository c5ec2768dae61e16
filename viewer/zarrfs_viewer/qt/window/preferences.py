"""The preferences of the user, and their dialog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QCheckBox, QComboBox, QDialog, QDialogButtonBox, QFormLayout, QSpinBox, QWidget

from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain

__all__ = ["Preferences", "PreferencesDialog", "WheelAction"]

WheelAction = Literal["zoom", "step"]
"""The effect of the wheel over the picture. With Ctrl it has the other effect."""

MIN_CACHE_MIB, MAX_CACHE_MIB = 64, 65536
THEMES = (("Dark", True), ("Light", False))
WHEEL_ACTIONS: tuple[tuple[str, WheelAction], ...] = (
    ("Zooms; with Ctrl: next slice", "zoom"),
    ("Next slice; with Ctrl: zooms", "step"),
)

MAX_THREADS = 32
COLORS = (
    ("Green, magenta, cyan", "green-magenta"),
    ("Red, green, blue", "red-green-blue"),
    ("Cyan, magenta, yellow", "cyan-magenta-yellow"),
)
"""The palettes of ``images.channels``, which is not imported before an image is opened."""

FILE_TYPES = (
    ("NumPy (.npy)", ".npy"),
    ("ImageJ TIFF (.tif)", ".tif"),
    ("OME-TIFF (.ome.tif)", ".ome.tif"),
    ("NIfTI (.nii)", ".nii"),
    ("NRRD (.nrrd)", ".nrrd"),
    ("MetaImage (.mha)", ".mha"),
    ("VTK image (.vti)", ".vti"),
    ("HDF5 (.h5)", ".h5"),
    ("Raw values (.raw)", ".raw"),
)
"""File types of the mount for arrays that are dragged to other programs."""


@dataclass(frozen=True)
class Preferences:
    """The preferences.

    ``cache_mib`` is the limit of cached tiles and chunks in MiB. With ``restore`` the windows of the last session are
    opened when the viewer starts without a location. ``file_type`` is the suffix of the files of dragged arrays.
    ``threads`` is the number of threads that read tiles. ``colors`` is the name of the palette of channels whose colour
    is not declared.
    """

    dark: bool = True
    wheel: WheelAction = "zoom"
    cache_mib: int = 256
    restore: bool = True
    file_type: str = ".npy"
    threads: int = 2
    colors: str = "green-magenta"

    @classmethod
    def load(cls, settings: QSettings) -> Preferences:
        """Return the preferences in the settings. Values that are missing or not valid are replaced by the defaults."""
        default = cls()
        wheel = settings.value("wheel", default.wheel)
        file_type = settings.value("file_type", default.file_type)
        cache_mib = _integer(settings, "cache_mib", default.cache_mib)
        threads = _integer(settings, "threads", default.threads)
        colors = settings.value("colors", default.colors)
        return cls(
            dark=settings.value("dark", default.dark, bool),
            wheel="step" if wheel == "step" else "zoom",
            cache_mib=min(max(cache_mib, MIN_CACHE_MIB), MAX_CACHE_MIB),
            restore=settings.value("restore", default.restore, bool),
            file_type=file_type if file_type in (suffix for _, suffix in FILE_TYPES) else default.file_type,
            threads=min(max(threads, 1), MAX_THREADS),
            colors=colors if colors in (name for _, name in COLORS) else default.colors,
        )

    def save(self, settings: QSettings) -> None:
        """Write the preferences to the settings."""
        settings.setValue("dark", self.dark)
        settings.setValue("wheel", self.wheel)
        settings.setValue("cache_mib", self.cache_mib)
        settings.setValue("restore", self.restore)
        settings.setValue("file_type", self.file_type)
        settings.setValue("threads", self.threads)
        settings.setValue("colors", self.colors)


def _integer(settings: QSettings, name: str, default: int) -> int:
    try:
        return int(settings.value(name, default))
    except (TypeError, ValueError):
        return default


class PreferencesDialog(QDialog):
    """A form for the preferences."""

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Preferences")
        self.theme, self.wheel, self.cache = QComboBox(), QComboBox(), QSpinBox()
        for title, dark in THEMES:
            self.theme.addItem(plain(title), dark)
        for title, action in WHEEL_ACTIONS:
            self.wheel.addItem(plain(title), action)
        self.file_type = QComboBox()
        for title, suffix in FILE_TYPES:
            self.file_type.addItem(plain(title), suffix)
        self.cache.setRange(MIN_CACHE_MIB, MAX_CACHE_MIB)
        self.cache.setSingleStep(64)
        self.cache.setSuffix(" MiB")
        self.colors, self.threads = QComboBox(), QSpinBox()
        for title, name in COLORS:
            self.colors.addItem(plain(title), name)
        self.threads.setRange(1, MAX_THREADS)
        self.threads.setToolTip("More threads are faster for data on servers.")
        self.restore = QCheckBox("Open the windows of the last session")
        form = QFormLayout(self)
        for name, widget in (
            ("Theme", self.theme),
            ("Mouse wheel", self.wheel),
            ("Colours of channels", self.colors),
            ("Memory for caches", self.cache),
            ("Threads for reading", self.threads),
            ("Files of dragged arrays", self.file_type),
        ):
            widget.setAccessibleName(plain(name))
            form.addRow(PlainLabel(plain(name)), widget)
        form.addRow(self.restore)
        self.buttons = QDialogButtonBox(
            QDialogButtonBox.StandardButton.Ok
            | QDialogButtonBox.StandardButton.Cancel
            | QDialogButtonBox.StandardButton.RestoreDefaults
        )
        self.buttons.accepted.connect(self.accept)
        self.buttons.rejected.connect(self.reject)
        reset = self.buttons.button(QDialogButtonBox.StandardButton.RestoreDefaults)
        if reset is not None:
            reset.clicked.connect(lambda: self._show(Preferences()))
        form.addRow(self.buttons)
        self._show(preferences)

    def _show(self, preferences: Preferences) -> None:
        self.theme.setCurrentIndex(self.theme.findData(preferences.dark))
        self.wheel.setCurrentIndex(self.wheel.findData(preferences.wheel))
        self.cache.setValue(preferences.cache_mib)
        self.restore.setChecked(preferences.restore)
        self.file_type.setCurrentIndex(self.file_type.findData(preferences.file_type))
        self.threads.setValue(preferences.threads)
        self.colors.setCurrentIndex(self.colors.findData(preferences.colors))

    def preferences(self) -> Preferences:
        """Return the preferences in the form."""
        return Preferences(
            self.theme.currentData(),
            self.wheel.currentData(),
            self.cache.value(),
            self.restore.isChecked(),
            self.file_type.currentData(),
            self.threads.value(),
            self.colors.currentData(),
        )
