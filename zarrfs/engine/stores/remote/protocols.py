"""Protocols of fsspec: the extras that install their packages, their options, and URLs for display."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from zarrfs.libraries import load_library

__all__ = ["EXTRAS_BY_PROTOCOL", "copy_options", "is_known_protocol", "redact_url", "unknown_option"]

EXTRAS_BY_PROTOCOL = {
    "http": "http",
    "https": "http",
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "abfs": "azure",
    "abfss": "azure",
    "az": "azure",
    "adl": "azure",
    "sftp": "sftp",
    "ssh": "sftp",
}


def is_known_protocol(protocol: str) -> bool:
    """Return whether fsspec knows a protocol. The package of the protocol need not be installed."""
    extra = EXTRAS_BY_PROTOCOL.get(protocol.lower())
    urls = (
        f"{protocol}:// URLs"
        if extra
        else f"{protocol}:// is not a scheme of an installed package, and fsspec"
    )
    fsspec = load_library("fsspec", extra or "remote", f"{urls}:")
    return protocol.lower() in fsspec.available_protocols()


def copy_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a copy of the options and of the options of each protocol in them. fsspec modifies both."""
    return {key: dict(value) if type(value) is dict else value for key, value in (options or {}).items()}


def unknown_option(error: BaseException, options: Mapping[str, Any]) -> str | None:
    """Return the name of the storage option that a library does not accept according to its error, or None.

    Libraries of protocols pass options on as keyword arguments of functions, some of them with the first request.
    """
    found = (
        re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if isinstance(error, TypeError)
        else None
    )
    nested = [value for value in options.values() if isinstance(value, Mapping)]
    return found[1] if found and any(found[1] in names for names in (options, *nested)) else None


def redact_url(url: str) -> str:
    """Return a URL for display, without user, password and query. A query can contain a signature."""
    chain, separator, last = url.rpartition("::")
    parts = urlsplit(last)
    host = parts.netloc.rpartition("@")[2]
    return chain + separator + urlunsplit(parts._replace(netloc=host, query="")).rstrip("/")
