"""Every widget displays text from a store literally: tests of the functions, the sources and a window."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PyQt6.QtCore import QAbstractItemModel, QAbstractListModel, QModelIndex, Qt
from PyQt6.QtGui import QTextDocument
from PyQt6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QComboBox,
    QGroupBox,
    QLabel,
    QPlainTextEdit,
    QTabBar,
    QToolTip,
    QWidget,
)
from pytestqt.qtbot import QtBot
from zarrfs_viewer.analysis.readout import LabelReadout, Readout
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.labels.labels_panel import Labels
from zarrfs_viewer.qt.panels.measure.measurements import Measurements
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.panels.pictures.export_dialog import ExportDialog, file_name
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.support.plain_text import (
    MAX_DOCUMENT,
    MAX_DOCUMENT_LINE,
    MAX_TEXT,
    PlainLabel,
    button_text,
    document_text,
    html_text,
    plain,
    plain_lines,
    tooltip,
    window_title,
)
from zarrfs_viewer.qt.support.plots import LazyPlot
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

QT_SOURCES = sorted((Path(__file__).resolve().parents[3] / "viewer" / "zarrfs_viewer" / "qt").rglob("*.py"))

# -- the functions -----------------------------------------------------------------------------------------------

might_be_rich_text: Callable[[str], bool] = Qt.mightBeRichText  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DAPI", "DAPI"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("gpj\u202egnp.exe", "gpj\\u202egnp.exe"),
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("\ud800", "\\ud800"),
        ("a\u2028b", "a\\u2028b"),
        ("µm · 日本語 é", "µm · 日本語 é"),
        ("نیم\u200cفاصله", "نیم\u200cفاصله"),
        (7, "7"),
    ],
)
def test_unsafe_characters_are_escaped_and_others_are_kept(text: object, expected: str) -> None:
    assert plain(text) == expected


def test_long_texts_are_elided() -> None:
    assert plain("a" * 10, 10) == "a" * 10
    assert plain("a" * 11, 10) == "a" * 9 + "…"
    assert len(plain("\x00" * 1000, 50)) == 50
    assert len(plain_lines("x" * 10**7)) == MAX_TEXT


def test_line_breaks_are_kept_in_multiline_text() -> None:
    assert plain_lines("a\n\tb\x1b") == "a\n\tb\\x1b"


def test_ampersands_of_buttons_are_displayed() -> None:
    assert button_text("R&D") == "R&&D"


def test_placeholders_of_window_titles_are_displayed() -> None:
    assert window_title("a[*]b") == "a[*][*]b - zarrfs viewer"


@pytest.mark.parametrize(
    "text", ["<b>bold</b>", "a &amp; b", '<img src="/dev/zero">', "a\n  b", "plain", "<"]
)
def test_tooltips_and_plots_display_text_literally(qtbot: QtBot, text: str) -> None:
    for rich in (tooltip(text), html_text(text)):
        assert "<img" not in rich
        document = QTextDocument()
        document.setHtml(f'<p style="white-space:pre-wrap">{rich}</p>' if not rich.startswith("<p") else rich)
        assert document.toPlainText() == text
    assert tooltip("") == ""


def test_documents_are_truncated() -> None:
    assert document_text('{\n  "a": 1\n}') == '{\n  "a": 1\n}'
    assert document_text("a" * (MAX_DOCUMENT_LINE + 1)).endswith("…")
    long = "line\n" * MAX_DOCUMENT
    assert len(document_text(long)) < MAX_DOCUMENT + 100
    assert document_text(long).endswith("more characters)")


def test_labels_display_plain_text(qtbot: QtBot) -> None:
    label = PlainLabel("<b>x</b>", wrap=True)
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.text() == "<b>x</b>"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cells.ome.zarr", "cells"), ("../../etc/passwd", "image"), ("a/b\n\x1bc", "a_b__c"), ("", "image")],
)
def test_names_of_exported_files_contain_no_path(name: str, expected: str) -> None:
    assert file_name(name) == expected


# -- the sources -------------------------------------------------------------------------------------------------

PLAIN = {"plain", "plain_name", "plain_lines", "button_text", "window_title"}
HELPERS = {
    "setToolTip": {"tooltip"},
    "setTabToolTip": {"tooltip"},
    "showText": {"tooltip"},
    "setLabel": {"html_text", "PlainLabel"},
    "addRow": {"PlainLabel"},
    "setPlainText": {"document_text"},
}
"""The functions whose result is safe for a method; ``PLAIN`` for all other methods."""

SINKS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            *("setText", "setToolTip", "setWindowTitle", "setTitle", "setStatusTip", "setWhatsThis"),
            *("setHtml", "setMarkdown", "insertHtml", "appendHtml", "setPlainText", "appendPlainText"),
            *("showMessage", "setLabelText", "setInformativeText", "setDetailedText", "setPlaceholderText"),
            *("setAccessibleName", "setAccessibleDescription", "setSuffix", "setPrefix", "addMenu"),
            *("setSpecialValueText", "setHeaderLabels", "setHorizontalHeaderLabels", "addItems"),
            *("setVerticalHeaderLabels", "setWindowIconText", "setIconText", "addSection", "drawStaticText"),
            *("QLabel", "PlainLabel", "QPushButton", "QCheckBox", "QRadioButton", "QGroupBox", "QDockWidget"),
            *("QAction", "QProgressDialog", "QTreeWidgetItem", "QListWidgetItem", "QTableWidgetItem"),
            *("QStandardItem", "QMessageBox", "TextItem", "LabelItem", "QStaticText", "QErrorMessage"),
        ),
        (0, 1),
    ),
    **dict.fromkeys(
        ("setItemText", "setTabText", "setTabToolTip", "setItemData", "addTab", "setLabel"), (1,)
    ),
    "showText": (1,),
    "addAction": (0,),
    "addItem": (0, 1),
    "insertItem": (1, 2),
    "drawText": (1, 2),
    "getText": (1, 2),
    "getItem": (1, 2, 3),
    "getOpenFileName": (1, 2, 3),
    "getOpenFileNames": (1, 2, 3),
    "getSaveFileName": (1, 3),
    "getExistingDirectory": (1, 2),
    "ask_open_file": (1, 2),
    "ask_open_files": (1, 2),
    "ask_new_file": (1, 3),
    "ask_folder": (1,),
}
"""Functions and methods that display text, and the positions of the arguments that may be text."""

BANNED = {
    "QTextBrowser",
    "QTextEdit",
    "QTextDocument",
    "QErrorMessage",
    "QStaticText",
    "setHtml",
    "setMarkdown",
}
BANNED |= {"insertHtml", "appendHtml", "fromHtml", "TextItem", "LabelItem", "setHtmlText"}

OBJECTS = {"item", "holder", "action", "icon", "parent", "window", "widget", "top", "root", "self"}
"""Names of variables that are Qt objects, not texts."""

ICONS = {"placeholder", "swatch"}
"""Functions that return icons."""

EXEMPT = {"copy_to_clipboard", "mimeData", "ask_open_file", "ask_open_files", "ask_new_file", "ask_folder"}
"""Functions that pass unchanged text to other programs, or their own arguments, which are checked, to Qt."""


class SinkChecker(ast.NodeVisitor):
    """Collects the calls that display a text which is not a literal and has not passed through ``plain_text``."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._functions: list[ast.AST] = []
        self._classes: list[ast.ClassDef] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._classes.append(node)
        self.generic_visit(node)
        self._classes.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._functions.append(node)
        if node.name in ("data", "headerData"):
            self._check_model(node)
        if node.name not in EXEMPT:
            self.generic_visit(node)
        self._functions.pop()

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        name = _name(node.func)
        if name in BANNED or (name == "QLabel" and not all(map(self._is_constant, node.args))):
            self._report(node, f"{name} is not allowed")
        places = SINKS.get(name, ())
        if (
            name == "addItem"
            and node.args
            and _name(node.args[0]) != "icon"
            and _called(node.args[0]) not in ICONS
        ):
            places = (0,)  # the second argument is data
        for place in places:
            if place < len(node.args) and not self._is_safe(node.args[place], name):
                self._report(node, f"argument {place} of {name}")
        if name == "addRow" and len(node.args) == 2 and not self._is_safe(node.args[0], name):
            self._report(node, "the label of addRow")
        if name == "plot":
            for keyword in node.keywords:
                if keyword.arg == "name" and _called(keyword.value) != "html_text":
                    self._report(node, "the name of a curve")
        if name == "__init__" and self._classes:
            bases = {_name(base) for base in self._classes[-1].bases}
            for argument in node.args if bases & SINKS.keys() else ():
                if not self._is_safe(argument, name):
                    self._report(node, f"argument of the base class of {self._classes[-1].name}")

    def _check_model(self, node: ast.FunctionDef) -> None:
        for inner in ast.walk(node):
            value = inner.value if isinstance(inner, ast.Return) else None
            if value is not None and not any(
                self._is_safe(value, sink) for sink in ("setText", "setToolTip")
            ):
                self._report(inner, "data of a model")

    def _report(self, node: ast.AST, problem: str) -> None:
        self.problems.append(f"line {getattr(node, 'lineno', 0)}: {problem}")

    def _is_constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_constant(node.value)
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and node.id.isupper())

    def _is_safe(self, node: ast.expr, sink: str) -> bool:
        if self._is_constant(node):
            return True
        if isinstance(node, ast.Call):
            name = _name(node.func)
            allowed = HELPERS.get(sink, PLAIN)
            # The geometry arguments of painters, and functions that return icons, are not texts.
            return name in allowed or name in ("QRectF", "QPointF", *ICONS)
        if isinstance(node, ast.Attribute):
            # An enumeration, or a Qt object that is an attribute of a panel. No text attribute has such a name.
            return node.attr.startswith(
                ("Align", "TextWordWrap", "_range", "messages", "_parent", "_bold", "_italic")
            )
        if isinstance(node, ast.IfExp):
            return self._is_safe(node.body, sink) and self._is_safe(node.orelse, sink)
        if isinstance(node, ast.BinOp):
            return self._is_safe(node.left, sink) and self._is_safe(node.right, sink)
        if isinstance(node, ast.JoinedStr):
            return all(self._is_safe(part, sink) for part in node.values)
        if isinstance(node, ast.FormattedValue):
            return self._is_safe(node.value, sink)
        if isinstance(node, ast.BoolOp):
            return all(self._is_safe(value, sink) for value in node.values)
        if isinstance(node, ast.List | ast.Tuple):
            return all(self._is_safe(value, sink) for value in node.elts)
        if isinstance(node, ast.ListComp):
            return self._is_safe(node.elt, sink)
        if isinstance(node, ast.Name):
            return node.id in OBJECTS or self._is_safe_variable(node.id, sink)
        return False

    def _is_safe_variable(self, name: str, sink: str) -> bool:
        values = [
            inner.value
            for function in self._functions[-1:]
            for inner in ast.walk(function)
            if isinstance(inner, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in inner.targets)
        ]
        return bool(values) and all(self._is_safe(value, sink) for value in values)


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _called(node: ast.expr) -> str:
    return _name(node.func) if isinstance(node, ast.Call) else ""


