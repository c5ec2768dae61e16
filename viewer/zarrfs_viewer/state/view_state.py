"""What the user wants to see: frozen values, and pure functions that give changed ones.

Here: which axes are displayed, where the slices are, how channels and labels look. Not here: what follows
from it for a given image and window (``resolve``), how it is drawn (``compose``), widgets.

Coordinates: *data coordinates* are pixels of level 0 along each axis, as floats; pixel ``i`` has its centre
at ``i`` and covers ``[i - 0.5, i + 0.5)``. ``Image.to_physical`` and ``Image.to_level`` convert them. All
panes, overlays and saved views speak data coordinates of the image in front.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

__all__ = [
    "ChannelSettings",
    "Component",
    "LabelsSettings",
    "Projection",
    "ProjectionMode",
    "Rgb",
    "ViewIntent",
    "Viewport",
    "fit",
    "one_to_one",
    "pan",
    "with_channel",
    "with_displayed",
    "with_labels",
    "with_level_lock",
    "with_limits",
    "with_position",
    "with_projection",
    "zoom_at",
]

Rgb = tuple[int, int, int]
"""A colour: red, green, blue, each 0 to 255."""

Component = Literal["value", "abs", "phase", "real", "imag"]
"""What of a complex number is shown; ``value`` for everything that is not complex."""

ProjectionMode = Literal["max", "mean"]


@dataclass(frozen=True)
class ChannelSettings:
    """How one channel looks.

    ``index`` is the position along the image's channel axis (0 where it has none); ``field`` names the field
    of a structured data type. ``limits`` are data values shown as the first and the last colour; None means
    not known yet: auto-contrast is to set them. ``colormap`` is a name from ``zarrfs_viewer.state.colormaps``, or
    ``#RRGGBB`` for a ramp from black to that colour. ``gamma`` above 0; 1 is linear. ``limits_range`` is what
    a slider may span.
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
    """How one label image is laid over the picture. ``contour`` is the outline's width in screen pixels; 0
    fills.

    ``index`` counts the label images of the image in front. ``selected`` shows that label alone.
    """

    index: int = 0
    visible: bool = True
    opacity: float = 0.5
    contour: int = 0
    selected: int | None = None


@dataclass(frozen=True)
class Projection:
    """A slab instead of a slice: ``thickness`` level-0 pixels along ``axis``, centred on the position."""

    axis: int
    mode: ProjectionMode = "max"
    thickness: float = 1.0


@dataclass(frozen=True)
class ViewIntent:
    """All that the user chose for one pane.

    ``displayed`` is (row axis, column axis). ``position`` has one entry per axis of the image in data
    coordinates; those of the displayed axes are the cross-hair, those of the channel axis are ignored
    (``channels`` says). ``level_lock`` pins a pyramid level.
    """

    displayed: tuple[int, int]
    position: tuple[float, ...]
    channels: tuple[ChannelSettings, ...] = ()
    labels: tuple[LabelsSettings, ...] = ()
    level_lock: int | None = None
    projection: Projection | None = None

    @property
    def shown_channels(self) -> tuple[ChannelSettings, ...]:
        """The channels to draw: the soloed ones if any is, else the visible ones."""
        solo = tuple(channel for channel in self.channels if channel.solo)
        return solo or tuple(channel for channel in self.channels if channel.visible)


@dataclass(frozen=True)
class Viewport:
    """The window onto the displayed plane.

    ``width`` and ``height`` in device pixels; ``center`` is (row, column) in data coordinates; ``zoom`` is
    device pixels per data pixel along columns; along rows it is ``zoom * aspect``.
    """

    width: int
    height: int
    center: tuple[float, float]
    zoom: float
    aspect: float = 1.0

    @property
    def zooms(self) -> tuple[float, float]:
        """Device pixels per data pixel along (rows, columns)."""
        return self.zoom * self.aspect, self.zoom

    @property
    def rect(self) -> tuple[float, float, float, float]:
        """What is seen, in data coordinates: (top, left, bottom, right)."""
        row_zoom, column_zoom = self.zooms
        half_height, half_width = self.height / row_zoom / 2, self.width / column_zoom / 2
        row, column = self.center
        return row - half_height, column - half_width, row + half_height, column + half_width

    def to_data(self, x: float, y: float) -> tuple[float, float]:
        """Return the (row, column) in data coordinates below device pixel position (x right, y down)."""
        row_zoom, column_zoom = self.zooms
        return (
            self.center[0] + (y - self.height / 2) / row_zoom,
            self.center[1] + (x - self.width / 2) / column_zoom,
        )

    def to_device(self, row: float, column: float) -> tuple[float, float]:
        """Return the device position (x, y) of a point in data coordinates."""
        row_zoom, column_zoom = self.zooms
        return (
            self.width / 2 + (column - self.center[1]) * column_zoom,
            self.height / 2 + (row - self.center[0]) * row_zoom,
        )


