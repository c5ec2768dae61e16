"""The metadata of the selected node beside those of a reference node."""

from __future__ import annotations

from typing import TypeAlias

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QFont
from PyQt6.QtWidgets import (
    QCheckBox,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

import zarrfs
from zarrfs_viewer.analysis.metadata_comparison import ComparedValue, compare_nodes
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_lines, tooltip

__all__ = ["ComparePanel"]

HINT = "Select a node and set it as reference. Then select another node to compare its metadata."
MAX_VALUE = 400
"""The maximum number of characters of a value in a cell. The tooltip contains more."""

Node: TypeAlias = "zarrfs.Array | zarrfs.Group"


class ComparePanel(QWidget):
    """Two nodes: the reference, which the user sets, and the selected node."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._node: Node | None = None
        self._reference: Node | None = None
        self._values: list[ComparedValue] = []
        self._is_current = True
        self.title = PlainLabel(HINT, wrap=True)
        self.title.setAccessibleName("Compared nodes")
        self.set_reference = QPushButton("Set as reference")
        self.set_reference.clicked.connect(self._set_reference)
        self.only_differences = QCheckBox("Only differences")
        self.only_differences.setChecked(True)
        self.only_differences.toggled.connect(lambda _: self._show_values())
        self.table = QTreeWidget()
        self.table.setAccessibleName("Comparison")
        self.table.setHeaderLabels(["Key", "Reference", "Selected"])
        self.table.setRootIsDecorated(False)
        self.table.setAlternatingRowColors(True)
        # A pointer differs from its neighbours at the end. With wrapped text, only its first part would be visible.
        self.table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        row = QVBoxLayout()  # the panel may be narrow
        row.addWidget(self.set_reference)
        row.addWidget(self.only_differences)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 4, 0, 0)
        layout.addWidget(self.title)
        layout.addLayout(row)
        layout.addWidget(self.table, 1)

    def show_node(self, node: Node | None) -> None:
        """Compare another node with the reference: at once if the panel is visible, else when it becomes visible."""
        self._node = node
        self._is_current = False
        self.set_reference.setEnabled(node is not None)
        if self.isVisible():
            self._compare()

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        self._compare()

    def _set_reference(self) -> None:
        self._reference = self._node
        self._is_current = False
        self._compare()

    def _compare(self) -> None:
        if self._is_current:
            return
        self._is_current = True
        reference, node = self._reference, self._node
        if reference is None:
            self.title.setText(HINT)
            self._values = []
        elif node is None or node is reference:
            self.title.setText(
                plain_lines(f"Reference: {_name(reference)}. Select another node to compare it.")
            )
            self._values = []
        else:
            self._values = compare_nodes(reference, node)
            count = sum(value.is_different for value in self._values)
            differences = "1 difference" if count == 1 else f"{count:,} differences"
            self.title.setText(plain_lines(f"{_name(reference)} and {_name(node)}: {differences}"))
        self._show_values()

    def _show_values(self) -> None:
        self.table.clear()
        bold = QFont(self.table.font())
        bold.setBold(True)
        width = self.table.viewport().width() if self.table.viewport() is not None else 0  # type: ignore[union-attr]
        for column in range(3):
            self.table.setColumnWidth(column, max(80, width // 3))
        for value in self._values:
            if self.only_differences.isChecked() and not value.is_different:
                continue
            left, right = ("–" if text is None else text for text in (value.left, value.right))
            item = QTreeWidgetItem([plain(value.name), plain(left, MAX_VALUE), plain(right, MAX_VALUE)])
            self.table.addTopLevelItem(item)
            item.setToolTip(0, tooltip(value.name))
            item.setToolTip(1, tooltip(left))
            item.setToolTip(2, tooltip(right))
            if value.is_different and not self.only_differences.isChecked():
                for column in range(3):
                    item.setFont(column, bold)


def _name(node: Node) -> str:
    """Return a short name that differs for nodes of different locations."""
    location = node.store.url.rstrip("/").rpartition("/")[2]
    return f"{location}{node.name}" if node.path else location