def unsafe_calls(source: str) -> list[str]:
    checker = SinkChecker()
    checker.visit(ast.parse(source))
    return checker.problems


@pytest.mark.parametrize(
    "file", [file for file in QT_SOURCES if file.name != "plain_text.py"], ids=lambda file: file.name
)
def test_every_displayed_text_passes_through_plain_text(file: Path) -> None:
    assert unsafe_calls(file.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "statement",
    [
        "label.setText(name)",
        "label.setText(f'{name}')",
        "label.setText(tooltip(name))",
        "item.setToolTip(plain(name))",
        "item.setToolTip(0, name)",
        "QLabel(plain(name))",
        "QLabel(name, self)",
        "PlainLabel(name)",
        "QCheckBox(name)",
        "QTreeWidgetItem(parent, [key, plain(value)])",
        "box.addItem(icon, name)",
        "form.addRow(name, box)",
        "QMessageBox.warning(self, 'x', name).setText(name)",
        "QInputDialog.getItem(self, 'a', 'b', names)",
        "plot.setLabel('bottom', unit)",
        "plot.plot(x, y, name=label)",
        "browser.setHtml(text)",
        "painter.drawText(point, text)",
        "label.setText(a or plain(b))",
        "def f(t):\n    text = t\n    label.setText(text)",
        "class M(QAbstractItemModel):\n    def data(self, index, role=0):\n        return self.name",
        "class G(QGroupBox):\n    def __init__(self, name):\n        super().__init__(name)",
    ],
)
def test_the_source_check_finds_unsafe_text(statement: str) -> None:
    assert unsafe_calls(statement) != []


