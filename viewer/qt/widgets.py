"""Ordinary widgets with the settings that several panels want."""

from __future__ import annotations

from PyQt6.QtGui import QGuiApplication
from PyQt6.QtWidgets import QLineEdit, QToolButton

from viewer.qt.plain_text import button_text, plain, tooltip

__all__ = ["copy_to_clipboard", "search_box", "tool_button"]


def copy_to_clipboard(text: str) -> None:
    """Put text on the clipboard, unchanged."""
    clipboard = QGuiApplication.clipboard()
    if clipboard is not None:
        clipboard.setText(text)


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
