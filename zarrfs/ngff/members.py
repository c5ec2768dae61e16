"""The names of the members of a group. If the store cannot list (a web server), they are taken from metadata."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.ngff.load import load

if TYPE_CHECKING:
    from zarrfs.engine.group.group import Group
    from zarrfs.engine.stores.base import Listing

__all__ = ["member_names", "named_members"]

LABELS, OME = "labels", "OME"


def member_names(group: Group, listing: Listing | None = None) -> list[str]:
    """Return the sorted names of possible members of a group, without opening them. The list is empty, and a warning is
    logged, if the store cannot list and no metadata names the members. ``listing`` is that of the store at the path of
    the group, if it is known.

    Raises StoreError if the store fails.
    """
    names = group.known_names(listing)
    if names is not None:
        return names
    logger.warning(
        "%s: the members of %s are unknown: the store cannot list, and no metadata names them (zarrfs consolidate "
        "creates such metadata)",
        group.store.url,
        group.name,
    )
    return []


def named_members(group: Group) -> set[str] | None:
    """Return the names of members in OME-NGFF metadata: levels, labels, wells, fields, series, images of a scene. None
    for a group without OME-NGFF metadata.
    """
    ngff = load(group)
    named = (ngff.multiscales, ngff.labels, ngff.plate, ngff.well, ngff.series, ngff.scene) if ngff else ()
    if all(value is None or value == () for value in named):
        return None
    if group.basename == OME and ngff.series is not None and not ngff.multiscales:
        return set()  # its series are siblings, not members
    names = {level.path for multiscales in ngff.multiscales for level in multiscales.levels}
    names |= set(ngff.labels or ())
    if ngff.multiscales:
        names |= {name for name in (LABELS, OME) if _is_member(group, name)}
    if ngff.plate is not None:
        names |= {well.path for well in ngff.plate.wells}
    if ngff.well is not None:
        names |= {image.path for image in ngff.well.images}
    if ngff.scene is not None:
        edges = ngff.scene.transformations
        names |= {reference.path for edge in edges for reference in (edge.input, edge.output)}
        names |= {path for edge in edges for path in edge.transformation.paths()}
    if ngff.series is not None:
        names |= {*ngff.series, *([OME] if _is_member(group, OME) else [])}
    return {name.strip("/").partition("/")[0] for name in names} - {"", ".", ".."}


def _is_member(group: Group, name: str) -> bool:
    """Return whether a group has a member that its metadata do not name. Raises StoreError."""
    try:
        return name in group
    except StoreError as error:
        if error.errno != errno.EACCES:
            raise
        return False  # servers that do not permit listing refuse requests for missing keys
