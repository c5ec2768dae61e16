"""The backend of each protocol."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.stores.fsspec.backend import Backend
from zarrfs.engine.stores.fsspec.files import LocalBackend, MemoryBackend, RenamingBackend, SFTPBackend
from zarrfs.engine.stores.fsspec.ftp import FTPBackend
from zarrfs.engine.stores.fsspec.http import HTTPBackend
from zarrfs.engine.stores.fsspec.indexed import ArchiveBackend, ReferenceBackend
from zarrfs.engine.stores.fsspec.objects import AzureBackend, GoogleBackend, S3Backend

__all__ = ["make_backend"]

BACKENDS: dict[str, type[Backend]] = {
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


def make_backend(file_system: Any, root: str, url: str, *, allow_external: bool) -> Backend:
    """Return the backend of a file system of fsspec.

    ``root`` is the path of the store in it, and ``url`` names it in messages. With ``allow_external`` symbolic links
    of local files are followed.
    """
    protocol = file_system.protocol
    protocols = (protocol,) if isinstance(protocol, str) else tuple(protocol)
    if LOCAL_PROTOCOLS & set(protocols):
        return LocalBackend(file_system, root, url, allow_external=allow_external)
    backend = next((BACKENDS[name] for name in protocols if name in BACKENDS), Backend)
    return backend(file_system, root, url)
