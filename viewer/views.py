"""Named views: what is seen, as JSON, as a link, and as a command line that shows it again. Pure but for two
functions that keep them in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewer.state import ViewIntent, Viewport

__all__ = [
    "View",
    "command_line",
    "from_json",
    "from_link",
    "load_views",
    "save_views",
    "to_json",
    "to_link",
]


@dataclass(frozen=True)
class View:
    """A named view: where, which image in it, and how it is seen."""

    name: str
    location: str
    image: str
    intent: ViewIntent
    viewport: Viewport | None = None


def to_json(view: View) -> dict[str, Any]:
    """Return the view as plain JSON data."""
    raise NotImplementedError


def from_json(document: Mapping[str, Any]) -> View:
    """Return the view of such data. Raises MetadataError naming the key that does not fit."""
    raise NotImplementedError


def to_link(view: View) -> str:
    """Return the location with the view in its fragment (``LOCATION#view=...``); ``from_link`` reads it."""
    raise NotImplementedError


def from_link(link: str) -> tuple[str, View | None]:
    """Split a link into the location and its view, None where it carries none. Raises MetadataError."""
    raise NotImplementedError


def command_line(view: View) -> str:
    """Return the shell command that shows this view (``zarrfs-viewer 'LINK'``), quoted."""
    raise NotImplementedError


def load_views(file: Path) -> tuple[View, ...]:
    """Read the views kept in a file; none where there is no such file. Raises MetadataError."""
    raise NotImplementedError


def save_views(file: Path, views: tuple[View, ...]) -> None:
    """Keep views in a file, replaced atomically."""
    raise NotImplementedError
