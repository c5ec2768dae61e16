"""Which targets the references of a reference file system (kerchunk) may name.

References are data: they can name any file of this machine and any host that it reaches. By default a target must be
where the references themselves are: below the same directory, or on the same host (in the same bucket).
"""

from __future__ import annotations

import errno
import os
from typing import Any
from urllib.parse import urlsplit

from zarrfs.errors import StoreError

__all__ = ["ReferencePolicy", "find_reference_files", "is_local", "local_path"]

LOCAL_PROTOCOLS = ("", "file", "local")
WEB_PROTOCOLS = ("http", "https")
MAX_WRAPPERS = 10


def is_local(url: str, protocol: str | None = None) -> bool:
    """Tell whether a URL or path is of a file of this machine. ``protocol`` counts where the URL has none."""
    return (_scheme(url) or protocol or "").lower() in LOCAL_PROTOCOLS


def local_path(url: str) -> str:
    """Return the path of a local URL or path."""
    return os.path.expanduser(url.partition("://")[2] if _scheme(url) else url)


def find_reference_files(files: Any) -> Any | None:
    """Return the reference file system that a file system is, or that it wraps; None if there is none."""
    for _ in range(MAX_WRAPPERS):
        protocols = getattr(files, "protocol", ())
        if "reference" in ((protocols,) if isinstance(protocols, str) else protocols):
            return files
        files = getattr(files, "fs", None) or getattr(files, "sync_fs", None)
        if files is None:
            return None
    return None


class ReferencePolicy:
    """Checks the targets of references. ``origin`` is the location of the references, None if they were given as a
    dictionary, which allows no targets at all.
    """

    def __init__(self, files: Any, origin: str | None, protocol: str | None) -> None:
        self._files = files
        self._origin = origin
        self._protocol = protocol
        self._directory: str | None = None
        self._host: tuple[str, str] | None = None
        if origin is None:
            self._where = "given as a dictionary, which allows no targets"
        elif is_local(origin, protocol):
            self._directory = os.path.dirname(os.path.realpath(local_path(origin).rstrip("/")))
            self._where = f"in {self._directory}"
        else:
            self._host = _host(origin)
            self._where = f"on {self._host[0]}://{self._host[1]}"

    def check(self, key: str, path: str) -> None:
        """Raise StoreError if the reference of a key has a target that is not allowed."""
        try:
            reference = self._files.references.get(path)
        except Exception:  # reading it will fail in the same way
            return
        if not isinstance(reference, list | tuple) or not reference:
            return
        target = reference[0] if reference[0] is not None else self._files.target
        if isinstance(target, str) and self._is_allowed(target):
            return
        raise StoreError(
            f"{key!r} is a reference to {target}, but the references are {self._where}: it is not read; open with "
            "allow_external=True (--allow-external) if you trust these references",
            errno.EACCES,
        )

    def _is_allowed(self, target: str) -> bool:
        if "::" in target:
            return False
        if is_local(target, self._protocol):
            if self._directory is None:
                return False
            return os.path.realpath(local_path(target)).startswith(self._directory.rstrip("/") + "/")
        if not _scheme(target):
            target = f"{self._protocol}://{target}"
        return self._host == _host(target)


def _scheme(url: str) -> str:
    return url.partition("://")[0].rpartition("::")[2] if "://" in url else ""


def _host(url: str) -> tuple[str, str]:
    """Return protocol and host, or bucket, of a URL."""
    parts = urlsplit(url.rpartition("::")[2])
    scheme = parts.scheme.lower()
    return WEB_PROTOCOLS[1] if scheme in WEB_PROTOCOLS else scheme, parts.netloc.rpartition("@")[2].lower()
