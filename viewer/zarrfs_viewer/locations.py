"""What was dropped, pasted or typed -> locations that can be opened. Pure.

A metadata document stands for its node, a ``file:`` URL for its path; quotes, blanks and empty lines are
ignored.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

__all__ = ["DOCUMENTS", "display_name", "locations_in", "node_location", "within"]

DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json")
"""Files that are dropped in place of the node they describe."""


def locations_in(text: str) -> list[str]:
    """Return the locations in a text, one per line (or a whole ``text/uri-list``), each once, in order.

    A line that begins with ``#`` is a comment of a URI list.
    """
    found = []
    for line in text.splitlines():
        stripped = line.strip().strip("\"'").strip()
        if stripped and not stripped.startswith("#"):
            found.append(node_location(stripped))
    return list(dict.fromkeys(found))


def node_location(location: str) -> str:
    """Return the location of the node: without a document's name, without a trailing slash, a local path for
    a ``file:`` URL.
    """
    fragment = ""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", location):
        location, mark, rest = location.partition("#")
        fragment = mark + rest
        if location.lower().startswith("file:"):
            location = unquote(urlsplit(location).path)
    elif location.lower().startswith("file:/"):
        location = unquote(location[len("file:") :])
    head, _, last = location.rpartition("/")
    if last in DOCUMENTS:
        location = head or ("/" if location.startswith("/") else ".")
    if len(location) > 1 and location.endswith("/") and not location.endswith("://"):
        location = location.rstrip("/") or "/"
    return location + fragment


def absolute_location(location: str) -> str:
    """Return a location that is the same in whatever directory the program is started: local paths become absolute."""
    if not location or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location):
        return location
    return os.path.abspath(os.path.expanduser(location))


def display_name(location: str) -> str:
    """Return the short name of a location, for a title or a list of recent ones."""
    path = location.partition("#")[0].partition("?")[0].rstrip("/")
    return path.rpartition("/")[2] or path or location


def within(location: str, path: str) -> str:
    """Return the location of a node below another one."""
    return f"{location.rstrip('/')}/{path.strip('/')}" if path.strip("/") else location
