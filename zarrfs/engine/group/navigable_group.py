"""Groups whose members are found, listed and walked over."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import ref

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import is_node_name, normalize_path
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_omission
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.hierarchy.subtrees import Tree, draw_tree
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.parallel import for_each, limit_threads
from zarrfs.engine.stores.base import Listing
from zarrfs.errors import MetadataError, NodeNotFoundError, ServerError, StoreError, ZarrError
from zarrfs.logs import logger
from zarrfs.plugins import load_plugins

__all__ = ["NavigableGroup"]

MEMBER_NAMES = "zarrfs.member_names"
"""The entry point group of functions that derive names of members from the attributes of a group."""


MEMBERS_PER_BATCH = 64
"""The maximum number of members that are opened at the same time if each needs requests to a server."""


class _MemberNames:
    """An iterator over names that can be counted before the first one is taken; they are read once. Thread-safe."""

    def __init__(self, names: Iterator[str]) -> None:
        self._names = names
        self._has_started = False
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        with self._lock:
            self._has_started = True
            return next(self._names)

    def count(self) -> int | None:
        """Return the number of names, or None if one has been taken."""
        with self._lock:
            if self._has_started:
                return None
            names = list(self._names)
            self._names = iter(names)
            return len(names)


class NavigableGroup(StoredNode[GroupSpec]):
    """A group and the methods that find, list and visit its members. The base class of ``Group``."""

    spec_type: ClassVar[type] = GroupSpec
    _iterated: ref[_MemberNames] | None = None
    """The iterator over the names of members that was created last."""

    def _join(self, name: str) -> str:
        relative = normalize_path(name)
        return f"{self._path}/{relative}" if self._path and relative else self._path or relative

    @property
    def uses_consolidated(self) -> bool:
        """Whether members are looked up in the consolidated metadata.

        By default only if lookups in the store are expensive, because consolidated metadata may be out of date.
        """
        is_expensive = self._store.is_remote or not self._store.listable
        use_consolidated = self._access.use_consolidated
        return (is_expensive if use_consolidated is None else use_consolidated) and (
            self._spec.consolidated is not None
        )

    def names(self) -> list[str]:
        """Return the sorted names below this group that may be members, as ``known_names``.

        Raises StoreError if the store cannot list and no metadata names them.
        """
        names = self.known_names()
        if names is None:
            raise StoreError(
                f"{self._store.url}: the members of {self.name} cannot be listed: the store cannot list, and no "
                "metadata names them; consolidate the metadata of the hierarchy (zarrfs consolidate)"
            )
        return names

    def known_names(self, listing: Listing | None = None) -> list[str] | None:
        """Return the sorted names below this group that may be members. It does not check that they are.

        ``listing`` is that of the store at the path of the group, if it is known.

        None means that they are unknown: the store cannot list, and no metadata names them.

        In a store that cannot list (a web server) the names come from the consolidated metadata. If there are none,
        they come from the attributes, by conventions such as OME-NGFF and by entry points of the group
        ``zarrfs.member_names`` (functions that take a group and return names, or None); the result may then be
        incomplete. Raises StoreError if the store fails.
        """
        if self.uses_consolidated and self._spec.consolidated is not None:
            listed = {path.partition("/")[0] for path in self._spec.consolidated}
            return sorted(filter(is_node_name, listed))
        if not self._store.listable:
            named = [
                names for hint in load_plugins(MEMBER_NAMES, Callable) if (names := hint(self)) is not None
            ]
            return sorted(filter(is_node_name, set().union(*named))) if named else None
        return sorted(set(formats.child_names(self._store, self._path, self._spec, listing)))

    def __getitem__(self, name: str) -> Array | Self:
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

    def _find(self, name: str) -> Array | Self | None:
        relative = normalize_path(name)
        if not relative:
            return self
        listed = None
        if self.uses_consolidated and self._spec.consolidated is not None:
            listed = self._spec.consolidated.get(relative)
        path = self._join(relative)
        spec = listed or formats.read_node(
            self._store, path, parent_format=self.zarr_format, **self._access.reading
        )
        if spec is None:
            formats.check_document_files(self._store, path)
            return None
        if listed is None and self.uses_consolidated:
            warn_of_omission(self._store, path)
        node = self._make_member(path, spec)
        node._listed = listed
        return node._share_store(self._open_store)

    def array_templates(self) -> Callable[[str], ArraySpec | None]:
        """Return a function of a member's name that returns the metadata of an array without what depends on its
        attributes. It does not access the store.

        They are the same object for all arrays that differ in their attributes only, so that a list of thousands of
        arrays can be shown without opening each of them. None if no such array has been opened before, and if members
        are not looked up in the consolidated metadata.
        """
        if not self.uses_consolidated or self._spec.consolidated is None:
            return lambda name: None
        return self._spec.consolidated.template

    def _make_member(self, path: str, spec: NodeSpec) -> Array | Self:
        if isinstance(spec, ArraySpec):
            return Array(self._store, path, spec, self._cache, self._read_only, self._access)
        return type(self)(self._store, path, spec, self._cache, self._read_only, self._access)

    def _some_names(self) -> str:
        names = self.names()
        shown = ", ".join(map(repr, names[:10])) or "none"
        return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(normalize_path(name)) and self._find(name) is not None

    def _each_member(self) -> Iterator[tuple[str, Array | Self]]:
        """Yield (name, node) of each member, sorted by name; see ``members``."""
        return self.members_named(self.names())

    def members_named(self, names: Iterable[str]) -> Iterator[tuple[str, Array | Self]]:
        """Yield (name, node) of each of the names that is a member. A member whose metadata are invalid is omitted, and
        a warning is logged. Raises ServerError.
        """
        concurrency = min(self._store.concurrency, MEMBERS_PER_BATCH)
        remaining = iter(names)
        while batch := list(islice(remaining, concurrency)):
            found: dict[str, Array | Self | None] = {}

            def find(name: str, found: dict[str, Array | Self | None] = found) -> None:
                try:
                    found[name] = self._find(name)
                except ServerError:  # it concerns all members
                    raise
                except (ZarrError, OSError) as error:
                    logger.warning("%s: member %r is left out: %s", self._store.url, self._join(name), error)

            with limit_threads(self._access.concurrency):
                for_each(find, batch, len(batch))
            for name in batch:
                node = found.get(name)
                if node is not None:
                    yield name, node

    def members(self, max_depth: int | None = 0) -> tuple[tuple[str, Array | Self], ...]:
        """Return (name, node) of each member, sorted by name.

        ``max_depth`` is the number of levels of groups whose members are included: 0 for the members of this group
        only, None for all levels. The name of a member of a subgroup is its path relative to this group.

        A member whose metadata are invalid is omitted, and a warning is logged; ``group[name]`` raises its error.
        Raises ServerError if the server of the store fails.
        """
        return tuple(self._descendants(max_depth))

    def _descendants(self, max_depth: int | None) -> Iterator[tuple[str, Array | Self]]:
        if max_depth is not None and max_depth < 0:
            raise ValueError(f"max_depth must be at least 0, or None for all levels; found {max_depth}")
        return self.walk(None if max_depth is None else max_depth + 1)

    def nmembers(self, max_depth: int | None = 0) -> int:
        """Return the number of members; ``max_depth`` as in ``members``."""
        return sum(1 for _ in self._descendants(max_depth))

    def __iter__(self) -> Iterator[str]:
        names = _MemberNames(name for name, _ in self._each_member())
        self._iterated = ref(names)
        return names

    def __len__(self) -> int:
        # ``list(group)`` asks for the length of the group after it has created the iterator.
        names = None if self._iterated is None else self._iterated()
        count = None if names is None else names.count()
        return sum(1 for _ in self._each_member()) if count is None else count

    def __bool__(self) -> bool:
        return True

    def arrays(self, recurse: bool = False) -> Iterator[tuple[str, Array]]:
        """Yield (name, array) of each member that is an array. ``recurse``: also of the arrays in groups below it.

        The name is the last part of the path. ``members(max_depth=None)`` yields whole paths.
        """
        for name, node in self._each_member():
            if isinstance(node, Array):
                yield name, node
            elif recurse:
                yield from node.arrays(recurse)

    def groups(self) -> Iterator[tuple[str, Self]]:
        """Yield (name, group) of each member that is a group."""
        return ((name, node) for name, node in self._each_member() if isinstance(node, NavigableGroup))

    def array_keys(self, recurse: bool = False) -> Iterator[str]:
        """Yield the names of the members that are arrays. ``recurse``: also of the arrays in groups below it."""
        return (name for name, _ in self.arrays(recurse))

    def group_keys(self) -> Iterator[str]:
        """Yield the names of the members that are groups."""
        return (name for name, _ in self.groups())

    def array_values(self) -> Iterator[Array]:
        """Yield the members that are arrays."""
        return (node for _, node in self.arrays())

    def group_values(self) -> Iterator[Self]:
        """Yield the members that are groups."""
        return (node for _, node in self.groups())

    if not TYPE_CHECKING:  # a type checker would accept any misspelt attribute

        def __getattr__(self, name: str) -> Array | Self:
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

    def walk(self, depth: int | None = None) -> Iterator[tuple[str, Array | Self]]:
        """Yield (path relative to this group, node) of all nodes below, each group before its members.

        ``depth`` is the number of levels to visit; None for all. A member whose metadata are invalid, and the members
        of a group that cannot be listed, are omitted, and a warning is logged. Raises ServerError.
        """
        pending: list[tuple[str, Iterator[tuple[str, Array | Self]]]] = [("", self._each_member())]
        while pending:
            prefix, members = pending[-1]
            member = next(members, None)
            if member is None:
                pending.pop()
                continue
            name, node = member
            yield prefix + name, node
            if isinstance(node, NavigableGroup) and (depth is None or depth > len(pending)):
                try:
                    names = node.names()
                except ServerError:
                    raise
                except StoreError as error:
                    logger.warning(
                        "%s: the members of %s are left out: %s", self._store.url, node.name, error
                    )
                    continue
                pending.append((f"{prefix}{name}/", node.members_named(names)))

    def visititems(self, visitor: Callable[[str, Array | Self], Any]) -> Any:
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

    def visitvalues(self, visitor: Callable[[Array | Self], Any]) -> Any:
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
