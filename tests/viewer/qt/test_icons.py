"""The icons of the toolbar: their masks, and their colours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PyQt6.QtGui import QColor, QIcon, QImage, QPalette
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.support.icons import DIRECTORY, SIZES, WINDOW_ICON_SIZES, icon, mask_file, window_icon

from tests.processes import TIMEOUT

NAMES = sorted(path.stem for path in DIRECTORY.glob("*.svg"))
SCRIPT = Path(__file__).parents[3] / "packaging" / "icons.py"
MAX_DIFFERENCE = 24
"""Of 255. Versions of Qt smooth edges differently."""


def pixels(picture: QImage) -> npt.NDArray[np.uint8]:
    """Return the pixels as rows, columns and blue, green, red, alpha."""
    converted = picture.convertToFormat(QImage.Format.Format_ARGB32)
    data = converted.constBits()
    assert data is not None
    values = np.frombuffer(data.asstring(converted.sizeInBytes()), np.uint8)
    return values.reshape(converted.height(), converted.width(), 4)


def test_the_masks_are_made_from_the_drawings(tmp_path: Path) -> None:
    assert {path.name for path in DIRECTORY.glob("*.png")} == {
        mask_file(name, size).name for name in NAMES for size in SIZES
    }
    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True, timeout=TIMEOUT)
    for name in NAMES:
        for size in SIZES:
            stored = pixels(QImage(str(mask_file(name, size))))[..., 3].astype(int)
            made = pixels(QImage(str(tmp_path / mask_file(name, size).name)))[..., 3]
            assert stored.shape == (size, size)
            assert stored.max() > 200
            assert np.abs(stored - made).max() <= MAX_DIFFERENCE, f"{name}: run packaging/icons.py"


def test_windows_have_an_icon_without_a_desktop_entry() -> None:
    for size in WINDOW_ICON_SIZES:
        drawn = pixels(window_icon().pixmap(size, size).toImage())
        assert drawn.shape[:2] == (size, size)
        assert (drawn[..., 3] == 255).mean() > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_an_icon_has_the_colours_of_the_palette(qtbot: QtBot, name: str) -> None:
    palette = QPalette()
    colors = {QIcon.Mode.Normal: QColor(200, 100, 50), QIcon.Mode.Disabled: QColor(20, 90, 160)}
    palette.setColor(QPalette.ColorGroup.Active, QPalette.ColorRole.ButtonText, colors[QIcon.Mode.Normal])
    palette.setColor(QPalette.ColorGroup.Disabled, QPalette.ColorRole.ButtonText, colors[QIcon.Mode.Disabled])
    made = icon(name, palette)
    for mode, color in colors.items():
        for size in SIZES:
            drawn = pixels(made.pixmap(size, size, mode).toImage())
            assert drawn.shape[:2] == (size, size)
            opaque = drawn[drawn[..., 3] > 200][:, :3]
            assert len(opaque)
            assert np.abs(opaque.astype(int) - (color.blue(), color.green(), color.red())).max() <= 2
