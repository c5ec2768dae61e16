"""The message log: messages of the window and log records of the engine."""

from __future__ import annotations

import logging
from datetime import datetime

from PyQt6.QtCore import QObject, Qt, pyqtSignal
from PyQt6.QtGui import QColor
from PyQt6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, plain
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard

__all__ = ["LogHandler", "LogPanel"]

MAX_MESSAGES = 1000


class LogHandler(logging.Handler):
    """A log handler that emits the warnings of any thread as a signal on the GUI thread, until ``close``.

    Signals:
        received: (text, True) a log record.
    """

    class _Signals(QObject):
        received = pyqtSignal(str, bool)

    def __init__(self, name: str) -> None:
        super().__init__(logging.WARNING)
        self._signals = self._Signals()
        self.received = self._signals.received
        self._logger = logging.getLogger(name)
        self._logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.received.emit(record.getMessage(), True)

    def close(self) -> None:
        self._logger.removeHandler(self)
        super().close()


class LogPanel(QWidget):
    """A list of messages, the newest last.

    Signals:
        warning_count_changed: (count) the number of warnings in the list.
    """

    warning_count_changed = pyqtSignal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.warning_count = 0
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

    def add(self, text: str, is_warning: bool) -> None:
        """Add a message. An empty text is ignored. The oldest message is deleted if there are too many."""
        if not text:
            return
        item = QListWidgetItem(plain(f"{datetime.now():%H:%M:%S}  {text}", MAX_TEXT))
        if is_warning:
            item.setForeground(QColor(220, 130, 60))
            item.setData(Qt.ItemDataRole.UserRole, True)
        self.messages.addItem(item)
        self.warning_count += is_warning
        if self.messages.count() > MAX_MESSAGES:
            oldest = self.messages.takeItem(0)
            self.warning_count -= oldest is not None and bool(oldest.data(Qt.ItemDataRole.UserRole))
        self.messages.scrollToBottom()
        self.warning_count_changed.emit(self.warning_count)

    def text(self) -> str:
        """Return the selected messages, or all messages without a selection, one per line."""
        items = self.messages.selectedItems() or [
            item for row in range(self.messages.count()) if (item := self.messages.item(row)) is not None
        ]
        return "\n".join(item.text() for item in items)

    def copy(self) -> None:
        """Copy the selected messages, or all, to the clipboard."""
        copy_to_clipboard(self.text())

    def clear(self) -> None:
        """Delete all messages."""
        self.messages.clear()
        self.warning_count = 0
        self.warning_count_changed.emit(0)