# -- a window ----------------------------------------------------------------------------------------------------

ESC, BIDI, LONG = "\x1b]0;x\x07", "\u202e", "w" * 5000


def hostile(image: Path, name: str) -> str:
    """Return a long text with an image tag, control characters and a change of the text direction."""
    return f'<b>{name}</b>&amp;{ESC}{BIDI}<img src="{image}">\n[*]{LONG}'


def hostile_store(path: Path, image: Path) -> Path:
    """Write an OME-Zarr image whose channels, labels, axes and attributes have hostile names."""

    def bad(name: str) -> str:
        return hostile(image, name)

    axes = [
        {"name": bad("c-axis"), "type": "channel"},
        {"name": bad("z-axis"), "type": "space", "unit": bad("unit")},
        {"name": "y" + bad("y-axis"), "type": "space", "unit": bad("unit")},
        {"name": "x" + bad("x-axis"), "type": "space", "unit": bad("unit")},
    ]
    step = [{"type": "scale", "scale": [1, 2, 2, 2]}]
    multiscales = {
        "name": bad("image"),
        "axes": axes,
        "datasets": [{"path": "0", "coordinateTransformations": step}],
    }
    channels = [
        {"label": bad(f"channel {n}"), "color": bad("colour"), "window": {"start": 0, "end": 255}}
        for n in (0, 1)
    ]
    ome = {
        "version": "0.5",
        "multiscales": [multiscales],
        "omero": {"channels": channels, "name": bad("omero")},
    }
    attributes = {"ome": ome, bad("key"): {bad("inner key"): [bad("value"), {"a": bad("b")}]}}
    zarrfs.create_group(path, attributes=attributes)
    data = np.arange(2 * 3 * 32 * 32, dtype="u2").reshape(2, 3, 32, 32)
    zarrfs.create_array(path / "0", data=data, chunks=(1, 1, 16, 16))
    name = "<img src=x>\u202ecells"
    zarrfs.create_group(path / "labels", attributes={"ome": {"version": "0.5", "labels": [name]}})
    label_ome = {
        "version": "0.5",
        "multiscales": [
            {**multiscales, "axes": axes[1:], "datasets": [{"path": "0"}], "name": bad("labels")}
        ],
        "image-label": {"properties": [{"label-value": 1, bad("class"): bad("cell")}]},
    }
    zarrfs.create_group(path / "labels" / name, attributes={"ome": label_ome})
    zarrfs.create_array(path / "labels" / name / "0", data=np.ones((3, 32, 32), "u1"), chunks=(1, 16, 16))
    (path / "<b>broken\u202e").mkdir()
    (path / "<b>broken\u202e" / "zarr.json").write_text(f'{{"zarr_format": "<img src={image}>"}}')
    return path


