"""Pictures and movies of the view are compared with the data."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QGuiApplication, QImage
from PyQt6.QtTest import QTest
from pytestqt.qtbot import QtBot
from zarrfs_viewer.export.movie import movie_positions, write_mp4, write_series
from zarrfs_viewer.export.writers import Cancelled
from zarrfs_viewer.qt.canvas.picture import to_pixels
from zarrfs_viewer.qt.panels.pictures.pictures import PictureActions
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.support.png import write_png
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.rendering.compose import Pixels

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact
from zarrfs.errors import NodeExistsError, UnsupportedError

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def stack(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """A stack of 6 slices of 40 x 60 pixels. The values of slice z are 40 z, and 255 in its upper left quarter."""
    data = np.zeros((6, 40, 60), "u1")
    data += (40 * np.arange(6, dtype="u1"))[:, None, None]
    data[:, :20, :30] = 255
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(1, 20, 20), dimension_names=["z", "y", "x"])
    return tmp_path / "a.zarr", data


def open_stack(qtbot: QtBot, open_in_window: OpenInWindow, path: Path) -> MainWindow:
    window = open_in_window(path)
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 255.0)))
    return window


def gray(picture: QImage) -> np.ndarray:
    return to_pixels(picture.convertToFormat(QImage.Format.Format_RGB32)) & np.uint32(0xFF)


def write_and_wait(qtbot: QtBot, window: MainWindow, write: Callable[[], None]) -> None:
    with qtbot.waitSignal(window.panel(PictureActions).exporter.finished, timeout=TIMEOUT_MILLISECONDS):
        write()


def written_picture(
    qtbot: QtBot, window: MainWindow, file: Path, width: int, summary: str, part: int = 0
) -> np.ndarray:
    """Write a picture without a scale bar through the dialog, and return its pixels. ``part`` 1 is the whole slice."""
    dialog = window.panel(PictureActions).dialog(movie=False)
    assert dialog is not None
    dialog.part.setCurrentIndex(part)
    dialog.width_box.setValue(width)
    dialog.scale_bar.setChecked(False)
    assert dialog.summary.text() == summary
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_picture(dialog, file))
    return gray(QImage(str(file)))


def test_a_picture_of_another_size_has_the_values_of_the_slice(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, data = stack
    window = open_stack(qtbot, open_in_window, path)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    dialog = window.panel(PictureActions).dialog(movie=False)
    assert dialog is not None
    dialog.part.setCurrentIndex(1)
    dialog.width_box.setValue(180)
    dialog.scale_bar.setChecked(False)
    assert dialog.summary.text() == "180 x 120 pixels"
    file = tmp_path / "picture.png"
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_picture(dialog, file))
    values = gray(QImage(str(file)))
    assert values.shape == (120, 180)
    assert np.array_equal(values[1::3, 1::3], data[3])
    dialog.scale_bar.setChecked(True)
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_picture(dialog, file))
    with_bar = gray(QImage(str(file)))
    assert not np.array_equal(with_bar, values)
    assert np.array_equal(with_bar[:60], values[:60])


def test_a_picture_of_rectangular_pixels_has_the_proportions_of_the_sample(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [2.0, 1.0]}]}
    image = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    group = zarrfs.create_group(tmp_path / "a.zarr", attributes={"ome": image})
    group.create_array("0", data=np.zeros((40, 60), "u1"), dimension_names=["y", "x"])
    dialog = open_in_window(tmp_path / "a.zarr").panel(PictureActions).dialog(movie=False)
    assert dialog is not None
    dialog.part.setCurrentIndex(1)
    dialog.width_box.setValue(120)
    assert dialog.summary.text() == "120 x 160 pixels"


def test_the_picture_is_copied_to_the_clipboard(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray]
) -> None:
    window = open_stack(qtbot, open_in_window, stack[0])
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 5))
    clipboard = QGuiApplication.clipboard()
    assert clipboard is not None
    clipboard.clear()
    window.actions_by_name["copy_picture"].trigger()
    qtbot.waitUntil(lambda: not clipboard.image().isNull(), timeout=TIMEOUT_MILLISECONDS)
    picture = clipboard.image()
    viewport = window.canvas.viewport
    assert (picture.width(), picture.height()) == (viewport.width, viewport.height)
    x, y = (round(value) for value in viewport.to_device(30, 45))
    assert gray(picture)[y, x] == 200
    x, y = (round(value) for value in viewport.to_device(10, 10))
    assert gray(picture)[y, x] == 255


def test_a_series_of_pictures_has_one_file_per_slice(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, data = stack
    window = open_stack(qtbot, open_in_window, path)
    dialog = window.panel(PictureActions).dialog(movie=True)
    assert dialog is not None
    dialog.part.setCurrentIndex(1)
    dialog.width_box.setValue(60)
    dialog.scale_bar.setChecked(False)
    dialog.first.setValue(5)
    dialog.last.setValue(1)
    dialog.step.setValue(2)
    dialog.format.setCurrentIndex(dialog.format.findData("png"))
    assert dialog.summary.text() == "60 x 40 pixels, 3 frames"
    directory = tmp_path / "series"
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_movie(dialog, directory))
    files = sorted(directory.iterdir())
    assert [file.name for file in files] == ["series_00001.png", "series_00003.png", "series_00005.png"]
    for file, z in zip(files, (1, 3, 5), strict=True):
        assert np.array_equal(gray(QImage(str(file))), data[z])
    window.panel(PictureActions).write_movie(dialog, directory)
    qtbot.waitUntil(lambda: "exists" in window.outcome.text(), timeout=TIMEOUT_MILLISECONDS)


def test_a_corrupt_chunk_does_not_end_a_movie(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, data = stack
    (path / "c" / "3" / "0" / "1").write_bytes(b"corrupt")
    data[3, :20, 20:40] = 0
    window = open_stack(qtbot, open_in_window, path)
    dialog = window.panel(PictureActions).dialog(movie=True)
    assert dialog is not None
    dialog.part.setCurrentIndex(1)
    dialog.width_box.setValue(60)
    dialog.scale_bar.setChecked(False)
    dialog.format.setCurrentIndex(dialog.format.findData("png"))
    directory = tmp_path / "series"
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_movie(dialog, directory))
    for z, file in enumerate(sorted(directory.iterdir())):
        picture = gray(QImage(str(file)))
        if z == 3:
            assert len(np.unique(picture[:20, 20:40])) == 2  # hatched
            picture[:20, 20:40] = 0
        assert np.array_equal(picture, data[z])
    window.panel(Position).dimensions.set_position(0, 3)
    qtbot.waitUntil(
        lambda: "Histogram and automatic contrast" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS
    )
    assert "Parts of 1 of 6 slices are hatched" in window.outcome.text(), (
        "another notice has replaced this one"
    )
    assert "(slice 3)" in window.outcome.text()
    assert window.outcome.isVisible()
    assert window.outcome.y() > window.notice.geometry().bottom()
    assert not window.outcome.timer.isActive()
    picture = written_picture(qtbot, window, tmp_path / "picture.png", 60, "60 x 40 pixels", part=1)
    picture[:20, 20:40] = 0
    assert np.array_equal(picture, data[3])
    picture_outcome, movie_outcome = window.outcome.text().splitlines()
    assert "Parts of it are hatched" in picture_outcome
    assert "(slice 3)" in movie_outcome
    QTest.mouseClick(window.outcome.dismiss, Qt.MouseButton.LeftButton)
    window.outcome.add_message("Exported", False)
    assert window.outcome.text() == "Exported", "a closed message appears again"


def test_a_video_has_one_frame_per_slice(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    window = open_stack(qtbot, open_in_window, stack[0])
    dialog = window.panel(PictureActions).dialog(movie=True)
    assert dialog is not None
    dialog.part.setCurrentIndex(1)
    dialog.width_box.setValue(121)  # odd: H.264 needs a border
    dialog.scale_bar.setChecked(False)
    file = tmp_path / "movie.mp4"
    write_and_wait(qtbot, window, lambda: window.panel(PictureActions).write_movie(dialog, file))
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(file), "-f", "rawvideo"]
    done = subprocess.run(
        [*command, "-pix_fmt", "rgb24", "-"], capture_output=True, timeout=TIMEOUT, check=True
    )
    frames = np.frombuffer(done.stdout, np.uint8).reshape(-1, 82, 122, 3)
    assert len(frames) == 6
    for z, frame in enumerate(frames):
        assert abs(float(frame[50:75, 10:110].mean()) - 40 * z) < 6
        assert float(frame[5:35, 5:50].mean()) > 245


def test_an_image_without_slices_has_no_movie(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.ones((8, 8), "u1"), chunks=(8, 8))
    window = open_in_window(tmp_path / "a.zarr")
    window.actions_by_name["movie"].trigger()
    assert "only one slice" in window.notice.text()


def test_a_cancelled_or_failed_movie_leaves_no_file(tmp_path: Path) -> None:
    picture: Pixels = np.zeros((4, 4), np.uint32)
    with pytest.raises(Cancelled):
        write_series(
            tmp_path / "s", "s", (0, 1), lambda _: picture, write_png, lambda fraction: fraction == 0
        )
    with pytest.raises(ZeroDivisionError):
        write_series(tmp_path / "s", "s", (0, 1), lambda number: picture // (1 // (1 - number)), write_png)
    pytest.importorskip("imageio_ffmpeg")
    with pytest.raises(Cancelled):
        write_mp4(tmp_path / "m.mp4", (0, 1), lambda _: picture, 5.0, lambda fraction: fraction == 0)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "s").mkdir()
    with pytest.raises(NodeExistsError, match="exists"):
        write_series(tmp_path / "s", "s", (0,), lambda _: picture, write_png)
    with pytest.raises(UnsupportedError, match="at most"):
        movie_positions(0, 10**9, 1)
    assert movie_positions(7, 2, 2) == (7, 5, 3)


def test_a_picture_of_the_whole_slice_has_the_displayed_orientation(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, data = stack
    window = open_stack(qtbot, open_in_window, path)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    window.canvas.rotate()
    window.canvas.mirror()
    turns, is_mirrored = window.canvas.orientation
    values = written_picture(qtbot, window, tmp_path / "picture.png", 80, "80 x 120 pixels", part=1)
    plane = data[3][:, ::-1] if is_mirrored else data[3]
    assert np.array_equal(values[::2, ::2], np.rot90(plane, -turns))


def test_a_picture_of_the_visible_region_has_no_margins(
    qtbot: QtBot, open_in_window: OpenInWindow, stack: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, data = stack
    window = open_stack(qtbot, open_in_window, path)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 3))
    values = written_picture(qtbot, window, tmp_path / "picture.png", 120, "120 x 80 pixels")
    assert np.array_equal(values[1::2, 1::2], data[3])
