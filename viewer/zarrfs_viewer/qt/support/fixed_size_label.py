"""A label of constant size, for text that changes with every slice or pointer movement."""

from __future__ import annotations

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtGui import QPainter, QPaintEvent
from PyQt6.QtWidgets import QSizePolicy, QWidget

from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["FixedSizeLabel"]

MARGIN = 2


class FixedSizeLabel(QWidget):
    """One line of text, elided if it does not fit.

    Its size does not depend on its text. ``QLabel.setText`` arranges all layouts up to the window again, which takes
    longer than drawing the text.
    """

    def __init__(self, width: int = 0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = ""
        self._width = width
        self.setSizePolicy(
            QSizePolicy.Policy.Fixed if width else QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed
        )

    def text(self) -> str:
        """Return the text."""
        return self._text

    def setText(self, text: str) -> None:
        """Show another text. It is plain text."""
        text = plain(text)
        if text != self._text:
            self._text = text
            self.setAccessibleName(text)
            self.update()

    def widen_for(self, text: str) -> None:
        """Make the label wide enough for a text. It does not become narrower."""
        width = self.fontMetrics().horizontalAdvance(text) + 2 * MARGIN + 1
        if width > self._width:
            self._width = width
            self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
            self.updateGeometry()

    def sizeHint(self) -> QSize:
        return QSize(self._width, self.fontMetrics().height() + 2 * MARGIN)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent | None) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().windowText().color())
        area = self.rect().adjusted(MARGIN, 0, -MARGIN, 0)
        text = self.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideRight, area.width())
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(area, flags, plain(text))
        painter.end()
