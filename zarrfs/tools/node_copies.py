"""Copying nodes between groups, and keys between stores, by the rules of zarr-python 2.

``convert`` in ``copying.py`` copies a whole hierarchy to a location: verified, resumable, on a cluster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import normalise_path
from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.hierarchy import replacing
from zarrfs.engine.nodes.similar_arrays import copy_values, options_like
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.errors import NodeExistsError, NodeTypeError
from zarrfs.tools.copying.copy_tasks import CopyChunk
from zarrfs.tools.copying.executors import Threads
from zarrfs.tools.copying.planning import Form, same_chunks
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.walking import readable_nodes

__all__ = ["Copied", "IfPresent", "copy", "copy_all", "copy_store"]

IfPresent = Literal["raise", "replace", "skip", "skip_initialized"]
"""What to do about a node that is at the destination: an error; replace it; leave it; leave it if all its chunks are
there, and replace it otherwise.
"""

Log = str | IO[str] | Callable[[str], object] | None
"""Where to write a line for each node or key: a path, a file, or a function; None for nowhere."""


class Copied(NamedTuple):
    """How many nodes or keys were copied and skipped, and the bytes of the values copied."""

    copied: int
    skipped: int
    nbytes: int


def copy(
    source: Any,
    dest: Group,
    name: str | None = None,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: IfPresent = "raise",
    dry_run: bool = False,
    skip_broken: bool = False,
    **options: Any,
) -> Copied:
    """Copy an array or a group with all below it into a group, under its own name or another one.

    Args:
        source: an array or group, also one of h5py.
        name: the name in the destination; needed if the source is the root of a hierarchy.
        shallow: copy of a group only the arrays in it, not the groups.
        without_attrs: leave attributes out.
        if_exists: see ``IfPresent``.
        dry_run: change nothing.
        skip_broken: leave out members whose metadata cannot be read, with a warning. By default they are an error,
            raised before anything is written.
        options: what is to be different of the arrays, as ``create_array`` takes it. Without any, chunks are copied
            as they are stored where the formats allow it.

    Raises NodeExistsError, NodeTypeError if ``dest`` is not a group, and IncompleteCopyError.
    """
    _check(dest, if_exists)
    _check_readable(source, shallow, skip_broken)
    with _lines(log) as write:
        task = _Task(shallow, without_attrs, if_exists, dry_run, options, write)
        task.node(source, dest, name or _name(source), is_root=True)
        return task.finished()


def copy_all(
    source: Any,
    dest: Group,
    shallow: bool = False,
    without_attrs: bool = False,
    log: Log = None,
    if_exists: IfPresent = "raise",
    dry_run: bool = False,
    skip_broken: bool = False,
    **options: Any,
) -> Copied:
    """Copy all members of a group into another one, and its attributes; arguments as ``copy``."""
    _check(dest, if_exists)
    if not isinstance(source, Mapping):
        raise NodeTypeError(f"copy_all copies the members of a group, found {source!r}; copy copies an array")
    _check_readable(source, shallow, skip_broken)
    with _lines(log) as write:
        task = _Task(shallow, without_attrs, if_exists, dry_run, options, write)
        for name in source:
            task.node(source[name], dest, name, is_root=False)
        if not (without_attrs or dry_run):
            task.attributes(source, dest)
        return task.finished()


def _check(dest: Any, if_exists: str) -> None:
    if not isinstance(dest, Group):
        raise NodeTypeError(
            f"the destination must be a group, found {dest!r}; copy into the group that holds it"
        )
    if if_exists not in ("raise", "replace", "skip", "skip_initialized"):
        raise ValueError(
            f"if_exists must be 'raise', 'replace', 'skip' or 'skip_initialized', found {if_exists!r}"
        )


def _check_readable(source: Any, shallow: bool, skip_broken: bool) -> None:
    """Raise IncompleteCopyError if the metadata of a member cannot be read."""
    if isinstance(source, Group) and not skip_broken:
        readable_nodes(source, False, CopyReport(), depth=1 if shallow else None)


def _name(source: Any) -> str:
    name = str(source.name).rpartition("/")[2]
    if not name:
        raise TypeError("the source is the root of a hierarchy and has no name: give the name of the copy")
    return name


@dataclass
class _Task:
    """A copy on its way: how it is to be made, and what has been done."""

    shallow: bool
    without_attrs: bool
    if_exists: str
    dry_run: bool
    options: Mapping[str, Any]
    write: Callable[[str], object]
    copied: int = field(default=0, init=False)
    skipped: int = field(default=0, init=False)
    nbytes: int = field(default=0, init=False)

    def node(self, source: Any, dest: Group | None, name: str, *, is_root: bool) -> None:
        """Copy a node into a group (None: one that is only pretended to be there)."""
        if hasattr(source, "shape"):
            self._array(source, dest, name)
        elif is_root or not self.shallow:
            self._group(source, dest, name)

    def _array(self, source: Any, dest: Group | None, name: str) -> None:
        there = _member(dest, name)
        if there is not None:
            if self.if_exists == "raise":
                raise _exists(there)
            complete = isinstance(there, Array) and there.nchunks_initialized == there.nchunks
            if self.if_exists == "skip" or (self.if_exists == "skip_initialized" and complete):
                self._skip(source)
                return
        self.write(f"copy {_described(source)}")
        if not self.dry_run and dest is not None:
            path = dest._join(name)
            if isinstance(source, Array) and _is_place(dest.store, path, source):
                raise NodeExistsError(f"{source._where}: an array cannot be copied to itself")
            # What is replaced stays until the copy is complete.
            with nullcontext(dest.store) if there is None else replacing(dest.store, path) as store:
                self.nbytes += self._copy_array(source, store, path, dest.zarr_format).nbytes
        self.copied += 1

    def _copy_array(self, source: Any, store: Store, path: str, zarr_format: int | str) -> Array:
        spec = None
        if isinstance(source, Array) and not self.options:
            spec = same_chunks(source.spec, Form(zarr_format=zarr_format))
        if spec is None or not isinstance(source, Array):
            options = options_like(source, {"zarr_format": zarr_format, **self.options})
            options.setdefault("attributes", {} if self.without_attrs else _attributes(source))
            made = creation.create_array_node(store, path, ChunkCache(0), **options)
            copy_values(source, made)
            return made
        if self.without_attrs:
            spec = replace(spec, attributes={}, document={})
        formats.check_path(store, path, spec.zarr_format)
        creation.create_ancestors(store, path, spec.zarr_format)
        written = formats.write_node(store, path, spec)
        warn_of_change(store, path, spec.zarr_format)
        made = Array(store, path, written, ChunkCache(0), False)
        workers = max(CORES, source.store.concurrency, store.concurrency)
        Threads().run(CopyChunk(source, made, False), _chunks(source), workers, lambda _: None)
        return made

    def _group(self, source: Any, dest: Group | None, name: str) -> None:
        there = _member(dest, name)
        if isinstance(there, Array):
            if self.if_exists == "raise":
                raise _exists(there)
            if self.if_exists != "replace":
                self._skip(source)
                return
        self.write(f"copy {source.name}")
        below: Group | None = there if isinstance(there, Group) else None
        if not self.dry_run and dest is not None:
            if isinstance(source, Group) and _is_within(dest, name, source):
                raise NodeExistsError(f"{source._where}: a group cannot be copied to itself or into itself")
            below = dest.require_group(name, overwrite=isinstance(there, Array))
            if not self.without_attrs:
                self.attributes(source, below)
        for key in list(source):
            self.node(source[key], below, key, is_root=False)
        self.copied += 1

    @staticmethod
    def attributes(source: Any, target: Array | Group) -> None:
        """Set the attributes of the source in the target."""
        values = _attributes(source)
        if values:
            target.attrs.update(values)

    def _skip(self, source: Any) -> None:
        self.write(f"skip {_described(source)}")
        self.skipped += 1

    def finished(self) -> Copied:
        """Write the last line, and return what has been done."""
        what = "dry run" if self.dry_run else "all done"
        self.write(f"{what}: {self.copied:,} copied, {self.skipped:,} skipped, {self.nbytes:,} bytes copied")
        return Copied(self.copied, self.skipped, self.nbytes)


def _chunks(array: Array) -> list[tuple[int, ...]]:
    """Return the coordinates of the chunks that may be there."""
    layout = array.storage
    return sorted(layout.stored_chunks()) if array.store.listable else list(np.ndindex(*layout.grid_shape))


def _attributes(node: Any) -> dict[str, Any]:
    """Return attributes as JSON can hold them: h5py has NumPy values."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in node.attrs.items()}


