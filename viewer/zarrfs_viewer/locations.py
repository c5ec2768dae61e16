"""Parsing of dropped, pasted or typed text to locations. Pure functions, no I/O.

The path of a metadata document becomes the location of its node. A ``file:`` URL becomes a local path. Quotes,
surrounding whitespace and empty lines are ignored.
"""

from __future__ import annotations

import json
import os
import re
from urllib.parse import parse_qs, unquote, urlsplit

__all__ = ["DOCUMENTS", "display_name", "node_location", "parse_locations", "within"]

ICECHUNK = "icechunk:"
"""The beginning of the locations of repositories of Icechunk."""

DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json")
"""Names of metadata documents. A location that ends with one of them denotes the node."""


def parse_locations(text: str) -> list[str]:
    """Return the locations in a text with one location per line, without duplicates, in order.

    The text can be a ``text/uri-list``: a line that begins with ``#`` is a comment.
    """
    locations = []
    for line in text.splitlines():
        stripped = line.strip().strip("\"'").strip()
        if stripped and not stripped.startswith("#"):
            locations.append(node_location(stripped))
    return list(dict.fromkeys(locations))


def node_location(location: str) -> str:
    """Return the location of the node.

    The name of a metadata document and a trailing slash are removed. A ``file:`` URL becomes a local path, and a
    link to a web viewer the URL in its parameter ``source``.
    """
    fragment = ""
    if location.startswith("{") or "|" in location.partition("://")[2]:  # a TensorStore spec or URL
        return location
    location = _source_of_link(location)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", location):
        location, separator, rest = location.partition("#")
        fragment = separator + rest
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


def _source_of_link(location: str) -> str:
    """Return the data set of a link to a web viewer: the parameter ``source``, as in the validator of OME-NGFF."""
    if not re.match(r"https?://", location, re.IGNORECASE):
        return location
    try:
        sources = parse_qs(urlsplit(location).query).get("source", [])
    except ValueError:
        return location
    return next((source for source in sources if re.match(r"https?://", source, re.IGNORECASE)), location)


def absolute_location(location: str) -> str:
    """Return a location that does not depend on the working directory: local paths become absolute."""
    if location.startswith(ICECHUNK) and "://" not in location:
        return ICECHUNK + os.path.abspath(os.path.expanduser(location.removeprefix(ICECHUNK)))
    if not location or location.startswith("{") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", location):
        return location  # a TensorStore spec, or a URL
    return os.path.abspath(os.path.expanduser(location))


def display_name(location: str) -> str:
    """Return the last component of a location, for titles and the list of recent locations.

    The name of a TensorStore spec is that of its array in its key-value store.
    """
    if location.startswith("{"):
        location = _path_of_spec(location) or "TensorStore spec"
    elif "|" in location.partition("://")[2]:
        location = location.split("|")[0]
    path = location.partition("#")[0].partition("?")[0].rstrip("/")
    return path.rpartition("/")[2] or path or location


def _path_of_spec(spec: str) -> str:
    """Return the path of the innermost key-value store in a JSON spec; empty if there is none."""
    try:
        value = json.loads(spec)
    except (ValueError, RecursionError):
        return ""
    path = ""
    while isinstance(value, dict):
        own = value.get("path")
        path = own.strip("/") or path if isinstance(own, str) else path
        value = next((value[key] for key in ("kvstore", "base") if key in value), None)
    return value if isinstance(value, str) and not path else path


def within(location: str, path: str) -> str:
    """Return the location of the node at ``path`` below another node."""
    if location.startswith(ICECHUNK) and path.strip("/") and "://" in location:
        # A path in a repository on a server follows the version.
        repository = location.rstrip("/")
        if "@" not in repository.partition("://")[2].partition("/")[2]:
            location = f"{repository}@main"
    return f"{location.rstrip('/')}/{path.strip('/')}" if path.strip("/") else location
