"""Loading of the branches of the hierarchy that have not been expanded, so that a search finds their nodes."""

from __future__ import annotations

from collections import deque

from PyQt6.QtCore import QObject

from zarrfs_viewer.qt.panels.hierarchy.tree_items import HierarchyItem
from zarrfs_viewer.qt.panels.hierarchy.tree_model import MAX_NODES_PER_REQUEST, HierarchyModel

__all__ = ["BranchLoader"]

MAX_SEARCHED_NODES = 20_000
"""A search opens at most this number of nodes."""


class BranchLoader(QObject):
    """Lists all groups of a model in breadth-first order while it is active, a few nodes at a time."""

    def __init__(self, model: HierarchyModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._model = model
        self._queue: deque[HierarchyItem] = deque()
        self._awaited: set[HierarchyItem] = set()
        self._is_active = False
        self._count = 0
        model.described.connect(self._continue_after)
        model.filled.connect(lambda item: self._continue_after([item]))

    def start(self) -> None:
        """Load all branches, beginning at the open locations."""
        self._queue = deque(self._model.tops)
        self._awaited.clear()
        self._is_active, self._count = True, 0
        self._advance()

    def stop(self) -> None:
        """Load no further branches."""
        self._is_active = False
        self._queue.clear()
        self._awaited.clear()

    def _continue_after(self, items: list[HierarchyItem]) -> None:
        if self._is_active and self._awaited:
            self._awaited.difference_update(items)
            if not self._awaited:
                self._advance()

    def _advance(self) -> None:
        """Go through the queue until a node has to be opened or a group has to be listed."""
        while self._queue and self._count < MAX_SEARCHED_NODES:
            item = self._queue[0]
            if item.description is None:
                unopened = [
                    entry for entry, _ in zip(self._queue, range(MAX_NODES_PER_REQUEST), strict=False)
                ]
                self._awaited = {entry for entry in unopened if entry.description is None}
                for entry in self._awaited:
                    self._model.request(entry)
                return
            if item.children is None:
                self._awaited = {item}
                self._model.list_members(item)
                return
            self._queue.popleft()
            self._count += 1
            self._queue.extend(item.children or ())
        self._is_active = False
