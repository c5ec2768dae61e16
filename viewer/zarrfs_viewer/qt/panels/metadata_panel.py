"""What a node is: its facts, its attributes as a searchable tree, and the raw document."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QFontDatabase
from PyQt6.QtWidgets import (
    QMenu,
    QPlainTextEdit,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

import zarrfs
from zarrfs.engine.nodes.summary import array_summary, group_summary, json_safe
from zarrfs.ngff.checks.report import pointer
from zarrfs_viewer.qt.panels.check_panel import CheckPanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, button_text, document_text, plain, tooltip
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["MetadataPanel"]

POINTER = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
MAX_ITEMS = 20_000
"""Lines of the tree, which are made at once; the document is displayed as text in any case."""
MAX_DEPTH = 60
"""Levels of the tree; what is deeper is displayed as JSON."""
MAX_VALUE = 400
"""Characters of a value in the tree; its tooltip has more, and the menu copies all of it."""


class MetadataPanel(QWidget):
    """Facts, attributes and document of one node, and what the OME-NGFF check says of it."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.check = CheckPanel(session)
        self.check.pointed.connect(self.go_to)
        self.search = search_box("Find a key or value")
        self.search.textChanged.connect(self._filter)
        self.facts = self._tree("Facts")
        self.attributes = self._tree("Attributes")
        self.document = QPlainTextEdit()
        self.document.setReadOnly(True)
        self.document.setAccessibleName("Metadata document")
        self.document.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.document.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.tabs = QTabWidget()
        bar = self.tabs.tabBar()
        if bar is not None:
            bar.setUsesScrollButtons(False)
        for widget, title in (
            (self.facts, "Summary"),
            (self.attributes, "Attributes"),
            (self.document, "Raw"),
            (self.check, "Check"),
        ):
            self.tabs.addTab(widget, button_text(title))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.search)
        layout.addWidget(self.tabs)

    def _tree(self, name: str) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setAccessibleName(plain(name))
        tree.setHeaderLabels(["Key", "Value"])
        tree.setColumnWidth(0, 130)
        tree.setAlternatingRowColors(True)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(lambda point, tree=tree: self._menu(tree, point))
        return tree

    def show_node(self, node: zarrfs.Array | zarrfs.Group) -> None:
        """Show what the metadata of a node say; how much of an array is stored follows from a worker."""
        self._session.worker.forget("stored")
        facts = array_summary(node) if isinstance(node, zarrfs.Array) else group_summary(node)
        attributes = facts.pop("attributes")
        self._fill(self.facts, {key: value for key, value in facts.items() if value is not None})
        self._fill(self.attributes, attributes)
        text = json.dumps(json_safe(node.metadata), indent=2, ensure_ascii=False)
        self.document.setPlainText(document_text(text))
        self.check.show_node(node)
        self._filter(self.search.text())
        if isinstance(node, zarrfs.Array):
            self._session.worker.submit(
                lambda: _stored(node),
                self._add_facts,
                lambda error: self._add_facts({"stored": f"not known: {error}"}),
                "stored",
                last=True,
            )

    def _add_facts(self, facts: dict[str, Any]) -> None:
        root = self.facts.invisibleRootItem()
        if root is not None:
            _add_all(root, facts)
        self._filter(self.search.text())

    def go_to(self, pointer: str) -> None:
        """Show the attribute at a JSON pointer, or the nearest one above it that there is."""
        self.search.clear()
        self.tabs.setCurrentWidget(self.attributes)
        root = self.attributes.invisibleRootItem()
        found = None
        while root is not None and found is None:
            found = _at_pointer(root, pointer)
            if found is None and not pointer:
                return
            pointer = pointer.rpartition("/")[0] if found is None else pointer
        if found is not None:
            self.attributes.setCurrentItem(found)
            self.attributes.scrollToItem(found)

    def show_text(self, text: str) -> None:
        """Show a message in place of a node that could not be opened."""
        self._session.worker.forget("stored")
        self.facts.clear()
        self.attributes.clear()
        self.check.show_node(None)
        self.document.setPlainText(document_text(text))
        self.tabs.setCurrentWidget(self.document)

    def _fill(self, tree: QTreeWidget, values: dict[str, Any]) -> None:
        tree.clear()
        root = tree.invisibleRootItem()
        if root is not None:
            _add_all(root, values)
        tree.expandToDepth(0)

    def _filter(self, text: str) -> None:
        for tree in (self.facts, self.attributes):
            root = tree.invisibleRootItem()
            if root is not None:
                _show_matching(root, text.casefold())

    def _menu(self, tree: QTreeWidget, point: Any) -> None:
        item = tree.itemAt(point)
        viewport = tree.viewport()
        if item is None or viewport is None:
            return
        menu = QMenu(self)
        value: Value = item.data(0, VALUE)
        where: str = item.data(0, POINTER)
        for title, text in (("Copy value", value.text), ("Copy JSON pointer", lambda: where)):
            action = menu.addAction(button_text(title))
            if action is not None:
                action.triggered.connect(lambda _=False, text=text: copy_to_clipboard(text()))
        menu.exec(viewport.mapToGlobal(point))


