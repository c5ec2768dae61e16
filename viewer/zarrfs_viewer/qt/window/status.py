"""The status bar: the values below the pointer, work in progress, warnings, and the memory of cached tiles."""

from __future__ import annotations

from PyQt6.QtCore import QObject, pyqtSignal
from PyQt6.QtWidgets import QProgressBar, QPushButton, QStatusBar

from zarrfs_viewer.analysis.readout import Readout, format_bytes
from zarrfs_viewer.qt.support.plain_text import PlainLabel, allow_narrow, button_text, plain, tooltip
from zarrfs_viewer.streaming.streamer import MemoryUse

__all__ = ["StatusFields"]

BUSY_WIDTH = 80


class StatusFields(QObject):
    """The fields of a status bar.

    Attributes:
        position: the coordinates and values below the pointer.
        memory: the memory of cached tiles, and its limit.
        busy: is visible while worker threads have tasks.
        warnings: the number of warnings; hidden while there are none.

    Signals:
        warnings_requested: the user clicked the number of warnings.
    """

    warnings_requested = pyqtSignal()

    def __init__(self, bar: QStatusBar) -> None:
        super().__init__(bar)
        self.position = PlainLabel()
        allow_narrow(self.position)
        self.memory = PlainLabel()
        self.memory.setToolTip("Memory used by cached tiles, and its limit")
        self.busy = QProgressBar()
        self.busy.setMaximum(0)
        self.busy.setTextVisible(False)
        self.busy.setFixedWidth(BUSY_WIDTH)
        self.busy.hide()
        self.warnings = QPushButton()
        self.warnings.setFlat(True)
        self.warnings.hide()
        self.warnings.clicked.connect(lambda _: self.warnings_requested.emit())
        bar.addWidget(self.position, 1)
        for widget in (self.busy, self.warnings, self.memory):
            bar.addPermanentWidget(widget)

    def show_readout(self, values: Readout | None) -> None:
        """Show the values below the pointer; None removes them."""
        self.position.setText("" if values is None else plain(values.text()))

    def show_memory(self, usage: MemoryUse) -> None:
        """Show the memory of cached tiles."""
        self.memory.setText(plain(f"{format_bytes(usage.nbytes)} of {format_bytes(usage.budget)}"))

    def show_task_count(self, count: int) -> None:
        """Show whether tasks are running."""
        self.busy.setVisible(count > 0)

    def show_warning_count(self, count: int) -> None:
        """Show the number of warnings in the messages."""
        self.warnings.setText(button_text(f"⚠ {count}"))
        text = f"{count} warning" if count == 1 else f"{count} warnings"
        self.warnings.setToolTip(tooltip(f"{text}: click to show the messages"))
        self.warnings.setAccessibleName(plain(text))
        self.warnings.setVisible(count > 0)
