"""The headers of a large table."""

from __future__ import annotations

from PyQt6.QtCore import QRect, Qt
from PyQt6.QtGui import QPainter
from PyQt6.QtWidgets import QHeaderView, QStyle, QStyleOptionHeader, QWidget

from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["PageHeader"]


class PageHeader(QHeaderView):
    """A header whose sections do not display whether their rows or columns are selected.

    To find that out, ``QHeaderView`` asks the model for each cell of each visible row: 40 ms for 500 columns.
    """

    def __init__(self, orientation: Qt.Orientation, parent: QWidget) -> None:
        super().__init__(orientation, parent)
        self.setSectionsClickable(True)
        self.setDefaultAlignment(Qt.AlignmentFlag.AlignCenter)

    def paintSection(self, painter: QPainter | None, rect: QRect, section: int) -> None:
        model, style = self.model(), self.style()
        if painter is None or model is None or style is None or not rect.isValid():
            return
        option = QStyleOptionHeader()
        self.initStyleOption(option)
        option.rect = rect
        option.section = section
        option.textAlignment = self.defaultAlignment()
        option.text = plain(model.headerData(section, self.orientation()))
        style.drawControl(QStyle.ControlElement.CE_Header, option, painter, self)
