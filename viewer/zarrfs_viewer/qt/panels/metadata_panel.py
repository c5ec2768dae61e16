"""The metadata of a node: a summary, the attributes as a searchable tree, the document, and the OME-NGFF check."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from PyQt6.QtCore import Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QFontDatabase
from PyQt6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

import zarrfs
from zarrfs.engine.nodes.summary import array_summary, group_summary, json_safe
from zarrfs.ngff.checks.report import pointer
from zarrfs_viewer.analysis.image_summary import image_summary, stored_summary
from zarrfs_viewer.images.dataset import describe
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.n5_pyramid import image_metadata
from zarrfs_viewer.qt.panels.check_panel import CheckPanel
from zarrfs_viewer.qt.panels.compare_panel import ComparePanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import MAX_TEXT, button_text, document_text, plain, tooltip
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["MetadataPanel"]

POINTER = Qt.ItemDataRole.UserRole
VALUE = Qt.ItemDataRole.UserRole + 1
MAX_TREE_ITEMS = 20_000
"""Items of the tree. All are created at once. The document contains the rest."""
MAX_TREE_DEPTH = 60
"""Levels of the tree. Deeper values are displayed as JSON."""
MAX_VALUE = 400
"""Characters of a value in the tree. The tooltip contains up to ``MAX_TEXT``; the menu copies the whole value."""


class MetadataPanel(QWidget):
    """The metadata of one node.

    Signals:
        edit_requested: (node) the user wants to edit the attributes.
    """

    edit_requested = pyqtSignal(object)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._node: zarrfs.Array | zarrfs.Group | None = None
        self._fill_timer = QTimer(self)
        self._fill_timer.setSingleShot(True)
        self._fill_timer.setInterval(0)
        self._fill_timer.timeout.connect(self._show_node)
        self.check = CheckPanel(session)
        self.check.pointer_activated.connect(self.go_to)
        self.compare = ComparePanel()
        self.edit = QPushButton("Edit...")
        self.edit.setEnabled(False)
        self.edit.clicked.connect(lambda: self.edit_requested.emit(self._node))
        self.search = search_box("Find key or value")
        self.search.textChanged.connect(self._filter)
        self.facts = self._create_tree("Summary")
        self.attributes = self._create_tree("Attributes")
        self.document = QPlainTextEdit()
        self.document.setReadOnly(True)
        self.document.setAccessibleName("Metadata document")
        self.document.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.document.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.tabs = QTabWidget()
        bar = self.tabs.tabBar()
        if bar is not None:
            bar.setUsesScrollButtons(False)
            bar.setElideMode(Qt.TextElideMode.ElideRight)  # lets the panel become narrower than its tabs
        for widget, title in (
            (self.facts, "Summary"),
            (self.attributes, "Attributes"),
            (self.document, "Raw"),
            (self.check, "Check"),
            (self.compare, "Compare"),
        ):
            self.tabs.addTab(widget, button_text(title))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        row = QHBoxLayout()
        row.addWidget(self.search, 1)
        row.addWidget(self.edit)
        layout.addLayout(row)
        layout.addWidget(self.tabs)

    def _create_tree(self, name: str) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setAccessibleName(plain(name))
        tree.setHeaderLabels(["Key", "Value"])
        tree.setColumnWidth(0, 116)
        tree.setIndentation(12)
        tree.setWordWrap(True)
        tree.setAlternatingRowColors(True)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(lambda point, tree=tree: self._menu(tree, point))
        return tree

    def show_node(self, node: zarrfs.Array | zarrfs.Group) -> None:
        """Display the metadata of a node. The image of a group, and stored sizes, are added by a worker thread.

        The panel is filled by a later event, so that the picture of an opened image is not delayed.
        """
        self._session.worker.cancel("stored")
        self._node = node
        self._fill_timer.start()

    @property
    def is_current(self) -> bool:
        """Whether the panel displays the node that was passed to ``show_node`` last, and not an earlier one."""
        return not self._fill_timer.isActive()

    def _show_node(self) -> None:
        node = self._node
        if node is None:
            return
        facts = array_summary(node) if isinstance(node, zarrfs.Array) else group_summary(node)
        attributes = facts.pop("attributes")
        self._fill(self.facts, {key: _readable(value) for key, value in facts.items() if value is not None})
        self._fill(self.attributes, attributes)
        text = json.dumps(json_safe(node.metadata), indent=2, ensure_ascii=False)
        self.document.setPlainText(document_text(text))
        self.check.show_node(node)
        self.compare.show_node(node)
        self.edit.setEnabled(True)
        self._filter(self.search.text())
        if isinstance(node, zarrfs.Array):
            self._add_later(lambda: _stored(node))
        else:
            self._session.worker.submit(
                lambda: _image_of(node), self._show_image_facts, lambda _: None, "stored", low_priority=True
            )

    def _show_image_facts(self, found: tuple[Image, str | None] | None) -> None:
        """Display the summary of a group's image before the other facts, and request its stored size."""
        if found is None:
            return
        image, version = found
        root = self.facts.invisibleRootItem()
        former = root.takeChildren() if root is not None else []
        self._add_facts(image_summary(image, version))
        if root is not None:
            root.addChildren(former)
        self.facts.expandToDepth(0)
        self._filter(self.search.text())
        self._add_later(lambda: stored_summary(image))

    def _add_later(self, function: Callable[[], dict[str, Any]]) -> None:
        """Add facts that a worker thread determines."""
        self._session.worker.submit(
            function,
            self._add_facts,
            lambda error: self._add_facts({"stored": f"unknown: {error}"}),
            "stored",
            low_priority=True,
        )

    def _add_facts(self, facts: dict[str, Any]) -> None:
        root = self.facts.invisibleRootItem()
        if root is not None:
            _add_all(root, facts)
        self._filter(self.search.text())

    def go_to(self, pointer: str) -> None:
        """Select the attribute at a JSON pointer, or its nearest existing ancestor."""
        self.search.clear()
        self.tabs.setCurrentWidget(self.attributes)
        root = self.attributes.invisibleRootItem()
        item = None
        while root is not None and item is None:
            item = _item_at(root, pointer)
            if item is None and not pointer:
                return
            pointer = pointer.rpartition("/")[0] if item is None else pointer
        if item is not None:
            self.attributes.setCurrentItem(item)
            self.attributes.scrollToItem(item)

    def show_text(self, text: str) -> None:
        """Display an error message instead of the metadata of a node."""
        self._session.worker.cancel("stored")
        self._fill_timer.stop()
        self.facts.clear()
        self.attributes.clear()
        self.check.show_node(None)
        self.compare.show_node(None)
        self.edit.setEnabled(False)
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
        item_pointer: str = item.data(0, POINTER)
        entries = [("Copy value", value.text), ("Copy JSON", value.json)]
        if tree is self.attributes:  # the keys of the summary are not those of the document
            entries.append(("Copy JSON pointer", lambda: item_pointer))
        for title, text in entries:
            action = menu.addAction(button_text(title))
            if action is not None:
                action.triggered.connect(lambda _=False, text=text: copy_to_clipboard(text()))
        menu.exec(viewport.mapToGlobal(point))


