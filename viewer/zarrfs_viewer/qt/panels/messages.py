"""The message log: messages of the window and log records of the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from PyQt6.QtCore import QObject, Qt, pyqtSignal
from PyQt6.QtGui import QAction, QColor
from PyQt6.QtWidgets import QHBoxLayout, QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from zarrfs_viewer.qt.panels.panel import Panel, PanelContext, check_while_visible
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, plain
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard

__all__ = ["LogHandler", "LogPanel", "Messages"]

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


class Messages(Panel):
    """The dock with the messages of the window and the warnings of the engine."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self.log = LogPanel()
        self.dock = context.docks.add(
            "Messages", self.log, Qt.DockWidgetArea.BottomDockWidgetArea, "with_data"
        )
        self.handler = LogHandler("zarrfs")
        self.handler.received.connect(self.log.add)
        context.session.message_changed.connect(
            lambda text, is_warning, _action: self.log.add(text, is_warning)
        )
        context.session.outcome_reported.connect(self.log.add)

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "messages",
                "&View",
                "M&essages",
                "Ctrl+J",
                self.dock.setVisible,
                False,
                place=340,
                synonyms="log warnings errors",
            ),
        )

    def show_actions(self, actions: Mapping[str, QAction]) -> None:
        check_while_visible(self.dock, actions["messages"])

    def close(self) -> None:
        self.handler.close()
