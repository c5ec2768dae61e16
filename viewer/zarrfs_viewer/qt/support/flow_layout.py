"""A layout that places widgets in rows, as words in a text."""

from __future__ import annotations

from PyQt6.QtCore import QPoint, QRect, QSize, Qt
from PyQt6.QtWidgets import QLayout, QLayoutItem, QWidget

__all__ = ["FlowLayout"]


class FlowLayout(QLayout):
    """Visible widgets from left to right, in as many rows as the width needs.

    Its minimum width is that of its widest widget, so that it does not widen a narrow window.
    """

    def __init__(self, parent: QWidget, spacing: int) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setSpacing(spacing)
        self.setContentsMargins(0, 0, 0, 0)

    def addItem(self, item: QLayoutItem | None) -> None:
        if item is not None:
            self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), is_test=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._shown():
            size = size.expandedTo(item.minimumSize())
        return size

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._place(rect, is_test=False)

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _place(self, rect: QRect, is_test: bool) -> int:
        """Place the widgets, unless ``is_test``. Returns the height of all rows."""
        rows: list[list[QLayoutItem]] = []
        right = 0
        for item in self._shown():
            width = item.sizeHint().width()
            if not rows or right + width > rect.width():
                rows.append([])
                right = 0
            rows[-1].append(item)
            right += width + self.spacing()
        y = rect.y()
        for number, row in enumerate(rows):
            y += self.spacing() if number else 0
            height = max(item.sizeHint().height() for item in row)
            x = rect.x()
            for item in row:
                size = QSize(min(item.sizeHint().width(), rect.width()), height)
                if not is_test:
                    item.setGeometry(QRect(QPoint(x, y), size))
                x += size.width() + self.spacing()
            y += height
        return y - rect.y()
