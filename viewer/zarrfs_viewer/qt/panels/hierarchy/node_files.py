"""Nodes as files of a mount: opened in the file manager, copied as paths, and dragged to other programs."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QObject, QUrl
from PyQt6.QtGui import QActionGroup, QDesktopServices
from PyQt6.QtWidgets import QMenu

import zarrfs
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.hierarchy.tree_items import HierarchyItem
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard

__all__ = ["FILE_TYPES", "NodeFiles"]

FILE_TYPES = (
    ("", "Folder of a group, NumPy file of an array"),
    (".npy", "NumPy (.npy)"),
    (".tif", "TIFF of ImageJ (.tif)"),
    (".ome.tif", "OME-TIFF (.ome.tif)"),
    (".nii", "NIfTI (.nii)"),
    (".nrrd", "NRRD (.nrrd)"),
    (".mha", "MetaImage (.mha)"),
    (".vti", "VTK (.vti)"),
    (".h5", "HDF5 (.h5)"),
    (".fits", "FITS (.fits)"),
    (".csv", "CSV (.csv)"),
)
"""The suffixes of files in a mount, with their titles. An image is the file of its finest level."""


class NodeFiles(QObject):
    """The files that represent nodes in mounts of this window.

    Attributes:
        suffix: the file type that is dragged and whose path is copied; empty for the default.
    """

    def __init__(self, session: Session, mounts: Mounts, parent: QObject) -> None:
        super().__init__(parent)
        self._session = session
        self._mounts = mounts
        self.suffix = ""

    def add_menu(self, menu: QMenu) -> None:
        """Add a submenu that selects the file type."""
        submenu = menu.addMenu(button_text("File type of drags and paths"))
        if submenu is None:
            return
        group = QActionGroup(submenu)
        for suffix, title in FILE_TYPES:
            action = submenu.addAction(button_text(title, 60))
            if action is not None:
                action.setCheckable(True)
                action.setChecked(suffix == self.suffix)
                action.triggered.connect(lambda _=False, suffix=suffix: self.select(suffix))
                group.addAction(action)

    def select(self, suffix: str) -> None:
        """Select the file type of drags and paths."""
        self.suffix = suffix

    def file(self, item: HierarchyItem) -> Path:
        """Return the path of the file or directory of a node in its mount, with the selected file type."""
        path, is_array = item.path, isinstance(item.node, zarrfs.Array)
        levels = item.description.levels if item.description is not None else ()
        if self.suffix and levels and not is_array:
            path, is_array = f"{path}/{levels[0]}".strip("/"), True
        file = self._mounts.file(item.location, path, is_array)
        return (
            file.with_name(file.name.removesuffix(".npy") + self.suffix) if is_array and self.suffix else file
        )

    def open_folder(self, item: HierarchyItem) -> None:
        """Mount the location of a node and open the directory of the node in the file manager."""
        is_array = isinstance(item.node, zarrfs.Array)
        file = self._mounts.file(item.location, item.path, is_array)

        def show(_: Path) -> None:
            self._session.show_message(f"Mounted as {file}")
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(file.parent if is_array else file)))

        self._session.run_in_worker(lambda: self._mounts.mount(item.location), show, "mount")

    def copy_path(self, item: HierarchyItem) -> None:
        """Mount the location of a node and copy the path of its file or directory in the mount."""
        file = self.file(item)

        def copy(exists: bool) -> None:
            if exists:
                copy_to_clipboard(str(file))
                self._session.show_message(f"Mounted, and copied the path {file}")
            else:
                self._report_missing(file)

        self._session.run_in_worker(lambda: self._mount(item, file), copy, "mount")

    def file_for_drag(self, item: HierarchyItem) -> Path | None:
        """Return the file in the mount that represents a node in a drag; None for an unreadable node.

        The mount starts now, so that the file exists when it is dropped.
        """
        if item.node is None:
            return None
        file = self.file(item)
        self._session.worker.submit(
            lambda: self._mount(item, file),
            lambda exists: None if exists else self._report_missing(file),
            self._session.show_error,
            "mount",
        )
        return file

    def _mount(self, item: HierarchyItem, file: Path) -> bool:
        """Mount the location of a node. Returns whether the file exists: not every format represents every array."""
        self._mounts.mount(item.location)
        return file.exists()

    def _report_missing(self, file: Path) -> None:
        self._session.show_message(
            f"{file.name} does not exist: the format cannot represent the array. The .json file of the array in the "
            "mount states the reason.",
            True,
        )
