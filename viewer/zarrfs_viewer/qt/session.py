"""The session of one window: it opens locations, nodes and images on worker threads, and displays them.

Panels read the session, change it, and connect to its signals. Widgets are in ``window`` and ``panels``;
``canvas.panes`` renders the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from zarrfs.engine.stores.base import Store
from zarrfs.errors import ZarrError
from zarrfs.ngff import SystemReference
from zarrfs_viewer.images.dataset import describe, describe_member
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.opening import (
    OpenedDataset,
    import_engine,
    open_dataset,
    open_first_image,
    open_with_labels,
    reopen,
)
from zarrfs_viewer.locations import absolute_location
from zarrfs_viewer.qt.displayed_image import DisplayedImage
from zarrfs_viewer.qt.support.steps import Steps
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.saved_views.views import View, from_link
from zarrfs_viewer.state.view_state import DisplaySettings, LabelsSettings, Viewport
from zarrfs_viewer.streaming.streamer import TileStreamer

__all__ = ["Session"]


class Session(DisplayedImage):
    """What one window has open and displays, with its threads. Use it only on the GUI thread. It never blocks.

    Attributes:
        worker: calls functions on threads.
        streamer: reads the tiles of the displayed images.
        requested: the last location that the user asked to open, or an empty text.
        refused: the last location that could not be opened, until it is opened; otherwise an empty text.

    Signals:
        opened: (location, node, number) a location was opened. Numbers count the requests: several locations can finish
            in another order than they were requested.
        node_changed: (node) another node is selected.
        failed: (text) no image can be displayed, with the reason.
        system_refused: the image cannot be displayed in the coordinate system that was requested.
        opening_changed: (list of locations) these locations are being opened.
    """

    opened = pyqtSignal(str, object, int)
    node_changed = pyqtSignal(object)
    failed = pyqtSignal(str)
    system_refused = pyqtSignal()
    opening_changed = pyqtSignal(list)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.worker = Worker()
        self.streamer = TileStreamer()
        self.requested = self.refused = ""
        self._requested_count = 0
        self._opening: list[str] = []
        self._open_errors: list[str] = []  # of the locations that were requested together
        self._displayed_number = 0
        self._steps = Steps(self)

    def close(self) -> None:
        """Stop the threads, without waiting for running reads."""
        self._steps.cancel()
        self.streamer.close(timeout=0.0)
        self.worker.close()

    def import_engine(self) -> None:
        """Import on a worker thread what opening a location needs. Call it when the window is visible."""
        self.worker.submit(import_engine, lambda _: None, self.show_error)

    def run_in_worker(self, function: Callable[[], Any], done: Callable[[Any], None], owner: str) -> None:
        """Call ``function`` on a worker thread, then ``done`` with its result on the GUI thread.

        ``done`` is not called if another function was submitted for the same owner in the meantime. Errors are
        shown to the user.
        """
        self.worker.cancel(owner)
        self.worker.submit(function, done, self.show_error, owner)

    def run_for_image(self, function: Callable[[], Any], done: Callable[[Any], None], owner: str) -> None:
        """Call ``run_in_worker``; ``done`` is also not called if another image is displayed by then."""
        image = self.image
        self.run_in_worker(function, lambda result: done(result) if self.image is image else None, owner)

    # -- opening -----------------------------------------------------------------------------------------------

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a path, URL, link or store on a worker thread. Returns at once; ``opened`` or ``failed`` follows."""
        if not self._opening:
            self._open_errors.clear()
            self.show_message("")
        view: View | None = None
        if isinstance(location, str):
            try:
                location, view = from_link(location)
                location = absolute_location(location)
            except ZarrError as error:
                self._report_open_error(error)
                return
        self._open(location, path, view)

    def open_view(self, view: View, as_labels: bool = False) -> None:
        """Open the image of a saved view, as labels if requested, and restore its display settings."""
        self.show_message("")
        self._open(view.location, "", view, as_labels)

    def _open(self, location: str | Store, path: str, view: View | None, as_labels: bool = False) -> None:
        name = location.url if isinstance(location, Store) else location
        image = None if view is None else view.image
        system = None if view is None else view.system
        self._submit_opening(name, view, lambda: open_dataset(location, name, path, image, as_labels, system))

    def reload(self, viewport: Viewport) -> None:
        """Open the displayed location again with the same settings: it may have been changed or replaced.

        ``viewport`` is the displayed part of the image. What is displayed remains if the location cannot be opened.
        """
        dataset, image = self.dataset, self.image
        if dataset is None:
            self.show_message("No location is open.")
            return
        self.show_message("")
        path = None if image is None else image.path
        as_labels = image is not None and image.kind == "labels"
        self._submit_opening(
            dataset.location,
            self.view("", viewport),
            lambda: reopen(dataset.location, dataset.path, path, as_labels, dataset.system),
        )

    def _submit_opening(
        self, name: str, view: View | None, function: Callable[[], tuple[Any, OpenedDataset]]
    ) -> None:
        """Call a function that opens a location on a worker thread, and display the result with a view."""
        self.requested = name
        self._requested_count += 1
        self._set_opening([*self._opening, name])
        number = self._requested_count
        self.worker.cancel("image")
        self.worker.submit(
            function,
            lambda result: self._finish_opening(name, number, view, *result),
            lambda error: self._fail_opening(name, error),
            "open",
        )

    def _finish_opening(
        self, location: str, number: int, view: View | None, node: Any, opened: OpenedDataset
    ) -> None:
        self._end_opening(location)
        if location == self.refused:
            self.refused = ""
        self.opened.emit(location, node, number)
        if number < self._displayed_number:
            return  # a location that was requested later is displayed already
        self._displayed_number = number
        # One step of the event loop each for the tree, the docks with their layout, and the image: together they would
        # stall the window.
        self._steps.start(
            (
                lambda: self.node_changed.emit(node),
                lambda: self.set_dataset(opened[0]),
                lambda: self._show_opened(opened, view),
            )
        )

    def _set_opening(self, locations: list[str]) -> None:
        self._opening = locations
        self.opening_changed.emit(locations)

    def _end_opening(self, location: str) -> None:
        position = self._opening.index(location)
        self._set_opening(self._opening[:position] + self._opening[position + 1 :])

    def _show_opened(self, opened: OpenedDataset, view: View | None) -> None:
        """Show the image, and again the reasons why locations that were requested with it could not be opened."""
        self._show_dataset_image(opened, view)
        errors = list(self._open_errors)
        if errors:
            self.show_message("  ".join(filter(None, (*errors, self._last_message))), True)

    def _fail_opening(self, location: str, error: Exception) -> None:
        self._end_opening(location)
        self.refused = location
        self._report_open_error(error)

    def _report_open_error(self, error: Exception) -> None:
        self._open_errors.append(str(error))
        self.show_message("  ".join(self._open_errors), True)
        self.failed.emit(str(error))

    def show_view(self, node: Any, location: str, path: str, view: View, as_labels: bool = False) -> None:
        """Display the image of a view, which belongs to the node at a path of an open location."""
        self.run_in_worker(
            lambda: open_first_image(
                describe_member(node, location, path), view.image, as_labels, view.system
            ),
            lambda opened: self._show_dataset_image(opened, view),
            "image",
        )

    def show_metadata(self, node: Any) -> None:
        """Show the metadata of an open node. The displayed image does not change."""
        self.node_changed.emit(node)

    def show_node(self, node: Any, location: str, path: str, level: str | None = None) -> None:
        """Display the image of an open node. If it is displayed already, only the pyramid level changes.

        ``level`` is the path of a level below the node; None selects the level by the zoom.
        """
        self.node_changed.emit(node)
        if self.is_shown(location, path):
            self.lock_level(level)
            return

        def show(opened: OpenedDataset) -> None:
            self._show_if_image(opened)
            if level is not None and self.image is opened[1]:
                self.lock_level(level)

        self.run_in_worker(lambda: open_first_image(describe(node, location, path), None), show, "image")

    def show_as_labels(self, node: Any, location: str, path: str) -> None:
        """Display an open node of integers as a label image."""
        self.node_changed.emit(node)
        self.run_in_worker(
            lambda: open_first_image(describe(node, location, path), None, as_labels=True),
            self._show_if_image,
            "image",
        )

    def add_labels(self, node: Any, location: str, path: str) -> None:
        """Draw an open node of integers as labels over the displayed image."""
        self.run_for_image(
            lambda: describe(node, location, path).open_image(as_labels=True),
            lambda overlay: self.add_overlay(overlay, (location, path)),
            "labels",
        )

    def restore_labels(self, node: Any, location: str, path: str, settings: LabelsSettings) -> None:
        """Draw a label image of a former session over the displayed image. ``node`` is that of its location."""
        self.run_for_image(
            lambda: describe_member(node, location, path).open_image(as_labels=True),
            lambda overlay: self.add_overlay(overlay, (location, path), settings),
            f"labels {location} {path}",
        )

    def close_location(self, location: str) -> None:
        """Remove the displayed image if it is from this location."""
        self._steps.finish()
        if self.dataset is not None and self.dataset.location == location:
            self.worker.cancel("image")
            self.dataset = None
            self._set_image(None, (), None)
            self.dataset_changed.emit()
            self.show_message("")

    def _show_if_image(self, opened: OpenedDataset) -> None:
        dataset, image, _, notes = opened
        if image is not None or dataset.plate is not None or dataset.is_array:
            self.show_message("")
            self._show_dataset_image(opened, None)
        else:
            self.show_message("  ".join(notes))

    def open_image(self, path: str) -> None:
        """Display an image of the dataset."""
        dataset = self.dataset
        if dataset is not None:
            self.worker.cancel("image")
            self.worker.submit(
                lambda: open_with_labels(dataset, path),
                lambda result: self.show_image(result[0], result[1], result[2], keep_settings=True),
                lambda error: self._clear_image(str(error)),
                "image",
            )

    def show_system(self, system: SystemReference) -> None:
        """Display the image in another coordinate system. Returns at once. ``system_refused`` follows if that fails."""
        dataset, image = self.dataset, self.image
        if dataset is None or image is None:
            return
        changed = replace(dataset, system=system)

        def show(result: tuple[Image, tuple[Image, ...], tuple[str, ...]]) -> None:
            if self.image is image:
                self.set_dataset(changed)
                self.show_image(*result, keep_settings=True)

        def refuse(error: Exception) -> None:
            self.show_message(str(error), True)
            self.system_refused.emit()

        self.worker.cancel("image")
        self.worker.submit(
            lambda: open_with_labels(changed, image.path, image.kind == "labels"), show, refuse, "image"
        )

    def _show_dataset_image(self, opened: OpenedDataset, view: View | None) -> None:
        dataset, image, overlays, notes = opened
        self.set_dataset(dataset)
        if image is not None:
            self.show_image(image, overlays, notes, view)
        elif dataset.is_array:
            self._clear_image("")  # its values are shown as a table
            self.show_message("")
        elif dataset.plate is None:
            self._clear_image("  ".join(notes), is_warning=dataset.kind != "group")
        else:
            self._clear_image("")
            self.show_message("")

    def _clear_image(self, reason: str, is_warning: bool = True) -> None:
        self._set_image(None, (), None)
        if reason:
            self.show_message(reason, is_warning)
            self.failed.emit(reason)

    def _set_image(
        self, image: Image | None, overlays: tuple[Image, ...], settings: DisplaySettings | None
    ) -> None:
        self._steps.cancel()
        if self.image is not None:
            self.streamer.forget(self.image)
        super()._set_image(image, overlays, settings)
