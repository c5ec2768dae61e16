"""The state of the windows of the last session, in one file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import MetadataError
from zarrfs_viewer.analysis.regions import PlaneRegions
from zarrfs_viewer.saved_views.fields import Fields
from zarrfs_viewer.saved_views.saved_regions import regions_from_json, regions_to_json
from zarrfs_viewer.saved_views.views import View, from_json, labels_from_json, to_json
from zarrfs_viewer.state.view_state import LabelsSettings

__all__ = [
    "ARRANGEMENTS",
    "AddedLabels",
    "Arrangement",
    "LayerView",
    "WindowState",
    "load_windows",
    "save_windows",
]

Arrangement = Literal["beside", "translucent", "additive", "minimum", "difference"]
"""How a layer is displayed: beside the first image, or blended with what is below it."""

ARRANGEMENTS: tuple[Arrangement, ...] = get_args(Arrangement)

MAX_FILE_NBYTES = 16 << 20


@dataclass(frozen=True)
class LayerView:
    """A layer of a window. The image of ``view`` is the path of its node in the location."""

    view: View
    arrangement: Arrangement
    opacity: float
    visible: bool = True


@dataclass(frozen=True)
class AddedLabels:
    """A label image that the user has drawn over the image: the path of its node in a location, and its settings."""

    location: str
    path: str
    settings: LabelsSettings


@dataclass(frozen=True)
class WindowState:
    """One window.

    ``geometry`` and ``docks`` are hexadecimal texts of Qt. ``locations`` are the open locations. ``path`` is the path
    of the displayed node in the location of ``view``; the view is None if no image was displayed. ``panel`` is the
    number of the visible panel, and ``is_linked`` whether three linked panes were displayed. ``regions`` are those of
    all planes. ``as_labels`` is set if the image was displayed as labels, and ``labels`` are those that were added.
    ``layers`` are those over the image, from back to front; of the images of a scene, those that the user has changed.
    """

    geometry: str = ""
    locations: tuple[str, ...] = ()
    path: str = ""
    view: View | None = None
    panel: int = 0
    is_linked: bool = False
    regions: tuple[PlaneRegions, ...] = ()
    docks: str = ""
    layers: tuple[LayerView, ...] = ()
    as_labels: bool = False
    labels: tuple[AddedLabels, ...] = ()


def save_windows(file: Path, windows: Sequence[WindowState]) -> None:
    """Write the windows to a file, which is replaced atomically. Blocks. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        text = json.dumps({"windows": [_to_json(window) for window in windows]}, ensure_ascii=False)
        temporary.write_text(text, "utf-8")
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def load_windows(file: Path) -> tuple[WindowState, ...]:
    """Return the windows in a file; none if it cannot be read. A damaged entry is ignored. Blocks."""
    try:
        check_regular_file(file)
        if file.stat().st_size > MAX_FILE_NBYTES:
            return ()
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return ()
    entries = document.get("windows") if isinstance(document, Mapping) else None
    windows = []
    for entry in entries if isinstance(entries, list) else ():
        try:
            windows.append(_from_json(entry))
        except MetadataError:
            continue
    return tuple(windows)


def _to_json(window: WindowState) -> dict[str, Any]:
    return {
        "geometry": window.geometry,
        "docks": window.docks,
        "locations": list(window.locations),
        "path": window.path,
        "view": None if window.view is None else to_json(window.view),
        "layers": [_layer_to_json(layer) for layer in window.layers],
        "panel": window.panel,
        "linked": window.is_linked,
        "as_labels": window.as_labels,
        "labels": [asdict(labels) for labels in window.labels],
        "regions": regions_to_json(window.regions),
    }


def _layer_to_json(layer: LayerView) -> dict[str, Any]:
    return {
        "view": to_json(layer.view),
        "arrangement": layer.arrangement,
        "opacity": layer.opacity,
        "visible": layer.visible,
    }


def _layer_from_json(document: Any, pointer: str) -> LayerView:
    fields = Fields(document, pointer)
    return LayerView(
        from_json(document.get("view")),
        fields.choice("arrangement", ARRANGEMENTS),
        min(max(fields.number("opacity", 1.0), 0.0), 1.0),
        fields.boolean("visible", True),
    )


def _from_json(document: Any) -> WindowState:
    fields = Fields(document, "")
    locations = document.get("locations", [])
    if not isinstance(locations, list) or not all(isinstance(location, str) for location in locations):
        raise fields.error("locations", f"expected a list of texts, found {locations!r}")
    view, second, listed = document.get("view"), document.get("second"), document.get("layers", [])
    if not isinstance(listed, list):
        raise fields.error("layers", f"expected a list, found {listed!r}")
    layers = [_layer_from_json(layer, f"/layers/{number}") for number, layer in enumerate(listed)]
    if second is not None:  # written when a window had at most one further image
        layers.append(_layer_from_json(second, "/second"))
    return WindowState(
        geometry=fields.string("geometry", ""),
        docks=fields.string("docks", ""),
        locations=tuple(locations),
        path=fields.string("path", ""),
        view=None if view is None else from_json(view),
        layers=tuple(layers),
        as_labels=fields.boolean("as_labels", False),
        labels=tuple(
            AddedLabels(
                labels.string("location"), labels.string("path"), labels_from_json(labels.inner("settings"))
            )
            for labels in fields.items("labels")
        ),
        panel=fields.integer("panel", 0) or 0,
        is_linked=fields.boolean("linked", False),
        regions=regions_from_json(fields, "regions"),
    )
