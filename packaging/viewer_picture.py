"""Makes the picture of the viewer in the documentation again.

    python packaging/viewer_picture.py docs/viewer.png

A generated image is displayed in three planes and a slab, with channels and labels. No display is needed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PyQt6.QtCore import QSettings
from PyQt6.QtWidgets import QApplication
from zarrfs_viewer.qt.window.application import make_application
from zarrfs_viewer.qt.window.main_window import MainWindow

from zarrfs.synthetic import make_picture, write_image

__all__ = ["write_picture"]

WIDTH, HEIGHT = 1280, 900
POSITION = (19, 255, 300)
"""The position of the cross-hair (z, y, x)."""
TIMEOUT_SECONDS = 120.0
REST_SECONDS = 1.0
"""The histogram is requested, and painted, after this time."""


def write_picture(file: Path) -> None:
    """Write a PNG of the window. Raises SystemExit if the window is not complete in time."""
    application = make_application()
    with tempfile.TemporaryDirectory() as scratch:
        location = Path(scratch) / "cells.ome.zarr"
        write_image(str(location), make_picture(), name="cells")
        window = MainWindow(QSettings(f"{scratch}/settings.ini", QSettings.Format.IniFormat))
        window.resize(WIDTH, HEIGHT)
        window.show()
        window.open_location(str(location))
        _wait(application, lambda: window.image is not None)
        window.actions_by_name["linked"].setChecked(True)
        for number in range(len(window.session.label_images)):
            window.session.change_labels(number, contour=1)
        image = window.image
        if image is not None:
            for axis, position in zip(image.slider_axes, POSITION, strict=True):
                window.image_actions.set_position(axis, position)
        tree = window.tree_panel.view
        tree.expand(tree.model().index(0, 0))  # type: ignore[union-attr]
        _wait(application, lambda: all(_is_exact(pane.canvas.frame) for pane in window.panes.all))
        for _ in range(2):  # until the histogram is computed, and until it is painted
            rest = monotonic() + REST_SECONDS
            _wait(application, lambda rest=rest: window.session.worker.is_idle and monotonic() > rest)  # type: ignore[misc]
        saved = window.grab().save(str(file), "PNG")
        window.close()
        application.processEvents()
    if not saved:
        raise SystemExit(f"{file} cannot be written")


def _is_exact(frame: object) -> bool:
    return bool(getattr(frame, "exact", False))


def _wait(application: QApplication, condition: Callable[[], bool]) -> None:
    """Run the event loop until a condition is true."""
    end = monotonic() + TIMEOUT_SECONDS
    while not condition():
        if monotonic() > end:
            raise SystemExit("the window was not complete in time")
        application.processEvents()
        sleep(0.005)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    write_picture(parser.parse_args().file)
