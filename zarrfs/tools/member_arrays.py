"""The arrays that are direct members of a group."""

from __future__ import annotations

from collections.abc import Iterator

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.errors import NodeTypeError
from zarrfs.ngff.parse import parse

__all__ = ["member_arrays", "only_array"]

MAX_NAMED_ARRAYS = 8
"""The maximum number of arrays that an error names."""


def member_arrays(group: Group) -> Iterator[tuple[str, Array]]:
    """Yield the arrays that are direct members of a group, by name. Raises ZarrError for a member that is broken."""
    for name in group.names():
        member = group.get(name)
        if isinstance(member, Array):
            yield name, member


def only_array(group: Group) -> tuple[str, Array]:
    """Return the name and the array of a group that has exactly one array and is not a part of a hierarchy of images.

    Raises NodeTypeError for another group, and ZarrError if a member is broken: it could be the array that is meant.
    """
    ngff = parse(group.attrs)
    for part, is_present in (
        ("a plate", ngff.plate),
        ("a well", ngff.well),
        ("a group of labels", ngff.labels is not None),
        ("a collection of images", ngff.series is not None),
    ):
        if is_present:
            raise NodeTypeError(
                f"{group.store.url}: {group.name} is {part}, not an image; give the location of an image in it"
            )
    arrays = dict(member_arrays(group))
    if len(arrays) != 1:
        names = ", ".join(sorted(arrays)[:MAX_NAMED_ARRAYS])
        raise NodeTypeError(
            f"{group.store.url}: {group.name} is not an image, and has {len(arrays)} arrays"
            f"{f' ({names})' if names else ''}; give the location of an array"
        )
    return next(iter(arrays.items()))
