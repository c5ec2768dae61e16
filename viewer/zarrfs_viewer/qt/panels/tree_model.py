"""The hierarchy as a tree: filled level by level, by a worker, as its branches are opened."""

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

__all__ = ["HierarchyModel", "Item"]

COLUMNS = ("Name", "Shape", "Type", "Chunks", "Size")


@dataclass(eq=False)
class Item:
    """A line of the tree. ``children`` is None until they were asked for."""

    name: str
    node: zarrfs.Array | zarrfs.Group | None
    location: str
    path: str = ""
    parent: Item | None = None
    error: str = ""
    children: list[Item] | None = None
    loading: bool = False
    columns: tuple[str, ...] = field(default=())

    @property
    def row(self) -> int:
        """The position among its siblings."""
        siblings = self.parent.children if self.parent is not None else None
        return siblings.index(self) if siblings else 0


def describe(name: str, node: Any, location: str, path: str, parent: Item | None) -> Item:
    """Return the line of a node, or of the error in its place."""
    if isinstance(node, ZarrError):
        return Item(name, None, location, path, parent, str(node), [], columns=(name, "", "broken", "", ""))
    if isinstance(node, zarrfs.Array):
        chunks = " x ".join(map(str, node.chunks))
        shape = " x ".join(map(str, node.shape)) or "scalar"
        size = "" if node.dtype.hasobject else format_bytes(node.nbytes)
        columns = (name, shape, node.spec.data_type.name, chunks, size)
        return Item(name, node, location, path, parent, children=[], columns=columns)
    return Item(name, node, location, path, parent, columns=(name, "", "group", "", ""))


def members(item: Item) -> list[Item]:
    """Look up what is below a group. Blocks on the store."""
    if not isinstance(item.node, zarrfs.Group):
        return []
    found = []
    for name in member_names(item.node):
        try:
            node: Any = item.node[name]
        except KeyError:
            continue
        except ZarrError as error:
            node = error
        found.append(describe(name, node, item.location, f"{item.path}/{name}".strip("/"), item))
    return found


class HierarchyModel(QAbstractItemModel):
    """A tree of stores and what is in them.

    Attributes:
        file_of: called for each item that is dragged out; gives the file that other programs can open in its place.

    Signals:
        failed: a branch could not be listed; with what the user is told.
    """

    failed = pyqtSignal(str)

    def __init__(self, worker: Worker, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._worker = worker
        self.file_of: Callable[[Item], Path | None] = lambda item: None
        self._tops: list[Item] = []
        self._removed: list[Item] = []
        self._root = Item("", None, "", children=self._tops)

    def add(self, name: str, node: zarrfs.Array | zarrfs.Group, location: str) -> QModelIndex:
        """Add a store at the top; return its line. One of the same location is replaced."""
        tops = self._tops
        for row, item in enumerate(tops):
            if item.location == location:
                self.beginRemoveRows(QModelIndex(), row, row)
                # Qt may still hold an index of it, which is a bare pointer.
                self._removed.append(tops.pop(row))
                self.endRemoveRows()
                break
        self.beginInsertRows(QModelIndex(), len(tops), len(tops))
        tops.append(describe(name, node, location, "", self._root))
        self.endInsertRows()
        return self.index(len(tops) - 1, 0)

    def item(self, index: QModelIndex) -> Item:
        """Return the line of an index; the invisible root for an invalid one."""
        return index.internalPointer() if index.isValid() else self._root

    # -- Qt ----------------------------------------------------------------------------------------------------

    def index(self, row: int, column: int, parent: QModelIndex = QModelIndex()) -> QModelIndex:  # noqa: B008
        children = self.item(parent).children or []
        if 0 <= row < len(children) and 0 <= column < len(COLUMNS):
            return self.createIndex(row, column, children[row])
        return QModelIndex()

    def parent(self, index: QModelIndex = QModelIndex()) -> QModelIndex:  # type: ignore[override]  # noqa: B008
        above = self.item(index).parent
        return (
            QModelIndex() if above is None or above is self._root else self.createIndex(above.row, 0, above)
        )

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
        files = [file for item in items if (file := self.file_of(item)) is not None]
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
            lambda found: self._fill(item, found),
            lambda error: self._fail(item, error),
        )

    def _fill(self, item: Item, found: list[Item]) -> None:
        item.loading = False
        if self._is_removed(item):
            return
        index = self.createIndex(item.row, 0, item)
        item.children = []
        if found:
            self.beginInsertRows(index, 0, len(found) - 1)
            item.children = found
            self.endInsertRows()

    def _is_removed(self, item: Item) -> bool:
        while item.parent is not None and item.parent is not self._root:
            item = item.parent
        return item in self._removed

    def _fail(self, item: Item, error: Exception) -> None:
        self._fill(item, [])
        self.failed.emit(str(error))
