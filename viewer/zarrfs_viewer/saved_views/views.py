"""Named views: what is seen, as JSON, as a link, and as a command line that shows it again.

Pure, but for two functions that keep views in a file.
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
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.saved_views.fields import Fields
from zarrfs_viewer.state.view_state import ChannelSettings, LabelsSettings, Projection, ViewIntent, Viewport

__all__ = [
    "View",
    "command_line",
    "fitted_intent",
    "fitted_viewport",
    "from_json",
    "from_link",
    "load_views",
    "save_views",
    "to_json",
    "to_link",
]

FORMAT = 1
FRAGMENT = "#view="
MAX_VIEW_NBYTES = 1 << 20
"""A link is refused beyond so many decompressed bytes: it may come from anywhere."""


@dataclass(frozen=True)
class View:
    """A named view: ``location`` as it was opened, ``image`` the path of the image in it, and how it is
    seen.
    """

    name: str
    location: str
    image: str
    intent: ViewIntent
    viewport: Viewport | None = None


def to_json(view: View) -> dict[str, Any]:
    """Return the view as plain JSON data."""
    return {
        "format": FORMAT,
        "name": view.name,
        "location": view.location,
        "image": view.image,
        "intent": _plain(asdict(view.intent)),
        "viewport": None if view.viewport is None else _plain(asdict(view.viewport)),
    }


def _plain(value: Any) -> Any:
    """Return tuples as lists, so that what goes in is what comes back from JSON."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def from_json(document: Any) -> View:
    """Return the view of such data. Raises MetadataError naming the key that does not fit."""
    fields = Fields(document, "")
    if fields.integer("format") != FORMAT:
        raise fields.error(
            "format", f"expected {FORMAT}: the view was saved by another version of the viewer"
        )
    viewport = fields.optional("viewport")
    return View(
        fields.string("name"),
        fields.string("location"),
        fields.string("image"),
        _intent(fields.inner("intent")),
        None if viewport is None else _viewport(viewport),
    )


def _intent(fields: Fields) -> ViewIntent:
    projection = fields.optional("projection")
    position = fields.numbers("position")
    displayed = fields.integers("displayed", 2)
    if displayed[0] == displayed[1] or not all(0 <= axis < len(position) for axis in displayed):
        raise fields.error(
            "displayed", f"expected two different axes below {len(position)}, found {displayed}"
        )
    return ViewIntent(
        displayed=(displayed[0], displayed[1]),
        position=position,
        channels=tuple(_channel(item) for item in fields.items("channels")),
        labels=tuple(_labels(item) for item in fields.items("labels")),
        level_lock=fields.integer("level_lock", None),
        projection=None if projection is None else _projection(projection, len(position)),
    )


def _channel(fields: Fields) -> ChannelSettings:
    plain = ChannelSettings()
    return ChannelSettings(
        index=fields.integer("index", 0) or 0,
        label=fields.string("label", ""),
        colormap=fields.colormap("colormap"),
        limits=fields.pair("limits"),
        limits_range=fields.pair("limits_range"),
        gamma=fields.positive("gamma", plain.gamma),
        invert=fields.boolean("invert", plain.invert),
        visible=fields.boolean("visible", plain.visible),
        solo=fields.boolean("solo", plain.solo),
        component=fields.choice("component", ("value", "abs", "phase", "real", "imag")),
        field=fields.string("field", None),
    )


def _labels(fields: Fields) -> LabelsSettings:
    plain = LabelsSettings()
    return LabelsSettings(
        index=fields.integer("index", 0) or 0,
        visible=fields.boolean("visible", plain.visible),
        opacity=fields.number("opacity", plain.opacity),
        contour=fields.integer("contour", plain.contour) or 0,
        selected=fields.integer("selected", None),
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
        raise fields.error("width", f"expected a window of a usual size, found {width} x {height}")
    zoom, aspect = fields.positive("zoom"), fields.positive("aspect", 1.0)
    return Viewport(width, height, (center[0], center[1]), zoom, aspect)


def to_link(view: View) -> str:
    """Return the location with the view in its fragment (``LOCATION#view=...``); ``from_link`` reads it."""
    document = to_json(view)
    del document["location"]
    packed = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    return view.location + FRAGMENT + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def from_link(link: str) -> tuple[str, View | None]:
    """Split a link into the location and its view, None where it carries none.

    Raises MetadataError if it carries one that is damaged.
    """
    location, found, packed = link.partition(FRAGMENT)
    if not found:
        return link, None
    try:
        data = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(data, MAX_VIEW_NBYTES)
        if not unpacker.eof:
            raise ValueError("it is cut short, or too large")
        document = json.loads(text)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise MetadataError(
            f"the view in the link to {location} is damaged: {error}; copy the link again"
        ) from error
    if not isinstance(document, Mapping):
        raise MetadataError(f"the view in the link to {location} is damaged: expected an object")
    return location, from_json({**document, "location": location})


def command_line(view: View) -> str:
    """Return the shell command that shows this view, quoted for a POSIX shell."""
    return shlex.join(["zarrfs-viewer", to_link(view)])


def load_views(file: Path) -> tuple[View, ...]:
    """Read the views kept in a file; none where there is no such file. Raises MetadataError."""
    try:
        check_regular_file(file)
        document = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise MetadataError(f"{file}: the saved views cannot be read: {error}") from error
    if not isinstance(document, Mapping) or not isinstance(document.get("views"), list):
        raise MetadataError(f"{file}: no saved views: expected an object with a list 'views'")
    return tuple(from_json(item) for item in document["views"])


def save_views(file: Path, views: tuple[View, ...]) -> None:
    """Keep views in a file, replaced atomically; its directory is made. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"views": [to_json(view) for view in views]}, indent=2, ensure_ascii=False)
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text + "\n", "utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def fitted_intent(view: View, image: Image, usual: ViewIntent) -> ViewIntent:
    """Return a view's intent for an image that has been opened now; ``usual`` is how it is shown without a view.

    Positions are clipped to what there is. Labels and a pyramid level that the image no longer has are left out.
    Raises MetadataError where axes or channels are others than when the view was kept.
    """
    intent = view.intent
    if len(intent.position) != len(image.shape) or not set(intent.displayed) <= set(image.slider_axes):
        raise MetadataError(
            f"the view {view.name!r} is of an image with {len(intent.position)} axes that it shows along "
            f"{intent.displayed}; {image.name!r} has now {len(image.shape)}: the usual view is shown"
        )
    known = {(channel.index, channel.field) for channel in usual.channels}
    if {(channel.index, channel.field) for channel in intent.channels} != known:
        raise MetadataError(
            f"the view {view.name!r} has {len(intent.channels)} channels, {image.name!r} has now "
            f"{len(usual.channels)} or others: the usual view is shown"
        )
    position = tuple(
        min(max(value, 0.0), float(length - 1))
        for value, length in zip(intent.position, image.shape, strict=True)
    )
    kept = {label.index: label for label in intent.labels}
    lock = intent.level_lock
    return replace(
        intent,
        position=position,
        labels=tuple(kept.get(label.index, label) for label in usual.labels),
        level_lock=lock if lock is not None and 0 <= lock < len(image.levels) else None,
    )


def fitted_viewport(kept: Viewport, now: Viewport) -> Viewport:
    """Return the window of the size of ``now`` that shows at least all that ``kept`` showed."""
    factor = min(now.width / kept.width, now.height / kept.height)
    return replace(now, center=kept.center, zoom=kept.zoom * factor, aspect=kept.aspect)
