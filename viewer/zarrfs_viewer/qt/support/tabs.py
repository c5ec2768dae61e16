"""Tabs that fit narrow docks."""

from __future__ import annotations

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QProxyStyle, QStyle, QStyleOption, QTabWidget, QWidget

__all__ = ["NarrowTabWidget"]

MARGINS = 6
"""Pixels at both sides of the text of a tab, together. The default of the style is 24."""


class _NarrowTabs(QProxyStyle):
    """The style of the application, with less space in tabs."""

    def pixelMetric(
        self, metric: QStyle.PixelMetric, option: QStyleOption | None = None, widget: QWidget | None = None
    ) -> int:
        if metric == QStyle.PixelMetric.PM_TabBarTabHSpace:
            return MARGINS
        return super().pixelMetric(metric, option, widget)


class NarrowTabWidget(QTabWidget):
    """Tabs that become as narrow as their texts. In still narrower panels the texts are elided."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._tab_style = _NarrowTabs()  # PyQt deletes a style that no Python object refers to
        bar = self.tabBar()
        if bar is not None:
            bar.setUsesScrollButtons(False)
            bar.setElideMode(Qt.TextElideMode.ElideRight)
            bar.setStyle(self._tab_style)
