"""Makes the pictures and the animation of the documentation again: viewer.png, plate.png and animation.webp in docs.

    python packaging/pictures.py [DIRECTORY]        by default docs

The data are generated, the commands of the animation are executed, and the window is drawn without a display. Takes
about two minutes. Needs the extra ``viewer``, Pillow, and FUSE.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.panels.position.position import Position

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PIL import Image
from PyQt6.QtCore import QBuffer, QIODevice, QRect, QSettings, Qt
from PyQt6.QtGui import QColor, QFont, QPainter, QPixmap
from PyQt6.QtWidgets import QApplication
from zarrfs_viewer.qt.window.application import make_application
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from zarrfs.mount import is_mounted, unmount
from zarrfs.synthetic import make_picture, write_image

__all__ = ["FILES", "Animation", "write_pictures"]

ROOT = Path(__file__).resolve().parent.parent

FILES = ("viewer.png", "plate.png", "animation.webp")

PICTURE_SIZE = (1280, 900)
ANIMATION_SIZE = (960, 620)
CAPTION_HEIGHT = 34
QUALITY = 45
"""Of the WebP frames, which are compressed with losses."""

POSITION = (19, 255, 300)
"""The position of the cross-hair (z, y, x)."""
TIMEOUT_SECONDS = 120.0
REST_SECONDS = 1.0
"""The histogram is requested, and painted, after this time."""

PLATE_ROWS, PLATE_COLUMNS = "ABCD", range(1, 7)

COMMANDS = (
    "zarrfs tree cells.ome.zarr",
    "mkdir files && zarrfs mount cells.ome.zarr files",
    "stat -c '%9s  %n' files/*",
    "python -c \"import numpy; print(numpy.load('files/0.npy', mmap_mode='r')[0, 19, 250, 250:256])\"",
    "zarrfs umount files && zarrfs-viewer cells.ome.zarr",
)
"""What the animation types; the last one is only shown."""


class Animation:
    """Frames with durations in milliseconds. A frame that is equal to the previous one extends it."""

    def __init__(self) -> None:
        self.frames: list[Image.Image] = []
        self.durations: list[int] = []

    def add(self, picture: QPixmap, milliseconds: int) -> None:
        frame = _pillow_image(picture)
        if self.frames and frame.tobytes() == self.frames[-1].tobytes():
            self.durations[-1] += milliseconds
            return
        self.frames.append(frame)
        self.durations.append(milliseconds)

    @property
    def seconds(self) -> float:
        return sum(self.durations) / 1000

    def save(self, file: Path) -> None:
        first, *others = self.frames
        first.save(
            file,
            save_all=True,
            append_images=others,
            duration=self.durations,
            loop=0,
            quality=QUALITY,
            method=4,
        )


def write_pictures(directory: Path) -> None:
    """Write all files. Raises SystemExit if a window is not complete in time."""
    application = make_application()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_image(f"{folder}/cells.ome.zarr", make_picture(), name="cells")
        _write_plate(folder / "screen.ome.zarr")
        animation = Animation()
        _type_commands(animation, folder)
        with _window(application, folder, PICTURE_SIZE) as window:
            _open(application, window, folder / "cells.ome.zarr")
            _show_linked(application, window)
            _save(window, directory / "viewer.png")
        with _window(application, folder, PICTURE_SIZE) as window:
            _open_plate(application, window, folder / "screen.ome.zarr")
            _save(window, directory / "plate.png")
        width, height = ANIMATION_SIZE
        with _window(application, folder, (width, height - CAPTION_HEIGHT)) as window:
            _film_image(application, window, folder, animation)
        with _window(application, folder, (width, height - CAPTION_HEIGHT)) as window:
            _film_plate(application, window, folder, animation)
        animation.save(directory / "animation.webp")
    size = (directory / "animation.webp").stat().st_size
    print(f"{len(animation.frames)} frames, {animation.seconds:.0f} s, {size / 1e6:.1f} MB")


# -- the viewer ------------------------------------------------------------------------------------------------


@contextmanager
def _window(application: QApplication, folder: Path, size: tuple[int, int]) -> Iterator[MainWindow]:
    # The settings of images are kept beside those of the viewer: each window begins with its own.
    settings = tempfile.mkdtemp(dir=folder)
    window = MainWindow(QSettings(f"{settings}/settings.ini", QSettings.Format.IniFormat))
    window.resize(*size)
    window.show()
    try:
        yield window
    finally:
        window.close()
        application.processEvents()


def _open(application: QApplication, window: MainWindow, location: Path) -> None:
    window.open_location(str(location))
    _wait(application, lambda: window.image is not None)
    _settle(application, window)


def _open_plate(application: QApplication, window: MainWindow, location: Path) -> None:
    window.open_location(str(location))
    _wait(application, lambda: window.panel(Plates).plate.dataset is not None)
    _rest(application, window)
    window.session.show_message("")  # it covers the names of the columns
    application.processEvents()


def _show_linked(application: QApplication, window: MainWindow) -> None:
    """Show three planes and a slab, with the outlines of labels, and the expanded tree."""
    window.actions_by_name["linked"].setChecked(True)
    for number in range(len(window.session.label_images)):
        window.session.change_labels(number, contour=1)
    image = window.image
    if image is not None:
        for axis, position in zip(image.slider_axes, POSITION, strict=True):
            window.panel(Position).set_position(axis, position)
    tree = window.panel(Hierarchy).tree.view
    tree.expand(tree.model().index(0, 0))  # type: ignore[union-attr]
    _settle(application, window)
    _rest(application, window)


def _settle(application: QApplication, window: MainWindow) -> None:
    """Wait until all panes show their final picture."""
    application.processEvents()
    _wait(application, lambda: all(_is_exact(pane.canvas.frame) for pane in window.panes.all))
    application.processEvents()


def _rest(application: QApplication, window: MainWindow) -> None:
    """Wait until the histogram is computed, and until it is painted."""
    for _ in range(2):
        rest = monotonic() + REST_SECONDS
        _wait(application, lambda rest=rest: window.session.worker.is_idle and monotonic() > rest)  # type: ignore[misc]


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


def _save(window: MainWindow, file: Path) -> None:
    if not window.grab().save(str(file), "PNG"):
        raise SystemExit(f"{file} cannot be written")


def _write_plate(path: Path) -> None:
    wells = [
        {"path": f"{row}/{column}", "rowIndex": r, "columnIndex": c}
        for r, row in enumerate(PLATE_ROWS)
        for c, column in enumerate(PLATE_COLUMNS)
    ]
    plate: dict[str, Any] = {
        "name": "screen",
        "rows": [{"name": row} for row in PLATE_ROWS],
        "columns": [{"name": str(column)} for column in PLATE_COLUMNS],
        "wells": wells,
    }
    root = zarrfs.create_group(path, attributes={"ome": {"version": "0.5", "plate": plate}})
    for number, well in enumerate(wells):
        fields = {"version": "0.5", "well": {"images": [{"path": "0"}]}}
        root.create_group(str(well["path"]), attributes={"ome": fields})
        write_image(f"{path}/{well['path']}/0", make_picture((2, 160, 200), seed=number), levels=2)


# -- the animation ---------------------------------------------------------------------------------------------


def _film_image(application: QApplication, window: MainWindow, folder: Path, animation: Animation) -> None:
    def show(caption: str, milliseconds: int) -> None:
        _settle(application, window)
        animation.add(_captioned(window.grab(), caption), milliseconds)

    _open(application, window, folder / "cells.ome.zarr")
    _rest(application, window)
    show("An OME-Zarr image: channels, pyramid, labels", 4000)
    image = window.image
    assert image is not None
    (axis,) = (axis for axis in image.slider_axes if image.shape[axis] == make_picture.__defaults__[0][0])  # type: ignore[index]
    for z in range(8, 32, 2):
        window.panel(Position).set_position(axis, z)
        show("Through the volume, slice by slice", 250)
    window.panel(Position).set_position(axis, POSITION[0])
    for _ in range(8):
        window.panes.main.canvas.zoom(1.12)
        show("Zoom: only the chunks in view are decoded", 300)
    show("Zoom: only the chunks in view are decoded", 2000)
    for number in (1, 2):
        window.session.change_channel(number, visible=False)
        show("Channels have colours and contrast", 1500)
    for number in range(len(window.session.label_images)):
        window.session.change_labels(number, contour=1)
    show("Labels as areas or outlines", 2500)
    for number in (1, 2):
        window.session.change_channel(number, visible=True)
    window.panes.main.canvas.fit()
    window.actions_by_name["linked"].setChecked(True)
    for other, position in zip(image.slider_axes, POSITION, strict=True):
        window.panel(Position).set_position(other, position)
    show("Three linked planes and a slab", 3000)
    for z in range(20, 30):
        window.panel(Position).set_position(axis, z)
        show("Three linked planes and a slab", 400)
    show("Three linked planes and a slab", 1500)


def _film_plate(application: QApplication, window: MainWindow, folder: Path, animation: Animation) -> None:
    _open_plate(application, window, folder / "screen.ome.zarr")
    animation.add(_captioned(window.grab(), "A plate: all wells with the same contrast"), 5000)
    window.panel(Plates).plate.open_well(1, 2)
    _wait(application, lambda: window.image is not None)
    for rows, columns in ((0, 0), (0, 1), (1, 0)):
        if rows or columns:
            image = window.image
            window.panel(Plates).plate.step(rows, columns)
            _wait(application, lambda image=image: window.image is not image)  # type: ignore[misc]
        _settle(application, window)
        animation.add(_captioned(window.grab(), "From well to well with Alt and the arrow keys"), 2000)
    _rest(application, window)
    animation.add(_captioned(window.grab(), "pip install 'zarrfs[viewer]'"), 4000)


def _type_commands(animation: Animation, folder: Path) -> None:
    """Run the commands, and show them with their output as in a terminal."""
    lines: list[str] = []
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "COLUMNS": "90"}
    try:
        for number, command in enumerate(COMMANDS):
            for length in range(0, len(command), 6):
                animation.add(_terminal([*lines, f"$ {command[:length]}\u2588"]), 90)
            lines.append(f"$ {command}")
            animation.add(_terminal(lines), 600)
            if number + 1 < len(COMMANDS):
                done = subprocess.run(
                    ["bash", "-c", command],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=True,
                )
                lines += done.stdout.replace(f"file://{folder}/", "").splitlines()
            animation.add(_terminal([*lines, "$ \u2588"]), 2200)
    finally:
        if is_mounted(str(folder / "files")):
            unmount(str(folder / "files"))


def _terminal(lines: list[str]) -> QPixmap:
    width, height = ANIMATION_SIZE
    picture = QPixmap(width, height - CAPTION_HEIGHT)
    picture.fill(QColor("#1d1f21"))
    painter = QPainter(picture)
    font = QFont("DejaVu Sans Mono")
    font.setPixelSize(15)
    painter.setFont(font)
    step = painter.fontMetrics().lineSpacing()
    for number, line in enumerate(lines[-((height - CAPTION_HEIGHT - 32) // step) :]):
        painter.setPen(QColor("#8abeb7" if line.startswith("$ ") else "#e0e0e0"))
        painter.drawText(16, 16 + step * (number + 1), line)
    painter.end()
    return _captioned(picture, "Zarr arrays as files of any program")


def _captioned(picture: QPixmap, caption: str) -> QPixmap:
    """Return a picture with a line of text below it."""
    width, height = ANIMATION_SIZE
    result = QPixmap(width, height)
    result.fill(QColor("#00695c"))
    painter = QPainter(result)
    painter.drawPixmap(QRect(0, 0, width, height - CAPTION_HEIGHT), picture)
    font = painter.font()
    font.setPixelSize(17)
    painter.setFont(font)
    painter.setPen(QColor("white"))
    strip = QRect(0, height - CAPTION_HEIGHT, width, CAPTION_HEIGHT)
    painter.drawText(strip, int(Qt.AlignmentFlag.AlignCenter), caption)
    painter.end()
    return result


def _pillow_image(picture: QPixmap) -> Image.Image:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture.save(buffer, "PNG")
    return Image.open(BytesIO(buffer.data().data())).convert("RGB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path, nargs="?", default=ROOT / "docs")
    write_pictures(parser.parse_args().directory)