def hostile_plate(path: Path, image: Path) -> Path:
    def bad(name: str) -> str:
        return hostile(image, name)

    document = {
        "version": "0.5",
        "plate": {
            "name": bad("plate"),
            "rows": [{"name": bad("row")}],
            "columns": [{"name": bad("column")}],
            "acquisitions": [{"id": 0, "name": bad("first")}, {"id": 1, "name": bad("second")}],
            "wells": [{"path": "A/1<b>\u202e", "rowIndex": 0, "columnIndex": 0}],
        },
    }
    zarrfs.create_group(path, attributes={"ome": document})
    return path


def model_texts(
    model: QAbstractItemModel | None, parent: QModelIndex | None = None
) -> Iterator[tuple[str, str]]:
    parent = QModelIndex() if parent is None else parent
    if model is None:
        return
    columns = 1 if isinstance(model, QAbstractListModel) else model.columnCount(parent)
    for row in range(model.rowCount(parent)):
        for column in range(columns):
            index = model.index(row, column, parent)
            yield "item", str(index.data() or "")
            yield "tooltip", str(index.data(Qt.ItemDataRole.ToolTipRole) or "")
        yield from model_texts(model, model.index(row, 0, parent))
    for orientation, count in (
        (Qt.Orientation.Horizontal, columns),
        (Qt.Orientation.Vertical, model.rowCount()),
    ):
        for section in range(count):
            yield "header", str(model.headerData(section, orientation) or "")


