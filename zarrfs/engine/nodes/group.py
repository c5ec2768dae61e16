"""The public group node: a mapping of names to arrays and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.creation.array_options import ArrayOptions, FilledOptions, engine_options, lists_options
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.json_document import document_limit
from zarrfs.engine.formats.paths import normalise_path
from zarrfs.engine.io.access import Access
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change, warn_of_omission
from zarrfs.engine.nodes.group_creation import GroupRoutines
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
"""The entry points of conventions that name members in attributes."""


class Group(StoredNode[GroupSpec], GroupRoutines, MutableMapping[str, "Array | Group"]):
    """A group of arrays and groups. Made by ``zarrfs.open_group`` and ``zarrfs.create_group``.

    Members are looked up when asked for and not remembered, so that a group shows the store as it is. Where asking
    is dear (remote stores, stores that cannot list) consolidated metadata answer, if the group carries them. They may
    be out of date: what is found to be so, and what is made so by a change, is logged as a warning, once.
    A name may be a path (``group["labels/0"]``). Members are attributes too (``group.labels``), where their names are
    identifiers that are no attributes of groups or arrays.
    """

    spec_type: ClassVar[type] = GroupSpec

    # -- what it is --------------------------------------------------------------------------------------------

    @property
    def info(self) -> Info:
        """What the metadata say, as a dictionary that shows itself as a table. Costs nothing."""
        return Info(group_summary(self))

    def info_complete(self) -> Info:
        """Return ``info``, and how many arrays and groups are below. Costs a look at all of them."""
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
        relative = normalise_path(name)
        return f"{self._path}/{relative}" if self._path and relative else self._path or relative

    @property
    def _consolidated(self) -> bool:
        """Whether consolidated metadata answer: only where asking the store is dear, as they may be out of date, unless
        the group was opened with ``use_consolidated``.
        """
        dear = self._store.concurrency > 1 or not self._store.listable
        wanted = self._access.use_consolidated
        return (dear if wanted is None else wanted) and self._spec.consolidated is not None

    def names(self) -> list[str]:
        """Return the names below this group that may be members, sorted, without looking whether they are.

        In a store that cannot list (a web server) consolidated metadata tell the names, else conventions that name
        members in attributes (OME-NGFF, and entry points ``zarrfs.member_names``: functions that take a group and
        return names, or None); there may be others then. Raises StoreError where nothing tells.
        """
        if self._consolidated and self._spec.consolidated is not None:
            return sorted({path.partition("/")[0] for path in self._spec.consolidated if path})
        if not self._store.listable:
            named = [
                names for hint in load_plugins(MEMBER_NAMES, Callable) if (names := hint(self)) is not None
            ]
            if named:
                return sorted(set().union(*named))
        return sorted(set(formats.child_names(self._store, self._path, self._spec)))

    def __getitem__(self, name: str) -> Array | Group:
        """Return the member. Raises NodeNotFoundError, or MetadataError when it is there but broken."""
        node = self._find(name)
        if node is None:
            raise NodeNotFoundError(
                f"{self._store.url}: there is no array or group {self._join(name)!r}"
                + (f"; members of {self.name} are {self._some_names()}" if self._store.listable else "")
            )
        return node

    def get(self, name: str, default: Any = None) -> Any:
        """Return the member, or the default where there is none. Costs no listing, unlike the error of ``group[name]``.

        Raises MetadataError when the member is there but broken.
        """
        node = self._find(name)
        return default if node is None else node

    def _find(self, name: str) -> Array | Group | None:
        relative = normalise_path(name)
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

    def _some_names(self) -> str:
        names = self.names()
        shown = ", ".join(map(repr, names[:10])) or "none"
        return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(normalise_path(name)) and self._find(name) is not None

    def _each_member(self) -> Iterator[tuple[str, Array | Group]]:
        """Yield (name, node) of each member, in the order of the names; see ``members``."""
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
        """Return (name, node) of each member, in the order of the names.

        ``max_depth`` says how many levels of groups to enter: 0 for none, None for all. The name of what is in a group
        is its path relative to this one.

        A member whose metadata are broken is left out with a logged warning; ``group[name]`` raises its error.
        """
        return tuple(self._below(max_depth))

    def _below(self, max_depth: int | None) -> Iterator[tuple[str, Array | Group]]:
        if max_depth is not None and max_depth < 0:
            raise ValueError(f"max_depth must be at least 0, or None for all levels; found {max_depth}")
        return self.walk(None if max_depth is None else max_depth + 1)

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of members; ``max_depth`` as for ``members``."""
        return sum(1 for _ in self._below(max_depth))

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
        """Yield the names of the arrays."""
        return (name for name, _ in self.arrays())

    def group_keys(self) -> Iterator[str]:
        """Yield the names of the groups."""
        return (name for name, _ in self.groups())

    def array_values(self) -> Iterator[Array]:
        """Yield the arrays."""
        return (node for _, node in self.arrays())

    def group_values(self) -> Iterator[Group]:
        """Yield the groups."""
        return (node for _, node in self.groups())

    if not TYPE_CHECKING:  # a type checker would accept any misspelt attribute

        def __getattr__(self, name: str) -> Array | Group:
            """Return a member as an attribute. Names of attributes of arrays are no members: they tell the two apart,
            as in ``hasattr(node, "shape")``.
            """
            if not name.startswith("_") and not hasattr(Array, name):
                try:
                    return self[name]
                except (NodeNotFoundError, MetadataError, StoreError) as error:
                    raise AttributeError(
                        f"a group has no attribute {name!r}, and {self.name} no such member: {error}"
                    ) from error
            raise AttributeError(f"a group has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        """Return the names of attributes and of members, for completion."""
        return sorted({*super().__dir__(), *(name for name in self._completions() if name.isidentifier())})

    def _ipython_key_completions_(self) -> list[str]:
        """Return what may be in brackets, for completion in IPython and Jupyter."""
        return self._completions()

    def _completions(self) -> list[str]:
        try:
            return self.names()
        except (MetadataError, StoreError):
            return []

    def walk(self, depth: int | None = None) -> Iterator[tuple[str, Array | Group]]:
        """Yield (path relative to this group, node) of everything below, each group before its members.

        A member whose metadata are broken, and the members of a group that cannot be listed, are left out with a
        logged warning.
        """
        pending: list[tuple[str, Iterator[tuple[str, Array | Group]]]] = [("", self._each_member())]
        while pending:
            prefix, members = pending[-1]
            found = next(members, None)
            if found is None:
                pending.pop()
                continue
            name, node = found
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
        """Call ``visitor(path, node)`` on everything below until it returns something, and return that."""
        for path, node in self.walk():
            answer = visitor(path, node)
            if answer is not None:
                return answer
        return None

    def visit(self, visitor: Callable[[str], Any]) -> Any:
        """Call ``visitor(path)`` on everything below until it returns something, and return that."""
        return self.visititems(lambda path, node: visitor(path))

    visitkeys = visit

    def visitvalues(self, visitor: Callable[[Array | Group], Any]) -> Any:
        """Call ``visitor(node)`` on everything below until it returns something, and return that."""
        return self.visititems(lambda path, node: visitor(node))

    def tree(
        self,
        expand: bool | None = None,
        level: int | None = None,
        *,
        max_nodes: int | None = 500,
        plain: bool = False,
    ) -> Tree:
        """Return the hierarchy below as text that shows itself drawn.

        Args:
            level: how many levels to draw; None for all.
            max_nodes: how many nodes to draw, in the order of the lines; None for all.
            expand, plain: ignored; zarr-python has them, for HTML and bold text.
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
        """Create a group below this one, with groups on the way to it."""
        self._check_writable(f"creating {name!r}")
        path = self._join(name)
        with self._limited():
            spec = creation.create_group_node(
                self._store, path, self.zarr_format, attributes or {}, overwrite
            )
        made = Group(self._store, path, spec, self._cache, False, self._access)
        return made._share_store(self._open_store)

    def create_groups(self, *names: str, overwrite: bool = False) -> tuple[Group, ...]:
        """Create several groups."""
        return tuple(self.create_group(name, overwrite=overwrite) for name in names)

    @lists_options(ArrayOptions)
    def create_array(self, name: str, **options: Unpack[ArrayOptions]) -> Array:
        """Create an array below this group; options as ``zarrfs.create_array``."""
        self._check_writable(f"creating {name!r}")
        made = {"zarr_format": self.zarr_format, "access": self._access} | engine_options(options)
        with self._limited():
            array = creation.create_array_node(self._store, self._join(name), self._cache, **made)
        array._read_only = bool(options.get("read_only"))
        return array._share_store(self._open_store)

    def require_group(self, name: str, overwrite: bool = False) -> Group:
        """Return the group of that name, created if there is none; with ``overwrite`` created anew."""
        if overwrite or name not in self:
            return self.create_group(name, overwrite=overwrite)
        node = self[name]
        if not isinstance(node, Group):
            raise NodeTypeError(f"{self._store.url}: {node.name} is an array, a group was asked for")
        return node

    def require_groups(self, *names: str) -> tuple[Group, ...]:
        """Return several groups, each created if there is none."""
        return tuple(self.require_group(name) for name in names)

    @lists_options(FilledOptions)
    def require_array(
        self, name: str, shape: Any, dtype: Any = None, exact: bool = False, **options: Any
    ) -> Array:
        """Return the array of that name, created if there is none.

        One that is there must have this shape, and a dtype to which ``dtype`` casts safely (``exact``: this dtype).
        """
        if name not in self:
            return self.create_array(name, shape=shape, dtype=dtype, **options)
        node = self[name]
        if not isinstance(node, Array):
            raise NodeTypeError(f"{self._store.url}: {node.name} is a group, an array was asked for")
        creation.check_required(node, shape, dtype, exact)
        return node

    def __setitem__(self, name: str, value: Any) -> None:
        """Store an array-like as an array of that name, replacing what is there. Of an array of this package or of
        zarr-python everything is kept, as by ``zarrfs.from_array``.
        """
        self.array(name, data=value, overwrite=True)

    def __delitem__(self, name: str) -> None:
        """Delete a member with everything below it."""
        self._check_writable(f"deleting {name!r}")
        if name not in self:
            raise NodeNotFoundError(f"{self._store.url}: there is no array or group {self._join(name)!r}")
        with self._limited():
            delete_node(self._store, self._join(name))
            warn_of_change(self._store, self._join(name), self.zarr_format)

    def move(self, source: str, dest: str) -> None:
        """Give a member, with everything below it, another path."""
        self._check_writable(f"moving {source!r}")
        if source not in self:
            raise NodeNotFoundError(f"{self._store.url}: there is no array or group {self._join(source)!r}")
        if dest in self:
            raise NodeExistsError(
                f"{self._store.url}: {self._join(dest)!r} is there already; delete it first"
            )
        old, new = self._join(source), self._join(dest)
        if new.startswith(old + "/"):
            raise NodeExistsError(f"{self._store.url}: {old!r} cannot be moved into itself")
        formats.check_path(self._store, new, self.zarr_format)
        with self._limited():
            creation.create_ancestors(self._store, new, self.zarr_format)
            move_node(self._store, old, new)
            for path in (old, new):
                warn_of_change(self._store, path, self.zarr_format)

    def _limited(self) -> AbstractContextManager[None]:
        """Return a context in which documents may be as large as this group allows."""
        return document_limit(self._access.max_document)


Node = Array | Group


def make_node(
    store: Store, path: str, spec: NodeSpec, cache: ChunkCache, read_only: bool, access: Access | None = None
) -> Array | Group:
    """Return the public node for a parsed metadata document."""
    if isinstance(spec, ArraySpec):
        return Array(store, path, spec, cache, read_only, access)
    return Group(store, path, spec, cache, read_only, access)
