"""Ordinary widgets with the settings that several panels want."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, Qt
from PyQt6.QtGui import QGuiApplication
from PyQt6.QtWidgets import QAbstractSpinBox, QLineEdit, QToolButton, QWidget

from zarrfs_viewer.qt.support.plain_text import button_text, plain, tooltip

__all__ = ["copy_to_clipboard", "returns_focus", "scrolls_past", "search_box", "tool_button"]


def copy_to_clipboard(text: str) -> None:
    """Put text on the clipboard, unchanged."""
    clipboard = QGuiApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(text)


class _WheelFilter(QObject):
    """Leaves the wheel to what scrolls, unless the user has clicked the widget."""

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is None or event.type() != QEvent.Type.Wheel or not isinstance(watched, QWidget):
            return False
        if watched.hasFocus():
            return False
        event.ignore()
        return True


def scrolls_past(*widgets: QWidget) -> None:
    """Let the wheel scroll the panel when it is over one of these widgets, unless the user has clicked it."""
    for widget in widgets:
        widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        widget.installEventFilter(_WheelFilter(widget))


def returns_focus(*boxes: QAbstractSpinBox) -> None:
    """Give the focus back to the picture when the user confirms a number with Enter."""
    for box in boxes:
        edit = box.lineEdit()
        if edit is not None:
            edit.returnPressed.connect(lambda box=box: _focus_picture(box))


def _focus_picture(widget: QWidget) -> None:
    window = widget.window()
    focus = getattr(window, "focus_picture", None)
    if callable(focus):
        focus()


def search_box(what: str) -> QLineEdit:
    """Return a line to search with; ``what`` is its hint and its accessible name."""
    box = QLineEdit()
    box.setPlaceholderText(plain(what))
    box.setAccessibleName(plain(what))
    box.setClearButtonEnabled(True)
    return box


def tool_button(text: str, tip: str, checkable: bool = False) -> QToolButton:
    """Return a small button; ``tip`` is its accessible name too."""
    button = QToolButton()
    button.setText(button_text(text))
    button.setToolTip(tooltip(tip))
    button.setAccessibleName(plain(tip))
    button.setCheckable(checkable)
    return button
