"""The metadata of a node: a summary, the attributes as a searchable tree, the document, and the OME-NGFF check."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QFontDatabase, QShowEvent
from PyQt6.QtWidgets import (
    QHBoxLayout,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QTreeWidget,
    QVBoxLayout,
    QWidget,
)

import zarrfs
from zarrfs_viewer.analysis.image_summary import image_summary, stored_summary
from zarrfs_viewer.analysis.node_summary import check_status, node_summary, stored_array_summary
from zarrfs_viewer.images.dataset import describe
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.n5_pyramid import image_metadata
from zarrfs_viewer.qt.panels.metadata.attribute_tree import (
    POINTER,
    VALUE,
    Value,
    add_all,
    item_at,
    show_matching,
)
from zarrfs_viewer.qt.panels.metadata.check_panel import CheckPanel
from zarrfs_viewer.qt.panels.metadata.compare_panel import ComparePanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text, document_text, plain
from zarrfs_viewer.qt.support.tabs import NarrowTabWidget
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, search_box

__all__ = ["MetadataPanel"]

BUTTON_MARGIN = 16
"""Pixels: the width of a button beyond its text, in a panel that may be narrow."""


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
        self._fill_timer.timeout.connect(self._fill_next)
        self._unfilled: list[Callable[[], None]] = []
        self.check = CheckPanel(session)
        self.check.pointer_activated.connect(self.go_to)
        self.check.checked.connect(self._show_status)
        self._status: dict[str, Any] = {}
        self.compare = ComparePanel()
        self.edit = QPushButton("Edit...")
        self.edit.setEnabled(False)
        self.edit.clicked.connect(lambda: self.edit_requested.emit(self._node))
        self.comparing = QPushButton("Compare")
        self.comparing.setCheckable(True)
        self.comparing.toggled.connect(self._show_comparison)
        for button in (self.edit, self.comparing):
            button.setFixedWidth(button.fontMetrics().horizontalAdvance(button.text()) + BUTTON_MARGIN)
        self.search = search_box("Find key or value")
        self.search.setMinimumWidth(40)
        self.search.textChanged.connect(self._filter)
        self.summary = self._create_tree("Summary")
        self.attributes = self._create_tree("Attributes")
        self.document = QPlainTextEdit()
        self.document.setReadOnly(True)
        self.document.setAccessibleName("Metadata document")
        self.document.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.document.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.tabs = NarrowTabWidget()
        for widget, title in (
            (self.summary, "Summary"),
            (self.attributes, "Attributes"),
            (self.document, "Raw"),
            (self.check, "Check"),
        ):
            self.tabs.addTab(widget, button_text(title))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        row = QHBoxLayout()
        row.addWidget(self.search, 1)
        row.addWidget(self.edit)
        row.addWidget(self.comparing)
        layout.addLayout(row)
        layout.addWidget(self.tabs)
        layout.addWidget(self.compare)
        self.compare.hide()

    def _create_tree(self, name: str) -> QTreeWidget:
        tree = QTreeWidget()
        tree.setAccessibleName(plain(name))
        tree.setHeaderLabels(["Key", "Value"])
        tree.setColumnWidth(0, 128)
        tree.setIndentation(12)
        tree.setWordWrap(True)
        tree.setAlternatingRowColors(True)
        tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        tree.customContextMenuRequested.connect(lambda point, tree=tree: self._menu(tree, point))
        return tree

    def show_node(self, node: zarrfs.Array | zarrfs.Group) -> None:
        """Display the metadata of a node. The image of a group, and stored sizes, are added by a worker thread.

        The panel is filled by later events, one part by each, so that the picture of an opened image is not delayed.
        """
        self._session.worker.cancel("stored")
        self._node = node
        self._status = {}
        self._unfilled = self._parts(node)
        self._fill_timer.start()

    @property
    def is_current(self) -> bool:
        """Whether the panel displays the node that was passed to ``show_node`` last, and not an earlier one."""
        return not self._fill_timer.isActive()

    def _fill_next(self) -> None:
        """Fill the next part. The others follow in later events."""
        if self._unfilled:
            self._unfilled.pop(0)()
        if self._unfilled:
            self._fill_timer.start()

    def _parts(self, node: zarrfs.Array | zarrfs.Group) -> list[Callable[[], None]]:
        """Return the functions that fill the parts of the panel."""
        from zarrfs.engine.hierarchy.summary import json_safe

        def show_summary() -> None:
            self._fill(self.summary, node_summary(node))

        def show_attributes() -> None:
            self._fill(self.attributes, json_safe(node.attrs.asdict()))

        def show_document() -> None:
            text = json.dumps(json_safe(node.metadata), indent=2, ensure_ascii=False)
            self.document.setPlainText(document_text(text))

        def show_others() -> None:
            self.check.show_node(node)
            self.compare.show_node(node)
            self.edit.setEnabled(True)
            self._filter(self.search.text())
            self._request_status()

        return [show_summary, show_attributes, show_document, show_others, lambda: self._request_others(node)]

    def _request_others(self, node: zarrfs.Array | zarrfs.Group) -> None:
        """Request what a worker thread determines."""
        if isinstance(node, zarrfs.Array):
            self._add_later(lambda: stored_array_summary(node))
        else:
            self._session.worker.submit(
                lambda: _image_of(node), self._show_image_summary, lambda _: None, "stored", low_priority=True
            )

    def _request_status(self) -> None:
        """Check the node for the summary if the user sees it: the check reads the metadata of the nodes below."""
        if self.summary.isVisible() and not self._fill_timer.isActive():
            self.check.check(low_priority=True)

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._request_status()

    def _show_status(self, report: Any) -> None:
        """Display the result of the check in the summary, in place of the version."""
        self._status = check_status(report)
        self._replace_in_summary(self._status)

    def _replace_in_summary(self, properties: dict[str, Any]) -> None:
        """Replace properties of the summary, or add them."""
        root = self.summary.invisibleRootItem()
        if root is None:
            return
        for name, value in properties.items():
            former = self.summary.findItems(plain(name), Qt.MatchFlag.MatchExactly)
            row = root.indexOfChild(former[0]) if former else root.childCount()
            for item in former:
                root.removeChild(item)
            add_all(root, {name: value})
            added = root.takeChild(root.childCount() - 1)
            root.insertChild(row, added)
            if added is not None:
                added.setExpanded(True)
        self._filter(self.search.text())

    def _show_image_summary(self, image_and_version: tuple[Image, str | None] | None) -> None:
        """Display the summary of a group's image before the other properties, and request its stored size."""
        if image_and_version is None:
            return
        image, version = image_and_version
        root = self.summary.invisibleRootItem()
        former = root.takeChildren() if root is not None else []
        self._add_to_summary(image_summary(image, version))
        if root is not None:
            root.addChildren(former)
        self.summary.expandToDepth(0)
        self._replace_in_summary(self._status)
        self._add_later(lambda: stored_summary(image))

    def _add_later(self, function: Callable[[], dict[str, Any]]) -> None:
        """Add properties that a worker thread determines."""
        self._session.worker.submit(
            function,
            self._add_to_summary,
            lambda error: self._add_to_summary({"Stored size": f"unknown: {error}"}),
            "stored",
            low_priority=True,
        )

    def _add_to_summary(self, properties: dict[str, Any]) -> None:
        root = self.summary.invisibleRootItem()
        if root is not None:
            add_all(root, properties)
        self._filter(self.search.text())

    def go_to(self, pointer: str) -> None:
        """Select the attribute at a JSON pointer, or its nearest existing ancestor."""
        self.search.clear()
        self.comparing.setChecked(False)
        self.tabs.setCurrentWidget(self.attributes)
        root = self.attributes.invisibleRootItem()
        item = None
        while root is not None and item is None:
            item = item_at(root, pointer)
            if item is None and not pointer:
                return
            pointer = pointer.rpartition("/")[0] if item is None else pointer
        if item is not None:
            self.attributes.setCurrentItem(item)
            self.attributes.scrollToItem(item)

    def _show_comparison(self, on: bool) -> None:
        """Show the comparison with a reference node instead of the metadata of the node alone."""
        self.tabs.setVisible(not on)
        self.search.setEnabled(not on)
        self.compare.setVisible(on)

    def show_text(self, text: str) -> None:
        """Display an error message instead of the metadata of a node."""
        self._session.worker.cancel("stored")
        self._fill_timer.stop()
        self.summary.clear()
        self.attributes.clear()
        self.check.show_node(None)
        self.compare.show_node(None)
        self.edit.setEnabled(False)
        self.document.setPlainText(document_text(text))
        self.comparing.setChecked(False)
        self.tabs.setCurrentWidget(self.document)

    def _fill(self, tree: QTreeWidget, values: dict[str, Any]) -> None:
        tree.clear()
        root = tree.invisibleRootItem()
        if root is not None:
            add_all(root, values)
        tree.expandToDepth(0)

    def _filter(self, text: str) -> None:
        for tree in (self.summary, self.attributes):
            root = tree.invisibleRootItem()
            if root is not None:
                show_matching(root, text.casefold())

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
