"""Widgets and widget settings that several panels share."""

from __future__ import annotations

from itertools import pairwise

from PyQt6.QtCore import QEvent, QObject, Qt, pyqtSignal
from PyQt6.QtGui import QGuiApplication, QKeyEvent, QPalette
from PyQt6.QtWidgets import (
    QAbstractSpinBox,
    QLineEdit,
    QProgressDialog,
    QStyleOptionToolButton,
    QTableView,
    QToolButton,
    QWidget,
)

from zarrfs_viewer.qt.support.plain_text import button_text, plain, tooltip

__all__ = [
    "ConfirmingTableView",
    "close_progress_dialog",
    "copy_to_clipboard",
    "ignore_wheel_unless_focused",
    "return_focus_on_enter",
    "search_box",
    "set_tab_order",
    "tool_button",
]


def copy_to_clipboard(text: str) -> None:
    """Copy text to the clipboard, unchanged."""
    clipboard = QGuiApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(text)


class ConfirmingTableView(QTableView):
    """A table whose Enter key activates the current item.

    Signals:
        confirmed: the user pressed Enter.
    """

    confirmed = pyqtSignal()

    def keyPressEvent(self, event: QKeyEvent | None) -> None:
        if event is not None and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.confirmed.emit()
            return
        super().keyPressEvent(event)


def close_progress_dialog(dialog: QProgressDialog | None) -> None:
    """Close and delete a progress dialog without the signal that the user cancelled it."""
    if dialog is not None:
        dialog.canceled.disconnect()
        dialog.close()
        dialog.deleteLater()


class _WheelFilter(QObject):
    """Passes wheel events to the parent widget unless the watched widget has the focus."""

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is None or event.type() != QEvent.Type.Wheel or not isinstance(watched, QWidget):
            return False
        if watched.hasFocus():
            return False
        event.ignore()
        return True


def ignore_wheel_unless_focused(*widgets: QWidget) -> None:
    """Let the wheel scroll the panel when the pointer is over one of these widgets, unless the widget has the focus."""
    for widget in widgets:
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        widget.installEventFilter(_WheelFilter(widget))


def return_focus_on_enter(*boxes: QAbstractSpinBox) -> None:
    """Move the focus to the canvas when the user confirms a number with Enter."""
    for box in boxes:
        edit = box.lineEdit()
        if edit is not None:
            edit.returnPressed.connect(lambda box=box: _focus_canvas(box))


def _focus_canvas(widget: QWidget) -> None:
    window = widget.window()
    focus = getattr(window, "focus_canvas", None)
    if callable(focus):
        focus()


def search_box(title: str) -> QLineEdit:
    """Return a search field. ``title`` is its placeholder text and its accessible name."""
    box = QLineEdit()
    box.setPlaceholderText(plain(title))
    box.setAccessibleName(plain(title))
    box.setClearButtonEnabled(True)
    return box


class ToolButton(QToolButton):
    """A tool button that has the colour of selected items while it is checked.

    Fusion draws a checked button a little darker only.
    """

    def initStyleOption(self, option: QStyleOptionToolButton | None) -> None:
        super().initStyleOption(option)
        if option is not None and self.isChecked():
            palette = option.palette
            palette.setColor(QPalette.ColorRole.Button, palette.highlight().color())
            palette.setColor(QPalette.ColorRole.ButtonText, palette.highlightedText().color())
            option.palette = palette


def tool_button(text: str, tip: str, checkable: bool = False) -> QToolButton:
    """Return a tool button. ``tip`` is its tooltip and its accessible name."""
    button = ToolButton()
    button.setText(button_text(text))
    button.setToolTip(tooltip(tip))
    button.setAccessibleName(plain(tip))
    button.setCheckable(checkable)
    return button


def set_tab_order(*widgets: QWidget) -> None:
    """Let the Tab key give the focus to these widgets in this order."""
    for widget, following in pairwise(widgets):
        QWidget.setTabOrder(widget, following)
