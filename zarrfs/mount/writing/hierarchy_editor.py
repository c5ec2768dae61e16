"""Changes of the hierarchy: nodes are created, removed, renamed and resized, and attributes are set."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Protocol

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.create.similar_arrays import options_like
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locations import METADATA_NAMES
from zarrfs.errors import MetadataError, OptionError, describe_error
from zarrfs.mount.fuse.error_numbers import RefusedError
from zarrfs.mount.options import CreationOptions
from zarrfs.mount.tree.tree import Tree
from zarrfs.mount.writing.documents import COPIED_OPTIONS, CREATION_OPTIONS
from zarrfs.mount.writing.pending import PendingFile
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["HierarchyEditor"]

KEPT_OPTIONS = (
    "chunks",
    "shards",
    "filters",
    "serializer",
    "compressors",
    "codecs",
    "fill_value",
    "order",
    "chunk_key_encoding",
    "dimension_separator",
    "dimension_names",
    "dimension_units",
    "zarr_format",
)
"""The options of an array that a replacement with the same data type and number of dimensions keeps."""


class Values(Protocol):
    """Elements that are read in parts: regions in the order of the chunks of another array in C order."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    def __getitem__(self, region: tuple[slice, ...]) -> np.ndarray[Any, Any]: ...


@dataclass
class HierarchyEditor:
    """Changes the hierarchy below the root of a mount. Paths are relative to the root, without a leading slash.

    Dirty chunks of the nodes are flushed or discarded first. The tree forgets its cached metadata after each change.
    """

    tree: Tree
    write_buffer: WriteBuffer
    options: CreationOptions = field(default_factory=CreationOptions)

    # -- access ------------------------------------------------------------------------------------------------

    @property
    def root(self) -> Group:
        """The group that is mounted. Raises RefusedError if an array is mounted."""
        root = self.tree.root
        if not isinstance(root, Group):
            raise RefusedError("the mount presents one array: only its elements can be changed", errno.EPERM)
        return root

    def node(self, path: str) -> Array | Group | None:
        """Return the node at a path by its present metadata, or None."""
        if not path:
            root = self.tree.root
            root.refresh()
            return root
        check_path(path)
        node: Array | Group | None = self.root.get(path)
        return node

    def store_path(self, path: str) -> str:
        """Return the path in the store."""
        return "/".join(part for part in (self.tree.root.path, path) if part)

    def _check_free(self, path: str, present: Array | Group | None) -> None:
        """Raise RefusedError with EEXIST if a new node would have files of another program in its directory."""
        if present is None:
            entry = self.tree.lookup(f"/{path}")
            if entry is not None and entry.is_foreign:
                raise RefusedError(f"/{path}: there are files of another program", errno.EEXIST)

    # -- groups ------------------------------------------------------------------------------------------------

    def make_group(self, path: str) -> None:
        """Create a group. Raises NodeExistsError."""
        check_path(path)
        self.root.create_group(path)
        self.tree.rescan()

    def remove_group(self, path: str) -> None:
        """Delete a group without members. Raises RefusedError with ENOTEMPTY if there is anything else in it."""
        if not path:
            raise RefusedError("the root of the mount cannot be removed", errno.EBUSY)
        store = self.root.store
        if store.listable:
            listing = store.list_dir(self.store_path(path))
            names = [*listing.prefixes, *(name for name in listing.keys if name not in METADATA_NAMES)]
            if names:
                raise RefusedError(
                    f"/{path}: the group contains {', '.join(map(repr, sorted(names)[:5]))}; only an empty group "
                    "can be removed",
                    errno.ENOTEMPTY,
                )
        self.remove(path)

    def remove(self, path: str) -> None:
        """Delete a node with everything below it. Its dirty chunks are dropped."""
        check_path(path)
        root = self.root
        self.write_buffer.discard(self.store_path(path))
        del root[path]
        self.tree.rescan()

    def move(self, source: str, target: str) -> None:
        """Move a node with everything below it. An array at the target is replaced."""
        if (target + "/").startswith(source + "/") and source != target:
            raise RefusedError(f"/{source}: it cannot be moved into itself", errno.EINVAL)
        check_path(source)
        check_path(target)
        self.write_buffer.flush(below=self.store_path(source))
        root = self.root
        present = root.get(target)
        self._check_free(target, present)
        if isinstance(present, Group):
            raise RefusedError(f"/{target}: there is a group", errno.EEXIST)
        if present is None:
            root.move(source, target)
        else:
            # The replaced array is kept under another name until the move has succeeded.
            parent, _, name = target.rpartition("/")
            aside = "/".join(part for part in (parent, f".zarrfs-replaced-{name}") if part)
            self.write_buffer.discard(self.store_path(target))
            root.move(target, aside)
            try:
                root.move(source, target)
            except BaseException:
                root.move(aside, target)
                raise
            del root[aside]
        self.tree.rescan()

    # -- arrays ------------------------------------------------------------------------------------------------

    def create_array(
        self,
        path: str,
        data: np.ndarray[Any, Any] | Values | None,
        option_texts: Mapping[str, str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        document: Mapping[str, Any] | None = None,
        keeps_options: bool = True,
    ) -> None:
        """Create the array at a path from its elements or a document, or replace it. A failure changes nothing.

        Elements that are not in memory are copied in parts.

        ``option_texts`` contains the creation options as the text of extended attributes. A replacement keeps the
        attributes, and, with ``keeps_options`` and if data type and number of dimensions are equal, chunks and codecs.
        Raises RefusedError with EINVAL for invalid options.
        """
        present = self.node(path)
        self._check_free(path, present)
        if isinstance(present, Group):
            raise RefusedError(f"/{path}: there is a group of that name", errno.EEXIST)
        ndim = data.ndim if data is not None else len(document["shape"]) if document else 0
        options = self.options.for_array(ndim)
        # A program that copies a file with its extended attributes sets these too.
        is_copy = "kind" in (option_texts or {})
        if present is not None:
            kept = present.attrs.asdict()
            options["attributes"] = kept | dict(attributes or {}) | (kept if is_copy else {})
            if (
                keeps_options
                and data is not None
                and _equal_types(data.dtype, present.dtype)
                and ndim == present.ndim
            ):
                like = options_like(present, {})
                options |= {name: value for name, value in like.items() if name in KEPT_OPTIONS}
        elif attributes:
            options["attributes"] = dict(attributes)
        options |= dict(document or {})
        options |= {
            name: _parsed(value)
            for name, value in (option_texts or {}).items()
            if name in (COPIED_OPTIONS if is_copy else CREATION_OPTIONS)
        }
        if isinstance(data, np.ndarray):
            options["data"] = data
            for name in ("shape", "dtype"):
                options.pop(name, None)
        elif data is not None:
            options |= {"copy_from": data, "shape": data.shape, "dtype": data.dtype}
        parent, _, name = path.rpartition("/")
        group = self.node(parent)
        if not isinstance(group, Group):
            raise RefusedError(f"/{parent}: there is no such group", errno.ENOENT)
        # Otherwise older bytes would be written to the new array.
        self.write_buffer.flush(below=self.store_path(path))
        try:
            group.create_array(name, overwrite=present is not None, **options)
        except (MetadataError, OptionError) as error:
            raise RefusedError(f"/{path}: {describe_error(error)}", errno.EINVAL) from error
        self.write_buffer.discard(self.store_path(path))
        self.tree.rescan()

    def resize(self, array: Array, nbytes: int) -> None:
        """Change the length of the first dimension, so that the elements occupy ``nbytes``."""
        row = _row_nbytes(array, nbytes)
        node = self._settled(array)
        node.resize((nbytes // row, *node.shape[1:]))
        self.tree.rescan()

    def append(self, array: Array, file: PendingFile) -> None:
        """Append the rows of a file to an array. A failure changes nothing.

        Raises RefusedError with EINVAL if the file does not contain a whole number of rows.
        """
        row = _row_nbytes(array, file.size)
        node = self._settled(array)
        before = node.shape
        rows = file.mapped(node.dtype, 0, (file.size // row, *before[1:]), "C")
        node.resize((before[0] + len(rows), *before[1:]))
        try:
            node[before[0] :] = rows
        except BaseException:
            node.resize(before)
            raise
        finally:
            self.tree.rescan()

    def _settled(self, array: Array) -> Array:
        """Return an array by its present metadata, without dirty chunks. A cached node may lack its user attributes."""
        self.write_buffer.flush(array)
        path = array.path[len(self.tree.root.path) :].strip("/") if self.tree.root.path else array.path
        node = self.node(path)
        assert isinstance(node, Array)
        return node

    # -- attributes --------------------------------------------------------------------------------------------

    def set_attributes(self, path: str, attributes: Mapping[str, Any]) -> None:
        """Replace all user attributes of a node."""
        self._present(path).attrs.put(attributes)
        self.tree.rescan()

    def set_attribute(self, path: str, name: str, value: Any) -> None:
        """Set one user attribute of a node."""
        self._present(path).attrs[name] = value
        self.tree.rescan()

    def remove_attribute(self, path: str, name: str) -> None:
        """Remove one user attribute of a node. Raises RefusedError with ENODATA if there is none."""
        try:
            del self._present(path).attrs[name]
        except KeyError:
            raise RefusedError(f"/{path}: there is no attribute {name!r}", errno.ENODATA) from None
        self.tree.rescan()

    def _present(self, path: str) -> Array | Group:
        node = self.node(path)
        if node is None:
            raise RefusedError(f"/{path}: there is no such node", errno.ENOENT)
        return node


def check_path(path: str) -> None:
    """Raise RefusedError with EINVAL for a path with a backslash, which would denote another node."""
    if "\\" in path:
        raise RefusedError(
            f"/{path.lstrip('/')}: nodes whose names contain a backslash cannot be created, removed, renamed or "
            "resized, because zarr libraries read it as a separator",
            errno.EINVAL,
        )


def _row_nbytes(array: Array, nbytes: int) -> int:
    """Return the size of a row. Raises RefusedError with EINVAL if a number of bytes is not a number of rows."""
    row = prod(array.shape[1:]) * array.itemsize
    if not array.ndim or not row or nbytes % row:
        raise RefusedError(
            f"{array.name}: {nbytes} bytes are not a whole number of rows of {row} bytes (shape {array.shape})",
            errno.EINVAL,
        )
    return row


def _equal_types(first: np.dtype[Any], second: np.dtype[Any]) -> bool:
    return first.newbyteorder("<") == second.newbyteorder("<")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
