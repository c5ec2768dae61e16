"""Editing and comparing metadata in a window."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.metadata.metadata_editor import MetadataEditor
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact
from zarrfs.ngff import parse
from zarrfs.tools import consolidate_metadata

OpenInWindow = Callable[[object], MainWindow]


def open_editor(qtbot: QtBot, window: MainWindow) -> MetadataEditor:
    window.panel(Metadata).panel.edit.click()
    qtbot.waitUntil(lambda: window.panel(Metadata).editor is not None, timeout=TIMEOUT_MILLISECONDS)
    assert window.panel(Metadata).editor is not None
    editor = window.panel(Metadata).editor
    assert editor is not None
    return editor


def save(qtbot: QtBot, editor: MetadataEditor) -> None:
    editor.save.click()
    qtbot.waitUntil(lambda: not editor.edits.is_changed, timeout=TIMEOUT_MILLISECONDS)


def set_cell(qtbot: QtBot, editor: MetadataEditor, table: str, row: int, column: int, text: str) -> None:
    item = getattr(editor.form, table).item(row, column)
    before = editor.edits.current
    item.setText(text)
    qtbot.waitUntil(lambda: editor.edits.current is not before, timeout=TIMEOUT_MILLISECONDS)


def test_names_colors_and_scales_are_edited_saved_and_displayed(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    original = dict(zarrfs.open(cells).attrs)
    window = open_in_window(cells)
    window.session.change_channel(1, limits=(3.0, 99.0))
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    editor = open_editor(qtbot, window)
    set_cell(qtbot, editor, "channels", 0, 0, "DAPI")
    editor.form.set_color(1, (255, 128, 0))
    qtbot.waitUntil(lambda: editor.form.channels.item(1, 1).text() == "#FF8000", timeout=TIMEOUT_MILLISECONDS)  # type: ignore[union-attr]
    set_cell(qtbot, editor, "axes", 3, 1, "0.125")
    set_cell(qtbot, editor, "axes", 3, 2, "nanometer")
    assert editor.isWindowModified()
    save(qtbot, editor)
    model = parse(zarrfs.open(cells).attrs)
    assert model.omero is not None
    assert model.omero.channels[0].label == "DAPI"
    assert model.omero.channels[1].color == (255, 128, 0)
    scales = [level.scale for level in model.multiscales[0].levels]
    assert [scale[3] for scale in scales if scale] == [0.125, 0.25, 0.5]
    qtbot.waitUntil(lambda: is_exact(window), timeout=TIMEOUT_MILLISECONDS)
    assert window.display_settings is not None
    assert window.image is not None
    assert window.display_settings.channels[0].label == "DAPI"
    assert window.display_settings.channels[1].colormap == "#FF8000"
    assert window.display_settings.channels[1].limits == (3.0, 99.0)
    assert window.image.levels[0].scale[3] == 0.125
    assert window.panels.currentWidget() is window.panel(Metadata).panel
    qtbot.waitUntil(
        lambda: "nanometer" in window.panel(Metadata).panel.document.toPlainText(),
        timeout=TIMEOUT_MILLISECONDS,
    )
    while editor.edits.can_undo:
        editor.undo.click()
    save(qtbot, editor)
    assert dict(zarrfs.open(cells).attrs) == original


def test_the_check_precedes_saving(qtbot: QtBot, open_in_window: OpenInWindow, cells: Path) -> None:
    window = open_in_window(cells)
    editor = open_editor(qtbot, window)
    editor.tabs.setCurrentWidget(editor.text)
    attributes = json.loads(editor.text.toPlainText())
    attributes["ome"]["multiscales"][0]["axes"] = 5
    editor.text.setPlainText(json.dumps(attributes))
    editor.save.click()
    qtbot.waitUntil(lambda: "not valid" in editor.result_label.text(), timeout=TIMEOUT_MILLISECONDS)
    assert editor.save.text() == "Save anyway"
    assert editor.edits.is_changed
    assert zarrfs.open(cells).attrs["ome"]["multiscales"][0]["axes"] != 5
    editor.undo.click()
    editor.text.setPlainText("{")
    editor.save.click()
    assert "not valid JSON" in editor.result_label.text()
    editor.text.setPlainText("[]")
    assert not editor.commit_text()
    assert "object" in editor.result_label.text()


def test_impossible_values_are_refused(qtbot: QtBot, open_in_window: OpenInWindow, cells: Path) -> None:
    editor = open_editor(qtbot, open_in_window(cells))
    cell = editor.form.axes.item(3, 1)
    assert cell is not None
    before = cell.text()
    level = zarrfs.open_group(cells).attrs["ome"]["multiscales"][0]["datasets"][0]
    assert float(before) == level["coordinateTransformations"][0]["scale"][3]
    for text in ("wide", "-1"):
        item = editor.form.axes.item(3, 1)
        assert item is not None
        item.setText(text)
        qtbot.waitUntil(lambda: "pixel size" in editor.result_label.text(), timeout=TIMEOUT_MILLISECONDS)
        item = editor.form.axes.item(3, 1)
        assert item is not None
        assert item.text() == before
        editor.result_label.setText("")
    assert not editor.edits.is_changed


def test_changes_of_another_writer_are_not_overwritten(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = open_in_window(cells)
    editor = open_editor(qtbot, window)
    zarrfs.open(cells, mode="r+").attrs["other"] = "writer"
    set_cell(qtbot, editor, "channels", 0, 0, "DAPI")
    editor.save.click()
    qtbot.waitUntil(lambda: "another writer" in editor.result_label.text(), timeout=TIMEOUT_MILLISECONDS)
    assert zarrfs.open(cells).attrs["other"] == "writer"
    assert editor.edits.is_changed
    answers = [QMessageBox.StandardButton.Cancel, QMessageBox.StandardButton.Discard]
    monkeypatch.setattr(QMessageBox, "question", lambda *_: answers.pop(0))
    editor.reject()
    assert editor.isVisible()
    editor.reject()
    assert not editor.isVisible()


def test_consolidated_metadata_contain_what_was_saved(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    consolidate_metadata(cells)
    window = open_in_window(cells)
    level = zarrfs.open(cells, "0")
    editing = window.panel(Metadata)
    editing.edit(level)
    qtbot.waitUntil(lambda: editing.editor is not None, timeout=TIMEOUT_MILLISECONDS)
    assert editing.editor is not None
    editor = editing.editor
    editor.text.setPlainText('{"stain": "DAPI"}')
    assert editor.commit_text()
    save(qtbot, editor)
    for use_consolidated in (True, False):
        with zarrfs.open_group(cells, use_consolidated=use_consolidated) as stored:
            assert dict(stored["0"].attrs) == {"stain": "DAPI"}


def test_a_zip_file_shows_its_new_metadata(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path, tmp_path: Path
) -> None:
    zarrfs.copy_store(zarrfs.open(cells).store, zarrfs.storage.ZipStore(tmp_path / "cells.zip", mode="w"))
    window = open_in_window(tmp_path / "cells.zip")
    window.session.change_channel(1, limits=(3.0, 99.0))
    editor = open_editor(qtbot, window)
    set_cell(qtbot, editor, "channels", 0, 0, "DAPI")
    save(qtbot, editor)
    qtbot.waitUntil(
        lambda: window.image is not None and window.image.channels[0].label == "DAPI",
        timeout=TIMEOUT_MILLISECONDS,
    )
    assert window.display_settings is not None
    assert window.display_settings.channels[1].limits == (3.0, 99.0)


def test_a_store_that_cannot_be_written_is_refused(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    node = zarrfs.create_array(tmp_path / "a.zarr", shape=(8, 8), dtype="u1")
    window = open_in_window(tmp_path / "a.zarr")
    (tmp_path / "a.zarr").rename(tmp_path / "b.zarr")
    with qtbot.waitSignal(window.session.message_changed, timeout=TIMEOUT_MILLISECONDS):
        window.panel(Metadata).edit(node)
    assert window.notice.isVisible()
    assert window.panel(Metadata).editor is None


def test_the_selected_node_is_compared_with_the_reference(
    qtbot: QtBot, open_in_window: OpenInWindow, cells: Path
) -> None:
    window = open_in_window(cells)
    group = zarrfs.open_group(cells)
    panel = window.panel(Metadata).panel.compare
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.panel(Metadata).panel.comparing.click()
    names = lambda: [panel.table.topLevelItem(n).text(0) for n in range(panel.table.topLevelItemCount())]  # type: ignore[union-attr]  # noqa: E731
    for path, click in (("0", True), ("1", False)):
        window.session.show_metadata(group[path])
        qtbot.waitUntil(lambda: window.panel(Metadata).panel.is_current, timeout=TIMEOUT_MILLISECONDS)
        if click:
            panel.set_reference.click()
            assert names() == []
    assert "shape" in names()
    assert "dtype" not in names()
    panel.only_differences.setChecked(False)
    assert "dtype" in names()
    assert panel.table.textElideMode() == Qt.TextElideMode.ElideMiddle, (
        "the ends of long pointers are not visible"
    )
    assert not panel.table.wordWrap()
