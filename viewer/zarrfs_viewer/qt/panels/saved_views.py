"""Named views: keeping, showing and deleting them, and handing one on as a link or a command line."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QInputDialog, QWidget

from zarrfs_viewer.qt.canvas.panes import Panes
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import plain, plain_name
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.saved_views.views import View, command_line, load_views, save_views, to_link

__all__ = ["SavedViewsMenu"]


class SavedViewsMenu(QObject):
    """The views in one file. Reading and writing it are the worker's."""

    def __init__(self, session: Session, panes: Panes, file: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self._session = session
        self._panes = panes
        self._file = file
        self._parent = parent

    def now(self, name: str = "") -> View | None:
        """Return what is seen; tells the user if that is nothing."""
        view = self._session.view(name, self._panes.main.canvas.viewport)
        if view is None:
            self._session.say("There is no picture to keep a view of.")
        return view

    def ask_name(self) -> None:
        """Ask for a name and keep the view under it."""
        image = self._session.image
        if image is None:
            self.now()
            return
        name, given = QInputDialog.getText(
            self._parent, "Keep the view", "Name:", text=plain_name(image.name)
        )
        if given and name.strip():
            self.keep(name.strip())

    def keep(self, name: str) -> None:
        """Keep the view; one of the same name is replaced."""
        view = self.now(name)
        if view is None:
            return

        def write() -> None:
            others = tuple(other for other in load_views(self._file) if other.name != name)
            save_views(self._file, (*others, view))

        self._session.ask(write, lambda _: self._session.say(f"The view {name!r} is kept."), "views")

    def ask_view(self) -> None:
        """Ask which kept view to show."""
        self._ask("Show a view", self._session.open_view)

    def ask_delete(self) -> None:
        """Ask which kept view to delete."""
        self._ask("Delete a view", self.delete)

    def delete(self, view: View) -> None:
        """Delete a kept view."""

        def write() -> None:
            save_views(
                self._file, tuple(other for other in load_views(self._file) if other.name != view.name)
            )

        self._session.ask(write, lambda _: self._session.say(f"The view {view.name!r} is deleted."), "views")

    def _ask(self, title: str, then: object) -> None:
        def choose(views: tuple[View, ...]) -> None:
            if not views:
                self._session.say("No view is kept yet: Ctrl+K keeps the one that is seen.")
                return
            names = [
                # The number tells views apart whose texts are elided to the same.
                plain(f"{number}: {view.name}    {view.location}")
                for number, view in enumerate(views, 1)
            ]
            text, given = QInputDialog.getItem(self._parent, plain(title), "View:", names, 0, False)
            if given and callable(then):
                then(views[names.index(text)])

        self._session.ask(lambda: load_views(self._file), choose, "views")

    def copy_link(self) -> None:
        """Put a link on the clipboard that opens what is seen."""
        view = self.now("link")
        if view is not None:
            self._copy(
                to_link(view), "A link to this view is on the clipboard; open it with Ctrl+L or Ctrl+V."
            )

    def copy_command(self) -> None:
        """Put the command on the clipboard that opens what is seen."""
        view = self.now("link")
        if view is not None:
            self._copy(command_line(view), "The command that shows this view is on the clipboard.")

    def _copy(self, text: str, done: str) -> None:
        copy_to_clipboard(text)
        self._session.say(done)
