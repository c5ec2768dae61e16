"""The results of the OME-NGFF check of the selected node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

import zarrfs

if TYPE_CHECKING:
    from zarrfs.ngff import Report
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_lines, tooltip

__all__ = ["CheckPanel"]

POINTER = Qt.ItemDataRole.UserRole
TIERS = {
    "schema": "Schema: violations of the JSON schema",
    "strict": "Strict: violations of recommendations",
    "semantic": "Semantic: violations of the text of the specification, and differences from the stored arrays",
}


class CheckPanel(QWidget):
    """The result of the check and its messages in three tiers. The check runs on a worker when the panel is visible.

    Signals:
        pointer_activated: (JSON pointer) the user clicked a message.
        checked: (report) the check of the node is complete.
    """

    pointer_activated = pyqtSignal(str)
    checked = pyqtSignal(object)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node: Any = None
        self._checked = False
        self.result_label = PlainLabel(wrap=True)
        self.result_label.setAccessibleName("Result of the check")
        self.messages = QTreeWidget()
        self.messages.setAccessibleName("Messages of the check")
        self.messages.setHeaderHidden(True)
        self.messages.setWordWrap(True)
        self.messages.itemActivated.connect(self._activate)
        self.messages.itemClicked.connect(self._activate)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.result_label)
        layout.addWidget(self.messages)

    def show_node(self, node: zarrfs.Array | zarrfs.Group | None) -> None:
        """Check another node: at once if the panel is visible, else when it becomes visible."""
        self._node = node
        self._checked = False
        self.result_label.setText("")
        self.messages.clear()
        if self.isVisible():
            self.check()

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self.check()

    def check(self, low_priority: bool = False) -> None:
        """Check the node, unless it has been checked already."""
        node = self._node
        if node is None or self._checked:
            return
        from zarrfs.ngff import check_node  # takes long to import

        self._checked = True
        self.result_label.setText("Checking...")
        self._session.worker.cancel("check")
        self._session.worker.submit(
            lambda: check_node(node),
            self._show,
            lambda error: self.result_label.setText(plain_lines(error)),
            "check",
            low_priority=low_priority,
        )

    def _show(self, report: Report) -> None:
        self.checked.emit(report)
        self.messages.clear()
        if report.version is None:
            self.result_label.setText("This node has no OME-NGFF metadata.")
            return
        result = "valid" if report.valid else "not valid"
        suffix = "" if report.messages else ", no messages"
        self.result_label.setText(plain(f"OME-NGFF {report.version}: {result}{suffix}"))
        for tier, title in TIERS.items():
            tier_messages = [message for message in report.messages if message.tier == tier]
            if not tier_messages:
                continue
            top = QTreeWidgetItem(self.messages, [plain(f"{title} ({len(tier_messages)})")])
            for message in tier_messages:
                text = f"{plain(message.pointer) or '/'}\n{plain(message.message)}"
                item = QTreeWidgetItem(top, [plain_lines(text)])
                item.setData(0, POINTER, message.pointer)
                item.setToolTip(0, tooltip(message.message))
            top.setExpanded(True)

    def _activate(self, item: QTreeWidgetItem) -> None:
        pointer = item.data(0, POINTER)
        if pointer is not None:
            self.pointer_activated.emit(pointer)
