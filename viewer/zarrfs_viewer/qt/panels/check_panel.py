"""What the OME-NGFF check finds in the node that is looked at; a message leads to its key."""

from __future__ import annotations

from typing import Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtWidgets import QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

import zarrfs
from zarrfs.ngff import Report, check_node
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_lines, tooltip

__all__ = ["CheckPanel"]

POINTER = Qt.ItemDataRole.UserRole
TIERS = {
    "schema": "Schema: what makes the metadata invalid",
    "strict": "Strict: what is recommended",
    "semantic": "Semantic: what the text of the specification says, and what the store holds",
}


class CheckPanel(QWidget):
    """The verdict and the messages of three tiers. Read by the session's worker when the panel is looked at.

    Signals:
        pointed: (JSON pointer) the user wants to see a key.
    """

    pointed = pyqtSignal(str)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node: Any = None
        self._checked = False
        self.verdict = PlainLabel(wrap=True)
        self.verdict.setAccessibleName("Presence")
        self.messages = QTreeWidget()
        self.messages.setAccessibleName("Messages of the check")
        self.messages.setHeaderHidden(True)
        self.messages.setWordWrap(True)
        self.messages.itemActivated.connect(self._go)
        self.messages.itemClicked.connect(self._go)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.verdict)
        layout.addWidget(self.messages)

    def show_node(self, node: zarrfs.Array | zarrfs.Group | None) -> None:
        """Check another node, at once if the panel is seen, else when it is."""
        self._node = node
        self._checked = False
        self.verdict.setText("")
        self.messages.clear()
        if self.isVisible():
            self.check()

    def showEvent(self, event: Any) -> None:
        super().showEvent(event)
        self.check()

    def check(self) -> None:
        """Check the node, once."""
        node = self._node
        if node is None or self._checked:
            return
        self._checked = True
        self.verdict.setText("checking ...")
        self._session.worker.forget("check")
        self._session.worker.submit(
            lambda: check_node(node),
            self._show,
            lambda error: self.verdict.setText(plain_lines(error)),
            "check",
        )

    def _show(self, report: Report) -> None:
        self.messages.clear()
        if report.version is None:
            self.verdict.setText("There is no OME-NGFF metadata here to check.")
            return
        state = "valid" if report.valid else "NOT valid"
        rest = "" if report.messages else ", without a remark"
        self.verdict.setText(plain(f"OME-NGFF {report.version}: {state}{rest}"))
        for tier, title in TIERS.items():
            found = [message for message in report.messages if message.tier == tier]
            if not found:
                continue
            top = QTreeWidgetItem(self.messages, [plain(f"{title} ({len(found)})")])
            for message in found:
                text = f"{plain(message.pointer) or '/'}\n{plain(message.message)}"
                item = QTreeWidgetItem(top, [plain_lines(text)])
                item.setData(0, POINTER, message.pointer)
                item.setToolTip(0, tooltip(message.message))
            top.setExpanded(True)

    def _go(self, item: QTreeWidgetItem) -> None:
        pointer = item.data(0, POINTER)
        if pointer is not None:
            self.pointed.emit(pointer)
