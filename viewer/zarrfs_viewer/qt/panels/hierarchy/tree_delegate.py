"""Painting of the rows of the hierarchy: the name, and a gray summary of the node."""

from __future__ import annotations

from PyQt6.QtCore import QModelIndex, QRect, QSize, Qt
from PyQt6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPalette
from PyQt6.QtWidgets import QApplication, QStyle, QStyledItemDelegate, QStyleOptionViewItem

from zarrfs_viewer.qt.panels.hierarchy.tree_model import SUMMARY
from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["HierarchyDelegate"]

GAP = 8
"""Pixels between the name and the summary."""
PADDING = 4
"""Pixels that are added to the height of a row."""
MIN_SUMMARY_WIDTH = 30


class HierarchyDelegate(QStyledItemDelegate):
    """Paints the name, and behind it the summary in the colour of placeholder text."""

    def paint(self, painter: QPainter | None, option: QStyleOptionViewItem, index: QModelIndex) -> None:
        if painter is None:
            return
        self.initStyleOption(option, index)
        name, option.text = option.text, ""
        style = option.widget.style() if option.widget is not None else QApplication.style()
        if style is None:
            return
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        area = option.rect.adjusted(3, 0, -3, 0)
        is_selected = bool(option.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if is_selected else QPalette.ColorRole.Text
        color = option.palette.color(role)
        metrics = option.fontMetrics
        shown = metrics.elidedText(name, Qt.TextElideMode.ElideMiddle, area.width())
        width = metrics.horizontalAdvance(shown)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.save()
        painter.setFont(option.font)
        painter.setPen(color)
        painter.drawText(area, flags, plain(shown))
        rest = QRect(area.left() + width + GAP, area.top(), area.width() - width - GAP, area.height())
        if rest.width() >= MIN_SUMMARY_WIDTH:
            gray = QColor(color)
            gray.setAlphaF(0.75 if is_selected else 0.55)
            painter.setPen(gray)
            normal = QFont(option.font)
            normal.setBold(False)  # also of the displayed image
            normal.setItalic(False)
            painter.setFont(normal)
            summary = plain(index.data(SUMMARY) or "")
            elided = QFontMetrics(normal).elidedText(summary, Qt.TextElideMode.ElideRight, rest.width())
            painter.drawText(rest, flags, plain(elided))
        else:
            index.data(SUMMARY)  # opens the node, so that its arrow is drawn
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex) -> QSize:
        size = super().sizeHint(option, index)
        return QSize(size.width(), size.height() + PADDING)
