"""The public ``Group`` class: a mapping of names to arrays and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.creation.array_options import (
    ArrayOptions,
    FilledOptions,
    engine_options,
    with_options_signature,
)
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.json_document import document_limit
from zarrfs.engine.formats.paths import is_node_name, normalize_path
from zarrfs.engine.io.access import Access
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change, warn_of_omission
from zarrfs.engine.nodes.creation import new_nodes
from zarrfs.engine.nodes.creation.group_methods import GroupRoutines
from zarrfs.engine.nodes.hierarchy import Tree, delete_node, draw_tree, move_node
from zarrfs.engine.nodes.node import StoredNode
from zarrfs.engine.nodes.summary import Info, complete_group_summary, group_summary
from zarrfs.engine.stores.base import Store
from zarrfs.errors import (
    MetadataError,
    NodeExistsError,
    NodeNotFoundError,
    NodeTypeError,
    StoreError,
    ZarrError,
)
from zarrfs.logs import logger
from zarrfs.plugins import load_plugins

__all__ = ["Group", "Node", "make_node"]

MEMBER_NAMES = "zarrfs.member_names"
"""The entry point group of functions that derive names of members from the attributes of a group."""


class Group(StoredNode[GroupSpec], GroupRoutines, MutableMapping[str, "Array | Group"]):
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

    spec_type: ClassVar[type] = GroupSpec

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

    # -- members -----------------------------------------------------------------------------------------------

    def _join(self, name: str) -> str:
        relative = normalize_path(name)
        return f"{self._path}/{relative}" if self._path and relative else self._path or relative

    @property
    def _consolidated(self) -> bool:
        """Whether members are looked up in the consolidated metadata.

        By default only if lookups in the store are expensive, because consolidated metadata may be out of date.
        """
        is_expensive = self._store.concurrency > 1 or not self._store.listable
        use_consolidated = self._access.use_consolidated
        return (is_expensive if use_consolidated is None else use_consolidated) and (
            self._spec.consolidated is not None
        )

    def names(self) -> list[str]:
        """Return the sorted names below this group that may be members. It does not check that they are.

        In a store that cannot list (a web server) the names come from the consolidated metadata. If there are none,
        they come from the attributes, by conventions such as OME-NGFF and by entry points of the group
        ``zarrfs.member_names`` (functions that take a group and return names, or None); the result may then be
        incomplete. Raises StoreError if no names are available.
        """
        if self._consolidated and self._spec.consolidated is not None:
            listed = {path.partition("/")[0] for path in self._spec.consolidated}
            return sorted(filter(is_node_name, listed))
        if not self._store.listable:
            named = [
                names for hint in load_plugins(MEMBER_NAMES, Callable) if (names := hint(self)) is not None
            ]
            if named:
                return sorted(filter(is_node_name, set().union(*named)))
        return sorted(set(formats.child_names(self._store, self._path, self._spec)))

    def __getitem__(self, name: str) -> Array | Group:
        """Return a member by its name or path.

        Raises NodeNotFoundError if there is none, and MetadataError if its metadata are invalid.
        """
        node = self._find(name)
        if node is None:
            raise NodeNotFoundError(
                f"{self._store.url}: there is no array or group {self._join(name)!r}"
                + (f"; members of {self.name} are {self._some_names()}" if self._store.listable else "")
            )
        return node

    def get(self, name: str, default: Any = None) -> Any:
        """Return a member, or ``default`` if there is none. Raises MetadataError if its metadata are invalid.

        Does not list the group, which ``group[name]`` does for the message of its error.
        """
        node = self._find(name)
        return default if node is None else node

    def _find(self, name: str) -> Array | Group | None:
        relative = normalize_path(name)
        if not relative:
            return self
        listed = None
        if self._consolidated and self._spec.consolidated is not None:
            listed = self._spec.consolidated.get(relative)
        path = self._join(relative)
        spec = listed or formats.read_node(self._store, path, **self._access.reading)
        if spec is None:
            return None
        if listed is None and self._consolidated:
            warn_of_omission(self._store, path)
        node = make_node(self._store, path, spec, self._cache, self._read_only, self._access)
        node._listed = listed
        return node._share_store(self._open_store)

    def array_template(self, name: str) -> ArraySpec | None:
        """Return the metadata of a member, an array, without what depends on its attributes. Does not access the store.

        It is the same object for all arrays that differ in their attributes only, so that a list of thousands of arrays
        can be shown without opening each of them. None if no such array has been opened before, and if members are not
        looked up in the consolidated metadata.
        """
        if not self._consolidated or self._spec.consolidated is None:
            return None
        return self._spec.consolidated.template(name)

    def _some_names(self) -> str:
        names = self.names()
        shown = ", ".join(map(repr, names[:10])) or "none"
        return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(normalize_path(name)) and self._find(name) is not None

    def _each_member(self) -> Iterator[tuple[str, Array | Group]]:
        """Yield (name, node) of each member, sorted by name; see ``members``."""
        return self._members(self.names())

    def _members(self, names: Iterable[str]) -> Iterator[tuple[str, Array | Group]]:
        for name in names:
            try:
                node = self._find(name)
            except (ZarrError, OSError) as error:
                logger.warning("%s: member %r is left out: %s", self._store.url, self._join(name), error)
                continue
            if node is not None:
                yield name, node

    def members(self, max_depth: int | None = 0) -> tuple[tuple[str, Array | Group], ...]:
        """Return (name, node) of each member, sorted by name.

        ``max_depth`` is the number of levels of groups whose members are included: 0 for the members of this group
        only, None for all levels. The name of a member of a subgroup is its path relative to this group.

        A member whose metadata are invalid is omitted, and a warning is logged; ``group[name]`` raises its error.
        """
        return tuple(self._descendants(max_depth))

    def _descendants(self, max_depth: int | None) -> Iterator[tuple[str, Array | Group]]:
        if max_depth is not None and max_depth < 0:
            raise ValueError(f"max_depth must be at least 0, or None for all levels; found {max_depth}")
        return self.walk(None if max_depth is None else max_depth + 1)

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of members; ``max_depth`` as in ``members``."""
        return sum(1 for _ in self._descendants(max_depth))

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._each_member())

    def __len__(self) -> int:
        return sum(1 for _ in self._each_member())

    def __bool__(self) -> bool:
        return True

    def arrays(self) -> Iterator[tuple[str, Array]]:
        """Yield (name, array) of each member that is an array."""
        return ((name, node) for name, node in self._each_member() if isinstance(node, Array))

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Yield (name, group) of each member that is a group."""
        return ((name, node) for name, node in self._each_member() if isinstance(node, Group))

    def array_keys(self) -> Iterator[str]:
        """Yield the names of the members that are arrays."""
        return (name for name, _ in self.arrays())

    def group_keys(self) -> Iterator[str]:
        """Yield the names of the members that are groups."""
        return (name for name, _ in self.groups())

    def array_values(self) -> Iterator[Array]:
        """Yield the members that are arrays."""
        return (node for _, node in self.arrays())

    def group_values(self) -> Iterator[Group]:
        """Yield the members that are groups."""
        return (node for _, node in self.groups())

    if not TYPE_CHECKING:  # a type checker would accept any misspelt attribute

        def __getattr__(self, name: str) -> Array | Group:
            """Return a member as an attribute.

            Names of attributes of ``Array`` are excluded, so that ``hasattr(node, "shape")`` distinguishes arrays from
            groups.
            """
            if not name.startswith("_") and not hasattr(Array, name):
                try:
                    return self[name]
                except (NodeNotFoundError, MetadataError, StoreError) as error:
                    raise AttributeError(
                        f"a group has no attribute {name!r}, and {self.name} has no such member: {error}"
                    ) from error
            raise AttributeError(f"a group has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """Return the names of attributes and of members, for completion."""
        return sorted({*super().__dir__(), *(name for name in self._completions() if name.isidentifier())})

    def _ipython_key_completions_(self) -> list[str]:
        """Return the valid keys, for completion in IPython and Jupyter."""
        return self._completions()

    def _completions(self) -> list[str]:
        try:
            return self.names()
        except (MetadataError, StoreError):
            return []

    def walk(self, depth: int | None = None) -> Iterator[tuple[str, Array | Group]]:
        """Yield (path relative to this group, node) of all nodes below, each group before its members.

        ``depth`` is the number of levels to visit; None for all. A member whose metadata are invalid, and the members
        of a group that cannot be listed, are omitted, and a warning is logged.
        """
        pending: list[tuple[str, Iterator[tuple[str, Array | Group]]]] = [("", self._each_member())]
        while pending:
            prefix, members = pending[-1]
            member = next(members, None)
            if member is None:
                pending.pop()
                continue
            name, node = member
            yield prefix + name, node
            if isinstance(node, Group) and (depth is None or depth > len(pending)):
                try:
                    names = node.names()
                except StoreError as error:
                    logger.warning(
                        "%s: the members of %s are left out: %s", self._store.url, node.name, error
                    )
                    continue
                pending.append((f"{prefix}{name}/", node._members(names)))

    def visititems(self, visitor: Callable[[str, Array | Group], Any]) -> Any:
        """Call ``visitor(path, node)`` for each node below until it returns a value other than None; return that
        value.
        """
        for path, node in self.walk():
            result = visitor(path, node)
            if result is not None:
                return result
        return None

    def visit(self, visitor: Callable[[str], Any]) -> Any:
        """Call ``visitor(path)`` for each node below until it returns a value other than None; return that value."""
        return self.visititems(lambda path, node: visitor(path))

    visitkeys = visit

    def visitvalues(self, visitor: Callable[[Array | Group], Any]) -> Any:
        """Call ``visitor(node)`` for each node below until it returns a value other than None; return that value."""
        return self.visititems(lambda path, node: visitor(node))

    def tree(
        self,
        expand: bool | None = None,
        level: int | None = None,
        *,
        max_nodes: int | None = 500,
        plain: bool = False,
    ) -> Tree:
        """Return the hierarchy below this group as text, one line per node.

        Args:
            level: the maximum number of levels; None for all.
            max_nodes: the maximum number of nodes; None for all. The remaining nodes are omitted, with a note.
            expand, plain: accepted for compatibility with zarr-python and ignored.
        """
        return draw_tree(self, level, max_nodes)

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
            array = new_nodes.create_array_node(self._store, self._join(name), self._cache, **node_options)
        array._read_only = bool(options.get("read_only"))
        return array._share_store(self._open_store)

    def require_group(self, name: str, overwrite: bool = False) -> Group:
        """Return the group of that name, and create it if it does not exist. ``overwrite`` replaces an existing one.

        Raises NodeTypeError if there is an array of that name.
        """
        if overwrite or name not in self:
            return self.create_group(name, overwrite=overwrite)
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
        dtype). Otherwise, and if there is a group of that name, NodeTypeError is raised.
        """
        if name not in self:
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

    def _document_limit(self) -> AbstractContextManager[None]:
        """Return a context manager that applies this group's limit on the size of metadata documents."""
        return document_limit(self._access.max_document)


Node = Array | Group


def make_node(
    store: Store, path: str, spec: NodeSpec, cache: ChunkCache, read_only: bool, access: Access | None = None
) -> Array | Group:
    """Return the ``Array`` or ``Group`` for the parsed metadata of a node."""
    if isinstance(spec, ArraySpec):
        return Array(store, path, spec, cache, read_only, access)
    return Group(store, path, spec, cache, read_only, access)