# -- changes of intent --------------------------------------------------------------------------------------


def with_position(intent: ViewIntent, axis: int, value: float) -> ViewIntent:
    """Move the slice (or the cross-hair) along one axis."""
    position = list(intent.position)
    position[axis] = float(value)
    return replace(intent, position=tuple(position))


def with_displayed(intent: ViewIntent, row_axis: int, column_axis: int) -> ViewIntent:
    """Display two other axes. A projection along one of them ends. Raises ValueError if the two are one."""
    if row_axis == column_axis:
        raise ValueError(f"axis {row_axis} cannot run both down and across; choose two different axes")
    projection = intent.projection
    if projection is not None and projection.axis in (row_axis, column_axis):
        projection = None
    return replace(intent, displayed=(row_axis, column_axis), projection=projection)


def with_look(intent: ViewIntent, other: ViewIntent) -> ViewIntent:
    """Return an intent with the look of another one: colours, contrast and visibility of channels and labels.

    Channels are matched by place; those that differ in label or part of the data keep their own look.
    """
    channels = tuple(
        replace(old, index=new.index, label=new.label, field=new.field, limits_range=new.limits_range)
        if (old.label, old.field) == (new.label, new.field)
        else new
        for new, old in zip(intent.channels, other.channels, strict=False)
    )
    labels = tuple(
        replace(old, index=new.index, selected=new.selected)
        for new, old in zip(intent.labels, other.labels, strict=False)
    )
    return replace(
        intent,
        channels=channels + intent.channels[len(channels) :],
        labels=labels + intent.labels[len(labels) :],
    )


def with_channel(intent: ViewIntent, number: int, **changes: object) -> ViewIntent:
    """Change fields of the channel at ``number`` in ``intent.channels``."""
    channels = list(intent.channels)
    channels[number] = replace(channels[number], **changes)  # type: ignore[arg-type]
    return replace(intent, channels=tuple(channels))


def with_limits(intent: ViewIntent, number: int, low: float, high: float) -> ViewIntent:
    """Set the limits of one channel; given the wrong way round they are swapped."""
    return with_channel(intent, number, limits=(min(low, high), max(low, high)))


def with_labels(intent: ViewIntent, number: int, **changes: object) -> ViewIntent:
    """Change fields of the labels overlay at ``number`` in ``intent.labels``."""
    labels = list(intent.labels)
    labels[number] = replace(labels[number], **changes)  # type: ignore[arg-type]
    return replace(intent, labels=tuple(labels))


def with_level_lock(intent: ViewIntent, level: int | None) -> ViewIntent:
    """Pin a pyramid level, or with None let the zoom choose."""
    return replace(intent, level_lock=level)


def with_projection(intent: ViewIntent, projection: Projection | None) -> ViewIntent:
    """Show a slab instead of a slice, or with None a slice again."""
    return replace(intent, projection=projection)


# -- changes of viewport ------------------------------------------------------------------------------------


def fit(
    width: int, height: int, rows: int, columns: int, aspect: float = 1.0, margin: float = 0.0
) -> Viewport:
    """Return the viewport of that size that shows a whole plane of ``rows`` x ``columns`` data pixels.

    ``margin`` is the part of each side left free (0.02: two per cent).
    """
    width, height = max(1, width), max(1, height)
    zoom = min(width / max(1, columns), height / (max(1, rows) * aspect)) / (1 + 2 * margin)
    return Viewport(width, height, ((rows - 1) / 2, (columns - 1) / 2), zoom, aspect)


def one_to_one(viewport: Viewport) -> Viewport:
    """Return the viewport at one device pixel per data pixel, around the same centre."""
    return replace(viewport, zoom=1.0)


def pan(viewport: Viewport, dx: float, dy: float) -> Viewport:
    """Drag the picture by device pixels: right for positive ``dx``, down for positive ``dy``."""
    row_zoom, column_zoom = viewport.zooms
    row, column = viewport.center
    return replace(viewport, center=(row - dy / row_zoom, column - dx / column_zoom))


def zoom_at(viewport: Viewport, factor: float, x: float, y: float) -> Viewport:
    """Zoom by ``factor`` so that the point below device position (x, y) stays there. Zoom keeps in
    1e-6..1e4.
    """
    zoom = min(max(viewport.zoom * factor, 1e-6), 1e4)
    row, column = viewport.to_data(x, y)
    scaled = replace(viewport, zoom=zoom)
    new_row, new_column = scaled.to_data(x, y)
    center = (scaled.center[0] + row - new_row, scaled.center[1] + column - new_column)
    return replace(scaled, center=center)
