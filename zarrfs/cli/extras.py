"""The extras of zarrfs: which are installed completely, with the versions that their requirements name."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import NamedTuple

__all__ = ["Extra", "find_extras"]

DEVELOPMENT = ("docs", "test", "emulators")
"""Extras for working on zarrfs itself."""

MARKER = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]")
NAME = re.compile(r"[A-Za-z0-9._-]+")
LOWER_BOUND = re.compile(r">=\s*([0-9.]+)")


class Extra(NamedTuple):
    """An extra, and its requirements that are missing or too old, as texts; none if it is installed."""

    name: str
    missing: list[str]


def find_extras() -> list[Extra]:
    """Return the extras for users, in the order of pyproject.toml. The list is empty if zarrfs is not installed."""
    try:
        names = metadata("zarrfs").get_all("Provides-Extra") or []
        lines = requires("zarrfs") or []
    except PackageNotFoundError:
        return []
    missing: dict[str, list[str]] = {name: [] for name in names if name not in DEVELOPMENT}
    for line in lines:
        requirement, _, marker = line.partition(";")
        found = MARKER.search(marker)
        if found and found[1] in missing and not _is_installed(requirement):
            missing[found[1]].append(requirement.strip())
    return [Extra(name, packages) for name, packages in missing.items()]


def _is_installed(requirement: str) -> bool:
    """Return whether a package is installed, and not older than the lower bound of the requirement."""
    name, bound = NAME.match(requirement), LOWER_BOUND.search(requirement)
    try:
        installed = version(name[0] if name else requirement)
    except PackageNotFoundError:
        return False
    return bound is None or _numbers(installed) >= _numbers(bound[1])


def _numbers(text: str) -> list[int]:
    """Return the release numbers of a version: ``[6, 7, 1]`` of ``6.7.1.dev2``."""
    found = re.match(r"\d+(\.\d+)*", text)
    return [int(part) for part in found[0].split(".")] if found else []
