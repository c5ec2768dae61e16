"""The light and the dark theme."""

from __future__ import annotations

from PyQt6.QtGui import QColor, QPalette
from PyQt6.QtWidgets import QApplication

__all__ = ["apply_theme"]

DARK = {
    QPalette.ColorRole.Window: "#23252b",
    QPalette.ColorRole.WindowText: "#e4e6ea",
    QPalette.ColorRole.Base: "#1b1d22",
    QPalette.ColorRole.AlternateBase: "#22242a",
    QPalette.ColorRole.Text: "#e4e6ea",
    QPalette.ColorRole.Button: "#30333b",
    QPalette.ColorRole.ButtonText: "#e4e6ea",
    QPalette.ColorRole.ToolTipBase: "#30333b",
    QPalette.ColorRole.ToolTipText: "#e4e6ea",
    QPalette.ColorRole.PlaceholderText: "#8a8f99",
    QPalette.ColorRole.Highlight: "#3d6fd1",
    QPalette.ColorRole.HighlightedText: "#ffffff",
    QPalette.ColorRole.Link: "#7aa8ff",
    QPalette.ColorRole.Mid: "#3a3d45",
    QPalette.ColorRole.Dark: "#17181c",
    QPalette.ColorRole.Light: "#3f434c",
}


MARKED_WIDGETS = ("QCheckBox", "QRadioButton")
BORDER_BASE = "#a8adb8"
"""The border has 5 / 7 of this brightness; its contrast to the dark window is 3.9 to 1."""

PROPERTY = "zarrfs theme is dark"
"""The property of the application with the theme that it has."""


def apply_theme(application: QApplication, dark: bool) -> None:
    """Set the style and the palette of the application, unless it has them: each widget is arranged again."""
    if application.property(PROPERTY) == dark:
        return
    application.setProperty(PROPERTY, dark)
    application.setStyle("Fusion")
    style = application.style()
    palette = QPalette() if style is None else style.standardPalette()
    if dark:
        for role, color in DARK.items():
            palette.setColor(role, QColor(color))
        for role in (QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText, QPalette.ColorRole.WindowText):
            palette.setColor(QPalette.ColorGroup.Disabled, role, QColor("#777c86"))
    application.setPalette(palette)
    # Fusion draws the border of a mark in a darker colour of the window, which is hardly visible on a dark window.
    for name in MARKED_WIDGETS:
        marked = QPalette(palette)
        if dark:
            marked.setColor(QPalette.ColorRole.Window, QColor(BORDER_BASE))
        application.setPalette(marked, name)
