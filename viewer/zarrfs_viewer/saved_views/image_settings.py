"""The display settings that the user has changed, by image, in one file. Reopening an image restores them."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.errors import MetadataError
from zarrfs_viewer.locations import within
from zarrfs_viewer.saved_views.views import View, from_json, to_json

__all__ = ["ImageSettings"]

MAX_IMAGES = 200
"""The settings of at most this number of images are kept: those that changed last."""

MAX_FILE_NBYTES = 16 << 20


class ImageSettings:
    """The settings by location and image. Thread-safe.

    ``load`` and ``save`` block, and ``get`` waits for them.

    Other windows write to the same file: ``save`` writes only what this object changed and keeps the rest.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._views: dict[str, View] = {}
        self._changes: dict[str, View] = {}

    def load(self) -> None:
        """Read the file. Entries that are damaged are ignored, and so is a file that cannot be read."""
        with self._lock:
            self._views = self._read()

    def get(self, location: str, image: str) -> View | None:
        """Return the settings of the image at a path of a location, or None if they were never changed."""
        with self._lock:
            key = _key(location, image)
            return self._changes.get(key) or self._views.get(key)

    def put(self, view: View) -> None:
        """Remember the settings of an image until ``save``."""
        with self._lock:
            self._changes[_key(view.location, view.image)] = view

    def save(self) -> None:
        """Write the changes to the file, which is replaced atomically. Raises OSError."""
        with self._lock:
            if not self._changes:
                return
            views = self._read()
            for key, view in self._changes.items():
                views.pop(key, None)  # the last ones are kept
                views[key] = view
            views = dict(list(views.items())[-MAX_IMAGES:])
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_name(f"{self._file.name}.{os.getpid()}.{threading.get_ident()}.tmp")
            try:
                temporary.write_text(
                    json.dumps({"images": [to_json(view) for view in views.values()]}, ensure_ascii=False),
                    "utf-8",
                )
                temporary.replace(self._file)
            finally:
                temporary.unlink(missing_ok=True)
            self._views = views
            self._changes.clear()

    def _read(self) -> dict[str, View]:
        try:
            check_regular_file(self._file)
            if self._file.stat().st_size > MAX_FILE_NBYTES:
                return {}
            document = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        entries = document.get("images") if isinstance(document, Mapping) else None
        views = {}
        for entry in entries if isinstance(entries, list) else ():
            try:
                view = from_json(entry)
            except MetadataError:
                continue
            views[_key(view.location, view.image)] = view
        return views


def _key(location: str, image: str) -> str:
    """Return the same text for a local path and its file URL. Symbolic links are not followed: that may block."""
    joined = within(location, image)
    return unquote(urlsplit(joined).path) if joined.startswith("file:///") else joined
