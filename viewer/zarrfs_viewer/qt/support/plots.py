"""Plots by pyqtgraph, which takes a third of a second to import: a worker does it, when the first one is wanted."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["PlotHolder", "with_plots"]

Result = TypeVar("Result")


def with_plots(function: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function for a worker that imports what plots need, and then calls the given one."""

    def call() -> Result:
        import_module("pyqtgraph")
        return function()

    return call


class PlotHolder(QWidget):
    """The place of a plot, empty until ``plot`` is called. It takes the colours of the program.

    Call ``plot`` when ``with_plots`` has run, or it blocks.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(plain(name))
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._plot: Any = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @property
    def made(self) -> bool:
        """Whether there is a plot yet."""
        return self._plot is not None

    def plot(self) -> Any:
        """Return the ``pyqtgraph.PlotWidget``, made if there is none."""
        if self._plot is None:
            self._plot = import_module("pyqtgraph").PlotWidget()
            self._plot.setAccessibleName(plain(self.accessibleName()))
            self._layout.addWidget(self._plot)
            self._colour()
        return self._plot

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.PaletteChange:
            self._colour()

    def _colour(self) -> None:
        if self._plot is not None:
            self._plot.setBackground(self.palette().base().color())
