"""The user's settings of a view as frozen values, and pure functions that return updated values.

This module contains the displayed axes, the slice positions, and the settings of channels and labels. Their
resolution for a given image and viewport is in ``display.resolve``; drawing is in ``rendering.compose``.

*Data coordinates* are pixels of level 0 along each axis, as floats: pixel ``i`` has its centre at ``i`` and
covers ``[i - 0.5, i + 0.5)``. ``Image.to_physical`` and ``Image.to_level`` convert them. All panes, overlays
and saved views use the data coordinates of the front image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import isclose
from typing import Literal

__all__ = [
    "FIT_MARGIN",
    "ChannelSettings",
    "Component",
    "DisplaySettings",
    "LabelsSettings",
    "Projection",
    "ProjectionMode",
    "Rgb",
    "Viewport",
    "cropped",
    "fit",
    "is_same_place",
    "mirrored",
    "one_to_one",
    "pan",
    "rotated",
    "with_channel",
    "with_displayed",
    "with_edited_channels",
    "with_labels",
    "with_level_lock",
    "with_limits",
    "with_place",
    "with_position",
    "with_projection",
    "zoom_at",
]

Rgb = tuple[int, int, int]
"""A colour as (red, green, blue), each 0 to 255."""

Component = Literal["value", "abs", "phase", "real", "imag"]
"""The displayed component of complex numbers; ``value`` for all other data types."""

ProjectionMode = Literal["max", "mean"]


@dataclass(frozen=True)
class ChannelSettings:
    """The display settings of one channel.

    ``index`` is the index along the image's channel axis (0 without a channel axis). ``field`` is the field
    of a structured data type. ``limits`` are the data values of the first and the last colour; None means
    that auto-contrast sets them. ``limits_range`` is the range of the limits slider. ``colormap`` is a name
    from ``zarrfs_viewer.state.colormaps``, or ``#RRGGBB`` for a ramp from black to that colour. ``gamma`` is
    positive; 1 is linear.
    """

    index: int = 0
    label: str = ""
    colormap: str = "gray"
    limits: tuple[float, float] | None = None
    limits_range: tuple[float, float] | None = None
    gamma: float = 1.0
    invert: bool = False
    visible: bool = True
    solo: bool = False
    component: Component = "value"
    field: str | None = None


@dataclass(frozen=True)
class LabelsSettings:
    """The display settings of one label image that is drawn over the front image.

    ``index`` is the index in the label images of the front image. ``contour`` is the outline width in screen
    pixels; 0 fills the labels. If ``selected`` is set, only that label is drawn. The label ``highlighted`` gets a
    white outline.
    """

    index: int = 0
    visible: bool = True
    opacity: float = 0.5
    contour: int = 0
    selected: int | None = None
    highlighted: int | None = None


@dataclass(frozen=True)
class Projection:
    """A projection of a slab: ``thickness`` level-0 pixels along ``axis``, centred on the slice position."""

    axis: int
    mode: ProjectionMode = "max"
    thickness: float = 1.0


@dataclass(frozen=True)
class DisplaySettings:
    """The user's settings for one pane.

    ``displayed`` is (row axis, column axis). ``position`` has one entry per axis of the image, in data
    coordinates: the slice position, or the position of the cross-hair for the displayed axes. The entry of the
    channel axis is ignored; ``channels`` selects the channels. ``level_lock`` fixes the pyramid level.
    """

    displayed: tuple[int, int]
    position: tuple[float, ...]
    channels: tuple[ChannelSettings, ...] = ()
    labels: tuple[LabelsSettings, ...] = ()
    level_lock: int | None = None
    projection: Projection | None = None

    @property
    def shown_channels(self) -> tuple[ChannelSettings, ...]:
        """The channels to draw: those with ``solo`` if there are any, otherwise those with ``visible``."""
        solo = tuple(channel for channel in self.channels if channel.solo)
        return solo or tuple(channel for channel in self.channels if channel.visible)


@dataclass(frozen=True)
class Viewport:
    """The visible part of the displayed plane.

    ``width`` and ``height`` are in device pixels. ``center`` is (row, column) in data coordinates. ``zoom`` is
    the number of device pixels per data pixel along columns; along rows it is ``zoom * aspect``. The plane is
    mirrored from left to right if ``mirrored``, and then rotated clockwise by ``turns`` quarter turns (0 to 3).
    """

    width: int
    height: int
    center: tuple[float, float]
    zoom: float
    aspect: float = 1.0
    turns: int = 0
    mirrored: bool = False

    @property
    def zooms(self) -> tuple[float, float]:
        """Device pixels per data pixel along (rows, columns)."""
        return self.zoom * self.aspect, self.zoom

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """The visible rectangle (top, left, bottom, right) in data coordinates."""
        row_zoom, column_zoom = self.zooms
        width, height = (self.height, self.width) if self.turns % 2 else (self.width, self.height)
        half_height, half_width = height / row_zoom / 2, width / column_zoom / 2
        row, column = self.center
        return row - half_height, column - half_width, row + half_height, column + half_width

    def to_data(self, x: float, y: float) -> tuple[float, float]:
        """Return (row, column) in data coordinates at a device position (x to the right, y down)."""
        rows, columns = self.data_offset(x - self.width / 2, y - self.height / 2)
        return self.center[0] + rows, self.center[1] + columns

    def to_device(self, row: float, column: float) -> tuple[float, float]:
        """Return the device position (x, y) of a point in data coordinates."""
        row_zoom, column_zoom = self.zooms
        x, y = (column - self.center[1]) * column_zoom, (row - self.center[0]) * row_zoom
        if self.mirrored:
            x = -x
        for _ in range(self.turns):
            x, y = -y, x
        return self.width / 2 + x, self.height / 2 + y

    def data_offset(self, dx: float, dy: float) -> tuple[float, float]:
        """Return the distance (rows, columns) in data coordinates of a distance in device pixels."""
        row_zoom, column_zoom = self.zooms
        for _ in range(self.turns):
            dx, dy = dy, -dx
        return dy / row_zoom, (-dx if self.mirrored else dx) / column_zoom


# -- updates of the settings ----------------------------------------------------------------------------------


def with_position(settings: DisplaySettings, axis: int, value: float) -> DisplaySettings:
    """Set the position of the slice (or of the cross-hair) along one axis."""
    position = list(settings.position)
    position[axis] = float(value)
    return replace(settings, position=tuple(position))


def with_displayed(settings: DisplaySettings, row_axis: int, column_axis: int) -> DisplaySettings:
    """Set the displayed axes. A projection along one of them is removed. Raises ValueError if the axes are equal."""
    if row_axis == column_axis:
        raise ValueError(f"axis {row_axis} is given for rows and columns; choose two different axes")
    projection = settings.projection
    if projection is not None and projection.axis in (row_axis, column_axis):
        projection = None
    return replace(settings, displayed=(row_axis, column_axis), projection=projection)


def with_appearance(
    settings: DisplaySettings, other: DisplaySettings, keep_limits: bool = True
) -> DisplaySettings:
    """Copy the colours, the contrast and the visibility of channels and labels from another settings.

    Channels are matched by their position in the list. A channel whose label or field differs is not changed. Without
    ``keep_limits``, the contrast limits are not copied.
    """
    channels = tuple(
        replace(
            old,
            index=new.index,
            label=new.label,
            field=new.field,
            limits_range=new.limits_range,
            limits=old.limits if keep_limits else new.limits,
        )
        if (old.label, old.field) == (new.label, new.field)
        else new
        for new, old in zip(settings.channels, other.channels, strict=False)
    )
    labels = tuple(
        replace(old, index=new.index, selected=new.selected, highlighted=new.highlighted)
        for new, old in zip(settings.labels, other.labels, strict=False)
    )
    return replace(
        settings,
        channels=channels + settings.channels[len(channels) :],
        labels=labels + settings.labels[len(labels) :],
    )


def with_place(settings: DisplaySettings, other: DisplaySettings) -> DisplaySettings:
    """Copy the displayed axes, the position and the projection from the settings of an image with the same axes."""
    return replace(settings, displayed=other.displayed, position=other.position, projection=other.projection)


def with_limits(settings: DisplaySettings, limits: Sequence[tuple[float, float] | None]) -> DisplaySettings:
    """Set the contrast limits of the channels; None keeps those of a channel.

    Limits of another number of channels are ignored.
    """
    if len(limits) != len(settings.channels):
        return settings
    pairs = zip(settings.channels, limits, strict=True)
    return replace(
        settings, channels=tuple(replace(channel, limits=limit or channel.limits) for channel, limit in pairs)
    )


def with_channel(settings: DisplaySettings, number: int, **changes: object) -> DisplaySettings:
    """Change fields of the channel at ``number`` in ``settings.channels``."""
    channels = list(settings.channels)
    channels[number] = replace(channels[number], **changes)  # type: ignore[arg-type]
    return replace(settings, channels=tuple(channels))


def with_edited_channels(
    settings: DisplaySettings, before: Sequence[ChannelSettings], after: Sequence[ChannelSettings]
) -> DisplaySettings:
    """Return the settings with those channel settings replaced that an edit of the metadata has changed.

    ``before`` and ``after`` are the initial settings of the old and the new metadata. A setting that is equal in both
    keeps the value that the user has chosen. If the number of channels has changed, ``after`` is used.
    """
    if not len(settings.channels) == len(before) == len(after):
        return replace(settings, channels=tuple(after))
    channels = []
    for channel, old, new in zip(settings.channels, before, after, strict=True):
        names = [entry.name for entry in fields(ChannelSettings)]
        edited = {name: getattr(new, name) for name in names if getattr(old, name) != getattr(new, name)}
        channels.append(replace(channel, **edited))
    return replace(settings, channels=tuple(channels))


def with_labels(settings: DisplaySettings, number: int, **changes: object) -> DisplaySettings:
    """Change fields of the labels overlay at ``number`` in ``settings.labels``."""
    labels = list(settings.labels)
    labels[number] = replace(labels[number], **changes)  # type: ignore[arg-type]
    return replace(settings, labels=tuple(labels))


def with_level_lock(settings: DisplaySettings, level: int | None) -> DisplaySettings:
    """Fix the pyramid level, or with None select it by the zoom."""
    return replace(settings, level_lock=level)


def with_projection(settings: DisplaySettings, projection: Projection | None) -> DisplaySettings:
    """Set the projection; None displays a single slice."""
    return replace(settings, projection=projection)


# -- updates of the viewport --------------------------------------------------------------------------------


def cropped(viewport: Viewport, rows: int, columns: int) -> Viewport:
    """Return the part of a viewport that shows pixels of a plane of ``rows`` x ``columns`` data pixels, at the same
    zoom. A viewport beside the plane is returned unchanged.
    """
    top, left, bottom, right = viewport.rect
    top, left = max(top, -0.5), max(left, -0.5)
    bottom, right = min(bottom, rows - 0.5), min(right, columns - 0.5)
    if not (top < bottom and left < right):
        return viewport
    row_zoom, column_zoom = viewport.zooms
    height, width = max(1, round((bottom - top) * row_zoom)), max(1, round((right - left) * column_zoom))
    if viewport.turns % 2:
        height, width = width, height
    return replace(viewport, width=width, height=height, center=((top + bottom) / 2, (left + right) / 2))


FIT_MARGIN = 0.02
"""The empty border around a plane that is fitted to a window, as a fraction of the plane's size."""


