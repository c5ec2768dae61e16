"""The dialog that edits the attributes of a node: channels and axes in tables, and all attributes as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from PyQt6.QtCore import Qt, pyqtSignal
from PyQt6.QtGui import QFontDatabase, QKeySequence
from PyQt6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from zarrfs.errors import ZarrError
from zarrfs_viewer.qt.panels.metadata.image_metadata_form import ImageMetadataForm
from zarrfs_viewer.qt.support.plain_text import PlainLabel, document_text, plain, plain_lines
from zarrfs_viewer.state.attribute_edits import AttributeEdits

if TYPE_CHECKING:
    from zarrfs.ngff import Report

__all__ = ["MetadataEditor"]

MAX_MESSAGES = 4
"""The maximum number of messages of the check that are displayed. The metadata panel lists all of a stored document."""

Attributes = Mapping[str, Any]


class MetadataEditor(QDialog):
    """Edits a copy of the attributes. ``MetadataEditing`` checks and saves it.

    Signals:
        changed: the edited attributes are different and have to be checked; ``show_report`` follows.
        save_requested: the user wants to save the edited attributes.
    """

    changed = pyqtSignal()
    save_requested = pyqtSignal()

    def __init__(self, name: str, attributes: Attributes, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(plain(f"Edit metadata of {name}[*]"))
        self.edits = AttributeEdits(attributes)
        self.form = ImageMetadataForm()
        self.form.edited.connect(self._apply, Qt.ConnectionType.QueuedConnection)  # type: ignore[call-arg]
        self.text = QPlainTextEdit()
        self.text.setAccessibleName("Attributes as JSON")
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.tabs = QTabWidget()
        self.tabs.addTab(self.form, "Image")
        self.tabs.addTab(self.text, "All attributes")
        self.tabs.currentChanged.connect(lambda _: self.commit_text())
        self.result_label = PlainLabel(wrap=True)
        self.result_label.setAccessibleName("Result of the check")
        self.undo = self._button("Undo", self._undo)
        self.redo = self._button("Redo", self._redo)
        self.save = self._button("Save", self._save)
        self.save.setShortcut(QKeySequence(QKeySequence.StandardKey.Save))
        self.save.setDefault(True)
        close = self._button("Close", self.close)
        row = QHBoxLayout()
        row.addWidget(self.undo)
        row.addWidget(self.redo)
        row.addStretch(1)
        row.addWidget(self.save)
        row.addWidget(close)
        layout = QVBoxLayout(self)
        layout.addWidget(self.tabs, 1)
        layout.addWidget(self.result_label)
        layout.addLayout(row)
        self._written = ""
        self._report: Report | None = None
        self._saves_when_checked = False
        self._show()
        if not self.form.has_content:
            self.tabs.setCurrentWidget(self.text)
            self.tabs.setTabEnabled(0, False)

    def _button(self, title: str, run: Callable[[], object]) -> QPushButton:
        button = QPushButton(plain(title))
        button.setAutoDefault(False)
        button.clicked.connect(lambda _=False: run())
        return button

    # -- editing -----------------------------------------------------------------------------------------------

    def commit_text(self) -> bool:
        """Read the attributes from the JSON text. Returns False, and shows the reason, if it is not valid."""
        text = self.text.toPlainText()
        if self.text.isReadOnly() or text == self._written:
            return True
        try:
            attributes = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._refuse(f"The text is not valid JSON: {error}")
            return False
        if not isinstance(attributes, dict):
            self._refuse("The attributes must be a JSON object: { ... }")
            return False
        self._change(attributes)
        return True

    def _refuse(self, reason: str) -> None:
        self.result_label.setText(plain_lines(reason))
        self.tabs.blockSignals(True)
        self.tabs.setCurrentWidget(self.text)
        self.tabs.blockSignals(False)

    def _apply(self, edit: Callable[[Attributes], Attributes]) -> None:
        """Apply an edit of the form."""
        try:
            self._change(edit(self.edits.current))
        except ZarrError as error:
            self._show()
            self.result_label.setText(plain_lines(error))

    def _change(self, attributes: Attributes) -> None:
        self.edits.change(attributes)
        self._show()

    def _undo(self) -> None:
        if self.commit_text():
            self.edits.undo()
            self._show()

    def _redo(self) -> None:
        if self.commit_text():
            self.edits.redo()
            self._show()

    def _save(self) -> None:
        """Save checked, valid attributes. Invalid attributes are saved if the user repeats the command."""
        if not self.commit_text() or not self.edits.is_changed:
            return
        if self._report is None:
            self._saves_when_checked = True  # the check is running
        else:
            self.save.setEnabled(False)
            self.save_requested.emit()

    def set_saved(self, attributes: Attributes) -> None:
        """Show that these attributes have been saved."""
        self.edits.set_stored(attributes)
        self._show()
        self.result_label.setText("Saved. Undo and Save restore the former attributes.")

    # -- display -----------------------------------------------------------------------------------------------

    def _show(self) -> None:
        edits = self.edits
        self.form.show_attributes(edits.current)
        self._written = editable_json(edits.current)
        displayed = document_text(self._written)
        self.text.setReadOnly(displayed != self._written)  # a shortened text must not be saved
        if self.text.toPlainText() != displayed:
            self.text.setPlainText(displayed)
        self.undo.setEnabled(edits.can_undo)
        self.redo.setEnabled(edits.can_redo)
        self.setWindowModified(edits.is_changed)
        self._report, self._saves_when_checked = None, False
        self.save.setText("Save")
        self.save.setEnabled(True)
        self.result_label.setText("" if edits.is_changed else "No changes.")
        if edits.is_changed:
            self.result_label.setText("Checking...")
            self.changed.emit()

    def show_report(self, report: Report) -> None:
        """Show the result of the check of the edited attributes, and permit saving."""
        self._report = report
        is_acceptable = report.valid or report.version is None
        self.save.setText("Save" if is_acceptable else "Save anyway")
        self.result_label.setText(plain_lines(_report_text(report)))
        if self._saves_when_checked and is_acceptable:
            self._save()

    def show_problem(self, text: str) -> None:
        """Show why the attributes could not be checked or saved. The user can save."""
        from zarrfs.ngff import Report

        self._report = self._report or Report(False, None, ())
        self.save.setEnabled(True)
        self.result_label.setText(plain_lines(text))

    def reject(self) -> None:
        """Close the dialog, by Escape or the frame too. Asks before changes are lost."""
        is_pending = not self.text.isReadOnly() and self.text.toPlainText() != self._written
        if self.edits.is_changed or is_pending:
            answer = QMessageBox.question(
                self,
                "Edit metadata",
                "The changes are not saved. Discard them?",
                QMessageBox.StandardButton.Discard | QMessageBox.StandardButton.Cancel,
            )
            if answer != QMessageBox.StandardButton.Discard:
                return
        super().reject()


def _report_text(report: Report) -> str:
    """Return the result of a check with its first messages."""
    if report.version is None:
        return "The attributes contain no OME-NGFF metadata to check."
    messages = [f"{message.pointer or '/'}: {message.message}" for message in report.messages]
    shown = messages[:MAX_MESSAGES]
    if len(messages) > MAX_MESSAGES:
        shown.append(f"and {len(messages) - MAX_MESSAGES:,} more")
    result = "valid" if report.valid else "not valid"
    return "\n".join([f"OME-NGFF {report.version}: {result}", *shown])


def editable_json(attributes: Attributes) -> str:
    """Return attributes as JSON text. Characters that a text editor does not display are escaped."""
    text = json.dumps(dict(attributes), indent=2, ensure_ascii=False)
    return text if document_text(text) == text else json.dumps(dict(attributes), indent=2)
