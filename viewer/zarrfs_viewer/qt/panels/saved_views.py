"""The actions of the menu "Saved views": save, open and delete named views, and copy a view as a link or command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PyQt6.QtWidgets import QInputDialog

from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import plain, plain_name
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.saved_views.views import View, command_line, load_views, save_views, to_link

__all__ = ["SavedViewsMenu"]


class SavedViewsMenu(Panel):
    """Saves, opens and deletes the views in one file. The file is read and written on a worker thread."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self._panes = context.panes
        self._file = Path(context.settings.fileName()).with_name("views.json")
        self._parent = context.window

    def actions(self) -> Sequence[ActionSpec]:
        menu = "&Saved views"
        return (
            ActionSpec("save_view", menu, "&Save view...", "Ctrl+K", self.ask_save, place=0, needs="image"),
            ActionSpec("open_view", menu, "&Open saved view...", "Ctrl+Shift+K", self.ask_open, place=10),
            ActionSpec(
                "delete_view", menu, "&Delete saved view...", "Ctrl+Shift+D", self.ask_delete, place=20
            ),
            ActionSpec(
                "copy_link",
                menu,
                "Copy &link to view",
                "Ctrl+Shift+L",
                self.copy_link,
                place=100,
                needs="image",
            ),
            ActionSpec(
                "copy_command",
                menu,
                "Copy &command for view",
                "Ctrl+Shift+X",
                self.copy_command,
                place=110,
                needs="image",
            ),
        )

    def current_view(self, name: str = "") -> View | None:
        """Return the current view. Without an image, shows a message and returns None."""
        view = self._session.view(name, self._panes.main.canvas.viewport)
        if view is None:
            self._session.show_message("No image is open.")
        return view

    def ask_save(self) -> None:
        """Ask for a name and save the current view."""
        image = self._session.image
        if image is None:
            self.current_view()
            return
        name, accepted = QInputDialog.getText(self._parent, "Save view", "Name:", text=plain_name(image.name))
        if accepted and name.strip():
            self.save(name.strip())

    def save(self, name: str) -> None:
        """Save the current view. A view with the same name is replaced."""
        view = self.current_view(name)
        if view is None:
            return

        def write() -> None:
            others = tuple(other for other in load_views(self._file) if other.name != name)
            save_views(self._file, (*others, view))

        self._session.run_in_worker(
            write, lambda _: self._session.show_message(f"Saved the view {name!r}."), "views"
        )

    def ask_open(self) -> None:
        """Ask which saved view to open, and open it."""
        self._ask_view("Open saved view", self._session.open_view)

    def ask_delete(self) -> None:
        """Ask which saved view to delete, and delete it."""
        self._ask_view("Delete saved view", self.delete)

    def delete(self, view: View) -> None:
        """Delete a saved view."""

        def write() -> None:
            save_views(
                self._file, tuple(other for other in load_views(self._file) if other.name != view.name)
            )

        self._session.run_in_worker(
            write, lambda _: self._session.show_message(f"Deleted the view {view.name!r}."), "views"
        )

    def _ask_view(self, title: str, action: Callable[[View], None]) -> None:
        def choose(views: tuple[View, ...]) -> None:
            if not views:
                self._session.show_message("There are no saved views. Press Ctrl+K to save the current view.")
                return
            names = [
                # The number distinguishes views whose elided texts are equal.
                plain(f"{number}: {view.name}    {view.location}")
                for number, view in enumerate(views, 1)
            ]
            text, accepted = QInputDialog.getItem(self._parent, plain(title), "View:", names, 0, False)
            if accepted:
                action(views[names.index(text)])

        self._session.run_in_worker(lambda: load_views(self._file), choose, "views")

    def copy_link(self) -> None:
        """Copy a link that opens the current view to the clipboard."""
        view = self.current_view("link")
        if view is not None:
            self._copy(to_link(view), "Copied a link to this view. Open it with Ctrl+L or Ctrl+V.")

    def copy_command(self) -> None:
        """Copy the command that opens the current view to the clipboard."""
        view = self.current_view("link")
        if view is not None:
            self._copy(command_line(view), "Copied the command that opens this view.")

    def _copy(self, text: str, message: str) -> None:
        copy_to_clipboard(text)
        self._session.show_message(message)