def fit(
    width: int,
    height: int,
    rows: float,
    columns: float,
    aspect: float = 1.0,
    margin: float = 0.0,
    turns: int = 0,
    mirrored: bool = False,
) -> Viewport:
    """Return the viewport of ``width`` x ``height`` device pixels that shows a whole plane of ``rows`` x
    ``columns`` data pixels.

    ``margin`` is the empty border at each side, as a fraction of the plane's size.
    """
    width, height = max(1, width), max(1, height)
    across, down = (height, width) if turns % 2 else (width, height)
    zoom = min(across / max(1, columns), down / (max(1, rows) * aspect)) / (1 + 2 * margin)
    return Viewport(width, height, ((rows - 1) / 2, (columns - 1) / 2), zoom, aspect, turns, mirrored)


def is_same_place(viewport: Viewport, other: Viewport) -> bool:
    """Return whether two viewports have the same centre, scale and orientation, except for rounding errors."""
    return (
        (viewport.turns, viewport.mirrored) == (other.turns, other.mirrored)
        and all(isclose(a, b, rel_tol=1e-6) for a, b in zip(viewport.zooms, other.zooms, strict=True))
        and all(
            abs(a - b) * zoom < 0.01
            for a, b, zoom in zip(viewport.center, other.center, viewport.zooms, strict=True)
        )
    )


