"""Traversal of the objects of an HDF5 file, and the stored regions of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zarrfs.engine.stores.locations import METADATA_NAMES
from zarrfs.errors import StoreError, UnsupportedError
from zarrfs.tools.copying.block_grid import Block, blocks_to_copy

__all__ = [
    "ERRORS",
    "Entry",
    "check_internal",
    "dimension_labels",
    "is_node_name",
    "objects",
    "stored_blocks",
    "stored_regions",
]

MAX_BLOCKS = 10_000_000
"""The maximum number of blocks that are copied of a dataset."""

BLOCK_NBYTES = 64 << 20

ERRORS = (KeyError, OSError, RuntimeError, TypeError, ValueError)
"""The errors of h5py for damaged files."""


NON_COORDINATE = "_nc4_non_coord_"
"""The begin of the name that netCDF-4 gives the dataset of a variable that has the name of a dimension, but is not its
coordinate.
"""

ONLY_DIMENSION = b"This is a netCDF dimension but not a netCDF variable"
"""The beginning of the attribute NAME of a dataset that stores only a dimension. See "Dimensions without coordinate
variables" of netCDF-4.
"""


@dataclass(frozen=True)
class Entry:
    """A link (name) in an HDF5 file.

    Attributes:
        path: the path from the root, without a leading slash.
        kind: ``link`` for a soft link or a further hard link to an object; ``broken`` for an object that cannot be
            copied.
        item: the h5py object; None unless it is a group or a dataset.
        reason: the target of the link, or why the object cannot be copied.
    """

    path: str
    kind: Literal["group", "dataset", "link", "broken"]
    item: Any = None
    reason: str = ""


def objects(h5py: Any, root: Any, allow_external: bool) -> Iterator[Entry]:
    """Yield every name below a group, groups before their members. An object with several names is yielded as an object
    once, and as a link for each other name. This includes groups that contain themselves.
    """
    try:
        seen = {_address(h5py, root): "/"}
        stack = [("", root, iter(list(root)))]
    except ERRORS as error:
        raise StoreError(f"{root.file.filename}: the root group cannot be read: {error}") from error
    while stack:
        parent, group, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            continue
        path = f"{parent}/{_variable_name(group, name)}".strip("/")
        entry = _entry(h5py, group, name, path, seen, allow_external)
        members: list[str] = []
        if entry.kind == "group":
            try:
                members = list(entry.item)
            except ERRORS as error:
                entry = Entry(entry.path, "broken", None, f"its members cannot be listed: {error}")
        yield entry
        if entry.kind == "group":
            stack.append((entry.path, entry.item, iter(members)))


def _variable_name(group: Any, name: str) -> str:
    """Return the name of a netCDF variable; that of its dataset if the name is used for other values."""
    variable = name.removeprefix(NON_COORDINATE)
    if variable == name or not is_node_name(variable):
        return name
    try:
        other = group.get(variable)
    except ERRORS:
        return name
    return variable if other is None or _is_only_dimension(other) else name


def is_node_name(name: str) -> bool:
    """Return whether the name of an object is a valid name of a Zarr node."""
    last = name.rpartition("/")[2]
    return (
        bool(last.strip("."))
        and not last.startswith("__")
        and "\\" not in last
        and last not in METADATA_NAMES
    )


def _entry(
    h5py: Any, group: Any, name: str, path: str, seen: dict[tuple[int, int], str], allow_external: bool
) -> Entry:
    if not is_node_name(name):
        return Entry(
            path,
            "broken",
            None,
            f"{name!r} is not a valid name of a Zarr node; all objects below it are skipped",
        )
    try:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            exists = group.get(name) is not None
            return Entry(
                path, "link", None, f"link to {link.path}{'' if exists else ', which does not exist'}"
            )
        if isinstance(link, h5py.ExternalLink) and not allow_external:
            return Entry(
                path,
                "broken",
                None,
                f"it is an external link to {link.path} in the file {link.filename}; "
                "use allow_external=True to follow external links",
            )
        item = group[name]
        address = _address(h5py, item)
    except ERRORS as error:
        return Entry(path, "broken", None, f"it cannot be opened: {error}")
    if address in seen:
        return Entry(path, "link", None, f"another name of {seen[address]}")
    seen[address] = path
    if isinstance(item, h5py.Group):
        return Entry(path, "group", item)
    if isinstance(item, h5py.Dataset):
        if _is_only_dimension(item):
            return Entry(path, "link", None, "a dimension of netCDF without a variable")
        return Entry(path, "dataset", item)
    return Entry(path, "broken", None, f"it is a {type(item).__name__.lower()}, which Zarr cannot represent")


def _is_only_dimension(item: Any) -> bool:
    """Return whether a dataset only stores a dimension of netCDF. It has a length, and no values."""
    try:
        name = item.attrs.get("NAME", b"")
        name = name if isinstance(name, bytes) else str(name).encode()
        return bool(item.is_scale) and name.startswith(ONLY_DIMENSION)
    except ERRORS:
        return False


def _address(h5py: Any, item: Any) -> tuple[int, int]:
    """Return the identity of an object: its file number and its address in the file."""
    info = h5py.h5o.get_info(item.id)
    return int(info.fileno), int(info.addr)


def check_internal(item: Any) -> None:
    """Raise UnsupportedError if the values of a dataset are in other files."""
    files = [entry[0] for entry in item.external or ()]
    if item.is_virtual:
        files += [source.file_name for source in item.virtual_sources() if source.file_name != "."]
    if files:
        raise UnsupportedError(
            f"its values are in another file, {files[0]}; use allow_external=True to read it"
        )


def dimension_labels(item: Any) -> list[str]:
    """Return the label of each dimension of a dataset; empty texts if it has none, or if they are damaged.

    The attribute is read, because ``H5DSget_label`` of the HDF5 library crashes if it is damaged.
    """
    unknown = [""] * len(item.shape)
    try:
        found = item.attrs.get("DIMENSION_LABELS", unknown)
        labels = [one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in found]
    except ERRORS:
        return unknown
    return labels if len(labels) == len(unknown) else unknown


def stored_blocks(item: Any, step: Sequence[int], *, include_missing: bool) -> Sequence[Block]:
    """Return the blocks of a dataset to copy: those with stored values, or all with ``include_missing``. ``step`` is
    the shape of the smallest block.

    Raises UnsupportedError if there are more than ``MAX_BLOCKS``.
    """
    regions = None if include_missing else stored_regions(item)
    blocks = blocks_to_copy(item.shape, step, max(1, item.dtype.itemsize), BLOCK_NBYTES, regions)
    if len(blocks) > MAX_BLOCKS:
        raise UnsupportedError(
            f"its shape {item.shape} has {len(blocks):,} blocks to copy, the limit is {MAX_BLOCKS:,}"
        )
    return blocks


def stored_regions(item: Any) -> Iterator[Block] | None:
    """Return an iterator over the stored regions, to be consumed while the file is open; None if they are unknown."""
    if item.is_virtual:
        return _virtual_regions(item)
    if item.external:
        return None
    if item.chunks is None:
        is_empty = item.id.get_storage_size() == 0
        return iter(()) if is_empty else None
    return _chunk_regions(item)


def _chunk_regions(item: Any) -> Iterator[Block]:
    offsets: list[tuple[int, ...]] = []
    if item.id.get_num_chunks():
        item.id.chunk_iter(lambda info: offsets.append(tuple(info.chunk_offset)))
    chunks = item.chunks
    for offset in offsets:
        # A dataset that was shrunk may retain chunks outside of its shape.
        if all(start < length for start, length in zip(offset, item.shape, strict=True)):
            yield tuple(slice(start, start + side) for start, side in zip(offset, chunks, strict=True))


def _virtual_regions(item: Any) -> Iterator[Block]:
    for source in item.virtual_sources():
        first, last = source.vspace.get_select_bounds()
        yield tuple(slice(int(a), int(b) + 1) for a, b in zip(first, last, strict=True))
