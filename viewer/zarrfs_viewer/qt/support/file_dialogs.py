"""The file dialogs. Each begins in the folder of the file that was chosen last, in any of them."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtWidgets import QFileDialog, QWidget

__all__ = ["ask_folder", "ask_new_file", "ask_open_file", "ask_open_files", "last_folder", "remember_folder"]

_folder: list[Path] = []
"""The folder of the file that was chosen last in this process; at most one entry."""


def last_folder() -> Path:
    """Return the folder of the file that was chosen last.

    Before the first choice it is the current directory, or the home directory if the viewer was started from a
    desktop, where the current directory is the root or cannot be read.
    """
    if _folder and _folder[0].is_dir():
        return _folder[0]
    try:
        current = Path.cwd()
    except OSError:
        return Path.home()
    return Path.home() if current == Path(current.anchor) else current


def remember_folder(folder: Path) -> None:
    """Begin the next dialog in a folder."""
    _folder[:] = [folder]


def ask_new_file(parent: QWidget, title: str, name: str, filters: str) -> tuple[str, str]:
    """Ask for a file to write. ``name`` is suggested. Returns its path, empty if cancelled, and the chosen filter."""
    chosen, chosen_filter = QFileDialog.getSaveFileName(parent, title, str(last_folder() / name), filters)
    _remember_files([chosen])
    return chosen, chosen_filter


def ask_open_file(parent: QWidget, title: str, filters: str) -> str:
    """Ask for an existing file. Returns its path, empty if cancelled."""
    chosen, _ = QFileDialog.getOpenFileName(parent, title, str(last_folder()), filters)
    _remember_files([chosen])
    return chosen


def ask_open_files(parent: QWidget, title: str, filters: str) -> list[str]:
    """Ask for existing files. Returns their paths; none if cancelled."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, str(last_folder()), filters)
    _remember_files(chosen)
    return chosen


def ask_folder(parent: QWidget, title: str) -> str:
    """Ask for an existing folder. Returns its path, empty if cancelled. The next dialog opens in its parent folder."""
    chosen = QFileDialog.getExistingDirectory(parent, title, str(last_folder()))
    _remember_files([chosen])
    return chosen


def _remember_files(chosen: list[str]) -> None:
    if chosen and chosen[0]:
        remember_folder(Path(chosen[0]).absolute().parent)
