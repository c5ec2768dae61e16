"""The items of a tree of JSON values: creation, search by JSON pointer, and filter."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QTreeWidgetItem

from zarrfs.engine.json_checks import pointer
from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, plain, tooltip

__all__ = ["POINTER", "VALUE", "Value", "add_all", "item_at", "show_matching"]

POINTER = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
MAX_TREE_ITEMS = 20_000
"""The maximum number of items of the tree, which are created at once. The document contains the rest."""
MAX_TREE_DEPTH = 60
"""The maximum number of levels of the tree. Deeper values are displayed as JSON."""
MAX_VALUE = 400
"""The maximum number of characters of a value in the tree. The tooltip contains up to
``MAX_TEXT``; the menu copies the whole value.
"""


def item_at(parent: QTreeWidgetItem, pointer: str) -> QTreeWidgetItem | None:
    """Return the descendant of an item with exactly this JSON pointer, or None."""
    for row in range(parent.childCount()):
        child = parent.child(row)
        if child is None:
            continue
        child_pointer = child.data(0, POINTER)
        if child_pointer == pointer:
            return child
        if pointer.startswith(f"{child_pointer}/"):
            return item_at(child, pointer)
    return None


@dataclass(frozen=True, eq=False)
class Value:
    """The value of an item. It is converted to text only when needed."""

    value: Any

    def text(self) -> str:
        """Return a string unchanged, any other value as JSON."""
        return self.value if isinstance(self.value, str) else self.json()

    def json(self) -> str:
        """Return the value as JSON."""
        return json.dumps(self.value, ensure_ascii=False)


def add_all(parent: QTreeWidgetItem, values: Mapping[str, Any]) -> None:
    """Add an item for each value and nested value, with at most ``MAX_TREE_DEPTH`` levels and ``MAX_TREE_ITEMS`` items.

    Items are added in breadth-first order, so that all top-level keys are displayed.
    """
    queue = deque((parent, str(key), value, "", 0) for key, value in values.items())
    for _ in range(MAX_TREE_ITEMS):
        if not queue:
            return
        holder, key, value, parent_pointer, depth = queue.popleft()
        item_pointer = pointer(parent_pointer, key)
        item = QTreeWidgetItem(holder, [plain(key), ""])
        item.setData(0, POINTER, item_pointer)
        item.setData(0, VALUE, Value(value))
        if depth < MAX_TREE_DEPTH and _is_branch(value):
            members = value.items() if isinstance(value, dict) else enumerate(value)
            queue.extend((item, str(name), inner, item_pointer, depth + 1) for name, inner in members)
        else:
            text = _short_text(value)
            item.setText(1, plain(text, MAX_VALUE))
            item.setToolTip(1, tooltip(text))
    if queue:
        more = QTreeWidgetItem(parent, [plain(f"{len(queue):,} more"), "see the Raw tab"])
        more.setData(0, POINTER, "")
        more.setData(0, VALUE, Value(""))


def _is_branch(value: Any) -> bool:
    """Return whether a value is displayed as a branch. A list without nested lists or objects is one line of text."""
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value)


def _short_text(value: Any) -> str:
    """Return a value as text. Only the first ``MAX_TEXT`` elements of a list are converted."""
    if isinstance(value, list) and len(value) > MAX_TEXT:
        return Value(value[:MAX_TEXT]).text().removesuffix("]") + ", …"
    return Value(value).text()


def show_matching(item: QTreeWidgetItem, text: str) -> bool:
    """Show an item if it or a descendant contains the text, else hide it. Returns whether it is shown."""
    item_matches = not text or any(text in item.text(column).casefold() for column in range(2))
    descendant_matches = False
    for row in range(item.childCount()):
        child = item.child(row)
        if child is not None:
            child_text = "" if item_matches and text else text
            descendant_matches = show_matching(child, child_text) or descendant_matches
    is_shown = item_matches or descendant_matches
    if item.parent() is not None or item.treeWidget() is not None:
        item.setHidden(not is_shown)
        if text and descendant_matches:
            item.setExpanded(True)
    return is_shown
