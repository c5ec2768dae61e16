"""The item model of the hierarchy. Groups are listed and nodes are opened on a worker thread.

A group is listed when its item is expanded. A node is opened when its row is painted for the first time. A search hides
the rows without the text; the model filters itself, because a proxy model makes the layout of large groups slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QAbstractItemModel, QMimeData, QModelIndex, QObject, Qt, QTimer, QUrl, pyqtSignal
from PyQt6.QtGui import QFont

import zarrfs
from zarrfs_viewer.qt.panels.hierarchy.tree_items import (
    Description,
    HierarchyItem,
    NodeKind,
    children_of,
    describe,
    describe_item,
)
from zarrfs_viewer.qt.support.plain_text import plain, tooltip
from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["SUMMARY", "HierarchyModel"]

SUMMARY = Qt.ItemDataRole.UserRole
"""A short text about the node. Empty until the node has been opened; the first request opens it."""

LEAF = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsDragEnabled
BRANCH, LEAF = LEAF, LEAF | Qt.ItemFlag.ItemNeverHasChildren
"""The flags of rows. They are constants, because the view asks for them several times per row when it lays out rows."""

MAX_NODES_PER_REQUEST = 16
"""The number of nodes that a worker thread opens before the rows are updated."""


class HierarchyModel(QAbstractItemModel):
    """A tree of the open locations and their nodes.

    Attributes:
        file_for_drag: called for each item that is dragged to another program. Returns the file that represents the
            node, or None.
        is_displayed: returns whether an item is the displayed image, whose name is bold.
        is_layer: returns whether an item is a layer over the image. Its name is italic.

    Signals:
        failed: (text) the members of a group could not be listed, with the reason.
        described: (list of items) nodes were opened.
        filled: (item) all members of a group are in the model.
    """

    failed = pyqtSignal(str)
    described = pyqtSignal(list)
    filled = pyqtSignal(object)

    def __init__(self, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self.file_for_drag: Callable[[HierarchyItem], Path | None] = lambda item: None
        self.is_displayed: Callable[[HierarchyItem], bool] = lambda item: False
        self.is_layer: Callable[[HierarchyItem], bool] = lambda item: False
        self._bold, self._italic = QFont(), QFont()
        self._bold.setBold(True)
        self._italic.setItalic(True)
        self._tops: list[HierarchyItem] = []
        self._removed: list[HierarchyItem] = []
        self._root = HierarchyItem("", "", children=self._tops)
        self._text = ""
        self._requested: dict[HierarchyItem, None] = {}
        self._is_describing = False
        self._request_timer = QTimer(self)
        self._request_timer.setSingleShot(True)
        self._request_timer.setInterval(0)
        self._request_timer.timeout.connect(self._describe_next_items)

    # -- open locations ----------------------------------------------------------------------------------------

    @property
    def tops(self) -> Sequence[HierarchyItem]:
        """The items of the open locations."""
        return self._tops

    def add(
        self, name: str, node: zarrfs.Array | zarrfs.Group, location: str, number: int = 0
    ) -> QModelIndex:
        """Add a location at the top level, after those with smaller numbers, and return its index. An item of the same
        location is replaced.
        """
        for item in self._tops:
            if item.location == location:
                self.remove(item)
                break
        children: list[HierarchyItem] | None = None if isinstance(node, zarrfs.Group) else []
        kind: NodeKind = "group" if children is None else "array"
        description = Description(node, kind)
        added = HierarchyItem(name, location, "", self._root, description, children, number=number)
        place = next((n for n, item in enumerate(self._tops) if item.number > number), len(self._tops))
        row = next(
            (n for n, item in enumerate(self._root.shown) if item.number > number), len(self._root.shown)
        )
        self.beginInsertRows(QModelIndex(), row, row)
        self._tops.insert(place, added)
        self._root.shown.insert(row, added)
        self._number_tops()
        self.endInsertRows()
        self._worker.submit(
            lambda: {added: describe(node)},
            self._show_descriptions,
            lambda error: self.failed.emit(str(error)),
        )
        return self.index(row, 0)

    def remove(self, item: HierarchyItem) -> None:
        """Remove an open location."""
        # Qt may still have indexes that point to the item: it must not be deleted.
        self._removed.append(item)
        self._tops.remove(item)
        if item.row >= 0:
            self.beginRemoveRows(QModelIndex(), item.row, item.row)
            self._root.shown.remove(item)
            self._number_tops()
            self.endRemoveRows()

    def _number_tops(self) -> None:
        for row, item in enumerate(self._root.shown):
            item.row = row

    def item(self, index: QModelIndex) -> HierarchyItem:
        """Return the item of an index, or the invisible root item for an invalid index."""
        return index.internalPointer() if index.isValid() else self._root

    def index_of(self, item: HierarchyItem) -> QModelIndex:
        """Return the index of an item; an invalid one if it is hidden or its location was removed."""
        ancestor: HierarchyItem | None = item
        while ancestor is not None and ancestor is not self._root:
            if ancestor.row < 0:
                return QModelIndex()
            ancestor = ancestor.parent
        return QModelIndex() if self._is_removed(item) else self.createIndex(item.row, 0, item)

    def _is_removed(self, item: HierarchyItem) -> bool:
        while item.parent is not None and item.parent is not self._root:
            item = item.parent
        return item in self._removed

    # -- search ------------------------------------------------------------------------------------------------

    def search(self, text: str) -> None:
        """Show only items whose names contain a text, and their ancestors. An empty text shows all items.

        The model is reset. Items that are listed later are hidden until the next call, unless the text is empty.
        """
        self.beginResetModel()
        self._text = text.casefold()
        # Descendants follow their ancestors in ``items``: reversed, they are decided before them.
        items = [self._root]
        for item in items:
            items.extend(item.children or ())
        for item in reversed(items):
            children = item.children or []
            item.shown = (
                [child for child in children if self._is_match(child)] if self._text else list(children)
            )
            for child in children:
                child.row = -1
            for row, child in enumerate(item.shown):
                child.row = row
        self.endResetModel()

    def _is_match(self, item: HierarchyItem) -> bool:
        return bool(item.shown) or self._text in item.name.casefold()

    # -- opening nodes -----------------------------------------------------------------------------------------

    def request(self, item: HierarchyItem) -> None:
        """Open the node of an item on a worker thread, unless it is open; ``described`` follows."""
        if item.description is None:
            self._requested[item] = None
            if not self._is_describing:
                self._request_timer.start()

    def _describe_next_items(self) -> None:
        if self._is_describing or not self._requested:
            return
        # The rows that became visible last are opened first.
        items = [
            self._requested.popitem()[0] for _ in range(min(len(self._requested), MAX_NODES_PER_REQUEST))
        ]
        self._is_describing = True
        self._worker.submit(
            lambda: {item: describe_item(item) for item in reversed(items)},
            self._finish_describing,
            self._fail_to_describe,
        )

    def _finish_describing(self, descriptions: dict[HierarchyItem, Description]) -> None:
        self._is_describing = False
        self._show_descriptions(descriptions)
        self._describe_next_items()

    def _fail_to_describe(self, error: Exception) -> None:
        self._is_describing = False
        self.failed.emit(str(error))
        self._describe_next_items()

    def _show_descriptions(self, descriptions: dict[HierarchyItem, Description]) -> None:
        for item, description in descriptions.items():
            item.description = description
            if not item.is_group and item.children is None:
                item.children = []
            index = self.index_of(item)
            if index.isValid():
                self.dataChanged.emit(index, index)
        self.described.emit(list(descriptions))

    # -- QAbstractItemModel ------------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: QModelIndex = QModelIndex()) -> QModelIndex:  # noqa: B008
        shown = self.item(parent).shown
        if 0 <= row < len(shown) and column == 0:
            return self.createIndex(row, column, shown[row])
        return QModelIndex()

    def parent(self, index: QModelIndex = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        item = self.item(index).parent
        return QModelIndex() if item is None or item is self._root else self.createIndex(item.row, 0, item)

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.column() > 0 else len(self.item(parent).shown)

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 1

    def hasChildren(self, parent: QModelIndex = QModelIndex()) -> bool:  # noqa: B008
        item = self.item(parent)
        return bool(item.shown) or (item.children is None and item.is_group) or item is self._root

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        item = self.item(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return plain(item.name)
        if role == SUMMARY:
            self.request(item)
            layer = " · layer" if self.is_layer(item) else ""
            return plain(f"{'cannot be read' if item.error else self._summary(item)}{layer}")
        if role == Qt.ItemDataRole.AccessibleTextRole:
            displayed = ", displayed" if self.is_displayed(item) else ""
            layer = ", layer" if self.is_layer(item) else ""
            return plain(f"{item.name} {self._summary(item)}{displayed}{layer}")
        if role == Qt.ItemDataRole.FontRole:
            is_italic = not self.is_displayed(item) and self.is_layer(item)
            return self._bold if self.is_displayed(item) else self._italic if is_italic else None
        if role == Qt.ItemDataRole.ToolTipRole:
            details = item.description.details if item.description is not None else ""
            return tooltip(
                "\n".join(filter(None, (f"{item.location}/{item.path}".rstrip("/"), details, item.error)))
            )
        return None

    @staticmethod
    def _summary(item: HierarchyItem) -> str:
        return item.description.summary if item.description is not None else ""

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return "Name"
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        item = self.item(index)
        return BRANCH if item.shown or item.is_group else LEAF

    def mimeTypes(self) -> list[str]:
        return ["text/uri-list"]

    def mimeData(self, indexes: Iterable[QModelIndex]) -> QMimeData | None:
        items = dict.fromkeys(self.item(index) for index in indexes)
        files = [file for item in items if (file := self.file_for_drag(item)) is not None]
        if not files:
            return None
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
        data.setText("\n".join(map(str, files)))
        return data

    # -- listing groups ----------------------------------------------------------------------------------------

    def canFetchMore(self, parent: QModelIndex) -> bool:
        item = self.item(parent)
        return item.is_group and item.children is None and not item.is_loading

    def fetchMore(self, parent: QModelIndex) -> None:
        self.list_members(self.item(parent))

    def list_members(self, item: HierarchyItem) -> None:
        """List the members of a group on a worker thread, unless they are listed; ``filled`` follows."""
        if item.children is not None or item.is_loading:
            return
        item.is_loading = True
        self._worker.submit(
            lambda: children_of(item),
            lambda children: self._fill(item, children),
            lambda error: self._fail(item, error),
        )

    def _fill(self, item: HierarchyItem, children: list[HierarchyItem]) -> None:
        item.is_loading = False
        item.children = children
        index = self.index_of(item)
        if children and index.isValid() and not self._text:
            self.beginInsertRows(index, 0, len(children) - 1)
            item.shown = children.copy()
            for row, child in enumerate(children):
                child.row = row
            self.endInsertRows()
        self.filled.emit(item)

    def _fail(self, item: HierarchyItem, error: Exception) -> None:
        self._fill(item, [])
        self.failed.emit(str(error))