def _image_of(group: zarrfs.Group) -> tuple[Image, str | None] | None:
    """Return the image of a group and its version of OME-NGFF; None if the group is not an image. Opens the levels."""
    if not image_metadata(group).multiscales:
        return None
    dataset = describe(group)
    return dataset.open_image(), dataset.version


def _stored(node: zarrfs.Array) -> dict[str, Any]:
    """Return the stored chunks and bytes of an array. Lists its chunks and blocks."""
    stored = node.nbytes_stored()
    facts: dict[str, Any] = {
        "chunks stored": f"{node.nshards_initialized:,} of {node.nshards:,}",
        "bytes stored": f"{stored:,}",
    }
    if stored:
        facts["compression ratio"] = f"{node.nbytes / stored:.2f}"
    return facts


def _readable(value: Any) -> Any:
    """Return a shape, as in ``[64, 64]``, as ``64 x 64``; other values unchanged."""
    if isinstance(value, list) and value and all(type(length) is int for length in value):
        return " x ".join(map(str, value))
    return value


def _item_at(parent: QTreeWidgetItem, pointer: str) -> QTreeWidgetItem | None:
    """Return the descendant of an item with exactly this JSON pointer, or None."""
    for row in range(parent.childCount()):
        child = parent.child(row)
        if child is None:
            continue
        child_pointer = child.data(0, POINTER)
        if child_pointer == pointer:
            return child
        if pointer.startswith(f"{child_pointer}/"):
            return _item_at(child, pointer)
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


def _add_all(parent: QTreeWidgetItem, values: Mapping[str, Any]) -> None:
    """Add an item for each value and nested value, with at most ``MAX_TREE_DEPTH`` levels and ``MAX_TREE_ITEMS`` items.

    Items are added in breadth-first order, so that all top-level keys are displayed.
    """
    queue = deque((parent, str(key), value, "", 0) for key, value in values.items())
    for _ in range(MAX_TREE_ITEMS):
        if not queue:
            return
        holder, key, value, parent_pointer, depth = queue.popleft()
        item_pointer = parent_pointer + pointer(key)
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


def _show_matching(item: QTreeWidgetItem, text: str) -> bool:
    """Show an item if it or a descendant contains the text, else hide it. Returns whether it is shown."""
    item_matches = not text or any(text in item.text(column).casefold() for column in range(2))
    descendant_matches = False
    for row in range(item.childCount()):
        child = item.child(row)
        if child is not None:
            child_text = "" if item_matches and text else text
            descendant_matches = _show_matching(child, child_text) or descendant_matches
    is_shown = item_matches or descendant_matches
    if item.parent() is not None or item.treeWidget() is not None:
        item.setHidden(not is_shown)
        if text and descendant_matches:
            item.setExpanded(True)
    return is_shown
