"""Editing the attributes of nodes: opens the editor, checks the edited attributes, saves them, and shows the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from PyQt6.QtCore import Qt, pyqtSignal

import zarrfs
from zarrfs.errors import ReadOnlyError
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.opening import open_with_labels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.metadata.metadata_editor import MetadataEditor
from zarrfs_viewer.qt.panels.metadata.metadata_panel import MetadataPanel
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.state.view_state import with_edited_channels

__all__ = ["Metadata"]

Node: TypeAlias = "zarrfs.Array | zarrfs.Group"
Attributes = dict[str, Any]


@dataclass(frozen=True)
class Saved:
    """The result of saving.

    ``is_visible`` is whether the open store shows the change. ``image`` is the displayed image with its new metadata,
    its label images and notes, or None if it is in another store.
    """

    attributes: Attributes
    is_visible: bool
    image: tuple[Image, tuple[Image, ...], tuple[str, ...]] | None


class Metadata(Panel):
    """The tab with the metadata of the selected node, and their editor.

    One editor is open at a time. The store is accessed on worker threads only.

    Signals:
        saved: the metadata of a node were written.
    """

    saved = pyqtSignal()

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        self._panes = context.panes
        self._tabs = context.tabs
        self._parent = context.window
        self.panel = MetadataPanel(context.session)
        context.tabs.addTab(self.panel, button_text("Metadata"))
        self.panel.edit_requested.connect(self.edit)
        context.session.node_changed.connect(self.panel.show_node)
        context.session.failed.connect(self._show_failure)
        tree = context.find(Hierarchy).tree
        tree.unreadable_node_selected.connect(self.panel.show_text)
        tree.clicked.connect(lambda: context.tabs.setCurrentWidget(self.panel))
        self.editor: MetadataEditor | None = None

    def _show_failure(self, reason: str) -> None:
        if self._session.image is None:
            self._tabs.setCurrentWidget(self.panel)
        if self._session.dataset is None:
            self.panel.show_text(reason)

    def edit(self, node: Node) -> None:
        """Open the editor for a node, or show why it cannot be edited."""
        if self.editor is not None and self.editor.isVisible():
            self.editor.raise_()
            self.editor.activateWindow()
            self._session.show_message("Close the metadata editor before you edit another node.")
            return
        self._session.run_in_worker(
            lambda: read_editable(node), lambda attributes: self._open(node, attributes), "edit"
        )

    def close(self) -> None:
        """Delete the editor. Changes that are not saved are lost."""
        for owner in ("edit-check", "edit-save"):
            self._session.worker.cancel(owner)
        if self.editor is not None:
            self.editor.hide()
            self.editor.deleteLater()
            self.editor = None

    def _open(self, node: Node, attributes: Attributes) -> None:
        self.close()
        name = node.path or node.store.url.rstrip("/").rpartition("/")[2]
        self.editor = editor = MetadataEditor(name, attributes, self._parent)
        editor.setWindowModality(Qt.WindowModality.NonModal)
        screen = self._parent.screen()
        if screen is not None:
            available = screen.availableGeometry().size() * 0.9
            editor.resize(min(560, available.width()), min(520, available.height()))
        editor.changed.connect(lambda: self._check(editor))
        editor.save_requested.connect(lambda: self._save(editor, node))
        editor.show()

    def _check(self, editor: MetadataEditor) -> None:
        from zarrfs.ngff import check_attributes  # the checks take long to import

        attributes = editor.edits.current
        worker = self._session.worker
        worker.cancel("edit-check")
        worker.submit(
            lambda: check_attributes(attributes),
            editor.show_report,
            lambda error: editor.show_problem(f"The metadata cannot be checked: {error}"),
            "edit-check",
        )

    def _save(self, editor: MetadataEditor, node: Node) -> None:
        expected, attributes = editor.edits.stored, editor.edits.current
        dataset, image = self._session.dataset, self._session.image

        def save() -> Saved:
            write(node, expected, attributes)
            node.refresh()
            is_visible = dict(node.attrs) == attributes
            if dataset is None or image is None or dataset.node.store.url != node.store.url:
                return Saved(attributes, is_visible, None)
            dataset.node.refresh()
            return Saved(
                attributes, is_visible, open_with_labels(dataset, image.path, image.kind == "labels")
            )

        self._session.worker.submit(
            save,
            lambda saved: self._show_saved(editor, node, image, saved),
            lambda error: editor.show_problem(f"Not saved: {error}"),
            "edit-save",
        )

    def _show_saved(self, editor: MetadataEditor, node: Node, image: Image | None, saved: Saved) -> None:
        editor.set_saved(saved.attributes)
        self.saved.emit()
        if saved.image is not None and image is not None and self._session.image is image:
            self._reload(image, *saved.image)
        self._session.show_metadata(node)
        if not saved.is_visible:
            self._open_again(node)

    def _open_again(self, node: Node) -> None:
        """Open the displayed location again, with the user's settings, because the open store (a zip file) does not
        show the change.
        """
        dataset = self._session.dataset
        view = self._session.view("", self._panes.main.canvas.viewport)
        is_shown = dataset is not None and not dataset.path and dataset.node.store.url == node.store.url
        if view is not None and is_shown:
            self._session.open_view(view)
        else:
            self._session.show_message("Saved. Open the location again to see the change.")

    def _reload(
        self, before: Image, image: Image, overlays: tuple[Image, ...], notes: tuple[str, ...]
    ) -> None:
        """Display the image with its new metadata. The user's settings of what was not edited are kept."""
        session = self._session
        view = session.view("", self._panes.main.canvas.viewport)
        tab = self._tabs.currentWidget()
        session.show_image(image, overlays, notes, view)
        self._tabs.setCurrentWidget(tab)
        if session.settings is not None:
            session.change(
                with_edited_channels(
                    session.settings, initial_settings(before).channels, initial_settings(image).channels
                )
            )


def read_editable(node: Node) -> Attributes:
    """Return the stored attributes of a node. Raises ReadOnlyError or another ZarrError if it cannot be written."""
    with zarrfs.open(node.store.url, node.path, mode="r+") as stored:
        if stored.read_only:
            raise ReadOnlyError(
                f"{node.store.url}: the store can only be read, so its metadata cannot be edited"
            )
        return dict(stored.attrs)


def write(node: Node, expected: Attributes, attributes: Attributes) -> None:
    """Replace the stored attributes of a node, also in consolidated metadata. Raises StoreError if they are not the
    expected ones any more.
    """
    from zarrfs.tools.editing.saving import save_attributes  # takes long to import

    save_attributes(node.store.url, node.path, expected, attributes)
