"""Preferences: stored in the settings, applied at once and by the next window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QPoint, QPointF, QSettings, Qt
from PyQt6.QtGui import QColor, QPalette, QWheelEvent
from PyQt6.QtWidgets import QApplication, QCheckBox, QDialog, QDialogButtonBox, QWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.images.channels import default_channels
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.support.theme import apply_theme
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.qt.window.preferences import MAX_CACHE_MIB, Preferences, PreferencesDialog

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

OpenInWindow = Callable[[object], MainWindow]


def tile_thread_count(window: MainWindow) -> int:
    return len(window.session.streamer._threads)


def turn_wheel(window: MainWindow, modifiers: Qt.KeyboardModifier) -> None:
    center = QPointF(window.canvas.rect().center())
    event = QWheelEvent(
        center,
        QPointF(window.canvas.mapToGlobal(window.canvas.rect().center())),
        QPoint(0, 0),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(window.canvas, event)


def test_preferences_are_stored(settings: QSettings) -> None:
    assert Preferences.load(settings) == Preferences()
    changed = Preferences(
        dark=False,
        wheel="step",
        cache_mib=1024,
        restore=False,
        file_type=".nii",
        threads=7,
        colors="red-green-blue",
    )
    changed.save(settings)
    assert Preferences.load(settings) == changed


def test_invalid_settings_are_replaced(settings: QSettings) -> None:
    settings.setValue("wheel", "backwards")
    settings.setValue("cache_mib", "much")
    settings.setValue("file_type", ".exe")
    settings.setValue("threads", "many")
    settings.setValue("colors", "none")
    assert Preferences.load(settings) == Preferences()
    settings.setValue("cache_mib", 10**9)
    assert Preferences.load(settings).cache_mib == MAX_CACHE_MIB


def test_the_dialog_applies_preferences(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = np.arange(5, dtype="u1")[:, None, None] + np.zeros((5, 32, 32), "u1")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")

    def choose(dialog: PreferencesDialog) -> int:
        dialog.wheel.setCurrentIndex(1)
        dialog.theme.setCurrentIndex(1)
        dialog.cache.setValue(512)
        dialog.threads.setValue(5)
        dialog.colors.setCurrentIndex(dialog.colors.findData("red-green-blue"))
        return QDialog.DialogCode.Accepted.value

    monkeypatch.setattr(PreferencesDialog, "exec", choose)
    window.actions_by_name["preferences"].trigger()
    assert window.session.streamer.memory.budget == 128 << 20  # a quarter of the caches
    assert tile_thread_count(window) == 5
    assert default_channels(data.dtype, (3,), 0, None, None)[0].colormap == "#FF0000"
    assert not window.actions_by_name["dark"].isChecked()
    assert QApplication.palette().color(QPalette.ColorRole.Window).lightness() > 128
    assert window.display_settings is not None
    z = window.display_settings.position[0]
    zoom = window.canvas.viewport.zoom
    wait_until_exact(qtbot, window, lambda: turn_wheel(window, Qt.KeyboardModifier.NoModifier))
    assert window.display_settings.position[0] == z + 1
    assert window.canvas.viewport.zoom == zoom
    wait_until_exact(qtbot, window, lambda: turn_wheel(window, Qt.KeyboardModifier.ControlModifier))
    assert window.canvas.viewport.zoom > zoom
    again = MainWindow(window.settings)
    qtbot.addWidget(again)
    assert again.canvas.wheel_steps
    assert again.session.streamer.memory.budget == 128 << 20  # a quarter of the caches
    again.close()
    window.actions_by_name["dark"].trigger()
    expected = Preferences(dark=True, wheel="step", cache_mib=512, threads=5, colors="red-green-blue")
    assert Preferences.load(window.settings) == expected
    window.preferences.apply(Preferences())  # the palette is shared by all windows
    assert default_channels(data.dtype, (3,), 0, None, None)[0].colormap == "#00FF00"
    qtbot.waitUntil(lambda: tile_thread_count(window) == 2, timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.step(-1))


def brightness(color: QColor) -> float:
    """Return the relative luminance of WCAG 2, 0 to 1."""
    parts = (color.redF(), color.greenF(), color.blueF())
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_border_of_a_check_box_is_visible_in_the_dark_theme(qtbot: QtBot, qapp: QApplication) -> None:
    for dark in (True, False, True):
        apply_theme(qapp, dark)
    panel = QWidget()
    qtbot.addWidget(panel)
    QCheckBox(panel).resize(24, 24)
    picture = panel.grab().toImage()
    brightest = max(brightness(picture.pixelColor(x, 12)) for x in range(24))
    assert (brightest + 0.05) / (brightness(picture.pixelColor(23, 1)) + 0.05) > 3


def test_the_defaults_are_restored(qtbot: QtBot) -> None:
    dialog = PreferencesDialog(Preferences(dark=False, wheel="step", cache_mib=1024))
    qtbot.addWidget(dialog)
    assert dialog.preferences() == Preferences(dark=False, wheel="step", cache_mib=1024)
    reset = dialog.buttons.button(QDialogButtonBox.StandardButton.RestoreDefaults)
    assert reset is not None
    reset.click()
    assert dialog.preferences() == Preferences()


def test_arrays_are_dragged_as_files_of_the_chosen_type(window: MainWindow, tmp_path: Path) -> None:
    location = str(tmp_path / "a.zarr")
    assert window.mounts.file(location, "x", True).name == "x.npy"
    dialog = PreferencesDialog(Preferences.load(window.settings), window)
    dialog.file_type.setCurrentIndex(dialog.file_type.findData(".ome.tif"))
    window.preferences.apply(dialog.preferences())
    assert window.mounts.file(location, "x", True).name == "x.ome.tif"
    assert window.mounts.file(location, "x", False).name == "x"
    dialog.deleteLater()
