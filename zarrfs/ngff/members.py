"""The names of a group's members, also where the store cannot list them: a web server tells no names, metadata do."""

from __future__ import annotations

from zarrfs.engine.group import Group
from zarrfs.errors import StoreError
from zarrfs.logs import logger
from zarrfs.ngff.load import load

__all__ = ["member_names"]

LABELS = "labels"


def member_names(group: Group) -> list[str]:
    """Return the names below a group that may be members, sorted, without looking whether they are.

    Where neither the store nor consolidated metadata tell, these are the names that OME-NGFF metadata mention: levels,
    labels, wells, fields, series. There may be others; if there are none at all, that is logged.

    Raises StoreError when a store that lists fails to.
    """
    try:
        return group.names()
    except StoreError:
        if group.store.listable:
            raise
    found = load(group)
    names = {level.path for multiscales in found.multiscales for level in multiscales.levels}
    names |= set(found.labels or ())
    if found.multiscales and LABELS in group:
        names.add(LABELS)
    if found.plate is not None:
        names |= {well.path for well in found.plate.wells}
    if found.well is not None:
        names |= {image.path for image in found.well.images}
    names |= set(found.series or ())
    tops = sorted({name.strip("/").partition("/")[0] for name in names} - {""})
    if not tops:
        logger.warning(
            "%s: the members of %s are not known: a web server lists nothing, and no metadata name them (zarrfs "
            "consolidate makes such metadata)",
            group.store.url,
            group.name,
        )
    return tops
