"""The state of one window: the open dataset, the displayed image and its ``ViewIntent``.

Panels read the session, change it, and connect to its signals. Locations are opened on a worker thread. Widgets are
in ``window`` and ``panels``; ``canvas.panes`` renders the intent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from zarrfs.engine.stores.base import Store
from zarrfs.errors import ZarrError
from zarrfs_viewer.display.overlay import translate_intent
from zarrfs_viewer.images.dataset import Dataset, describe, initial_intent
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.opening import (
    OpenedDataset,
    import_engine,
    open_dataset,
    open_first_image,
    open_with_labels,
)
from zarrfs_viewer.locations import absolute_location, within
from zarrfs_viewer.qt.support.steps import Steps
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.saved_views.views import View, fitted_intent, from_link
from zarrfs_viewer.state.view_state import (
    LabelsSettings,
    ViewIntent,
    Viewport,
    with_appearance,
    with_channel,
    with_default_limits,
    with_labels,
    with_level_lock,
    with_place,
)
from zarrfs_viewer.streaming.streamer import TileStreamer

__all__ = ["Session"]


class Session(QObject):
    """The state of a window. Use it only on the GUI thread. It never blocks.

    Attributes:
        dataset: the dataset that was opened last, or None.
        image: the displayed image, or None.
        overlays: the label images of ``image``.
        intent: the display settings of ``image``; None without an image.
        pending_viewport: the viewport of a restored view. ``Panes`` applies it and sets it to None.
        find_settings: returns the settings of an image (location, path) that the user has changed before, or None.
        find_limits: returns the contrast limits that the images of a dataset share, or none.
        auto_contrast_per_image: whether each image of a dataset gets its own contrast limits. Otherwise the settings
            of the previous image are kept.

    Signals:
        opened: (location, node, number) a location was opened. Numbers count the requests: several locations can finish
            in another order than they were requested.
        node_changed: (node) another node is selected.
        dataset_changed: another dataset is open.
        image_changed: another image is displayed, or none.
        axes_changed: other axes are displayed.
        overlays_changed: a label image was added to the displayed image.
        intent_changed: the intent changed; also emitted after ``image_changed`` and ``axes_changed``.
        message_changed: (text, is_warning) a message for the user; an empty text clears the message.
        failed: (text) no image can be displayed, with the reason.
    """

    opened = pyqtSignal(str, object, int)
    node_changed = pyqtSignal(object)
    dataset_changed = pyqtSignal()
    image_changed = pyqtSignal()
    axes_changed = pyqtSignal()
    overlays_changed = pyqtSignal()
    intent_changed = pyqtSignal()
    message_changed = pyqtSignal(str, bool)
    failed = pyqtSignal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.worker = Worker()
        self.streamer = TileStreamer()
        self.dataset: Dataset | None = None
        self.image: Image | None = None
        self.overlays: tuple[Image, ...] = ()
        self.intent: ViewIntent | None = None
        self.pending_viewport: Viewport | None = None
        self.find_settings: Callable[[str, str], View | None] = lambda location, image: None
        self.find_limits: Callable[[Dataset | None], Sequence[tuple[float, float] | None]] = lambda dataset: ()
        self.auto_contrast_per_image = False
        self._last_message = ""
        self._requested_count = self._pending_count = 0
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

    def show_message(self, text: str, is_warning: bool = False) -> None:
        """Show a message to the user. An empty text clears the message."""
        self._last_message = text
        self.message_changed.emit(text, is_warning)

    def withdraw_message(self, text: str) -> None:
        """Clear a message, unless another one has replaced it."""
        if text and text == self._last_message:
            self.show_message("")

    def show_error(self, error: Exception) -> None:
        """Show the message of an error as a warning."""
        self.show_message(str(error), True)

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
        if not self._pending_count:
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

    def open_view(self, view: View) -> None:
        """Open the image of a saved view and restore its display settings."""
        self.show_message("")
        self._open(view.location, "", view)

    def _open(self, location: str | Store, path: str, view: View | None) -> None:
        name = location.url if isinstance(location, Store) else location
        self._requested_count += 1
        self._pending_count += 1
        number = self._requested_count
        self.worker.cancel("image")
        self.worker.submit(
            lambda: open_dataset(location, name, path, None if view is None else view.image),
            lambda result: self._finish_opening(name, number, view, *result),
            self._fail_opening,
            "open",
        )

    def _finish_opening(
        self, location: str, number: int, view: View | None, node: Any, opened: OpenedDataset
    ) -> None:
        self._pending_count -= 1
        self.opened.emit(location, node, number)
        if number < self._displayed_number:
            return  # a location that was requested later is displayed already
        self._displayed_number = number
        # One step of the event loop each for the tree, the docks with their layout, and the image: together they would
        # stall the window.
        self._steps.start(
            (
                lambda: self.node_changed.emit(node),
                lambda: self._set_dataset(opened[0]),
                lambda: self._show_opened(opened, view),
            )
        )

    def _show_opened(self, opened: OpenedDataset, view: View | None) -> None:
        """Show the image, and again the reasons why locations that were requested with it could not be opened."""
        self._show_dataset_image(opened, view)
        errors = list(self._open_errors)
        if errors:
            self.show_message("  ".join(filter(None, (*errors, self._last_message))), True)

    def _set_dataset(self, dataset: Dataset) -> None:
        if dataset is not self.dataset:
            self.dataset = dataset
            self.dataset_changed.emit()

    def _fail_opening(self, error: Exception) -> None:
        self._pending_count -= 1
        self._report_open_error(error)

    def _report_open_error(self, error: Exception) -> None:
        self._open_errors.append(str(error))
        self.show_message("  ".join(self._open_errors), True)
        self.failed.emit(str(error))

    def show_view(self, node: Any, location: str, path: str, view: View) -> None:
        """Display the image of a view, which belongs to the node at a path of an open location."""
        self.run_in_worker(
            lambda: open_first_image(describe(node[path] if path else node, location, path), view.image),
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
            self._lock_level(level)
            return

        def show(opened: OpenedDataset) -> None:
            self._show_if_image(opened)
            if level is not None and self.image is opened[1]:
                self._lock_level(level)

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
            lambda: describe(node, location, path).open_image(as_labels=True), self._add_overlay, "labels"
        )

    def _add_overlay(self, overlay: Image) -> None:
        image, intent = self.image, self.intent
        if image is None or intent is None:
            self.show_message("No image is open: labels are drawn over an image.", True)
            return
        if overlay.kind != "labels":
            self.show_message(f"{overlay.name} contains {overlay.dtype} values; labels are integers.", True)
            return
        if translate_intent(intent, image, overlay) is None:
            self.show_message(f"{overlay.name} does not have the displayed axes of {image.name}.", True)
            return
        self.overlays = (*self.overlays, overlay)
        index = len(self.overlays) - (0 if image.kind == "labels" else 1)
        self.intent = replace(intent, labels=(*intent.labels, LabelsSettings(index=index)))
        self.overlays_changed.emit()
        self.intent_changed.emit()

    def _lock_level(self, path: str | None) -> None:
        """Display the level at a path of the image, or select it by the zoom."""
        if self.image is None or self.intent is None:
            return
        paths = [level.path.strip("/") for level in self.image.levels]
        self.change(with_level_lock(self.intent, paths.index(path) if path in paths else None))

    def close_location(self, location: str) -> None:
        """Remove the displayed image if it is from this location."""
        self._steps.finish()
        if self.dataset is not None and self.dataset.location == location:
            self.worker.cancel("image")
            self.dataset = None
            self._set_image(None, (), None)
            self.dataset_changed.emit()
            self.show_message("")

    def is_shown(self, location: str, path: str) -> bool:
        """Return whether the displayed image belongs to the node at a path."""
        dataset, image = self.dataset, self.image
        if dataset is None or image is None or dataset.location != location:
            return False
        inner = image.path.partition("#")[0]
        return path in (dataset.path, within(dataset.path, inner) if dataset.path else inner)

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

    def _show_dataset_image(self, opened: OpenedDataset, view: View | None) -> None:
        dataset, image, overlays, notes = opened
        self._set_dataset(dataset)
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

    def show_image(
        self,
        image: Image,
        overlays: tuple[Image, ...],
        notes: tuple[str, ...] = (),
        view: View | None = None,
        keep_settings: bool = False,
    ) -> None:
        """Display an image with the settings of a view, of the previous image, or the default ones.

        With ``keep_settings``, the channel settings of the previous image are kept if both have the same kind and
        data type (without the contrast limits if ``auto_contrast_per_image``), and the position if both have the same
        shape. ``view`` takes precedence.
        """
        intent = initial_intent(image, len(overlays))
        previous_image, previous_intent = self.image, self.intent
        same_type = previous_image is not None and (
            (previous_image.kind, previous_image.dtype) == (image.kind, image.dtype)
        )
        if keep_settings and same_type and previous_intent is not None:
            intent = with_appearance(intent, previous_intent, not self.auto_contrast_per_image)
            if previous_image is not None and _have_same_axes(previous_image, image):
                intent = with_place(intent, previous_intent)
        elif view is None:
            if not self.auto_contrast_per_image:
                intent = with_default_limits(intent, self.find_limits(self.dataset))
            intent = self._remembered(image, intent)
        warnings = [*notes, *image.notes]
        self.pending_viewport = None
        if view is not None:
            try:
                intent = fitted_intent(view, image, intent)
                self.pending_viewport = view.viewport
            except ZarrError as error:
                warnings.append(str(error))
        self._set_image(image, overlays, intent)
        self.show_message("  ".join(warnings), bool(warnings))

    def _remembered(self, image: Image, initial: ViewIntent) -> ViewIntent:
        """Return the settings that the image had when it was displayed last, or the initial ones."""
        location = within(self.dataset.location, self.dataset.path) if self.dataset is not None else ""
        view = self.find_settings(location, image.path)
        try:
            return initial if view is None else fitted_intent(view, image, initial)
        except ZarrError:
            return initial  # the image has other axes or channels since then

    def _set_image(self, image: Image | None, overlays: tuple[Image, ...], intent: ViewIntent | None) -> None:
        self._steps.cancel()
        previous, self.image, self.overlays, self.intent = self.image, image, overlays, intent
        if previous is not None:
            self.streamer.forget(previous)
        self.image_changed.emit()
        self.axes_changed.emit()
        self.intent_changed.emit()

    # -- the intent --------------------------------------------------------------------------------------------

    def change(self, intent: ViewIntent) -> None:
        """Replace the display settings of the image. Does nothing without an image or if they are equal."""
        previous = self.intent
        if previous is None or previous == intent:
            return
        self.intent = intent
        if previous.displayed != intent.displayed:
            self.axes_changed.emit()
        self.intent_changed.emit()

    def change_channel(self, number: int, **changes: Any) -> None:
        """Change settings of a channel. A number out of range is ignored."""
        if self.intent is not None and number < len(self.intent.channels):
            self.change(with_channel(self.intent, number, **changes))

    def change_labels(self, number: int, **changes: Any) -> None:
        """Change settings of a label image. A number out of range is ignored."""
        if self.intent is not None and number < len(self.intent.labels):
            self.change(with_labels(self.intent, number, **changes))

    @property
    def label_images(self) -> tuple[Image, ...]:
        """The label images in the order of ``ViewIntent.labels``: the image itself if it is one, then the overlays."""
        own = (self.image,) if self.image is not None and self.image.kind == "labels" else ()
        return own + self.overlays

    def view(self, name: str, viewport: Viewport | None) -> View | None:
        """Return the displayed image and its settings as a view; None without an image."""
        if self.dataset is None or self.image is None or self.intent is None:
            return None
        location = within(self.dataset.location, self.dataset.path)
        return View(name, location, self.image.path, self.intent, viewport)


def _have_same_axes(image: Image, other: Image) -> bool:
    """Return whether the axes of two images have the same names and lengths."""
    names, other_names = ([axis.name for axis in each.axes] for each in (image, other))
    return image.shape == other.shape and names == other_names
