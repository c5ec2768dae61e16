"""The item model of the hierarchy. Members of a group are listed on a worker thread when its item is expanded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QAbstractItemModel, QMimeData, QModelIndex, QObject, Qt, QUrl, pyqtSignal

import zarrfs
from zarrfs.errors import ZarrError
from zarrfs.ngff.members import member_names
from zarrfs_viewer.analysis.readout import format_bytes
from zarrfs_viewer.qt.support.plain_text import plain, tooltip
from zarrfs_viewer.qt.support.worker import Worker

__all__ = ["HierarchyItem", "HierarchyModel"]

COLUMNS = ("Name", "Shape", "Type", "Chunks", "Size")


@dataclass(eq=False)
class HierarchyItem:
    """A row of the tree.

    ``children`` is None until the members have been listed. ``number`` orders the open locations.
    """

    name: str
    node: zarrfs.Array | zarrfs.Group | None
    location: str
    path: str = ""
    parent: HierarchyItem | None = None
    error: str = ""
    children: list[HierarchyItem] | None = None
    loading: bool = False
    columns: tuple[str, ...] = field(default=())
    number: int = 0

    @property
    def row(self) -> int:
        """The index among its siblings."""
        siblings = self.parent.children if self.parent is not None else None
        return siblings.index(self) if siblings else 0


def describe(name: str, node: Any, location: str, path: str, parent: HierarchyItem | None) -> HierarchyItem:
    """Return the item of a node, or of the error that was raised instead."""
    if isinstance(node, ZarrError):
        return HierarchyItem(
            name, None, location, path, parent, str(node), [], columns=(name, "", "error", "", "")
        )
    if isinstance(node, zarrfs.Array):
        chunks = " x ".join(map(str, node.chunks))
        shape = " x ".join(map(str, node.shape)) or "scalar"
        size = "" if node.dtype.hasobject else format_bytes(node.nbytes)
        columns = (name, shape, node.spec.data_type.name, chunks, size)
        return HierarchyItem(name, node, location, path, parent, children=[], columns=columns)
    return HierarchyItem(name, node, location, path, parent, columns=(name, "", "group", "", ""))


def members(item: HierarchyItem) -> list[HierarchyItem]:
    """Return the items of the members of a group; empty for an array. Blocks."""
    if not isinstance(item.node, zarrfs.Group):
        return []
    items = []
    for name in member_names(item.node):
        try:
            node: Any = item.node[name]
        except KeyError:
            continue
        except ZarrError as error:
            node = error
        items.append(describe(name, node, item.location, f"{item.path}/{name}".strip("/"), item))
    return items


class HierarchyModel(QAbstractItemModel):
    """A tree of the open locations and their nodes.

    Attributes:
        file_for_drag: called for each item that is dragged to another program. Returns the file that represents the
            node, or None.

    Signals:
        failed: (text) the members of a group could not be listed, with the reason.
    """

    failed = pyqtSignal(str)

    def __init__(self, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self.file_for_drag: Callable[[HierarchyItem], Path | None] = lambda item: None
        self._tops: list[HierarchyItem] = []
        self._removed: list[HierarchyItem] = []
        self._root = HierarchyItem("", None, "", children=self._tops)

    def add(
        self, name: str, node: zarrfs.Array | zarrfs.Group, location: str, number: int = 0
    ) -> QModelIndex:
        """Add a location at the top level, after those with smaller numbers, and return its index. An item of the same
        location is replaced.
        """
        tops = self._tops
        for row, item in enumerate(tops):
            if item.location == location:
                self.beginRemoveRows(QModelIndex(), row, row)
                # Qt may still have indexes that point to the item: it must not be deleted.
                self._removed.append(tops.pop(row))
                self.endRemoveRows()
                break
        row = next((row for row, item in enumerate(tops) if item.number > number), len(tops))
        added = describe(name, node, location, "", self._root)
        added.number = number
        self.beginInsertRows(QModelIndex(), row, row)
        tops.insert(row, added)
        self.endInsertRows()
        return self.index(row, 0)

    def item(self, index: QModelIndex) -> HierarchyItem:
        """Return the item of an index, or the invisible root item for an invalid index."""
        return index.internalPointer() if index.isValid() else self._root

    # -- QAbstractItemModel ------------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: QModelIndex = QModelIndex()) -> QModelIndex:  # noqa: B008
        children = self.item(parent).children or []
        if 0 <= row < len(children) and 0 <= column < len(COLUMNS):
            return self.createIndex(row, column, children[row])
        return QModelIndex()

    def parent(self, index: QModelIndex = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        item = self.item(index).parent
        return QModelIndex() if item is None or item is self._root else self.createIndex(item.row, 0, item)

    def rowCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.column() > 0 else len(self.item(parent).children or [])

    def columnCount(self, parent: QModelIndex = QModelIndex()) -> int:  # noqa: B008
        return len(COLUMNS)

    def hasChildren(self, parent: QModelIndex = QModelIndex()) -> bool:  # noqa: B008
        item = self.item(parent)
        return parent.column() <= 0 and (item.children is None or bool(item.children))

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        item = self.item(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return plain(item.columns[index.column()])
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(item.error or f"{item.location}/{item.path}".rstrip("/"))
        return None

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return None

    def flags(self, index: QModelIndex) -> Qt.ItemFlag:
        dragged = Qt.ItemFlag.ItemIsDragEnabled if index.isValid() else Qt.ItemFlag.NoItemFlags
        return super().flags(index) | dragged

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

    def canFetchMore(self, parent: QModelIndex) -> bool:
        item = self.item(parent)
        return item.children is None and not item.loading

    def fetchMore(self, parent: QModelIndex) -> None:
        item = self.item(parent)
        item.loading = True
        self._worker.submit(
            lambda: members(item),
            lambda children: self._fill(item, children),
            lambda error: self._fail(item, error),
        )

    def _fill(self, item: HierarchyItem, children: list[HierarchyItem]) -> None:
        item.loading = False
        if self._is_removed(item):
            return
        index = self.createIndex(item.row, 0, item)
        item.children = []
        if children:
            self.beginInsertRows(index, 0, len(children) - 1)
            item.children = children
            self.endInsertRows()

    def _is_removed(self, item: HierarchyItem) -> bool:
        while item.parent is not None and item.parent is not self._root:
            item = item.parent
        return item in self._removed

    def _fail(self, item: HierarchyItem, error: Exception) -> None:
        self._fill(item, [])
        self.failed.emit(str(error))