def _stored(node: zarrfs.Array) -> dict[str, Any]:
    """Return how much of an array is stored. Walks its chunks: for a worker."""
    stored = node.nbytes_stored()
    facts: dict[str, Any] = {
        "chunks stored": f"{node.nshards_initialized:,} of {node.nshards:,}",
        "bytes stored": f"{stored:,}",
    }
    if stored:
        facts["compression ratio"] = f"{node.nbytes / stored:.2f}"
    return facts


def _at_pointer(parent: QTreeWidgetItem, pointer: str) -> QTreeWidgetItem | None:
    """Return the item of exactly this pointer below another one."""
    for row in range(parent.childCount()):
        child = parent.child(row)
        if child is None:
            continue
        own = child.data(0, POINTER)
        if own == pointer:
            return child
        if pointer.startswith(f"{own}/"):
            return _at_pointer(child, pointer)
    return None


@dataclass(frozen=True, eq=False)
class Value:
    """The value of an item, converted to text only when it is copied."""

    value: Any

    def text(self) -> str:
        """Return a string as it is, anything else as JSON."""
        return self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)


def _add_all(parent: QTreeWidgetItem, values: Mapping[str, Any]) -> None:
    """Add an item for each key and, down to ``MAX_DEPTH`` and up to ``MAX_ITEMS``, for what is inside the values."""
    waiting = deque((parent, str(key), value, "", 0) for key, value in values.items())
    for _ in range(MAX_ITEMS):
        if not waiting:
            return
        holder, key, value, above, depth = waiting.popleft()
        where = above + pointer(key)
        item = QTreeWidgetItem(holder, [plain(key), ""])
        item.setData(0, POINTER, where)
        item.setData(0, VALUE, Value(value))
        if depth < MAX_DEPTH and _has_members(value):
            members = value.items() if isinstance(value, dict) else enumerate(value)
            waiting.extend((item, str(name), inner, where, depth + 1) for name, inner in members)
        else:
            text = _short_text(value)
            item.setText(1, plain(text, MAX_VALUE))
            item.setToolTip(1, tooltip(text))
    if waiting:
        more = QTreeWidgetItem(parent, [plain(f"{len(waiting):,} more"), "see the tab Raw"])
        more.setData(0, POINTER, "")
        more.setData(0, VALUE, Value(""))


def _has_members(value: Any) -> bool:
    """Return whether a value is displayed as a branch: a short list of numbers is a line of text."""
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value)


def _short_text(value: Any) -> str:
    """Return the beginning of a value as text, without converting all of a long list."""
    if isinstance(value, list) and len(value) > MAX_TEXT:
        return Value(value[:MAX_TEXT]).text().removesuffix("]") + ", …"
    return Value(value).text()


def _show_matching(item: QTreeWidgetItem, text: str) -> bool:
    """Hide what does not hold the text, itself or below; tell whether anything is left."""
    own = not text or any(text in item.text(column).casefold() for column in range(2))
    below = False
    for row in range(item.childCount()):
        child = item.child(row)
        if child is not None:
            below = _show_matching(child, "" if own and text else text) or below
    found = own or below
    if item.parent() is not None or item.treeWidget() is not None:
        item.setHidden(not found)
        if text and below:
            item.setExpanded(True)
    return found
