"""The hierarchy panel: search and select nodes, copy their paths, mount them and drag them to other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QModelIndex, QPoint, QSortFilterProxyModel, Qt, QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices
from PyQt6.QtWidgets import QMenu, QTreeView, QVBoxLayout, QWidget

import zarrfs
from zarrfs_viewer.locations import display_name, within
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.tree_model import HierarchyItem, HierarchyModel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["TreePanel"]


class TreePanel(QWidget):
    """The tree view with its search field and context menu.

    Signals:
        unreadable_node_selected: (text) a node was selected whose metadata could not be read, with the reason.
        clicked: the user clicked a node.
    """

    unreadable_node_selected = pyqtSignal(str)
    clicked = pyqtSignal()

    def __init__(self, session: Session, mounts: Mounts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._mounts = mounts
        self.model = HierarchyModel(session.worker, self)
        self.model.file_for_drag = self._file_for_drag
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
            selection.currentChanged.connect(self._show_metadata)
        self.view.clicked.connect(lambda _: self.clicked.emit())
        self.view.activated.connect(self._show)
        self.search = search_box("Find in hierarchy")
        self.search.textChanged.connect(self.filtered.setFilterFixedString)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.search)
        layout.addWidget(self.view)
        self.model.failed.connect(lambda text: session.show_message(text, True))
        session.opened.connect(self.add)

    def add(self, location: str, node: Any, number: int) -> None:
        """Add an opened location to the tree, in the order of the numbers, and expand it."""
        index = self.model.add(display_name(location), node, location, number)
        self.view.expand(self.filtered.mapFromSource(index))

    def current(self) -> HierarchyItem | None:
        """Return the selected item, or else the location that was opened last; None if nothing is open."""
        index = self.view.currentIndex()
        if not index.isValid():
            index = self.filtered.index(self.filtered.rowCount() - 1, 0)
        return self._item(index) if index.isValid() else None

    def _item(self, index: QModelIndex) -> HierarchyItem:
        return self.model.item(self.filtered.mapToSource(index))

    def _show_metadata(self, index: QModelIndex) -> None:
        """Show the metadata of the selected node."""
        if not index.isValid():
            return
        item = self._item(index)
        if item.node is None:
            self.unreadable_node_selected.emit(item.error)
        else:
            self._session.show_metadata(item.node)

    def _show(self, index: QModelIndex) -> None:
        """Display the image of the node that was double-clicked or activated by Enter."""
        item = self._item(index)
        if item.node is not None:
            self._session.show_node(item.node, item.location, item.path)

    # -- context menu ------------------------------------------------------------------------------------------

    def _show_menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        viewport = self.view.viewport()
        if index.isValid() and viewport is not None:
            self.menu(self._item(index)).exec(viewport.mapToGlobal(point))

    def menu(self, item: HierarchyItem) -> QMenu:
        """Return the context menu of an item."""
        menu = QMenu(self)
        for title, run in (
            ("Copy path", lambda: copy_to_clipboard(within(item.location, item.path))),
            ("Copy URL", lambda: copy_to_clipboard(node_url(item))),
            ("Copy Python code", lambda: copy_to_clipboard(python_code(item))),
            ("Show in file manager", lambda: self.show_in_file_manager(item)),
            ("Mount and open folder", lambda: self.mount_and_open(item)),
            ("Mount and copy path", lambda: self.copy_mounted_path(item)),
        ):
            action = menu.addAction(button_text(title))
            if action is not None:
                action.triggered.connect(lambda _=False, run=run: run())
        return menu

    def show_in_file_manager(self, item: HierarchyItem | None) -> None:
        """Open the directory in which a node is stored in the file manager, if it is a local directory."""
        if item is None:
            return
        directory = Path(within(item.location, item.path))
        while not directory.is_dir() and directory != directory.parent:
            directory = directory.parent
        if "://" in item.location or directory == directory.parent:
            self._session.show_message(f"{item.location} is not in a local directory.", True)
        else:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(directory)))

    def mount_and_open(self, item: HierarchyItem | None) -> None:
        """Mount the location of a node and open the directory of the node in the file manager."""
        if item is None:
            return
        is_array = isinstance(item.node, zarrfs.Array)
        file = self._mounts.file(item.location, item.path, is_array)

        def show(_: Path) -> None:
            self._session.show_message(f"Mounted as {file}")
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(file.parent if is_array else file)))

        self._session.run_in_worker(lambda: self._mounts.mount(item.location), show, "mount")

    def copy_mounted_path(self, item: HierarchyItem) -> None:
        """Mount the location of a node and copy the path of its file or directory in the mount."""
        file = self._mounts.file(item.location, item.path, isinstance(item.node, zarrfs.Array))

        def copy(_: Path) -> None:
            copy_to_clipboard(str(file))
            self._session.show_message(f"Mounted, and copied the path {file}")

        self._session.run_in_worker(lambda: self._mounts.mount(item.location), copy, "mount")

    def _file_for_drag(self, item: HierarchyItem) -> Path | None:
        """Return the file in the mount that represents a node in a drag; None for an unreadable node.

        The mount starts now, so that the file exists when it is dropped.
        """
        if item.node is None:
            return None
        self._session.worker.submit(
            lambda: self._mounts.mount(item.location), lambda _: None, self._session.show_error, "mount"
        )
        return self._mounts.file(item.location, item.path, isinstance(item.node, zarrfs.Array))


def node_url(item: HierarchyItem) -> str:
    """Return the URL of a node."""
    store = item.node.store.url if item.node is not None else Path(item.location).absolute().as_uri()
    return within(store, item.path)


def python_code(item: HierarchyItem) -> str:
    """Return Python code that opens a node."""
    return f"import zarrfs\nnode = zarrfs.open({item.location!r}, {item.path!r})"
