"""Building pyramids in a window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtWidgets import QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.canvas.painting import stride_text
from zarrfs_viewer.qt.panels.pyramid_actions import PyramidActions
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]
DATA = np.random.default_rng(2).integers(0, 900, (2, 600, 520)).astype("u2")


def write_image(path: Path) -> Path:
    """Write an OME-NGFF image with one level."""
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    transforms = [{"type": "scale", "scale": [2.0, 0.5, 0.5]}]
    multiscales = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": transforms}]}]
    group = zarrfs.create_group(path, attributes={"ome": {"version": "0.5", "multiscales": multiscales}})
    group.create_array("0", data=DATA, chunks=(1, 128, 128))
    return path


def test_levels_are_added_to_an_image(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(write_image(tmp_path / "a.zarr"))
    monkeypatch.setattr(QMessageBox, "exec", lambda box: QMessageBox.StandardButton.Cancel)
    window.actions_by_name["pyramid"].trigger()
    assert sorted(zarrfs.open(tmp_path / "a.zarr")) == ["0"]
    monkeypatch.setattr(QMessageBox, "exec", lambda box: QMessageBox.StandardButton.Ok)
    wait_until_opened(qtbot, window, window.actions_by_name["pyramid"].trigger)
    assert window.image is not None
    assert [level.shape for level in window.image.levels][:2] == [(2, 600, 520), (2, 300, 260)]
    means = DATA.reshape(2, 300, 2, 260, 2).mean(axis=(2, 4))
    assert np.allclose(window.image.levels[1].array[...], means, atol=1)
    window.actions_by_name["pyramid"].trigger()
    assert "already" in window.notice.text()


def test_a_cancelled_pyramid_is_continued(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(write_image(tmp_path / "a.zarr"))
    monkeypatch.setattr(QMessageBox, "exec", lambda box: QMessageBox.StandardButton.Ok)
    report = PyramidActions._report

    def cancel(actions: PyramidActions, name: str, done: int, total: int) -> None:
        actions.close()
        report(actions, name, done, total)

    monkeypatch.setattr(PyramidActions, "_report", cancel)
    window.actions_by_name["pyramid"].trigger()
    qtbot.waitUntil(lambda: "not complete" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    monkeypatch.setattr(PyramidActions, "_report", report)
    wait_until_opened(qtbot, window, window.actions_by_name["pyramid"].trigger)
    assert window.image is not None
    assert len(window.image.levels) > 1


def test_of_an_array_a_new_image_is_written(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "values.npy", DATA)
    window = open_in_window(tmp_path / "values.npy")
    target = tmp_path / "new.ome.zarr"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(target), ""))
    wait_until_opened(qtbot, window, window.actions_by_name["pyramid"].trigger)
    assert window.image is not None
    assert len(window.image.levels) > 1
    assert np.array_equal(zarrfs.open(target)["0"][...], DATA)
    assert window.dataset is not None
    assert window.dataset.location == str(target)


def test_a_pyramid_is_offered_for_an_image_that_is_sampled(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=(20_000, 20_000), chunks=(2000, 2000), dtype="u1")
    window = open_in_window(tmp_path / "a.zarr")
    frame = window.canvas.frame
    assert frame is not None
    assert "Ctrl+B" in window.notice.text()
    assert stride_text(frame.grid.stride).casefold() in window.notice.text().casefold()
    assert window.session.streamer.memory.nbytes < 20_000**2 / 16


@pytest.mark.parametrize(
    ("stride", "text"),
    [
        ((1, 1), ""),
        ((2, 2), "every 2nd pixel"),
        ((13, 13), "every 13th pixel"),
        ((1, 103), "every 103rd column"),
        ((21, 4), "every 21st row, every 4th column"),
    ],
)
def test_the_drawn_pixels_are_stated(stride: tuple[int, int], text: str) -> None:
    assert stride_text(stride) == text
