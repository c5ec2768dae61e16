"""What a node is: its facts, its attributes as a searchable tree, and the raw document."""

from __future__ import annotations

import json
from typing import Any

from PyQt6.QtCore import Qt
from PyQt6.QtGui import QFontDatabase, QGuiApplication
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
from viewer.qt.check_panel import CheckPanel
from viewer.qt.session import Session
from viewer.qt.widgets import search_box
from zarrfs.engine.summary import array_summary, group_summary, json_safe

__all__ = ["MetadataPanel"]

POINTER = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
LONGEST_TEXT = 400


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
            self.tabs.addTab(widget, title)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.search)
        layout.addWidget(self.tabs)

    def _tree(self, name: str) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setAccessibleName(name)
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
        self.document.setPlainText(json.dumps(json_safe(node.metadata), indent=2, ensure_ascii=False))
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
            for key, value in facts.items():
                _add(root, key, value, "")
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
        self.document.setPlainText(text)
        self.tabs.setCurrentWidget(self.document)

    def _fill(self, tree: QTreeWidget, values: dict[str, Any]) -> None:
        tree.clear()
        root = tree.invisibleRootItem()
        if root is not None:
            for key, value in values.items():
                _add(root, key, value, "")
        tree.expandToDepth(0)

    def _filter(self, text: str) -> None:
        for tree in (self.facts, self.attributes):
            root = tree.invisibleRootItem()
            if root is not None:
                _show_matching(root, text.casefold())

    def _menu(self, tree: QTreeWidget, point: Any) -> None:
        item = tree.itemAt(point)
        clipboard = QGuiApplication.clipboard()
        viewport = tree.viewport()
        if item is None or clipboard is None or viewport is None:
            return
        menu = QMenu(self)
        for title, role in (("Copy value", VALUE), ("Copy JSON pointer", POINTER)):
            action = menu.addAction(title)
            if action is not None:
                action.triggered.connect(lambda _=False, role=role: clipboard.setText(item.data(0, role)))
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


def _add(parent: QTreeWidgetItem, key: str, value: Any, pointer: str) -> None:
    where = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
    plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    item = QTreeWidgetItem(parent, [key, plain[:LONGEST_TEXT]])
    item.setData(0, POINTER, where)
    item.setData(0, VALUE, plain)
    item.setToolTip(1, plain[:2000])
    deep = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(v, dict | list) for v in value)
    )
    if deep:
        item.setText(1, "")
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in members:
            _add(item, str(name), inner, where)


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
