"""The backend of archives and references, which have an index of their keys in memory."""

from __future__ import annotations

from zarrfs.engine.stores.fsspec.backend import Backend
from zarrfs.engine.stores.fsspec.presence import Presence, classify_error

__all__ = ["ArchiveBackend", "ReferenceBackend"]


class ArchiveBackend(Backend):
    """An archive: zip, tar and others. A key is missing only if the index does not contain it.

    If the index contains the key, every error is a failure, including "not found": the file that contains the value is
    missing.
    """

    supports_prefetching = False  # the file systems of the targets can be synchronous

    def _is_missing(self, path: str, error: Exception) -> bool:
        return classify_error(error) is Presence.MISSING and not self._is_indexed(path)

    def _is_indexed(self, path: str) -> bool:
        try:
            return bool(self.file_system.info(path)["type"] != "directory")
        except Exception as error:
            return classify_error(error) is not Presence.MISSING


class ReferenceBackend(ArchiveBackend):
    """References to byte ranges of other files (kerchunk)."""

    def _is_indexed(self, path: str) -> bool:
        return bool(self.file_system.isfile(path))  # ``info`` can request the size from the target
