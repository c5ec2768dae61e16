"""The names of a group's members, also where the store cannot list them: a web server tells no names, metadata do."""

from __future__ import annotations

from zarrfs.engine.nodes.group import Group
from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.ngff.load import load

__all__ = ["member_names", "named_members"]

LABELS, OME = "labels", "OME"


def member_names(group: Group) -> list[str]:
    """Return the names below a group that may be members, sorted, without looking whether they are: those of
    ``Group.names``, or none, with a warning, where nothing tells the names.

    Raises StoreError when a store that lists fails to.
    """
    try:
        return group.names()
    except StoreError:
        if group.store.listable:
            raise
    logger.warning(
        "%s: the members of %s are not known: a web server lists nothing, and no metadata name them (zarrfs "
        "consolidate makes such metadata)",
        group.store.url,
        group.name,
    )
    return []


def named_members(group: Group) -> set[str] | None:
    """Return the names of members that OME-NGFF metadata mention: levels, labels, wells, fields, series. None for a
    group without such metadata.
    """
    found = load(group)
    named = (found.multiscales, found.labels, found.plate, found.well, found.series) if found else ()
    if all(value is None or value == () for value in named):
        return None
    if group.basename == OME and found.series is not None and not found.multiscales:
        return set()  # it lists the series that are beside it, not below
    names = {level.path for multiscales in found.multiscales for level in multiscales.levels}
    names |= set(found.labels or ())
    if found.multiscales:
        names |= {name for name in (LABELS, OME) if name in group}
    if found.plate is not None:
        names |= {well.path for well in found.plate.wells}
    if found.well is not None:
        names |= {image.path for image in found.well.images}
    if found.series is not None:
        names |= {*found.series, *([OME] if OME in group else [])}
    return {name.strip("/").partition("/")[0] for name in names} - {"", ".", ".."}
