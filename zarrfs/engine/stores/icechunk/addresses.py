"""The parts of a location of Icechunk: the repository, the version, and the path in the hierarchy.

A location is ``icechunk:`` and the path or URL of a repository. ``@`` and a version can follow, and then a slash and
the path of a node: ``icechunk:/data/repository@main/images/0``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import unquote

from zarrfs.errors import LocationError

__all__ = [
    "PREFIX",
    "Address",
    "absolute_location",
    "is_icechunk",
    "is_repository",
    "is_url",
    "path_in_new_repository",
    "repository_remedy",
    "split_address",
    "split_version",
]

PREFIX = "icechunk:"

URL_PREFIXES = ("file://", "local://")


class Address(NamedTuple):
    """A repository and what follows it.

    Attributes:
        repository: an absolute path, or a URL.
        version: the text after ``@``, which can end with a path in the hierarchy; empty if there is none.
        path: the path in the hierarchy if there is no ``@``.
    """

    repository: str
    version: str
    path: str


def is_icechunk(location: object) -> bool:
    """Return whether a location is a repository of Icechunk. A file or directory with such a name takes precedence."""
    return isinstance(location, str) and location.startswith(PREFIX) and not os.path.lexists(location)


def is_url(text: str) -> bool:
    """Return whether the repository of a location is on a server."""
    return "://" in text and not text.lower().startswith(URL_PREFIXES)


def is_repository(path: str) -> bool:
    """Return whether a local directory is a repository of Icechunk (format 1 or 2)."""
    return os.path.isdir(f"{path}/snapshots") and (
        os.path.isfile(f"{path}/repo") or os.path.isdir(f"{path}/refs")
    )


def repository_remedy(path: str) -> str | None:
    """Return how to open a local directory that is a repository; None for others."""
    if not is_repository(path):
        return None
    return (
        f"{path} is a repository of Icechunk; open it as {PREFIX}{path}, or with a branch, tag or snapshot: "
        f"{PREFIX}{path}@main"
    )


def absolute_location(location: str) -> str:
    """Return a location of Icechunk whose path, if it is local and relative, is absolute."""
    rest = location.removeprefix(PREFIX)
    return location if is_url(rest) or not rest else PREFIX + _local_path(rest)


def _local_path(text: str) -> str:
    path = text
    if text.lower().startswith(URL_PREFIXES):
        path = unquote(text.partition("://")[2])
    return os.path.abspath(os.path.expanduser(path))


def split_address(location: str, *, has_version: bool) -> Address:
    """Return the parts of a location. ``has_version``: options name the version, so that ``@`` is a part of the path.

    A local repository is the part of the path that exists. In a URL the version follows the last ``@`` of the path.
    """
    rest = location.removeprefix(PREFIX)
    if not rest or rest.startswith("@"):
        raise LocationError(f"{location}: expected the path or URL of a repository after {PREFIX}")
    if is_url(rest):
        host_end = rest.find("/", rest.find("://") + 3)
        at = -1 if has_version or host_end < 0 else rest.rfind("@", host_end)
        if at < 0:
            return Address(rest.rstrip("/"), "", "")
        return Address(rest[:at].rstrip("/"), rest[at + 1 :], "")
    path = _local_path(rest)
    ancestor = path
    while ancestor != os.path.dirname(ancestor):
        if is_repository(ancestor):
            return Address(ancestor, "", path[len(ancestor) :].strip("/"))
        ancestor = os.path.dirname(ancestor)
    if not has_version:
        ends = [index for index, character in enumerate(path) if character == "@"]
        for end in ends:
            if is_repository(path[:end]):
                return Address(path[:end], path[end + 1 :], "")
        if ends:  # The repository does not exist.
            return Address(path[: ends[-1]].rstrip("/"), path[ends[-1] + 1 :], "")
    return Address(path, "", "")


def path_in_new_repository(location: str) -> str:
    """Return the path in the hierarchy that a location names, if its repository does not exist yet."""
    return split_version(split_address(location, has_version=False).version, ())[1]


def split_version(text: str, names: Collection[str]) -> tuple[str, str]:
    """Return the version and the path that follow ``@``. Names can contain slashes: the shortest known one is taken."""
    parts = text.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        name = "/".join(parts[:count])
        if name in names:
            return name, "/".join(parts[count:])
    return parts[0], "/".join(parts[1:])
