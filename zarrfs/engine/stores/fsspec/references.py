"""The targets of the references of a reference file system (kerchunk): where they are, and which are allowed.

A target without a protocol and a leading slash is relative to the directory of the references. fsspec resolves it from
the current directory, and the format has no rule.

References are untrusted data. They can name any file of this machine and any host that it can reach. By default a
target must be at the location of the references: below the same directory, or on the same host or in the same bucket.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from zarrfs.errors import StoreError

__all__ = [
    "ReferencePolicy",
    "find_reference_file_system",
    "is_local_url",
    "local_path",
    "resolve_relative_targets",
    "with_absolute_path",
]

LOCAL_PROTOCOLS = ("", "file", "local")
WEB_PROTOCOLS = ("http", "https")
MAX_WRAPPER_DEPTH = 10


def is_local_url(url: str, protocol: str | None = None) -> bool:
    """Return whether a URL or path names a local file. ``protocol`` is the default for URLs without a protocol."""
    return (_scheme(url) or protocol or "").lower() in LOCAL_PROTOCOLS


def local_path(url: str) -> str:
    """Return the path of a local URL or path."""
    return os.path.expanduser(url.partition("://")[2] if _scheme(url) else url)


def with_absolute_path(url: str) -> str:
    """Return a URL, or a chain of URLs, in which the path of a local file is absolute. Processes that open it have
    different working directories.
    """
    chain, separator, last = url.rpartition("::")
    if not (_scheme(last) and is_local_url(last)):
        return url
    path = local_path(last)
    absolute = os.path.abspath(path) + ("/" if path.endswith("/") and path.strip("/") else "")
    return f"{chain}{separator}{_scheme(last)}://{absolute}"


def find_reference_file_system(file_system: Any) -> Any | None:
    """Return the file system itself, or the one that it wraps, if that is a reference file system. Otherwise None."""
    for _ in range(MAX_WRAPPER_DEPTH):
        protocols = getattr(file_system, "protocol", ())
        if "reference" in ((protocols,) if isinstance(protocols, str) else protocols):
            return file_system
        file_system = getattr(file_system, "fs", None) or getattr(file_system, "sync_fs", None)
        if file_system is None:
            return None
    return None


def resolve_relative_targets(
    file_system: Any, origin: str, protocol: str | None, options: Mapping[str, Any]
) -> None:
    """Make relative targets absolute, in references that a file system has read completely.

    ``origin`` is the location of the references, and ``protocol`` its default protocol. ``options`` are those of the
    file system of the targets.
    """
    references = file_system.references
    if not isinstance(references, dict):  # parquet, which is read in parts
        return
    relative = {key: value for key, value in references.items() if _is_relative(value)}
    if not relative:
        return
    for key, (target, *byte_range) in relative.items():
        references[key] = [_absolute(target, origin, protocol), *byte_range]
    targets_protocol = _scheme(_absolute("a", origin, protocol)) or None
    if targets_protocol not in file_system.fss:  # fsspec has only the protocol of the first reference
        import fsspec
        from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

        targets = fsspec.filesystem(targets_protocol, **options)
        if not targets.async_impl:
            targets = AsyncFileSystemWrapper(targets, asynchronous=file_system.asynchronous)
        file_system.fss[targets_protocol] = targets


def _is_relative(reference: Any) -> bool:
    """Return whether a reference has a target that is relative to the references."""
    if not isinstance(reference, list | tuple) or not reference or not isinstance(reference[0], str):
        return False
    return "://" not in reference[0] and not reference[0].startswith(("/", "~", "data:"))


def _absolute(target: str, origin: str, protocol: str | None) -> str:
    """Return the URL of a relative target."""
    if is_local_url(origin, protocol):
        return f"file://{os.path.normpath(os.path.join(_directory(origin), target))}"
    parts = urlsplit(origin if _scheme(origin) else f"{protocol}://{origin}")
    path = posixpath.normpath(posixpath.join("/", posixpath.dirname(parts.path), target))
    return urlunsplit(parts._replace(path=path, query="", fragment=""))


def _directory(origin: str) -> str:
    """Return the directory of a local file of references, without symbolic links."""
    return os.path.dirname(os.path.realpath(local_path(origin).rstrip("/")))


class ReferencePolicy:
    """Checks the targets of references.

    ``origin`` is the location of the references. It is None if the references were passed as a dictionary; then no
    target is allowed. ``protocol`` is the default for URLs without a protocol.
    """

    def __init__(self, file_system: Any, origin: str | None, protocol: str | None) -> None:
        self._file_system = file_system
        self._protocol = protocol
        self._directory: str | None = None
        self._host: tuple[str, str] | None = None
        if origin is None:
            self._location_text = "given as a dictionary, which allows no targets"
        elif is_local_url(origin, protocol):
            self._directory = _directory(origin)
            self._location_text = f"in {self._directory}"
        else:
            self._host = _host(origin)
            self._location_text = f"on {self._host[0]}://{self._host[1]}"

    def check(self, key: str, path: str) -> None:
        """Raise StoreError if the target of the reference of a key is not allowed."""
        try:
            reference = self._file_system.references.get(path)
        except Exception:  # reading the key fails with the same error
            return
        if not isinstance(reference, list | tuple) or not reference:
            return
        target = reference[0] if reference[0] is not None else self._file_system.target
        if isinstance(target, str) and self._is_allowed(target):
            return
        raise StoreError(
            f"{key!r} is a reference to {target}, but the references are {self._location_text}: it is not read; open "
            "with allow_external=True (--allow-external) if you trust these references",
            errno.EACCES,
        )

    def _is_allowed(self, target: str) -> bool:
        if "::" in target:
            return False
        if is_local_url(target, self._protocol):
            if self._directory is None:
                return False
            return os.path.realpath(local_path(target)).startswith(self._directory.rstrip("/") + "/")
        if not _scheme(target):
            target = f"{self._protocol}://{target}"
        return self._host == _host(target)


def _scheme(url: str) -> str:
    return url.partition("://")[0].rpartition("::")[2] if "://" in url else ""


def _host(url: str) -> tuple[str, str]:
    """Return the protocol and the host or bucket of a URL."""
    parts = urlsplit(url.rpartition("::")[2])
    scheme = parts.scheme.lower()
    return WEB_PROTOCOLS[1] if scheme in WEB_PROTOCOLS else scheme, parts.netloc.rpartition("@")[2].lower()
