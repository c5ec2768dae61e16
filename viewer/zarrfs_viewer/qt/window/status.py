"""The status bar: the values below the pointer, work in progress, warnings, and the memory of the process."""

from __future__ import annotations

from PyQt6.QtCore import QObject, QTimer, pyqtSignal
from PyQt6.QtWidgets import QProgressBar, QPushButton, QStatusBar

from zarrfs.credentials import hide_credentials
from zarrfs.engine.cache import default_cache
from zarrfs_viewer.analysis.readout import LayersReadout, Readout, format_bytes
from zarrfs_viewer.process_memory import resident_nbytes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.fixed_size_label import FixedSizeLabel
from zarrfs_viewer.qt.support.plain_text import button_text, plain, tooltip
from zarrfs_viewer.streaming.streamer import MemoryUse

__all__ = ["StatusFields"]

BUSY_WIDTH = 80
BUSY_DELAY_MILLISECONDS = 300
"""Work is indicated after this time. Showing and hiding the indicator arranges the whole window again."""
MEMORY_INTERVAL_MILLISECONDS = 250
LONGEST_MEMORY = "999.9 MiB, cache 999.9 MiB of 999.9 MiB"


class StatusFields(QObject):
    """The fields of a status bar.

    Attributes:
        position: the coordinates and values below the pointer; without them, the locations that are being opened, if
            that takes more than a moment.
        memory: the memory of the process, and the caches in it with their limit.
        busy: is visible while worker threads have tasks.
        warnings: the number of warnings; hidden while there are none.

    Signals:
        warnings_requested: the user clicked the number of warnings.
    """

    warnings_requested = pyqtSignal()

    def __init__(self, bar: QStatusBar) -> None:
        super().__init__(bar)
        self.position = FixedSizeLabel()
        self.memory = FixedSizeLabel()
        self.memory.widen_for(LONGEST_MEMORY)
        self.memory.setToolTip(
            "Memory of this program, and the cached tiles and decoded chunks in it with their limit"
        )
        self._memory_timer = QTimer(self)
        self._memory_timer.setSingleShot(True)
        self._memory_timer.setInterval(MEMORY_INTERVAL_MILLISECONDS)
        self._memory_timer.timeout.connect(self._show_memory)
        self._usage: MemoryUse | None = None
        self._busy_timer = QTimer(self)
        self._busy_timer.setSingleShot(True)
        self._busy_timer.setInterval(BUSY_DELAY_MILLISECONDS)
        self._busy_timer.timeout.connect(self._show_busy)
        self._readout = self._opening = ""
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

    def follow(self, session: Session) -> None:
        """Show the work of a session from now on."""
        session.worker.busy.connect(self.show_task_count)
        session.opening_changed.connect(self.show_opening)

    def show_readout(self, values: Readout | LayersReadout | None) -> None:
        """Show the values below the pointer; None removes them."""
        self._readout = "" if values is None else values.text()
        self._show_position()

    def show_opening(self, locations: list[str]) -> None:
        """Show the locations that are being opened."""
        self._opening = hide_credentials(f"Opening {', '.join(locations)}") if locations else ""
        self._show_position()

    def _show_position(self) -> None:
        self.position.setText(plain(self._readout or ("" if self.busy.isHidden() else self._opening)))

    def _show_busy(self) -> None:
        self.busy.show()
        self._show_position()

    def show_memory(self, usage: MemoryUse) -> None:
        """Show the memory of the process and of the cached tiles. It is shown a few times per second at most."""
        self._usage = usage
        if not self._memory_timer.isActive():
            self._memory_timer.start()

    def _show_memory(self) -> None:
        if self._usage is None:
            return
        chunks, resident = default_cache(), resident_nbytes()
        cached = format_bytes(self._usage.nbytes + chunks.nbytes)
        budget = format_bytes(self._usage.budget + chunks.capacity)
        cache = f"cache {cached} of {budget}"
        text = cache if resident is None else f"{format_bytes(resident)}, {cache}"
        self.memory.setText(plain(text))

    def show_task_count(self, count: int) -> None:
        """Show whether tasks are running, unless they take only a moment."""
        if not count:
            self._busy_timer.stop()
            self.busy.hide()
        elif self.busy.isHidden() and not self._busy_timer.isActive():
            self._busy_timer.start()

    def stop(self) -> None:
        """Stop the timers."""
        self._memory_timer.stop()
        self._busy_timer.stop()

    def show_warning_count(self, count: int) -> None:
        """Show the number of warnings in the messages."""
        self.warnings.setText(button_text(f"⚠ {count}"))
        text = f"{count} warning" if count == 1 else f"{count} warnings"
        self.warnings.setToolTip(tooltip(f"{text}: click to show the messages"))
        self.warnings.setAccessibleName(plain(text))
        self.warnings.setVisible(count > 0)
