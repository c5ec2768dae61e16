"""The objects of an HDF5 file, each once, and the parts of a dataset that are stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.errors import UnsupportedError
from zarrfs.tools.copying.advice import option
from zarrfs.tools.copying.block_grid import Block, stored_part

__all__ = ["Entry", "check_internal", "objects", "stored_blocks"]

MAX_BLOCKS = 10_000_000
"""The most blocks of a dataset that are read where HDF5 does not say which are stored."""

BLOCK_NBYTES = 64 << 20


@dataclass(frozen=True)
class Entry:
    """A name in an HDF5 file.

    Attributes:
        path: from the root, without a leading slash.
        kind: ``link`` for what leads to an object that is in the copy under another name, or nowhere; ``broken`` for
            an object that cannot be copied.
        item: the object of h5py; None unless it is a group or a dataset.
        reason: where the link leads, or what is wrong.
    """

    path: str
    kind: Literal["group", "dataset", "link", "broken"]
    item: Any = None
    reason: str = ""


def objects(h5py: Any, root: Any, allow_external: bool) -> Iterator[Entry]:
    """Yield every name below a group, a group before what is in it. An object with several names, or a group that is
    below itself, is yielded as an object once; its other names are links.
    """
    seen = {_address(h5py, root): "/"}
    stack = [("", root, iter(_names(root)))]
    while stack:
        above, group, names = stack[-1]
        name = next(names, None)
        if name is None:
            stack.pop()
            continue
        entry = _entry(h5py, group, name, f"{above}/{name}".strip("/"), seen, allow_external)
        yield entry
        if entry.kind == "group":
            stack.append((entry.path, entry.item, iter(_names(entry.item))))


def _names(group: Any) -> list[str]:
    return list(group)


def _entry(
    h5py: Any, group: Any, name: str, path: str, seen: dict[tuple[int, int], str], allow_external: bool
) -> Entry:
    if not name.strip(".") or name.startswith("__") or "\\" in name or name in METADATA_NAMES:
        return Entry(
            path, "broken", None, f"{name!r} cannot be the name of a Zarr node; with everything below it"
        )
    try:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            there = group.get(name) is not None
            return Entry(
                path, "link", None, f"link to {link.path}{'' if there else ', which does not exist'}"
            )
        if isinstance(link, h5py.ExternalLink) and not allow_external:
            return Entry(
                path,
                "broken",
                None,
                f"it is a link to {link.path} in the file {link.filename}; "
                f"{option('allow_external')} follows such links",
            )
        item = group[name]
        address = _address(h5py, item)
    except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
        return Entry(path, "broken", None, f"it cannot be opened: {error}")
    if address in seen:
        return Entry(path, "link", None, f"another name of {seen[address]}")
    seen[address] = path
    if isinstance(item, h5py.Group):
        return Entry(path, "group", item)
    if isinstance(item, h5py.Dataset):
        return Entry(path, "dataset", item)
    return Entry(path, "broken", None, f"it is a {type(item).__name__.lower()}, which Zarr does not have")


def _address(h5py: Any, item: Any) -> tuple[int, int]:
    """Return what identifies an object: its file and its address there."""
    info = h5py.h5o.get_info(item.id)
    return int(info.fileno), int(info.addr)


def check_internal(item: Any) -> None:
    """Raise UnsupportedError for a dataset whose values are in other files."""
    files = [entry[0] for entry in item.external or ()]
    if item.is_virtual:
        files += [source.file_name for source in item.virtual_sources() if source.file_name != "."]
    if files:
        raise UnsupportedError(
            f"its values are in another file, {files[0]}; {option('allow_external')} reads such files"
        )


def stored_blocks(item: Any, step: Sequence[int], *, everything: bool) -> Sequence[Block]:
    """Return the blocks to copy of a dataset: those that hold something; ``everything``: all. ``step`` is the shape of
    the smallest block.

    Raises UnsupportedError for more blocks than can be copied, where HDF5 does not say which hold something.
    """
    boxes = None if everything else _stored_boxes(item)
    found = stored_part(item.shape, step, max(1, item.dtype.itemsize), BLOCK_NBYTES, boxes)
    if len(found) > MAX_BLOCKS:
        raise UnsupportedError(
            f"its shape {item.shape} has {len(found):,} blocks to copy, at most {MAX_BLOCKS:,} are"
        )
    return found


def _stored_boxes(item: Any) -> Iterator[Block] | None:
    """Yield the boxes that are stored, which the caller iterates at once; None where that is not known."""
    if item.is_virtual:
        return _virtual_boxes(item)
    if item.external:
        return None
    if item.chunks is None:
        is_empty = item.id.get_storage_size() == 0
        return iter(()) if is_empty else None
    return _chunk_boxes(item)


def _chunk_boxes(item: Any) -> Iterator[Block]:
    offsets: list[tuple[int, ...]] = []
    if item.id.get_num_chunks():
        item.id.chunk_iter(lambda info: offsets.append(tuple(info.chunk_offset)))
    chunks = item.chunks
    for offset in offsets:
        # A dataset that was made smaller may keep chunks outside of its shape.
        if all(start < length for start, length in zip(offset, item.shape, strict=True)):
            yield tuple(slice(start, start + side) for start, side in zip(offset, chunks, strict=True))


def _virtual_boxes(item: Any) -> Iterator[Block]:
    for source in item.virtual_sources():
        first, last = source.vspace.get_select_bounds()
        yield tuple(slice(int(a), int(b) + 1) for a, b in zip(first, last, strict=True))
