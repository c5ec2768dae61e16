"""The backend of each protocol, and the backend of archives and references, which have an index of their keys."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.stores.remote.backend import Backend, FileSystemBackend
from zarrfs.engine.stores.remote.files import LocalBackend, MemoryBackend, RenamingBackend, SFTPBackend
from zarrfs.engine.stores.remote.ftp import FTPBackend
from zarrfs.engine.stores.remote.http import HTTPBackend
from zarrfs.engine.stores.remote.objects import AzureBackend, GoogleBackend, S3Backend
from zarrfs.engine.stores.remote.presence import Presence, classify_error

__all__ = ["ArchiveBackend", "ReferenceBackend", "is_remote_url", "make_backend"]


class ArchiveBackend(FileSystemBackend):
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


BACKENDS: dict[str, type[FileSystemBackend]] = {
    "http": HTTPBackend,
    "https": HTTPBackend,
    "ftp": FTPBackend,
    "s3": S3Backend,
    "s3a": S3Backend,
    "gs": GoogleBackend,
    "gcs": GoogleBackend,
    "abfs": AzureBackend,
    "abfss": AzureBackend,
    "az": AzureBackend,
    "sftp": SFTPBackend,
    "ssh": SFTPBackend,
    "memory": MemoryBackend,
    "reference": ReferenceBackend,
    "zip": ArchiveBackend,
    "tar": ArchiveBackend,
    "libarchive": ArchiveBackend,
    "hdfs": RenamingBackend,
    "arrow_hdfs": RenamingBackend,
    "webhdfs": RenamingBackend,
    "smb": RenamingBackend,
}
"""Backends by protocol. Other protocols have the generic backend. ``LocalBackend`` has another constructor."""

LOCAL_PROTOCOLS = {"file", "local"}
PROTOCOLS_WITHOUT_REQUESTS = LOCAL_PROTOCOLS | {"memory"}


def is_remote_url(url: str) -> bool:
    """Return whether operations on a URL are requests to a server. Of chained protocols (``zip::https://host/a.zip``)
    it is the last one that decides. References (``reference::``) can refer to any server.
    """
    protocols = [part.partition(":")[0] for part in url.split("::")]
    return "reference" in protocols or protocols[-1] not in PROTOCOLS_WITHOUT_REQUESTS


def make_backend(file_system: Any, root: str, url: str, *, allow_external: bool) -> Backend:
    """Return the backend of a file system of fsspec.

    ``root`` is the path of the store in it, and ``url`` names it in messages. With ``allow_external`` symbolic links
    of local files are followed.
    """
    protocol = file_system.protocol
    protocols = (protocol,) if isinstance(protocol, str) else tuple(protocol)
    if LOCAL_PROTOCOLS & set(protocols):
        return LocalBackend(file_system, root, url, allow_external=allow_external)
    backend = next((BACKENDS[name] for name in protocols if name in BACKENDS), FileSystemBackend)
    return backend(file_system, root, url)
