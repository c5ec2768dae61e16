"""The hierarchy panel: search and select nodes, copy their paths, mount them and drag them to other programs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QModelIndex, QPoint, Qt, QTimer, QUrl, pyqtSignal
from PyQt6.QtGui import QDesktopServices
from PyQt6.QtWidgets import QMenu, QTreeView, QVBoxLayout, QWidget

from zarrfs_viewer.locations import display_name, within
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.hierarchy.node_files import NodeFiles
from zarrfs_viewer.qt.panels.hierarchy.tree_delegate import HierarchyDelegate
from zarrfs_viewer.qt.panels.hierarchy.tree_items import HierarchyItem
from zarrfs_viewer.qt.panels.hierarchy.tree_model import HierarchyModel
from zarrfs_viewer.qt.panels.hierarchy.tree_search import BranchLoader
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["TreePanel"]

FOLDED_KINDS = ("image", "labels", "array", "plate")
"""Locations of these kinds are not expanded when they are opened."""

SEARCH_INTERVAL_MILLISECONDS = 200
"""While branches are loaded, the search is repeated at this interval."""
MAX_EXPANDED = 1000
"""A search expands at most this number of rows."""

SEPARATOR: tuple[str, Callable[[], object]] = ("", lambda: None)
"""An entry of the menu without text is a line between two groups of entries."""


class TreePanel(QWidget):
    """The tree view with its search field and context menu.

    Signals:
        unreadable_node_selected: (text) a node was selected whose metadata could not be read, with the reason.
        clicked: the user clicked a node.
        window_requested: (location) the user wants to open a node in a new window.
        closed: (location) the user closed an open location.
        layer_requested: (node, location, path, arrangement) the user wants to see a node as a layer.
    """

    unreadable_node_selected = pyqtSignal(str)
    clicked = pyqtSignal()
    window_requested = pyqtSignal(str)
    closed = pyqtSignal(str)
    layer_requested = pyqtSignal(object, str, str, str)

    def __init__(self, session: Session, mounts: Mounts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.model = HierarchyModel(session.worker, self)
        self.files = NodeFiles(session, mounts, self)
        self.model.file_for_drag = self.files.file_for_drag
        self.model.is_displayed = lambda item: session.is_displayed(item.location, item.path)
        self.loader = BranchLoader(self.model, self)
        self.view = QTreeView()
        self.view.setAccessibleName("Hierarchy")
        self.view.setModel(self.model)
        self.view.setItemDelegate(HierarchyDelegate(self.view))
        self.view.setHeaderHidden(True)
        self.view.setUniformRowHeights(True)
        self.view.setExpandsOnDoubleClick(False)
        self.view.setDragEnabled(True)
        self.view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.view.customContextMenuRequested.connect(self._show_menu)
        selection = self.view.selectionModel()
        if selection is not None:
            selection.currentChanged.connect(self._show_metadata)
        self.view.clicked.connect(lambda _: self.clicked.emit())
        self.view.activated.connect(self._show)
        self.search = search_box("Find in hierarchy")
        self.search.textChanged.connect(self._find)
        self._expanded_before: list[HierarchyItem] | None = None
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(SEARCH_INTERVAL_MILLISECONDS)
        self._search_timer.timeout.connect(self._search)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.search)
        layout.addWidget(self.view)
        self.model.failed.connect(lambda text: session.show_message(text, True))
        self.model.described.connect(self._update_described_items)
        self.model.filled.connect(lambda _: self._search_later())
        session.opened.connect(self.add)
        session.image_changed.connect(self.repaint_rows)

    def add(self, location: str, node: Any, number: int) -> None:
        """Add an opened location to the tree, in the order of the numbers.

        A group is expanded. An image is not, because its members are pyramid levels.
        """
        self.model.add(display_name(location), node, location, number)

    def repaint_rows(self) -> None:
        """Paint the rows again, because another image or layer is displayed."""
        viewport = self.view.viewport()
        if viewport is not None:
            viewport.update()

    def current(self) -> HierarchyItem | None:
        """Return the selected item, or else the location that was opened last; None if nothing is open."""
        index = self.view.currentIndex()
        if not index.isValid():
            index = self.model.index(self.model.rowCount() - 1, 0)
        return self.model.item(index) if index.isValid() else None

    def _update_described_items(self, items: list[HierarchyItem]) -> None:
        """Expand new groups, draw the arrows of groups, and show the metadata of the current node when it is open."""
        current = self.view.currentIndex()
        if any(item.is_group for item in items):
            self.view.scheduleDelayedItemsLayout()  # the view stores which rows have arrows
        for item in items:
            if item in self.model.tops and item.kind not in FOLDED_KINDS and item.children is None:
                self.view.expand(self.model.index_of(item))
        if current.isValid() and self.model.item(current) in items:
            self._show_metadata(current)

    def _show_metadata(self, index: QModelIndex) -> None:
        """Show the metadata of the selected node."""
        if not index.isValid():
            return
        item = self.model.item(index)
        if item.node is not None:
            self._session.show_metadata(item.node)
        elif item.error:
            self.unreadable_node_selected.emit(item.error)
        else:
            self.model.request(item)

    def _show(self, index: QModelIndex) -> None:
        """Display the image of the node that was double-clicked or activated by Enter.

        A pyramid level is displayed as the image with this level, so that it has the image's scale and channels. A
        group without an image is expanded or collapsed.
        """
        item = self.model.item(index)
        if item.kind == "level" and item.parent is not None and item.parent.node is not None:
            self._session.show_node(item.parent.node, item.location, item.parent.path, item.name)
            self._session.show_metadata(item.node)
        elif item.node is not None:
            if item.kind == "group":
                self.view.setExpanded(index, not self.view.isExpanded(index))
            self._session.show_node(item.node, item.location, item.path)

    # -- search ------------------------------------------------------------------------------------------------

    def focus_search(self) -> None:
        """Move the keyboard focus to the search field."""
        self.search.setFocus()
        self.search.selectAll()

    def _find(self, text: str) -> None:
        """Show only nodes with this text in their names. Branches that have not been expanded are loaded."""
        if text and self._expanded_before is None:
            self._expanded_before = list(self._expanded_items())
            self.loader.start()
        if not text:
            self.loader.stop()
        self._search_timer.stop()
        self._search()

    def _search_later(self) -> None:
        """Search again after more nodes have been listed."""
        if self.search.text() and not self._search_timer.isActive():
            self._search_timer.start()

    def _search(self) -> None:
        """Filter the rows, and keep the current row and the expanded rows."""
        text = self.search.text()
        current = self.model.item(self.view.currentIndex())
        self.model.search(text)
        expanded = self._matching_branches() if text else self._expanded_before or ()
        for item in expanded:
            self.view.expand(self.model.index_of(item))
        if not text:
            self._expanded_before = None
        index = self.model.index_of(current) if current.parent is not None else QModelIndex()
        selection = self.view.selectionModel()
        if index.isValid() and selection is not None:
            selection.blockSignals(True)  # its metadata are displayed already
            self.view.setCurrentIndex(index)
            selection.blockSignals(False)

    def _expanded_items(self) -> Iterator[HierarchyItem]:
        queue = list(self.model.tops)
        while queue:
            item = queue.pop()
            if item.shown and self.view.isExpanded(self.model.index_of(item)):
                yield item
                queue.extend(child for child in item.shown if child.shown)

    def _matching_branches(self) -> Iterator[HierarchyItem]:
        """Yield the items above the nodes that were found."""
        queue = deque(item for item in self.model.tops if item.shown)
        for _ in range(MAX_EXPANDED):
            if not queue:
                return
            item = queue.popleft()
            yield item
            queue.extend(child for child in item.shown if child.shown)

    # -- context menu ------------------------------------------------------------------------------------------

    def _show_menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        viewport = self.view.viewport()
        if index.isValid() and viewport is not None:
            self.menu(self.model.item(index)).exec(viewport.mapToGlobal(point))

    def menu(self, item: HierarchyItem) -> QMenu:
        """Return the context menu of an item."""
        menu = QMenu(self)
        entries: list[tuple[str, Callable[[], object]]] = []
        if item.node is not None:
            entries.append(("Display", lambda: self._show(self.model.index_of(item))))
        entries += self._display_entries(item)
        entries += [
            SEPARATOR,
            ("Copy path", lambda: copy_to_clipboard(within(item.location, item.path))),
            ("Copy URL", lambda: copy_to_clipboard(node_url(item))),
            ("Copy Python code", lambda: copy_to_clipboard(python_code(item))),
            ("Show in file manager", lambda: self.show_in_file_manager(item)),
            ("Mount and open folder", lambda: self.mount_and_open(item)),
            ("Mount and copy path", lambda: self.files.copy_path(item)),
            (
                "Open in new window",
                lambda: self.window_requested.emit(within(item.location, item.path)),
            ),
        ]
        if item in self.model.tops:
            entries += [SEPARATOR, ("Close", lambda: self.close_location(item))]
        for title, run in entries:
            if not title:
                menu.addSeparator()
                continue
            action = menu.addAction(button_text(title))
            if action is not None:
                action.triggered.connect(lambda _=False, run=run: run())
        menu.addSeparator()
        self.files.add_menu(menu)
        return menu

    def _display_entries(self, item: HierarchyItem) -> list[tuple[str, Callable[[], object]]]:
        """Return the entries that display a node in another way, or together with the displayed image."""
        entries: list[tuple[str, Callable[[], object]]] = []
        if item.description is not None and item.description.can_be_labels:
            place = item.node, item.location, item.path
            entries.append(("Show as labels", lambda: self._session.show_as_labels(*place)))
            if self._session.image is not None:
                entries.append(("Show as labels over the image", lambda: self._session.add_labels(*place)))
        if item.node is not None and self._session.image is not None:
            show = self.layer_requested.emit
            layer = item.node, item.location, item.path
            entries.append(("Show beside", lambda: show(*layer, "beside")))
            entries.append(("Show over the image", lambda: show(*layer, "translucent")))
        return entries

    def close_location(self, item: HierarchyItem) -> None:
        """Remove an open location from the tree."""
        self.model.remove(item)
        self.closed.emit(item.location)

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
        if item is not None:
            self.files.open_folder(item)


def node_url(item: HierarchyItem) -> str:
    """Return the URL of a node."""
    store = item.node.store.url if item.node is not None else Path(item.location).absolute().as_uri()
    return within(store, item.path)


def python_code(item: HierarchyItem) -> str:
    """Return Python code that opens a node."""
    return f"import zarrfs\nnode = zarrfs.open({item.location!r}, {item.path!r})"
