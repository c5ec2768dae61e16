"""Everything that was said, to read again: messages of the window and log records of the engine."""

from __future__ import annotations

import logging
from datetime import datetime

from PyQt6.QtCore import QObject, Qt, pyqtSignal
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, plain
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard

__all__ = ["LogPanel", "LogRelay"]

MAX_MESSAGES = 1000


class LogRelay(logging.Handler):
    """Carries warnings from any thread to the GUI thread, until ``close``."""

    class _Carrier(QObject):
        came = pyqtSignal(str, bool)

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._carrier = self._Carrier()
        self.came = self._carrier.came
        self._logger = logging.getLogger(name)
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._carrier.came.emit(record.getMessage(), True)

    def close(self) -> None:
        self._logger.removeHandler(self)
        super().close()


class LogPanel(QWidget):
    """The messages, the newest last.

    Signals:
        counted: so many warnings are in the list.
    """

    counted = pyqtSignal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.warnings = 0
        self.messages = QListWidget()
        self.messages.setAccessibleName("Messages")
        self.messages.setWordWrap(True)
        self.messages.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        copy, clear = QPushButton("Copy"), QPushButton("Clear")
        copy.clicked.connect(self.copy)
        clear.clicked.connect(self.clear)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(copy)
        buttons.addWidget(clear)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.messages)
        layout.addLayout(buttons)

    def add(self, text: str, warning: bool) -> None:
        """Add a message; the oldest go beyond a thousand."""
        if not text:
            return
        item = QListWidgetItem(plain(f"{datetime.now():%H:%M:%S}  {text}", MAX_TEXT))
        if warning:
            item.setForeground(QColor(220, 130, 60))
            item.setData(Qt.ItemDataRole.UserRole, True)
        self.messages.addItem(item)
        if self.messages.count() > MAX_MESSAGES:
            gone = self.messages.takeItem(0)
            warning = warning and not (gone is not None and gone.data(Qt.ItemDataRole.UserRole))
        self.messages.scrollToBottom()
        self.warnings += warning
        self.counted.emit(self.warnings)

    def text(self) -> str:
        """Return the selected messages, or all, one per line."""
        items = self.messages.selectedItems() or [
            item for row in range(self.messages.count()) if (item := self.messages.item(row)) is not None
        ]
        return "\n".join(item.text() for item in items)

    def copy(self) -> None:
        """Put the messages on the clipboard."""
        copy_to_clipboard(self.text())

    def clear(self) -> None:
        """Forget all messages."""
        self.messages.clear()
        self.warnings = 0
        self.counted.emit(0)
