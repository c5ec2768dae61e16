"""The keys of a stored hierarchy: those of metadata documents and chunks, those that resemble chunks but that no array
addresses, and foreign keys, which other programs store beside the nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from zarrfs.engine.array.array import Array
from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.chunks.chunk_key_encodings import resembles_chunk_key
from zarrfs.engine.formats import api as formats
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.staging import is_staging_key
from zarrfs.engine.stores.base import ByteRange, Store
from zarrfs.errors import ServerError, StoreError
from zarrfs.tools.copying.cells import Cells

__all__ = ["ArrayKeys", "conflicting_keys", "foreign_keys", "have_equal_bytes"]

PART_NBYTES = 8 << 20

MAX_NAMED_KEYS = 3

Nodes = Iterable[tuple[str, Array | Group]]


class ArrayKeys:
    """The keys below an array, from one listing. The store must be able to list. Raises ServerError.

    Attributes:
        chunks: the coordinates of the stored chunks.
        unreachable: the full keys that resemble chunks but that are not those of chunks of the grid, sorted. Their
            values are not read: the array was written with another chunk key encoding or number of dimensions, or it
            was larger.
        error: why a part of the keys could not be listed, or None. The others are listed.
    """

    def __init__(self, array: Array) -> None:
        storage = array.storage
        self._example = storage.key((0,) * len(storage.grid_shape))
        self.unreachable: list[str] = []
        self.error: StoreError | None = None
        self.chunks = Cells(storage.grid_shape, self._listed(storage))
        self.unreachable.sort()

    def _listed(self, storage: ArrayContext) -> Iterator[tuple[int, ...]]:
        try:
            for key, coords in storage.stored_keys():
                if coords is not None:
                    yield coords
                elif resembles_chunk_key(key):
                    self.unreachable.append(storage.prefix + key)
        except ServerError:
            raise  # it concerns all keys
        except StoreError as error:
            self.error = error

    def describe_unreachable(self) -> str:
        """Return a sentence about the unreachable keys, with the probable reason."""
        count = len(self.unreachable)
        named = ", ".join(map(repr, self.unreachable[:MAX_NAMED_KEYS]))
        more = f" and {count - MAX_NAMED_KEYS} more" if count > MAX_NAMED_KEYS else ""
        reason = (
            "the array was probably larger, and zarrfs clean --unreachable removes them"
            if self.chunks
            else f"the first chunk would have the key {self._example!r}: the dimension separator (chunk key encoding) "
            "in the metadata is probably wrong, and all elements read as the fill value"
        )
        return f"keys that resemble chunks are not those of chunks of the array: {named}{more}; {reason}"


def foreign_keys(top: Array | Group, members: Nodes, excluded: Collection[str] = ()) -> list[str]:
    """Return the keys below a node that belong neither to it nor to the nodes below it, relative to its path, sorted.

    They are the files of other programs: no metadata documents, and nothing in an array that resembles a chunk. Below a
    prefix that is no node, all keys are foreign.

    Args:
        members: the nodes below ``top``, with their paths relative to it.
        excluded: the relative paths of members that cannot be read. The keys below them are not returned.

    Lists all keys below the node. The store must be able to list.
    """
    roots = formats.features(top.zarr_format).root_prefixes
    nodes: dict[str, Array | Group | None] = {"": top, **dict(members)}
    nodes |= dict.fromkeys((path.strip("/") for path in excluded), None)
    length = len(top.path) + 1 if top.path else 0
    keys = (key[length:] for key in top.store.list_prefix(top.path))
    if roots:
        # The nodes are not where their paths are.
        selected = (
            key
            for key in keys
            if not _is_below(key, roots) and not formats.is_document_name(key, top.zarr_format)
        )
    else:
        selected = (key for key in keys if _is_foreign(key, nodes))
    return sorted(key for key in selected if not is_staging_key(key))


def conflicting_keys(keys: Iterable[str], nodes: Collection[str], zarr_format: int | str) -> list[str]:
    """Return the foreign keys that would be metadata documents or chunks of a copy in another format.

    ``nodes`` are the paths of the nodes of the copy, from which the keys are relative as well.
    """
    features = formats.features(zarr_format)
    return [
        key
        for key in keys
        if _is_below(key, features.root_prefixes)
        or (key.rpartition("/")[2] in features.document_names and key.rpartition("/")[0] in nodes)
    ]


def have_equal_bytes(one: Store, one_key: str, other: Store, other_key: str) -> bool:
    """Return whether two keys exist and have the same bytes. Reads a few megabytes at a time."""
    with one.open_value(one_key) as first, other.open_value(other_key) as second:
        size = first.size()
        if size is None or second.size() != size:
            return False
        for start in range(0, size, PART_NBYTES):
            part = [ByteRange(start, min(PART_NBYTES, size - start))]
            found, expected = first.read_ranges(part), second.read_ranges(part)
            if found is None or expected is None or bytes(found[0]) != bytes(expected[0]):
                return False
    return True


def _is_below(key: str, prefixes: Iterable[str]) -> bool:
    return any(key == prefix or key.startswith(f"{prefix}/") for prefix in prefixes)


def _is_foreign(key: str, nodes: Mapping[str, Array | Group | None]) -> bool:
    """Return whether a key does not belong to the deepest node that contains it."""
    owner = key
    while owner:
        owner = owner.rpartition("/")[0]
        if owner in nodes:
            break
    node = nodes[owner]
    name = key[len(owner) + 1 :] if owner else key
    if node is None or formats.is_document_name(name, node.zarr_format):
        return False
    if isinstance(node, Group):
        return True
    encoding = node.spec.chunk_key_encoding
    return encoding.decode(name) is None and not resembles_chunk_key(name)
