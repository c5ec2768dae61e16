"""The parts of URLs: the scheme, and the path of a local file."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from zarrfs.engine.stores.icechunk.addresses import is_icechunk
from zarrfs.errors import LocationError

__all__ = ["path_of", "scheme_of"]


def scheme_of(text: str) -> str:
    """Return the scheme of a URL with its case unchanged; an empty string for a path. That of a repository of Icechunk
    is ``icechunk``.
    """
    if is_icechunk(text):
        return "icechunk"
    scheme, separator, _ = text.partition("://")
    bare = scheme.replace("+", "").replace("-", "").replace("_", "").replace(":", "")
    return scheme if separator and bare.isalnum() and "/" not in scheme else ""


def path_of(url: str) -> str:
    """Return the path of a URL of a local file or directory (RFC 8089). Raises LocationError if it contains a host."""
    scheme, _, rest = url.partition("://")
    parts = urlsplit(f"file://{rest}")
    if parts.netloc not in ("", "localhost"):
        absolute = os.path.abspath(f"{parts.netloc}{parts.path}")
        raise LocationError(
            f"{url}: a {scheme} URL must not contain a host, and its path is absolute; "
            f"did you mean {scheme}://{absolute}?"
        )
    # An unescaped question mark or hash is part of the path.
    return unquote(
        url.split("://", 1)[1].removeprefix("localhost") if parts.netloc else url.split("://", 1)[1]
    )
