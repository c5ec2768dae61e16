"""The list of recent locations, with a thumbnail of each."""

from __future__ import annotations

from pathlib import Path

from PyQt6.QtCore import QCryptographicHash, QSettings, Qt
from PyQt6.QtGui import QImage

__all__ = ["MAX_RECENT", "RecentLocations"]

MAX_RECENT = 12
THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT = 144, 96


class RecentLocations:
    """The recent locations in the settings. Thumbnails are PNG files in the directory of the settings file."""

    def __init__(self, settings: QSettings) -> None:
        self._settings = settings
        self._directory = Path(settings.fileName()).parent / "thumbnails"

    def locations(self) -> list[str]:
        """Return the recent locations, the newest first."""
        value = self._settings.value("recent", [])
        return [value] if isinstance(value, str) else list(value or [])

    def add(self, location: str) -> None:
        """Make a location the newest. The thumbnails of locations that are no longer recent are deleted."""
        kept = [location, *(other for other in self.locations() if other != location)]
        self._settings.setValue("recent", kept[:MAX_RECENT])
        for forgotten in kept[MAX_RECENT:]:
            self.thumbnail(forgotten).unlink(missing_ok=True)

    def remove(self, location: str) -> None:
        """Remove a location from the list."""
        self._settings.setValue("recent", [other for other in self.locations() if other != location])
        self.thumbnail(location).unlink(missing_ok=True)

    def thumbnail(self, location: str) -> Path:
        """Return the file of the thumbnail of a location. It may not exist."""
        # The import of ``hashlib`` loads OpenSSL: 3 MiB.
        data = location.encode("utf-8", "surrogateescape")
        digest = QCryptographicHash.hash(data, QCryptographicHash.Algorithm.Sha256).data().hex()[:20]
        return self._directory / f"{digest}.png"

    def save_thumbnail(self, location: str, picture: QImage) -> None:
        """Write the thumbnail of a location. A picture that cannot be written is ignored. Any thread may call it:
        it does not use the settings.
        """
        scaled = picture.scaled(
            THUMBNAIL_WIDTH,
            THUMBNAIL_HEIGHT,
            Qt.AspectRatioMode.KeepAspectRatio,
            Qt.TransformationMode.SmoothTransformation,
        )
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            return
        scaled.save(str(self.thumbnail(location)), "PNG")