def displayed_texts(top: QWidget) -> Iterator[tuple[str, str]]:
    """Yield (kind, text) for every text of a window."""
    yield "title", top.windowTitle()
    for widget in [top, *top.findChildren(QWidget)]:
        yield "tooltip", widget.toolTip()
        yield "accessible name", widget.accessibleName()
        if isinstance(widget, QLabel):
            own = widget.text().startswith('<div style="text-align:center')
            if own or widget.objectName() == "qtooltip_label":
                yield "own" if own else "tooltip", widget.text()
                continue
            if widget.textFormat() != Qt.TextFormat.PlainText:
                assert not might_be_rich_text(widget.text()), widget.text()[:80]
            yield "label", widget.text()
        elif isinstance(widget, QAbstractButton):
            yield "button", widget.text()
        elif isinstance(widget, QGroupBox):
            yield "button", widget.title()
        elif isinstance(widget, QTabBar):
            yield from (("button", widget.tabText(number)) for number in range(widget.count()))
        elif isinstance(widget, QComboBox):
            yield from model_texts(widget.model())
        elif isinstance(widget, QPlainTextEdit):
            yield "document", widget.toPlainText()
        elif isinstance(widget, QAbstractItemView):
            yield from model_texts(widget.model())


def assert_harmless(texts: Iterator[tuple[str, str]]) -> list[str]:
    """Check that no text contains control characters or images or is too long. Returns the texts."""
    checked = []
    for kind, text in texts:
        checked.append(text)
        assert not [c for c in text if c in "\x1b\x07\u202e\ud800"], kind
        limit = {"document": MAX_DOCUMENT * 2, "tooltip": MAX_TEXT * 7, "own": 2000}.get(kind, MAX_TEXT)
        assert len(text) <= limit, (kind, len(text))
        if kind == "tooltip" and might_be_rich_text(text):
            document = QTextDocument()
            document.setHtml(text)
            assert "\ufffc" not in document.toPlainText(), "a tooltip contains an image"
            assert "<img" not in text, text[:100]
    return checked


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """A pipe without a writer: reading it as an image would block the window."""
    path = tmp_path / "pipe.png"
    os.mkfifo(path)
    return path


def test_a_window_displays_hostile_text_literally(
    qtbot: QtBot, open_in_window: Callable[[object], MainWindow], tmp_path: Path, picture: Path
) -> None:
    path = hostile_store(tmp_path / "<img src=x>&.zarr", picture)
    window = open_in_window(path)
    window.resize(1100, 800)
    assert window.width() <= 1100
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.panel(Metadata).panel.tabs.setCurrentWidget(window.panel(Metadata).panel.check)
    qtbot.waitUntil(
        lambda: window.panel(Metadata).panel.check.messages.topLevelItemCount() > 0,
        timeout=TIMEOUT_MILLISECONDS,
    )
    top = window.panel(Hierarchy).tree.model.index(0, 0)
    window.panel(Hierarchy).tree.view.expand(top)
    qtbot.waitUntil(
        lambda: window.panel(Hierarchy).tree.model.rowCount(top) > 1, timeout=TIMEOUT_MILLISECONDS
    )
    for widget in (
        window.panel(Channels).panel,
        window.panel(Labels).panel,
        window.panel(Measurements).measure,
        window.panel(Metadata).panel,
    ):
        window.panels.setCurrentWidget(widget)
        assert window.grab().width() == 1100
    texts = assert_harmless(displayed_texts(window))
    assert any("<b>channel 0</b>" in text for text in texts)
    assert any("&&amp;" in text for text in texts), "the ampersand of a check box is not escaped"
    assert "<img src=x>&.zarr" in window.windowTitle()


