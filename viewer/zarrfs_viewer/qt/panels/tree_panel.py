"""The hierarchy at the left: finding, looking at and handing on its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QModelIndex, QPoint, QSortFilterProxyModel, Qt, QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices
from PyQt6.QtWidgets import QMenu, QTreeView, QVBoxLayout, QWidget

import zarrfs
from zarrfs_viewer.locations import display_name, within
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.tree_model import HierarchyModel, Item
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["TreePanel"]


class TreePanel(QWidget):
    """The tree, its filter and its menu.

    Signals:
        node_broken: (text) a line was chosen whose metadata could not be read.
        looked: the user clicked a line.
    """

    node_broken = pyqtSignal(str)
    looked = pyqtSignal()

    def __init__(self, session: Session, mounts: Mounts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._mounts = mounts
        self.model = HierarchyModel(session.worker, self)
        self.model.file_of = self._file_of
        self.filtered = QSortFilterProxyModel(self)
        self.filtered.setSourceModel(self.model)
        self.filtered.setRecursiveFilteringEnabled(True)
        self.filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.view = QTreeView()
        self.view.setAccessibleName("Hierarchy")
        self.view.setModel(self.filtered)
        self.view.setUniformRowHeights(True)
        self.view.setDragEnabled(True)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._show_menu)
        self.view.setColumnWidth(0, 170)
        selection = self.view.selectionModel()
        if selection is not None:
            selection.currentChanged.connect(self._look_at)
        self.view.clicked.connect(lambda _: self.looked.emit())
        self.view.activated.connect(self._show)
        self.search = search_box("Find in the hierarchy")
        self.search.textChanged.connect(self.filtered.setFilterFixedString)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.search)
        layout.addWidget(self.view)
        self.model.failed.connect(lambda text: session.say(text, True))
        session.opened.connect(self.add)

    def add(self, location: str, node: Any) -> None:
        """Show a location that was opened."""
        self.view.expand(self.filtered.mapFromSource(self.model.add(display_name(location), node, location)))

    def current(self) -> Item | None:
        """The line that is chosen, else the newest location, None where nothing is open."""
        index = self.view.currentIndex()
        if not index.isValid():
            index = self.filtered.index(self.filtered.rowCount() - 1, 0)
        return self._item(index) if index.isValid() else None

    def _item(self, index: QModelIndex) -> Item:
        return self.model.item(self.filtered.mapToSource(index))

    def _look_at(self, index: QModelIndex) -> None:
        """Show the metadata of a line that was chosen."""
        if not index.isValid():
            return
        item = self._item(index)
        if item.node is None:
            self.node_broken.emit(item.error)
        else:
            self._session.look_at(item.node)

    def _show(self, index: QModelIndex) -> None:
        """Show the image of a line that was double-clicked, or chosen by Enter."""
        item = self._item(index)
        if item.node is not None:
            self._session.show_node(item.node, item.location, item.path)

    # -- the menu ----------------------------------------------------------------------------------------------

    def _show_menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        viewport = self.view.viewport()
        if index.isValid() and viewport is not None:
            self.menu(self._item(index)).exec(viewport.mapToGlobal(point))

    def menu(self, item: Item) -> QMenu:
        """Return the menu of a line."""
        menu = QMenu(self)
        for title, run in (
            ("Copy path", lambda: copy_to_clipboard(within(item.location, item.path))),
            ("Copy URL", lambda: copy_to_clipboard(url_of(item))),
            ("Copy Python", lambda: copy_to_clipboard(python_of(item))),
            ("Show in the file manager", lambda: self.show_in_file_manager(item)),
            ("Mount and open the folder", lambda: self.mount_and_open(item)),
            ("Copy the path in the mount", lambda: self.copy_mounted(item)),
        ):
            action = menu.addAction(button_text(title))
            if action is not None:
                action.triggered.connect(lambda _=False, run=run: run())
        return menu

    def show_in_file_manager(self, item: Item | None) -> None:
        """Open the directory that a node is stored in, if it is one of this machine."""
        if item is None:
            return
        place = Path(within(item.location, item.path))
        while not place.is_dir() and place != place.parent:
            place = place.parent
        if "://" in item.location or place == place.parent:
            self._session.say(f"{item.location} is not a directory of this machine", True)
        else:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(place)))

    def mount_and_open(self, item: Item | None) -> None:
        """Mount the location of a node and open its directory, so that other programs can read its arrays."""
        if item is None:
            return
        is_array = isinstance(item.node, zarrfs.Array)
        file = self._mounts.file(item.location, item.path, is_array)

        def show(_: Path) -> None:
            self._session.say(f"Mounted: {file}")
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(file.parent if is_array else file)))

        self._session.ask(lambda: self._mounts.mount(item.location), show, "mount")

    def copy_mounted(self, item: Item) -> None:
        """Mount, and copy the path of the node's file or directory."""
        file = self._mounts.file(item.location, item.path, isinstance(item.node, zarrfs.Array))

        def copy(_: Path) -> None:
            copy_to_clipboard(str(file))
            self._session.say(f"Mounted, and its path copied: {file}")

        self._session.ask(lambda: self._mounts.mount(item.location), copy, "mount")

    def _file_of(self, item: Item) -> Path | None:
        """Return the file that stands for a node in a drag, whose mount begins now: it is there before the drop."""
        if item.node is None:
            return None
        self._session.worker.submit(
            lambda: self._mounts.mount(item.location), lambda _: None, self._session.show_error, "mount"
        )
        return self._mounts.file(item.location, item.path, isinstance(item.node, zarrfs.Array))


def url_of(item: Item) -> str:
    """Return the URL of a node."""
    store = item.node.store.url if item.node is not None else Path(item.location).absolute().as_uri()
    return within(store, item.path)


def python_of(item: Item) -> str:
    """Return the lines of Python that open a node."""
    return f"import zarrfs\nnode = zarrfs.open({item.location!r}, {item.path!r})"