def one_to_one(viewport: Viewport) -> Viewport:
    """Return the viewport with one device pixel per data pixel and the same centre."""
    return replace(viewport, zoom=1.0)


def pan(viewport: Viewport, dx: float, dy: float) -> Viewport:
    """Move the picture by device pixels: positive ``dx`` to the right, positive ``dy`` down."""
    rows, columns = viewport.data_offset(dx, dy)
    row, column = viewport.center
    return replace(viewport, center=(row - rows, column - columns))


def rotated(viewport: Viewport, turns: int = 1) -> Viewport:
    """Rotate the picture clockwise by quarter turns around its centre."""
    return replace(viewport, turns=(viewport.turns + turns) % 4)


def mirrored(viewport: Viewport) -> Viewport:
    """Mirror the picture from left to right, as it is displayed."""
    # Mirroring after a rotation is the same as mirroring before the opposite rotation.
    return replace(viewport, turns=-viewport.turns % 4, mirrored=not viewport.mirrored)


def zoom_at(viewport: Viewport, factor: float, x: float, y: float) -> Viewport:
    """Zoom by ``factor`` around the device position (x, y). The zoom is limited to 1e-6 .. 1e4."""
    zoom = min(max(viewport.zoom * factor, 1e-6), 1e4)
    row, column = viewport.to_data(x, y)
    scaled = replace(viewport, zoom=zoom)
    new_row, new_column = scaled.to_data(x, y)
    center = (scaled.center[0] + row - new_row, scaled.center[1] + column - new_column)
    return replace(scaled, center=center)