def _described(node: Any) -> str:
    return f"{node.name} {node.shape} {node.dtype}" if hasattr(node, "shape") else str(node.name)


def _member(group: Group | None, name: str) -> Array | Group | None:
    return group[name] if group is not None and name in group else None


def _exists(node: Array | Group) -> NodeExistsError:
    kind = "a group" if isinstance(node, Group) else "an array"
    return NodeExistsError(f"{node._where}: there is already {kind}; give if_exists='replace' or 'skip'")


def _is_place(store: Store, path: str, node: Array | Group) -> bool:
    """Tell whether a node is at the path in the store."""
    return node.path == path and (node.store == store or node.store.url == store.url)


def _is_within(dest: Group, name: str, source: Group) -> bool:
    """Tell whether a member of ``dest`` is the source, or would be below it."""
    if dest.store != source.store and dest.store.url != source.store.url:
        return False
    return f"{dest._join(name)}/".startswith(f"{source.path}/" if source.path else "")


@contextmanager
def _lines(log: Log) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes a line to the log."""
    if log is None:
        yield lambda line: None
    elif isinstance(log, str):
        with open(log, "w", encoding="utf-8") as file:
            yield lambda line: file.write(line + "\n")
    elif callable(log):
        yield log
    elif hasattr(log, "write"):
        given = log
        yield lambda line: given.write(line + "\n")
    else:
        raise TypeError(f"log must be a path, a file or a function, found {log!r}")


# -- keys ------------------------------------------------------------------------------------------------------


def copy_store(
    source: Location,
    dest: Location,
    source_path: str = "",
    dest_path: str = "",
    excludes: str | list[str] | None = None,
    includes: str | list[str] | None = None,
    flags: int = 0,
    if_exists: Literal["raise", "replace", "skip"] = "raise",
    dry_run: bool = False,
    log: Log = None,
) -> Copied:
    """Copy keys and values between stores as they are.

    Args:
        excludes, includes: regular expressions. A key that one of ``excludes`` matches is left out, unless one of
            ``includes`` matches it too. ``flags`` are those of ``re.compile``.

    Raises NodeExistsError for the first key that is there, before anything is copied.
    """
    if if_exists not in ("raise", "replace", "skip"):
        raise ValueError(f"if_exists must be 'raise', 'replace' or 'skip', found {if_exists!r}")
    old, inner = open_store(source, mode="r")
    new, outer = open_store(dest, mode="a")
    start = "/".join(part for part in (inner, normalise_path(source_path)) if part)
    goal = "/".join(part for part in (outer, normalise_path(dest_path)) if part)
    try:
        return _copy_keys(old, new, start, goal, _chosen(excludes, includes, flags), if_exists, dry_run, log)
    finally:
        for store, given in ((old, source), (new, dest)):
            if isinstance(given, str) or hasattr(given, "__fspath__"):
                store.close()


def _chosen(
    excludes: str | list[str] | None, includes: str | list[str] | None, flags: int
) -> Callable[[str], bool]:
    without, nevertheless = (
        [re.compile(pattern, flags) for pattern in ([given] if isinstance(given, str) else given or ())]
        for given in (excludes, includes)
    )

    def chosen(key: str) -> bool:
        return not any(p.search(key) for p in without) or any(p.search(key) for p in nevertheless)

    return chosen


def _copy_keys(
    source: Store,
    dest: Store,
    start: str,
    goal: str,
    chosen: Callable[[str], bool],
    if_exists: str,
    dry_run: bool,
    log: Log,
) -> Copied:
    cut = len(start) + 1 if start else 0
    keys = {
        key: "/".join(part for part in (goal, key[cut:]) if part)
        for key in sorted(source.list_prefix(start))
        if chosen(key)
    }
    there = {key for key, new in keys.items() if dest.exists(new)}
    if there and if_exists == "raise":
        raise NodeExistsError(
            f"{dest.url}: {keys[min(there)]!r} is there already, and {len(there) - 1} more of the keys; "
            "give if_exists='replace' or 'skip'"
        )
    wanted = [key for key in keys if if_exists != "skip" or key not in there]
    with _lines(log) as write:
        for key, new in keys.items():
            write(f"{'copy' if if_exists != 'skip' or key not in there else 'skip'} {key} -> {new}")
        if dry_run:
            return Copied(len(wanted), len(keys) - len(wanted), 0)
        nbytes: list[int] = []

        def carry(key: str) -> None:
            value = source.get(key)
            if value is not None:
                dest.set(keys[key], value)
                nbytes.append(len(value))

        for_each(carry, wanted, max(CORES, source.concurrency, dest.concurrency))
    return Copied(len(nbytes), len(keys) - len(wanted), sum(nbytes))
