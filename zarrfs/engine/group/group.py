"""The public ``Group`` class: a mapping of names to arrays and groups.

Its base class finds and lists members (``navigable_group.py``). This module creates, moves and deletes members.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from typing import Any, Unpack

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.create import new_nodes
from zarrfs.engine.create.array_options import (
    ArrayOptions,
    FilledOptions,
    UnfilledOptions,
    engine_options,
    with_fill_value,
    with_options_signature,
)
from zarrfs.engine.create.similar_arrays import options_like, spec_of
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.json_document import document_limit
from zarrfs.engine.group.navigable_group import NavigableGroup
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change
from zarrfs.engine.hierarchy.subtrees import delete_node, move_node
from zarrfs.engine.hierarchy.summary import Info, complete_group_summary, group_summary
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import (
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
)

__all__ = ["Group", "Node", "make_node"]


class Group(NavigableGroup, MutableMapping[str, "Array | Group"]):
    """A mutable mapping of names to arrays and groups. Returned by ``zarrfs.open_group`` and ``zarrfs.create_group``.

    A name may be a path relative to the group: ``group["labels/0"]``. Members are also attributes (``group.labels``),
    if the name is an identifier and not an attribute of ``Group`` or ``Array``.

    Members are looked up in the store at each access and are not cached, so that a group shows the current content of
    the store. In high-latency stores, and in stores that cannot list, they are looked up in the consolidated metadata,
    if the group has them; see ``use_consolidated`` in ``zarrfs.open``. Consolidated metadata may be out of date. Each
    difference that is noticed, or that is caused by a change, is logged once as a warning.

    Methods may be called from several threads. ``close``, or leaving a ``with`` block, closes the store if it was
    opened for this group and no other node uses it.

    Methods that create, move or delete nodes raise ReadOnlyError if the group is open read-only, and StoreError.
    """

    # -- metadata ----------------------------------------------------------------------------------------------

    @property
    def info(self) -> Info:
        """A summary of the metadata: a dictionary that is displayed as a table. Does not access members."""
        return Info(group_summary(self))

    def info_complete(self) -> Info:
        """Return ``info`` with the number of arrays and groups below this group. Reads the metadata of all of them."""
        return Info(complete_group_summary(self))

    def __repr__(self) -> str:
        return f"<zarrfs.Group {self.name} in {self._store.url}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return (self._store, self._path) == (other._store, other._path)

    def __hash__(self) -> int:
        return hash((id(self._store), self._path))

    # -- changing ----------------------------------------------------------------------------------------------

    def create_group(
        self,
        name: str,
        *,
        overwrite: bool = False,
        attributes: Mapping[str, Any] | None = None,
    ) -> Group:
        """Create a group at a name or path below this one, with its missing ancestors.

        ``overwrite`` replaces an existing node with everything below it; otherwise it raises NodeExistsError. Raises
        NodeTypeError if an ancestor is an array.
        """
        self._check_writable(f"creating {name!r}")
        path = self._join(name)
        with self._document_limit():
            spec = new_nodes.create_group_node(
                self._store, path, self.zarr_format, attributes or {}, overwrite
            )
        group = Group(self._store, path, spec, self._cache, False, self._access)
        return group._share_store(self._open_store)

    def create_groups(self, *names: str, overwrite: bool = False) -> tuple[Group, ...]:
        """Create several groups; see ``create_group``."""
        return tuple(self.create_group(name, overwrite=overwrite) for name in names)

    @with_options_signature(ArrayOptions)
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array at a name or path below this group, with its missing ancestors.

        Options and errors are those of ``zarrfs.create_array``. The default of ``zarr_format`` is the format of the
        group.
        """
        self._check_writable(f"creating {name!r}")
        node_options = {"zarr_format": self.zarr_format, "access": self._access} | engine_options(options)
        with self._document_limit():
            array = new_nodes.create_array(self._store, self._join(name), self._cache, **node_options)
        array._read_only = bool(options.get("read_only"))
        return array._share_store(self._open_store)

    def require_group(self, name: str, overwrite: bool = False) -> Group:
        """Return the group of that name, and create it if it does not exist. ``overwrite`` replaces an existing one.

        Several threads and processes may require the same group. Raises NodeTypeError if it is an array.
        """
        if overwrite:
            return self.create_group(name, overwrite=True)
        if name not in self:
            # Another thread or process may create it first.
            with suppress(NodeExistsError):
                return self.create_group(name)
        node = self[name]
        if not isinstance(node, Group):
            raise NodeTypeError(f"{self._store.url}: {node.name} is an array, expected a group")
        return node

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return several groups; see ``require_group``."""
        return tuple(self.require_group(name) for name in names)

    @with_options_signature(FilledOptions)
    def require_array(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name, and create it with these options if it does not exist.

        An existing array must have this shape, and a dtype to which ``dtype`` can be cast safely (with ``exact``: this
        dtype). Otherwise, and if there is a group of that name, NodeTypeError is raised. Several threads and processes
        may require the same array.
        """
        if name not in self:
            # Another thread or process may create it first.
            with suppress(NodeExistsError):
                return self.create_array(name, shape=shape, dtype=dtype, **options)
        node = self[name]
        if not isinstance(node, Array):
            raise NodeTypeError(f"{self._store.url}: {node.name} is a group, expected an array")
        new_nodes.check_required(node, shape, dtype, exact)
        return node

    def __setitem__(self, name: str, value: Any) -> None:
        """Create an array of that name from an array-like, and replace an existing node.

        A copy of a ``zarrfs.Array`` or of an array of zarr-python has the same metadata, as with
        ``zarrfs.from_array``.
        """
        self.array(name, data=value, overwrite=True)

    def __delitem__(self, name: str) -> None:
        """Delete a member with everything below it. Raises NodeNotFoundError if there is none."""
        self._check_writable(f"deleting {name!r}")
        if name not in self:
            raise NodeNotFoundError(f"{self._store.url}: there is no array or group {self._join(name)!r}")
        with self._document_limit():
            delete_node(self._store, self._join(name))
            warn_of_change(self._store, self._join(name), self.zarr_format)

    def move(self, source: str, dest: str) -> None:
        """Move a member, with everything below it, to another path in this group. Missing ancestors are created.

        Raises NodeNotFoundError if there is no member ``source``, NodeExistsError if there is a node at ``dest`` or if
        ``dest`` is below ``source``.
        """
        self._check_writable(f"moving {source!r}")
        if source not in self:
            raise NodeNotFoundError(f"{self._store.url}: there is no array or group {self._join(source)!r}")
        if dest in self:
            raise NodeExistsError(f"{self._store.url}: {self._join(dest)!r} already exists; delete it first")
        old, new = self._join(source), self._join(dest)
        if new.startswith(old + "/"):
            raise NodeExistsError(f"{self._store.url}: {old!r} cannot be moved into itself")
        formats.check_path(self._store, new, self.zarr_format)
        with self._document_limit():
            new_nodes.create_ancestors(self._store, new, self.zarr_format)
            move_node(self._store, old, new)
            for path in (old, new):
                warn_of_change(self._store, path, self.zarr_format)

    # -- creating arrays under the names of zarr-python and h5py -----------------------------------------------

    @with_options_signature(ArrayOptions)
    def create(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``."""
        return self.create_array(name, **options)

    @with_options_signature(ArrayOptions)
    def create_dataset(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array; the same as ``create_array``, under the name that h5py uses."""
        return self.create_array(name, **options)

    @with_options_signature(FilledOptions)
    def require_dataset(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name; the same as ``require_array``, under the name that h5py uses."""
        return self.require_array(name, shape, dtype, exact, **options)

    @with_options_signature(ArrayOptions)
    def array(self, name: str, data: Any = None, **options: Any) -> Array:
        """Create an array from ``data``; without data, an empty one, which requires ``shape``.

        If ``data`` is a ``zarrfs.Array`` or an array of zarr-python, its metadata are the defaults of the options, as
        with ``zarrfs.from_array``.
        """
        spec = None if data is None else spec_of(data)
        if spec is None:
            return self.create_array(name, data=data, **options)
        defaults = {"attributes": dict(spec.attributes)}
        like = defaults | options_like(data, self._in_own_format(options))
        return self.create_array(name, **like, copy_from=data)

    @with_options_signature(FilledOptions)
    def empty(self, name: str, shape: Any, **options: Unpack[FilledOptions]) -> Array:
        """Create an array without data. It reads as its fill value, by default the default value of its data type."""
        return self.create_array(name, shape=shape, **options)

    @with_options_signature(UnfilledOptions)
    def zeros(self, name: str, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array of zeros."""
        return self.create_array(name, shape=shape, **with_fill_value("zeros()", options, 0))

    @with_options_signature(UnfilledOptions)
    def ones(self, name: str, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array of ones."""
        return self.create_array(name, shape=shape, **with_fill_value("ones()", options, 1))

    @with_options_signature(UnfilledOptions)
    def full(self, name: str, fill_value: Any, shape: Any, **options: Unpack[UnfilledOptions]) -> Array:
        """Create an array that reads as ``fill_value`` everywhere."""
        return self.create_array(name, shape=shape, fill_value=fill_value, **options)

    @with_options_signature(ArrayOptions)
    def empty_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array without data, with the metadata of another array; with its fill value if it has one."""
        return self.create_array(name, **options_like(data, self._in_own_format(options)))

    @with_options_signature(UnfilledOptions)
    def zeros_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of zeros with the metadata of another array."""
        return self.empty_like(name, data, **with_fill_value("zeros_like()", options, 0))

    @with_options_signature(UnfilledOptions)
    def ones_like(self, name: str, data: Any, **options: Any) -> Array:
        """Create an array of ones with the metadata of another array."""
        return self.empty_like(name, data, **with_fill_value("ones_like()", options, 1))

    @with_options_signature(UnfilledOptions)
    def full_like(self, name: str, data: Any, fill_value: Any = None, **options: Any) -> Array:
        """Create an array that reads as ``fill_value``, with the metadata of another array.

        The default of ``fill_value`` is the fill value of the other array.
        """
        given = options if fill_value is None else {**options, "fill_value": fill_value}
        return self.empty_like(name, data, **given)

    def _in_own_format(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options with the format of the group as the default of ``zarr_format``."""
        if options.get("zarr_format") is not None or options.get("zarr_version") is not None:
            return options
        return {**options, "zarr_format": formats.writable_format(self.zarr_format)}

    def _document_limit(self) -> AbstractContextManager[None]:
        """Return a context manager that applies this group's limit on the size of metadata documents."""
        return document_limit(self._access.max_document)


Node = Array | Group


def make_node(
    store: Store,
    path: str,
    spec: NodeSpec,
    cache: ChunkCache,
    read_only: bool,
    access: ReadWriteOptions | None = None,
) -> Array | Group:
    """Return the ``Array`` or ``Group`` for the parsed metadata of a node."""
    if isinstance(spec, ArraySpec):
        return Array(store, path, spec, cache, read_only, access)
    return Group(store, path, spec, cache, read_only, access)
