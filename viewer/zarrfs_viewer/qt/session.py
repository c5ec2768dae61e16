"""What one window has open, and what of it the user wants to see. Panels ask it, change it, and hear of changes.

Here: opening on a worker, the intent, messages. Not here: widgets; how the intent becomes a picture (``panes``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

import zarrfs
from zarrfs.engine.stores.base import Store
from zarrfs.errors import ZarrError
from zarrfs_viewer.images.dataset import Dataset, describe, initial_intent
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.locations import absolute_location, within
from zarrfs_viewer.qt.support.worker import Worker
from zarrfs_viewer.saved_views.views import View, fitted_intent, from_link
from zarrfs_viewer.state.view_state import ViewIntent, Viewport, with_channel, with_labels, with_look
from zarrfs_viewer.streaming.streamer import TileStreamer

__all__ = ["Session"]

Found = tuple[Dataset, Image | None, tuple[Image, ...], tuple[str, ...]]
"""A dataset, its first image and labels, and what there is to say about them."""


class Session(QObject):
    """The state of a window. Lives on the GUI thread, and never blocks it.

    Attributes:
        dataset: what was opened last, or None.
        image: the image in front, or None.
        overlays: its label images.
        intent: what of it the user wants to see; None without an image.
        wanted_viewport: the window that a restored view asks for, until somebody takes it.
        auto_each: whether each image of a dataset gets contrast of its own, instead of that of the one before.

    Signals:
        opened: (location, node) a location was opened.
        node_changed: (node) another node is looked at.
        dataset_changed: another dataset is open.
        image_changed: another image is in front, or none.
        axes_changed: other axes are displayed.
        intent_changed: anything of the intent is different; also after the two above.
        said: (text, warning) something for the user; an empty text takes the last one back.
        failed: (text) there is nothing to show, and why.
    """

    opened = pyqtSignal(str, object)
    node_changed = pyqtSignal(object)
    dataset_changed = pyqtSignal()
    image_changed = pyqtSignal()
    axes_changed = pyqtSignal()
    intent_changed = pyqtSignal()
    said = pyqtSignal(str, bool)
    failed = pyqtSignal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.worker = Worker()
        self.streamer = TileStreamer()
        self.dataset: Dataset | None = None
        self.image: Image | None = None
        self.overlays: tuple[Image, ...] = ()
        self.intent: ViewIntent | None = None
        self.wanted_viewport: Viewport | None = None
        self.auto_each = False
        self._last_said = ""

    def close(self) -> None:
        """End the threads, without waiting for a read that is running."""
        self.streamer.close(timeout=0.0)
        self.worker.close()

    def say(self, text: str, warning: bool = False) -> None:
        """Tell the user something."""
        self._last_said = text
        self.said.emit(text, warning)

    def take_back(self, text: str) -> None:
        """Take a message back that is no longer true, unless another one has replaced it."""
        if text and text == self._last_said:
            self.say("")

    def show_error(self, error: Exception) -> None:
        """Tell the user of an error."""
        self.say(str(error), True)

    def ask(self, function: Callable[[], Any], done: Callable[[Any], None], owner: str) -> None:
        """Call a function on a worker, and ``done`` with its result here, unless another question of the same owner
        came meanwhile. Errors are told.
        """
        self.worker.forget(owner)
        self.worker.submit(function, done, self.show_error, owner)

    def ask_of_image(self, function: Callable[[], Any], done: Callable[[Any], None], owner: str) -> None:
        """As ``ask``; the answer is dropped as well if another image is in front by then."""
        image = self.image
        self.ask(function, lambda found: done(found) if self.image is image else None, owner)

    # -- opening -----------------------------------------------------------------------------------------------

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a path, URL, link or store; the answer comes when a worker has it."""
        self.say("")
        view: View | None = None
        if isinstance(location, str):
            try:
                location, view = from_link(location)
                location = absolute_location(location)
            except ZarrError as error:
                self._not_opened("", error)
                return
        self._open(location, path, view)

    def open_view(self, view: View) -> None:
        """Open what a view shows, as it shows it."""
        self.say("")
        self._open(view.location, "", view)

    def _open(self, location: str | Store, path: str, view: View | None) -> None:
        name = location.url if isinstance(location, Store) else location
        self.worker.forget("image")
        self.worker.submit(
            lambda: _open(location, name, path, view),
            lambda found: self._opened(name, view, *found),
            lambda error: self._not_opened(name, error),
            "open",
        )

    def _opened(self, location: str, view: View | None, node: Any, found: Found) -> None:
        self.opened.emit(location, node)
        self.node_changed.emit(node)
        self._show_found(found, view)

    def _not_opened(self, location: str, error: Exception) -> None:
        self.say(str(error), True)
        self.failed.emit(str(error))

    def look_at(self, node: Any) -> None:
        """Show the metadata of a node that is open already; the picture stays."""
        self.node_changed.emit(node)

    def show_node(self, node: Any, location: str, path: str) -> None:
        """Show the image of a node that is open already; the image in front stays as the user has set it."""
        self.node_changed.emit(node)
        if self.is_shown(location, path):
            return
        self.ask(lambda: _first_image(describe(node, location, path), None), self._show_if_image, "image")

    def is_shown(self, location: str, path: str) -> bool:
        """Return whether the image in front is that of the node at a path."""
        dataset, image = self.dataset, self.image
        if dataset is None or image is None or dataset.location != location:
            return False
        inner = image.path.partition("#")[0]
        return path in (dataset.path, within(dataset.path, inner) if dataset.path else inner)

    def _show_if_image(self, found: Found) -> None:
        dataset, image, _, notes = found
        if image is not None or dataset.plate is not None:
            self.say("")
            self._show_found(found, None)
        else:
            self.say("  ".join(notes))

    def open_image(self, path: str) -> None:
        """Show an image of the dataset."""
        dataset = self.dataset
        if dataset is not None:
            self.worker.forget("image")
            self.worker.submit(
                lambda: _with_labels(dataset, path),
                lambda found: self.show_image(found[0], found[1], found[2], None, not self.auto_each),
                lambda error: self._show_nothing(str(error)),
                "image",
            )

    def _show_found(self, found: Found, view: View | None) -> None:
        dataset, image, overlays, notes = found
        self.dataset = dataset
        self.dataset_changed.emit()
        if image is not None:
            self.show_image(image, overlays, notes, view)
        elif dataset.plate is None:
            self._show_nothing("  ".join(notes))
        else:
            self._show_nothing("")
            self.say("Choose a well of the plate.")

    def _show_nothing(self, why: str) -> None:
        self._replace(None, (), None)
        if why:
            self.say(why, True)
            self.failed.emit(why)

    def show_image(
        self,
        image: Image,
        overlays: tuple[Image, ...],
        notes: tuple[str, ...] = (),
        view: View | None = None,
        keep_look: bool = False,
    ) -> None:
        """Put an image in front, as a view has it, or with the look of the one before it, or as usual."""
        intent = initial_intent(image, len(overlays))
        before, shown = self.image, self.intent
        equivalent_specs = before is not None and (before.kind, before.dtype) == (image.kind, image.dtype)
        if keep_look and equivalent_specs and shown is not None:
            intent = with_look(intent, shown)
        warnings = [*notes, *image.notes]
        self.wanted_viewport = None
        if view is not None:
            try:
                intent = fitted_intent(view, image, intent)
                self.wanted_viewport = view.viewport
            except ZarrError as error:
                warnings.append(str(error))
        self._replace(image, overlays, intent)
        self.say("  ".join(warnings))

    def _replace(self, image: Image | None, overlays: tuple[Image, ...], intent: ViewIntent | None) -> None:
        old, self.image, self.overlays, self.intent = self.image, image, overlays, intent
        if old is not None:
            self.streamer.forget(old)
        self.image_changed.emit()
        self.axes_changed.emit()
        self.intent_changed.emit()

    # -- the intent --------------------------------------------------------------------------------------------

    def change(self, intent: ViewIntent) -> None:
        """Want something else of the same image."""
        before, self.intent = self.intent, intent
        if before is None or before == intent:
            self.intent = before
            return
        if before.displayed != intent.displayed:
            self.axes_changed.emit()
        self.intent_changed.emit()

    def change_channel(self, number: int, **changes: Any) -> None:
        """Want a channel to look otherwise."""
        if self.intent is not None and number < len(self.intent.channels):
            self.change(with_channel(self.intent, number, **changes))

    def change_labels(self, number: int, **changes: Any) -> None:
        """Want a label image to look otherwise."""
        if self.intent is not None and number < len(self.intent.labels):
            self.change(with_labels(self.intent, number, **changes))

    def view(self, name: str, viewport: Viewport | None) -> View | None:
        """Return what is seen as a view; None without an image."""
        if self.dataset is None or self.image is None or self.intent is None:
            return None
        location = within(self.dataset.location, self.dataset.path)
        return View(name, location, self.image.path, self.intent, viewport)


# -- on a worker -----------------------------------------------------------------------------------------------


def _open(location: str | Store, name: str, path: str, view: View | None) -> tuple[Any, Found]:
    """Open a location and the image of a view, else its first; where there is none, say why."""
    node = zarrfs.open(location, path)
    return node, _first_image(describe(node, name, path), None if view is None else view.image)


def _first_image(dataset: Dataset, path: str | None) -> Found:
    try:
        image, labels, problems = _with_labels(dataset, path)
    except ZarrError as error:
        return dataset, None, (), dataset.problems or (str(error),)
    return dataset, image, labels, problems


def _with_labels(dataset: Dataset, path: str | None) -> tuple[Image, tuple[Image, ...], tuple[str, ...]]:
    problems: list[str] = []
    image = dataset.open_image(path)
    return image, dataset.open_labels(image, problems.append), tuple(problems)
