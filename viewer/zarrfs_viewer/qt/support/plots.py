"""Plots. Importing pyqtgraph takes a third of a second: a worker thread imports it before the first plot is created."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from PyQt6.QtCore import QEvent, Qt
from PyQt6.QtWidgets import QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.plain_text import plain
from zarrfs_viewer.qt.support.steps import Steps

__all__ = ["LazyPlot", "with_pyqtgraph"]

Result = TypeVar("Result")


def with_pyqtgraph(function: Callable[[], Result]) -> Callable[[], Result]:
    """Return a function for a worker thread that imports pyqtgraph and then calls ``function``."""

    def call() -> Result:
        import_module("pyqtgraph")
        return function()

    return call


class LazyPlot(QWidget):
    """A widget that contains a plot after the first call of ``plot``. Its background follows the theme.

    Call ``plot`` after a function of ``with_pyqtgraph`` has run. Otherwise it blocks while pyqtgraph is imported.
    """

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(plain(name))
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._plot: Any = None
        self._steps = Steps(self)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    @property
    def is_created(self) -> bool:
        """Whether the plot has been created."""
        return self._plot is not None

    @property
    def is_waiting(self) -> bool:
        """Whether a function waits for the plot."""
        return self._steps.is_active

    def call_when_created(self, function: Callable[[], object]) -> None:
        """Call a function that draws in the plot: at once if it exists, otherwise in a later step of the event loop.

        The first plot of a process takes 30 ms: most of it are an axis and a view, because PyQt creates the
        enumerations of their classes when the first object is created. Each is a step. Another call replaces a function
        that waits.
        """
        if self._plot is not None:
            function()
            return
        library = import_module("pyqtgraph")
        self._steps.start((lambda: library.AxisItem("left"), library.ViewBox, self.plot, function))

    def cancel(self) -> None:
        """Do not call the function that waits for the plot."""
        self._steps.cancel()

    def plot(self) -> Any:
        """Return the ``pyqtgraph.PlotWidget``. Creates it at the first call."""
        if self._plot is None:
            self._plot = import_module("pyqtgraph").PlotWidget()
            self._plot.setAccessibleName(plain(self.accessibleName()))
            self._layout.addWidget(self._plot)
            self._update_background()
        return self._plot

    def changeEvent(self, event: QEvent | None) -> None:
        super().changeEvent(event)
        if event is not None and event.type() == QEvent.Type.PaletteChange:
            self._update_background()

    def _update_background(self) -> None:
        if self._plot is not None:
            self._plot.setBackground(self.palette().base().color())
