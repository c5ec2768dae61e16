"""Exports of a displayed projection, from the dialog to the file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtWidgets import QDialog, QFileDialog
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.pictures.export_dialog import ExportDialog
from zarrfs_viewer.qt.panels.pictures.pictures import PictureActions
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.support import file_dialogs
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.state.view_state import Projection, with_projection

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

OpenInWindow = Callable[[object], MainWindow]


def is_highlighted(window: MainWindow, name: str) -> bool:
    """Whether the button of an action in the toolbar shows that it is active."""
    button = window.toolbar.widgetForAction(window.actions_by_name[name])
    assert button is not None
    return bool(button.property("active"))


@pytest.mark.parametrize(
    ("content", "part", "expected"),
    [
        ("As displayed: maximum of 3 slices along z", "Whole slice", "maximum"),
        ("The current slice", "Whole slice", "slice"),
        ("As displayed: maximum of 3 slices along z", "All slices, not projected", "stack"),
        ("A range of slices", "Whole slice", "range"),
    ],
)
def test_an_export_contains_the_displayed_projection_unless_another_content_is_selected(
    qtbot: QtBot,
    open_in_window: OpenInWindow,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    content: str,
    part: str,
    expected: str,
) -> None:
    data = np.random.default_rng(0).integers(0, 250, (7, 16, 24), "u1")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(2, 16, 16), dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(0, 4))
    assert window.display_settings is not None
    projected = with_projection(window.display_settings, Projection(0, "max", 3.0))
    assert not is_highlighted(window, "slab")
    wait_until_exact(qtbot, window, lambda: window.session.change(projected))
    assert is_highlighted(window, "slab")
    assert window.image is not None
    dialog = ExportDialog(window.image, window.display_settings, window.canvas.viewport, 0, None, window)
    qtbot.addWidget(dialog)
    for box, text in ((dialog.part, part), (dialog.content, content)):
        assert box.findText(text) >= 0
        box.setCurrentText(text)
    for limit, value in zip(dialog.ranges[0], (5, 2), strict=True):
        limit.setValue(value)
    dialog.format.setCurrentIndex(dialog.format.findData("npy"))
    file = tmp_path / "x.npy"
    monkeypatch.setattr(ExportDialog, "exec", lambda self: QDialog.DialogCode.Accepted)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a: (str(file), ""))
    with qtbot.waitSignal(window.panel(PictureActions).exporter.finished, timeout=TIMEOUT_MILLISECONDS):
        window.panel(PictureActions).exporter.ask(dialog, window.display_settings)
    values = {
        "maximum": data[3:6].max(0, keepdims=True),
        "slice": data[4:5],
        "stack": data,
        "range": data[2:6],
    }
    np.testing.assert_array_equal(np.load(file), values[expected])


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("a", "a.ome.tif"),
        ("a.npy", "a.npy.ome.tif"),
        ("a.TIF", "a.TIF"),
        ("a.ome.tif", "a.ome.tif"),
        ("b", ""),
    ],
)
def test_the_name_of_an_export_has_the_suffix_of_its_format(
    qtbot: QtBot,
    open_in_window: OpenInWindow,
    cells: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    written: str,
) -> None:
    window = open_in_window(cells)
    assert window.image is not None
    assert window.display_settings is not None
    (tmp_path / "b.ome.tif").write_text("an older file")
    files: list[Path] = []
    monkeypatch.setattr(
        window.panel(PictureActions).exporter, "write", lambda choice, file, settings: files.append(file)
    )
    monkeypatch.setattr(ExportDialog, "exec", lambda dialog: QDialog.DialogCode.Accepted)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / typed), ""))
    dialog = ExportDialog(window.image, window.display_settings, window.canvas.viewport, 0, None, window)
    qtbot.addWidget(dialog)
    dialog.format.setCurrentIndex(dialog.format.findData("tiff"))
    window.panel(PictureActions).exporter.ask(dialog, window.display_settings)
    assert files == ([tmp_path / written] if written else [])
    assert ("exists" in window.notice.text()) == (not written)


def test_file_dialogs_begin_in_the_folder_of_the_last_file(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[str] = []

    def choose(parent: object, title: str, suggested: str, filters: str) -> tuple[str, str]:
        folders.append(suggested)
        return str(tmp_path / "chosen" / "a.csv"), ""

    (tmp_path / "chosen").mkdir()
    monkeypatch.setattr(file_dialogs, "_folder", [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", choose)
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", lambda *a: (folders.append(a[2]), ([], ""))[1])
    file_dialogs.ask_new_file(window, "Save", "b.csv", "")
    file_dialogs.ask_new_file(window, "Save", "b.csv", "")
    window.opener.ask_zip()
    (tmp_path / "chosen").rmdir()
    file_dialogs.ask_new_file(window, "Save", "b.csv", "")
    monkeypatch.chdir("/")
    monkeypatch.setattr(file_dialogs, "_folder", [])
    file_dialogs.ask_new_file(window, "Save", "b.csv", "")
    chosen = tmp_path / "chosen"
    assert folders == [
        str(tmp_path / "b.csv"),
        str(chosen / "b.csv"),
        str(chosen),
        str(tmp_path / "b.csv"),
        str(Path.home() / "b.csv"),
    ]
