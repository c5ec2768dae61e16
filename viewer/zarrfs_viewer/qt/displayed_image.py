"""What one window displays: the dataset, the image, its label images, their settings, and a message.

Nothing is opened or read here; ``session`` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QObject, pyqtSignal

from zarrfs.errors import ZarrError
from zarrfs_viewer.display.overlay import translate_settings
from zarrfs_viewer.images.dataset import Dataset, initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.locations import within
from zarrfs_viewer.saved_views.views import View, fitted_settings
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    DisplaySettings,
    LabelsSettings,
    Viewport,
    with_appearance,
    with_channel,
    with_labels,
    with_level_lock,
    with_place,
)

__all__ = ["DisplayedImage"]


class DisplayedImage(QObject):
    """The displayed image of a window and its settings. Use it only on the GUI thread.

    Attributes:
        dataset: the dataset that was opened last, or None.
        image: the displayed image, or None.
        overlays: the label images of ``image``.
        added: the places (location, path) of the label images that ``add_overlay`` has added, which are the last of
            ``overlays``.
        settings: the display settings of ``image``; None without an image.
        pending_viewport: the viewport of a restored view. ``Panes`` applies it and sets it to None.
        find_settings: returns the settings of an image (location, path) that the user has changed before, or None.
        find_channels: returns the channel settings that the images of a dataset share, or none.
        auto_contrast_per_image: whether each image of a dataset gets its own contrast limits. Otherwise the settings
            of the previous image are kept.

    Signals:
        dataset_changed: another dataset is open.
        image_changed: another image is displayed, or none.
        axes_changed: other axes are displayed.
        overlays_changed: a label image was added to the displayed image.
        position_changed, projection_changed, channels_changed, labels_changed: this part of the settings changed; also
            emitted after ``image_changed``.
        settings_changed: any part of the settings changed; emitted last.
        message_changed: (text, is_warning, action) a message for the user, and the name of an action that helps, or an
            empty text; an empty message clears the message.
        outcome_reported: (text, is_warning) how a long operation, such as an export, ended.
    """

    dataset_changed = pyqtSignal()
    image_changed = pyqtSignal()
    axes_changed = pyqtSignal()
    overlays_changed = pyqtSignal()
    position_changed = pyqtSignal()
    projection_changed = pyqtSignal()
    channels_changed = pyqtSignal()
    labels_changed = pyqtSignal()
    settings_changed = pyqtSignal()
    message_changed = pyqtSignal(str, bool, str)
    outcome_reported = pyqtSignal(str, bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.dataset: Dataset | None = None
        self.image: Image | None = None
        self.overlays: tuple[Image, ...] = ()
        self.added: tuple[tuple[str, str], ...] = ()
        self.settings: DisplaySettings | None = None
        self.pending_viewport: Viewport | None = None
        self.find_settings: Callable[[str, str], View | None] = lambda location, image: None
        self.find_channels: Callable[[Dataset | None], tuple[ChannelSettings, ...]] = lambda dataset: ()
        self.auto_contrast_per_image = False
        self._last_message = ""

    def show_message(self, text: str, is_warning: bool = False, action: str = "") -> None:
        """Show a message to the user, with a button for the action of a name. An empty text clears the message."""
        self._last_message = text
        self.message_changed.emit(text, is_warning, action)

    def add_hint(self, text: str) -> None:
        """Show a message that is less important than others: it does not replace one."""
        if not self._last_message:
            self.show_message(text)

    def report_outcome(self, text: str, is_warning: bool = False) -> None:
        """Show how a long operation ended. The message remains until the user closes it; other messages do not replace
        it.
        """
        self.outcome_reported.emit(text, is_warning)

    def withdraw_message(self, text: str) -> None:
        """Clear a message, unless another one has replaced it."""
        if text and text == self._last_message:
            self.show_message("")

    def show_error(self, error: Exception) -> None:
        """Show the message of an error as a warning."""
        self.show_message(str(error), True)

    # -- the image ---------------------------------------------------------------------------------------------

    def set_dataset(self, dataset: Dataset) -> None:
        """Replace the dataset; its images are not opened."""
        if dataset is not self.dataset:
            self.dataset = dataset
            self.dataset_changed.emit()

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
        settings = initial_settings(image, len(overlays))
        previous_image, previous_settings = self.image, self.settings
        same_type = previous_image is not None and (
            (previous_image.kind, previous_image.dtype, previous_image.value_unit)
            == (image.kind, image.dtype, image.value_unit)
        )
        if keep_settings and same_type and previous_settings is not None:
            settings = with_appearance(settings, previous_settings, not self.auto_contrast_per_image)
            if previous_image is not None and _have_same_axes(previous_image, image):
                settings = with_place(settings, previous_settings)
        elif view is None:
            shared = self.find_channels(self.dataset)
            if shared:
                common = replace(settings, channels=shared, labels=())
                settings = with_appearance(settings, common, not self.auto_contrast_per_image)
            location = within(self.dataset.location, self.dataset.path) if self.dataset is not None else ""
            settings = self.remembered(location, image, settings)
        warnings = [*notes, *image.notes]
        self.pending_viewport = None
        if view is not None:
            try:
                settings = fitted_settings(view, image, settings)
                self.pending_viewport = view.viewport
            except ZarrError as error:
                warnings.append(str(error))
        self._set_image(image, overlays, settings)
        self.show_message("  ".join(warnings), bool(warnings))

    def remembered(self, location: str, image: Image, initial: DisplaySettings) -> DisplaySettings:
        """Return the settings that the image had when it was displayed last, or the initial ones.

        ``location`` is that of the dataset to which the image belongs.
        """
        view = self.find_settings(location, image.path)
        try:
            return initial if view is None else fitted_settings(view, image, initial)
        except ZarrError:
            return initial  # the image has other axes or channels since then

    def _set_image(
        self, image: Image | None, overlays: tuple[Image, ...], settings: DisplaySettings | None
    ) -> None:
        self.image, self.overlays, self.settings, self.added = image, overlays, settings, ()
        self.image_changed.emit()
        self._emit_changes(None, settings)

    def is_shown(self, location: str, path: str) -> bool:
        """Return whether the displayed image belongs to the node at a path."""
        dataset, image = self.dataset, self.image
        if dataset is None or image is None or dataset.location != location:
            return False
        inner = image.path.partition("#")[0]
        return path in (dataset.path, within(dataset.path, inner) if dataset.path else inner)

    def is_displayed(self, location: str, path: str) -> bool:
        """Return whether the node at a path is displayed: as image, or as values or overview, which have no image."""
        dataset = self.dataset
        if self.image is None and dataset is not None and (dataset.is_array or dataset.plate is not None):
            return (dataset.location, dataset.path) == (location, path)
        return self.is_shown(location, path)

    @property
    def label_images(self) -> tuple[Image, ...]:
        """The label images, ordered as ``DisplaySettings.labels``: the image itself if it is one, then the overlays."""
        own = (self.image,) if self.image is not None and self.image.kind == "labels" else ()
        return own + self.overlays

    def add_overlay(
        self, overlay: Image, place: tuple[str, str], labels: LabelsSettings | None = None
    ) -> None:
        """Draw the label image at a place over the displayed image, by default with the initial settings.

        Shows a message if that is impossible.
        """
        image, settings = self.image, self.settings
        if image is None or settings is None:
            self.show_message("No image is open: labels are drawn over an image.", True)
            return
        if overlay.kind != "labels":
            self.show_message(f"{overlay.name} contains {overlay.dtype} values; labels are integers.", True)
            return
        if translate_settings(settings, image, overlay) is None:
            self.show_message(f"{overlay.name} does not have the displayed axes of {image.name}.", True)
            return
        self.overlays, self.added = (*self.overlays, overlay), (*self.added, place)
        index = len(self.overlays) - (0 if image.kind == "labels" else 1)
        added = replace(labels or LabelsSettings(), index=index)
        self.settings = replace(settings, labels=(*settings.labels, added))
        self.overlays_changed.emit()
        self.labels_changed.emit()
        self.settings_changed.emit()

    # -- the settings --------------------------------------------------------------------------------------------

    def change(self, settings: DisplaySettings) -> None:
        """Replace the display settings of the image. Does nothing without an image or if they are equal."""
        previous = self.settings
        if previous is None or previous == settings:
            return
        self.settings = settings
        self._emit_changes(previous, settings)

    def _emit_changes(self, previous: DisplaySettings | None, settings: DisplaySettings | None) -> None:
        """Emit the signals of the parts of the settings that differ; of all parts without one of both."""
        for name, signal in (
            ("displayed", self.axes_changed),
            ("position", self.position_changed),
            ("projection", self.projection_changed),
            ("channels", self.channels_changed),
            ("labels", self.labels_changed),
        ):
            if previous is None or settings is None or getattr(previous, name) != getattr(settings, name):
                signal.emit()
        self.settings_changed.emit()

    def change_channel(self, number: int, **changes: Any) -> None:
        """Change settings of a channel. A number out of range is ignored."""
        if self.settings is not None and number < len(self.settings.channels):
            self.change(with_channel(self.settings, number, **changes))

    def change_visibility(self, numbers: Sequence[int], visible: bool) -> None:
        """Show or hide channels. This is one change, and one step of undo."""
        if self.settings is not None:
            settings = self.settings
            for number in numbers:
                settings = with_channel(settings, number, visible=visible)
            self.change(settings)

    def change_labels(self, number: int, **changes: Any) -> None:
        """Change settings of a label image. A number out of range is ignored."""
        if self.settings is not None and number < len(self.settings.labels):
            self.change(with_labels(self.settings, number, **changes))

    def lock_level(self, path: str | None) -> None:
        """Display the level at a path of the image, or select it by the zoom."""
        if self.image is None or self.settings is None:
            return
        paths = [level.path.strip("/") for level in self.image.levels]
        self.change(with_level_lock(self.settings, paths.index(path) if path in paths else None))

    def view(self, name: str, viewport: Viewport | None) -> View | None:
        """Return the displayed image and its settings as a view; None without an image."""
        if self.dataset is None or self.image is None or self.settings is None:
            return None
        location = within(self.dataset.location, self.dataset.path)
        return View(name, location, self.image.path, self.settings, viewport, self.dataset.system)


def _have_same_axes(image: Image, other: Image) -> bool:
    """Return whether the axes of two images have the same names and lengths."""
    names, other_names = ([axis.name for axis in each.axes] for each in (image, other))
    return image.shape == other.shape and names == other_names
