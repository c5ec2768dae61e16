"""The arrangement of one pane, or of four panes with borders that can be dragged."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QSplitter, QVBoxLayout, QWidget

__all__ = ["PaneGrid"]

BORDER = 4
FIRST_SIZES = (600, 300)
"""The proportion of the main pane to the panes beside it."""


class PaneGrid(QWidget):
    """Widgets in two rows of two. Dragging the border between columns moves it in both rows."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.rows = QSplitter(Qt.Orientation.Vertical)
        self.columns = (QSplitter(Qt.Orientation.Horizontal), QSplitter(Qt.Orientation.Horizontal))
        for splitter in (self.rows, *self.columns):
            splitter.setChildrenCollapsible(False)
            splitter.setHandleWidth(BORDER)
        for row, other in (self.columns, self.columns[::-1]):
            self.rows.addWidget(row)
            row.splitterMoved.connect(
                lambda _position, _index, row=row, other=other: other.setSizes(row.sizes())
            )
        self.columns[1].hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.rows)

    def show_widgets(self, widgets: Sequence[QWidget]) -> None:
        """Show one to four widgets: the first row, then the second row. The caller removes former widgets."""
        for number, widget in enumerate(widgets):
            row = self.columns[number // 2]
            if row.indexOf(widget) != number % 2:
                row.insertWidget(number % 2, widget)
        is_first = self.columns[1].isHidden() and len(widgets) > 2
        self.columns[1].setVisible(len(widgets) > 2)
        if is_first:
            for splitter in (self.rows, *self.columns):
                splitter.setSizes(list(FIRST_SIZES))
