"""Ordinary widgets with the settings that several panels want."""

from __future__ import annotations

from PyQt6.QtWidgets import QLineEdit, QToolButton

__all__ = ["search_box", "tool_button"]


def search_box(what: str) -> QLineEdit:
    """Return a line to search with; ``what`` is its hint and its accessible name."""
    box = QLineEdit()
    box.setPlaceholderText(what)
    box.setAccessibleName(what)
    box.setClearButtonEnabled(True)
    return box


def tool_button(text: str, tip: str, checkable: bool = False) -> QToolButton:
    """Return a small button; ``tip`` is its accessible name too."""
    button = QToolButton()
    button.setText(text)
    button.setToolTip(tip)
    button.setAccessibleName(tip)
    button.setCheckable(checkable)
    return button
