"""The tab with the channels of the image: their settings, histograms, automatic contrast and colour maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from PyQt6.QtCore import QTimer

from zarrfs_viewer.qt.panels.channels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.panels.channels.colormap_actions import ColormapActions
from zarrfs_viewer.qt.panels.channels.contrast_actions import ContrastActions
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.panels.plate.plates import Plates
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["Channels"]

PLATE_HINT = "The channels of all wells of the plate."
LABELS_HINT = "This image consists of labels and has no channels. The tab Labels contains its settings."


class Channels(Panel):
    """Shows and changes the settings of the channels.

    Attributes:
        colormaps: adds colour maps to the lists of this panel and of others.
    """

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session = context.session
        self.panel = ChannelsPanel()
        context.tabs.addTab(self.panel, button_text("Channels"))
        self.contrast = ContrastActions(session, self.panel, self)
        self.colormaps = ColormapActions(session, context.settings, context.window)
        self.colormaps.add(self.panel)
        # The rows of the channels are created by a later event, so that the picture is requested before.
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._show_channels)
        self._plate = context.find(Plates).plate
        self._plate.channels_loaded.connect(self._timer.start)
        self.panel.changed.connect(self._change)
        self.panel.visibility_changed.connect(self._change_visibility)
        self.panel.auto.connect(self._reset_plate_limits)
        context.panes.frame_shown.connect(self.contrast.show_frame)
        session.image_changed.connect(self._show_image)
        session.channels_changed.connect(self._show_settings)

    @property
    def is_current(self) -> bool:
        return self.contrast.is_current

    def prepare(self) -> Iterator[None]:
        yield
        # The first row of a channel takes PyQt several times as long as the later ones.
        self.panel.show_channels((ChannelSettings(),), "u", False)
        self.panel.show_channels((), "u", False)

    def actions(self) -> Sequence[ActionSpec]:
        contrast = self.contrast
        return (
            ActionSpec(
                "channels",
                "&Image",
                "&Channels, contrast and colours",
                "C",
                lambda: self._context.tabs.setCurrentWidget(self.panel),
                place=105,
                needs="image",
                synonyms="gamma LUT lookup table colour map brightness histogram limits",
            ),
            ActionSpec(
                "auto_all",
                "&Image",
                "&Auto-contrast all channels",
                "A",
                contrast.auto_contrast,
                place=110,
                needs="image",
                synonyms="brightness levels histogram LUT",
            ),
            ActionSpec(
                "auto_contrast_per_image",
                "&Image",
                "Auto-contrast &each image",
                "Shift+A",
                contrast.set_per_image,
                False,
                place=120,
            ),
        )

    def close(self) -> None:
        self.contrast.stop()

    def _show_image(self) -> None:
        self.contrast.forget_slice()
        self._timer.start()

    def _show_channels(self) -> None:
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            channels = self._plate.channels if self._is_plate else ()
            self.panel.show_hint(PLATE_HINT if channels else "")
            self.panel.show_channels(channels, self._plate.dtype_kind, False)
            self.panel.show_settings(channels)
        else:
            self.panel.show_hint("" if settings.channels else LABELS_HINT)
            self.panel.show_channels(
                settings.channels, image.dtype.kind, image.rgb_axis is not None, image.value_unit
            )
            self.panel.show_settings(settings.channels)

    @property
    def _is_plate(self) -> bool:
        """Whether the displayed data set is the plate, or one of its wells."""
        dataset = self._session.dataset
        return dataset is not None and dataset is self._plate.dataset

    def _change(self, number: int, changes: dict[str, Any]) -> None:
        if self._session.image is not None:
            self._session.change_channel(number, **changes)
        else:
            self._change_plate({number: changes})

    def _change_visibility(self, numbers: list[int], visible: bool) -> None:
        if self._session.image is not None:
            self._session.change_visibility(numbers, visible)
        else:
            self._change_plate({number: {"visible": visible} for number in numbers})

    def _reset_plate_limits(self, number: int) -> None:
        """Draw a channel of all wells with the contrast limits that the plate had at first."""
        initial = self._plate.initial_channels
        if self._session.image is None and number < len(initial):
            self._change_plate({number: {"limits": initial[number].limits}})

    def _change_plate(self, changes: dict[int, dict[str, Any]]) -> None:
        """Change settings of channels of all wells, while no well is displayed."""
        if self._is_plate:
            self._plate.set_channels(
                tuple(
                    replace(channel, **changes.get(number, {}))
                    for number, channel in enumerate(self._plate.channels)
                )
            )
            self.panel.show_settings(self._plate.channels)

    def _apply_to_plate(self, channels: tuple[ChannelSettings, ...]) -> None:
        """Draw all wells with the settings of the displayed one, with its limits unless each well has its own."""
        common = self._plate.channels
        if not self._is_plate or len(common) != len(channels):
            return
        keeps_limits = self._session.auto_contrast_per_image
        self._plate.set_channels(
            tuple(
                replace(own, limits=other.limits if keeps_limits or own.limits is None else own.limits)
                for own, other in zip(channels, common, strict=True)
            )
        )

    def _show_settings(self) -> None:
        if self._session.settings is not None:
            self._apply_to_plate(self._session.settings.channels)
        if self._session.settings is not None and not self._timer.isActive():
            self.panel.show_settings(self._session.settings.channels)
