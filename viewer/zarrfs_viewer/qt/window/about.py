"""The dialog with the versions of the program and of what it runs on."""

from __future__ import annotations

import platform

from PyQt6.QtCore import PYQT_VERSION_STR, QT_VERSION_STR
from PyQt6.QtWidgets import QDialog, QDialogButtonBox, QVBoxLayout, QWidget

from zarrfs import __version__
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain_lines

__all__ = ["about_text", "show_about"]


def about_text() -> str:
    """Return the versions, one per line, as a report of a fault needs them."""
    return (
        f"zarrfs {__version__}: a viewer and a file system for Zarr. MIT licence.\n\n"
        f"Python {platform.python_version()}, Qt {QT_VERSION_STR}, PyQt {PYQT_VERSION_STR}, {platform.platform()}\n\n"
        "The command zarrfs doctor shows what is installed. The documentation is in the folder docs of the source."
    )


def show_about(parent: QWidget) -> None:
    """Show the dialog, and return when it is closed."""
    dialog = QDialog(parent)
    dialog.setWindowTitle("About zarrfs")
    text = PlainLabel(plain_lines(about_text()), wrap=True)
    text.setAccessibleName("Versions")
    buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
    buttons.rejected.connect(dialog.reject)
    layout = QVBoxLayout(dialog)
    layout.addWidget(text)
    layout.addWidget(buttons)
    dialog.exec()
    dialog.deleteLater()