def test_plots_tables_and_dialogs_display_hostile_text_literally(
    qtbot: QtBot, open_in_window: Callable[[object], MainWindow], tmp_path: Path, picture: Path
) -> None:
    window = open_in_window(hostile_store(tmp_path / "a.zarr", picture))
    window.panels.setCurrentWidget(window.panel(Measurements).measure)
    for kind in ("line", "rectangle"):
        shape: Any = Shape(kind, ((2.0, 2.0), (20.0, 20.0)))  # type: ignore[arg-type]
        window.canvas.show_shape(shape)
        qtbot.waitUntil(lambda: window.panel(Measurements).measure.text != "", timeout=TIMEOUT_MILLISECONDS)
        if kind == "line":  # the next measurement cancels a plot that is not created yet
            qtbot.waitUntil(
                lambda: window.panel(Measurements).measure.plot.is_created, timeout=TIMEOUT_MILLISECONDS
            )
        window.panel(Measurements).measure.text = ""
        assert window.grab().width() > 0
    plots = [plot for plot in window.findChildren(LazyPlot) if plot.is_created]
    assert plots
    for holder in plots:
        label = holder.plot().getAxis("bottom").labelString()
        assert "<img" not in label
        legend = holder.plot().getPlotItem().legend
        for _, entry in legend.items if legend is not None else ():
            assert "<img" not in entry.text
            assert len(entry.text) < 1000
    assert_harmless(displayed_texts(window))
    assert window.image is not None
    assert window.display_settings is not None
    dialog = ExportDialog(window.image, window.display_settings, window.canvas.viewport, 0, None, window)
    assert_harmless(displayed_texts(dialog))
    dialog.deleteLater()


def test_the_readout_and_its_tooltip_display_hostile_text_literally(
    qtbot: QtBot, open_in_window: Callable[[object], MainWindow], tmp_path: Path, picture: Path
) -> None:
    window = open_in_window(hostile_store(tmp_path / "a.zarr", picture))
    text = hostile(picture, "cell")
    label = LabelReadout(text, 1, {text: text})
    found = Readout((0, 0, 0, 0), ((text, 1.0, text),), (1.0,), 0, ((text, 1),), (label,), "c/0")
    window.panes.main.pointed.emit(found)
    window.panes.main._show_properties(found)
    assert "<img" not in QToolTip.text()
    assert "&lt;img" in QToolTip.text()
    QToolTip.hideText()
    assert_harmless(displayed_texts(window))
    assert window.status.position.text().startswith("<b>cell</b>")


def test_messages_are_plain_and_truncated(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    window.session.show_message(hostile(picture, "message"), True)
    assert window.notice.isVisible()
    assert window.grab().width() <= 1400
    assert_harmless(displayed_texts(window))


def test_a_plate_displays_hostile_text_literally(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, picture: Path
) -> None:
    window.open_location(str(hostile_plate(tmp_path / "p.zarr", picture)))
    qtbot.waitUntil(lambda: window.panel(Plates).plate.table.rowCount() == 1, timeout=TIMEOUT_MILLISECONDS)
    item = window.panel(Plates).plate.table.item(0, 0)
    assert item is not None
    qtbot.waitUntil(
        lambda: "cannot" in item.toolTip() or "no " in item.toolTip(), timeout=TIMEOUT_MILLISECONDS
    )
    assert window.panel(Plates).plate.grab().width() > 0
    assert_harmless(displayed_texts(window))


def test_an_unreadable_node_displays_its_error(
    qtbot: QtBot, open_in_window: Callable[[object], MainWindow], tmp_path: Path, picture: Path
) -> None:
    window = open_in_window(hostile_store(tmp_path / "a.zarr", picture))
    window.panel(Hierarchy).tree.unreadable_node_selected.emit(hostile(picture, "error"))
    assert "<b>error</b>" in window.panel(Metadata).panel.document.toPlainText()
    assert_harmless(displayed_texts(window))
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 9.0)))


def test_large_and_deep_metadata_is_displayed(
    qtbot: QtBot, open_in_window: Callable[[object], MainWindow], tmp_path: Path
) -> None:
    deep: Any = "bottom"
    for _ in range(150):
        deep = {"a": deep}
    attributes = {"deep": deep, "long": list(range(50_000)), "many": {str(n): n for n in range(25_000)}}
    zarrfs.create_array(tmp_path / "a.zarr", data=np.ones((8, 8), "u1"), chunks=(8, 8), attributes=attributes)
    window = open_in_window(tmp_path / "a.zarr")
    tree = window.panel(Metadata).panel.attributes
    assert [tree.topLevelItem(n).text(0) for n in range(3)] == ["deep", "long", "many"]  # type: ignore[union-attr]
    last = tree.topLevelItem(3)
    assert last is not None
    assert last.text(0).endswith(" more")
    long = tree.topLevelItem(1)
    assert long is not None
    assert long.text(1).startswith("[0, 1, 2,")
    assert_harmless(displayed_texts(window))
    window.panel(Metadata).panel.search.setText("bottom")
    window.panel(Metadata).panel.go_to("/deep/a/a")
    assert tree.currentItem() is not None
