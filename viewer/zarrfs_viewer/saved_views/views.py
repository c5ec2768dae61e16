"""Saved views: a location, an image, and the view settings, as JSON, as a link, and as a command line.

Only ``load_views`` and ``save_views`` perform I/O; the other functions are pure.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import shlex
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import MetadataError
from zarrfs.ngff import SystemReference
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.saved_views.fields import Fields
from zarrfs_viewer.state.view_state import (
    FIT_MARGIN,
    ChannelSettings,
    DisplaySettings,
    LabelsSettings,
    Projection,
    Viewport,
    fit,
    is_same_place,
)

__all__ = [
    "View",
    "command_line",
    "fitted_settings",
    "from_json",
    "from_link",
    "is_fitted",
    "labels_from_json",
    "load_views",
    "restored_viewport",
    "save_views",
    "to_json",
    "to_link",
]

FORMAT_VERSION = 1
FRAGMENT = "#view="
MAX_VIEW_NBYTES = 1 << 20
"""The maximum decompressed size of the view in a link, which is untrusted."""


@dataclass(frozen=True)
class View:
    """A named view of an image. ``location`` is the opened location; ``image`` is the image's path in the dataset.

    ``system`` is the coordinate system that is displayed; None for the first one, or without a choice.
    """

    name: str
    location: str
    image: str
    settings: DisplaySettings
    viewport: Viewport | None = None
    system: SystemReference | None = None


def to_json(view: View) -> dict[str, Any]:
    """Return the view as plain JSON data."""
    system = {} if view.system is None else {"system": {"path": view.system.path, "name": view.system.name}}
    return {
        "format": FORMAT_VERSION,
        "name": view.name,
        "location": view.location,
        "image": view.image,
        "intent": _to_json_value(asdict(view.settings)),
        "viewport": None if view.viewport is None else _to_json_value(asdict(view.viewport)),
        **system,
    }


def _to_json_value(value: Any) -> Any:
    """Return the value with tuples replaced by lists, as the JSON decoder returns them."""
    if isinstance(value, dict):
        return {key: _to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json_value(entry) for entry in value]
    return value


def from_json(document: Any) -> View:
    """Return the view of a JSON document of ``to_json``. Raises MetadataError with the invalid key."""
    fields = Fields(document, "")
    version = fields.integer("format")
    if version != FORMAT_VERSION:
        raise fields.error(
            "format",
            f"expected {FORMAT_VERSION}, found {version}: the view was saved by another version of the viewer",
        )
    viewport, system = fields.optional("viewport"), fields.optional("system")
    return View(
        fields.string("name"),
        fields.string("location"),
        fields.string("image"),
        _settings(fields.inner("intent")),
        None if viewport is None else _viewport(viewport),
        None if system is None else SystemReference(system.string("path", ""), system.string("name")),
    )


def _settings(fields: Fields) -> DisplaySettings:
    projection = fields.optional("projection")
    position = fields.numbers("position")
    displayed = fields.integers("displayed", 2)
    if displayed[0] == displayed[1] or not all(0 <= axis < len(position) for axis in displayed):
        raise fields.error(
            "displayed", f"expected two different axes below {len(position)}, found {displayed}"
        )
    return DisplaySettings(
        displayed=(displayed[0], displayed[1]),
        position=position,
        channels=tuple(_channel(item) for item in fields.items("channels")),
        labels=tuple(labels_from_json(item) for item in fields.items("labels")),
        level_lock=fields.integer("level_lock", None),
        projection=None if projection is None else _projection(projection, len(position)),
    )


def _channel(fields: Fields) -> ChannelSettings:
    defaults = ChannelSettings()
    return ChannelSettings(
        index=fields.integer("index", 0) or 0,
        label=fields.string("label", ""),
        colormap=fields.colormap("colormap"),
        limits=fields.pair("limits"),
        limits_range=fields.pair("limits_range"),
        gamma=fields.positive("gamma", defaults.gamma),
        invert=fields.boolean("invert", defaults.invert),
        visible=fields.boolean("visible", defaults.visible),
        solo=fields.boolean("solo", defaults.solo),
        component=fields.choice("component", ("value", "abs", "phase", "real", "imag")),
        field=fields.string("field", None),
    )


def labels_from_json(fields: Fields) -> LabelsSettings:
    """Return the settings of a label image, a JSON object. Raises MetadataError with the invalid key."""
    defaults = LabelsSettings()
    return LabelsSettings(
        index=fields.integer("index", 0) or 0,
        visible=fields.boolean("visible", defaults.visible),
        opacity=fields.number("opacity", defaults.opacity),
        contour=fields.integer("contour", defaults.contour) or 0,
        selected=fields.integer("selected", None),
        highlighted=fields.integer("highlighted", None),
    )


def _projection(fields: Fields, rank: int) -> Projection:
    axis = fields.integer("axis")
    if axis is None or not 0 <= axis < rank:
        raise fields.error("axis", f"expected an axis below {rank}, found {axis}")
    return Projection(axis, fields.choice("mode", ("max", "mean")), fields.positive("thickness", 1.0))


def _viewport(fields: Fields) -> Viewport:
    center = fields.numbers("center", 2)
    width, height = fields.integer("width"), fields.integer("height")
    if width is None or height is None or not (0 < width < 1 << 16 and 0 < height < 1 << 16):
        raise fields.error("width", f"expected a window size from 1 to 65535, found {width} x {height}")
    zoom, aspect = fields.positive("zoom"), fields.positive("aspect", 1.0)
    turns = fields.integer("turns", 0) or 0
    if not 0 <= turns < 4:
        raise fields.error("turns", f"expected 0 to 3 quarter turns, found {turns}")
    is_mirrored = fields.boolean("mirrored", False)
    return Viewport(width, height, (center[0], center[1]), zoom, aspect, turns, is_mirrored)


def to_link(view: View) -> str:
    """Return the location with the view in its fragment (``LOCATION#view=...``), for ``from_link``."""
    document = to_json(view)
    del document["location"]
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    return view.location + FRAGMENT + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def from_link(link: str) -> tuple[str, View | None]:
    """Return the location and the view of a link; the view is None if the link has none.

    Raises MetadataError if the view is invalid.
    """
    location, separator, packed = link.partition(FRAGMENT)
    if not separator:
        return link, None
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        decompressor = zlib.decompressobj()
        text = decompressor.decompress(data, MAX_VIEW_NBYTES)
        if not decompressor.eof:
            raise ValueError(f"it is truncated, or larger than {MAX_VIEW_NBYTES} bytes")
        document = json.loads(text)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise MetadataError(
            f"the view in the link to {location} is damaged: {error}; copy the link again"
        ) from error
    if not isinstance(document, Mapping):
        raise MetadataError(f"the view in the link to {location} is damaged: expected a JSON object")
    return location, from_json({**document, "location": location})


def command_line(view: View) -> str:
    """Return the command line that opens the view, quoted for a POSIX shell."""
    return shlex.join(["zarrfs-viewer", to_link(view)])


def load_views(file: Path) -> tuple[View, ...]:
    """Return the views in a file, none if the file does not exist. Blocks. Raises MetadataError."""
    try:
        check_regular_file(file)
        document = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise MetadataError(f"{file}: the saved views cannot be read: {error}") from error
    if not isinstance(document, Mapping) or not isinstance(document.get("views"), list):
        raise MetadataError(f"{file} contains no saved views: expected an object with a list 'views'")
    return tuple(from_json(item) for item in document["views"])


def save_views(file: Path, views: tuple[View, ...]) -> None:
    """Write views to a file, which is replaced atomically. Creates its directory. Blocks. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"views": [to_json(view) for view in views]}, indent=2, ensure_ascii=False)
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text + "\n", "utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def fitted_settings(view: View, image: Image, initial: DisplaySettings) -> DisplaySettings:
    """Return the settings of a view, adapted to the opened image. ``initial`` is the image's initial settings.

    Positions are clipped to the image. Label images and a pyramid level that no longer exist are dropped. Raises
    MetadataError if the axes or the channels have changed since the view was saved.
    """
    settings = view.settings
    what = f"the view {view.name!r}" if view.name else "what was displayed"
    if len(settings.position) != len(image.shape) or not set(settings.displayed) <= set(image.slider_axes):
        raise MetadataError(
            f"{what} belongs to an image with {len(settings.position)} axes and has the "
            f"axes {settings.displayed}; {image.name!r} has {len(image.shape)} axes: the default view is displayed"
        )
    expected = {(channel.index, channel.field) for channel in settings.channels}
    if {(channel.index, channel.field) for channel in initial.channels} != expected:
        raise MetadataError(
            f"{what} has {len(settings.channels)} channels; {image.name!r} has "
            f"{len(initial.channels)}, or different ones: the default view is displayed"
        )
    position = tuple(
        min(max(value, 0.0), float(length - 1))
        for value, length in zip(settings.position, image.shape, strict=True)
    )
    saved_labels = {label.index: label for label in settings.labels}
    lock = settings.level_lock
    return replace(
        settings,
        position=position,
        labels=tuple(saved_labels.get(label.index, label) for label in initial.labels),
        level_lock=lock if lock is not None and 0 <= lock < len(image.levels) else None,
    )


def restored_viewport(saved: Viewport, current: Viewport) -> Viewport:
    """Return a viewport with the size and the shape of pixels of ``current``, and the centre, scale and orientation of
    ``saved``.

    The scale does not depend on the sizes: that of the pane changes when further panes appear beside it.
    """
    return replace(current, center=saved.center, zoom=saved.zoom, turns=saved.turns, mirrored=saved.mirrored)


def is_fitted(viewport: Viewport, rows: int, columns: int) -> bool:
    """Return whether a viewport was fitted to a plane of ``rows`` x ``columns`` data pixels."""
    size, aspect = (viewport.width, viewport.height), viewport.aspect
    whole = fit(*size, rows, columns, aspect, FIT_MARGIN, viewport.turns, viewport.mirrored)
    return is_same_place(whole, viewport)
