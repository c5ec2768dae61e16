"""The functions ``copy``, ``copy_all`` and ``copy_store`` of zarr-python 2."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import IO, Any, Literal, NamedTuple

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.create import new_nodes
from zarrfs.engine.create.similar_arrays import copy_values, options_like
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import normalize_path
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change
from zarrfs.engine.hierarchy.staging import replacing
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import Location, open_store
from zarrfs.errors import NodeExistsError, NodeTypeError
from zarrfs.tools.copying.copy_execution import stored_coords
from zarrfs.tools.copying.copy_tasks import CopyChunk
from zarrfs.tools.copying.executors import ThreadExecutor
from zarrfs.tools.copying.planning import TargetOptions, spec_for_chunk_copy
from zarrfs.tools.copying.presence import unless_deleted
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.walking import readable_nodes

__all__ = ["CopyResult", "IfPresent", "Log", "copy", "copy_all", "copy_store", "line_writer"]

Log = str | IO[str] | Callable[[str], object] | None
"""Receives a line for each node or key: the path of a file, an open text file, or a function. None disables it."""


class CopyResult(NamedTuple):
    """The number of nodes or keys copied and skipped, and the number of bytes of the copied values."""

    copied: int
    skipped: int
    nbytes: int


@contextmanager
def line_writer(log: Log) -> Iterator[Callable[[str], object]]:
    """Yield a function that writes a line to ``log``."""
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
) -> CopyResult:
    """Copy keys and values between stores unchanged.

    Args:
        excludes, includes: regular expressions. A key that matches one of ``excludes`` is skipped, unless it matches
            one of ``includes``. ``flags`` are those of ``re.compile``.

    Raises NodeExistsError before anything is copied if a key exists in the destination.
    """
    if if_exists not in ("raise", "replace", "skip"):
        raise ValueError(f"if_exists must be 'raise', 'replace' or 'skip', found {if_exists!r}")
    source_store, source_root = open_store(source, mode="r")
    dest_store, dest_root = open_store(dest, mode="a")
    source_prefix = "/".join(part for part in (source_root, normalize_path(source_path)) if part)
    dest_prefix = "/".join(part for part in (dest_root, normalize_path(dest_path)) if part)
    with ExitStack() as stack:
        for store, given in ((source_store, source), (dest_store, dest)):
            if isinstance(given, str) or hasattr(given, "__fspath__"):
                stack.enter_context(store)
        is_selected = _key_selector(excludes, includes, flags)
        return _copy_keys(
            source_store, dest_store, source_prefix, dest_prefix, is_selected, if_exists, dry_run, log
        )


def _key_selector(
    excludes: str | list[str] | None, includes: str | list[str] | None, flags: int
) -> Callable[[str], bool]:
    exclude_patterns, include_patterns = (
        [re.compile(pattern, flags) for pattern in ([given] if isinstance(given, str) else given or ())]
        for given in (excludes, includes)
    )

    def is_selected(key: str) -> bool:
        return not any(p.search(key) for p in exclude_patterns) or any(
            p.search(key) for p in include_patterns
        )

    return is_selected


def _copy_keys(
    source: Store,
    dest: Store,
    source_prefix: str,
    dest_prefix: str,
    is_selected: Callable[[str], bool],
    if_exists: str,
    dry_run: bool,
    log: Log,
) -> CopyResult:
    prefix_length = len(source_prefix) + 1 if source_prefix else 0
    keys = {
        key: "/".join(part for part in (dest_prefix, key[prefix_length:]) if part)
        for key in sorted(source.list_prefix(source_prefix))
        if is_selected(key)
    }
    existing = {key for key, new in keys.items() if dest.exists(new)}
    if existing and if_exists == "raise":
        raise NodeExistsError(
            f"{dest.url}: key {keys[min(existing)]!r} and {len(existing) - 1} more exist already; "
            "use if_exists='replace' or 'skip'"
        )
    selected = [key for key in keys if if_exists != "skip" or key not in existing]
    with line_writer(log) as write:
        for key, new in keys.items():
            write(f"{'copy' if if_exists != 'skip' or key not in existing else 'skip'} {key} -> {new}")
        if dry_run:
            return CopyResult(len(selected), len(keys) - len(selected), 0)
        nbytes: list[int] = []

        def copy_key(key: str) -> None:
            value = source.get(key)
            if value is not None:
                dest.set(keys[key], value)
                nbytes.append(len(value))

        for_each(copy_key, selected, max(CORES, source.concurrency, dest.concurrency))
    return CopyResult(len(nbytes), len(keys) - len(selected), sum(nbytes))


IfPresent = Literal["raise", "replace", "skip", "skip_initialized"]
"""What to do if a node exists at the destination: raise an error, replace it, skip it, or skip it only if all its
chunks are stored and replace it otherwise.
"""


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
) -> CopyResult:
    """Copy an array, or a group and all nodes below it, into a group.

    Args:
        source: an array or group of zarrfs or h5py.
        name: the name in the destination, by default that of the source. Required if the source is a root.
        shallow: copy the arrays of a group but not its subgroups.
        without_attrs: do not copy attributes.
        if_exists: what to do if a node exists at the destination: ``"raise"`` an error, ``"replace"`` it, ``"skip"``
            it, or ``"skip_initialized"``: skip it if all its chunks are stored, and replace it otherwise.
        dry_run: write nothing.
        skip_broken: leave out members whose metadata cannot be read, with a warning. By default they are an error,
            raised before anything is written.
        options: properties of the arrays that differ from the source, as for ``create_array``. Without options,
            encoded chunks are copied unchanged if the formats allow it.

    Raises NodeExistsError, NodeTypeError if ``dest`` is not a group, and IncompleteCopyError.
    """
    _check(dest, if_exists)
    _check_readable(source, shallow, skip_broken)
    with line_writer(log) as write:
        operation = _CopyOperation(shallow, without_attrs, if_exists, dry_run, options, write)
        operation.node(source, dest, name or _name(source), is_root=True)
        return operation.finish()


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
) -> CopyResult:
    """Copy all members of a group and its attributes into another group. Arguments are those of ``copy``."""
    _check(dest, if_exists)
    if not isinstance(source, Mapping):
        raise NodeTypeError(
            f"the source of copy_all must be a group, found {source!r}; use copy for an array"
        )
    _check_readable(source, shallow, skip_broken)
    with line_writer(log) as write:
        operation = _CopyOperation(shallow, without_attrs, if_exists, dry_run, options, write)
        for name in source:
            operation.node(source[name], dest, name, is_root=False)
        if not (without_attrs or dry_run):
            operation.attributes(source, dest)
        return operation.finish()


def _check(dest: Any, if_exists: str) -> None:
    if type(dest).__module__.partition(".")[0] == "h5py":
        raise NodeTypeError(
            f"copies into an open HDF5 file are not supported, found {dest!r}; zarrfs.tools.to_hdf5 and 'zarrfs copy "
            "LOCATION NEW.h5' write new files"
        )
    if not isinstance(dest, Group):
        raise NodeTypeError(f"the destination must be a group, found {dest!r}; use the parent group")
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
        raise TypeError("the source is the root of a hierarchy and has no name; pass the name of the copy")
    return name


@dataclass
class _CopyOperation:
    """The options and the counters of a copy."""

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
        """Copy a node into a group; None for a group that a dry run would have created."""
        if hasattr(source, "shape"):
            self._array(source, dest, name)
        elif is_root or not self.shallow:
            self._group(source, dest, name)

    def _array(self, source: Any, dest: Group | None, name: str) -> None:
        existing = _member(dest, name)
        if existing is not None:
            if self.if_exists == "raise":
                raise _exists(existing)
            complete = isinstance(existing, Array) and existing.nchunks_initialized == existing.nchunks
            if self.if_exists == "skip" or (self.if_exists == "skip_initialized" and complete):
                self._skip(source)
                return
        self.write(f"copy {_description(source)}")
        if not self.dry_run and dest is not None:
            path = dest._join(name)
            if isinstance(source, Array) and _is_same_node(dest.store, path, source):
                raise NodeExistsError(f"{source._where}: an array cannot be copied to itself")
            # The existing array is deleted after the copy is complete.
            sources = (source,) if isinstance(source, Array) else ()
            with (
                nullcontext(dest.store) if existing is None else replacing(dest.store, path) as store,
                unless_deleted("copied", *sources),
            ):
                self.nbytes += self._copy_array(source, store, path, dest.zarr_format).nbytes
        self.copied += 1

    def _copy_array(self, source: Any, store: Store, path: str, zarr_format: int | str) -> Array:
        spec = None
        if isinstance(source, Array) and not self.options:
            spec = spec_for_chunk_copy(source.spec, TargetOptions(zarr_format=zarr_format))
        if spec is None or not isinstance(source, Array):
            options = options_like(source, {"zarr_format": zarr_format, **self.options})
            options.setdefault("attributes", {} if self.without_attrs else _attributes(source))
            target = new_nodes.create_array(store, path, ChunkCache(0), **options)
            copy_values(source, target)
            return target
        if self.without_attrs:
            spec = replace(spec, attributes={}, document={})
        formats.check_path(store, path, spec.zarr_format)
        new_nodes.create_ancestors(store, path, spec.zarr_format)
        written = formats.write_node(store, path, spec)
        warn_of_change(store, path, spec.zarr_format)
        target = Array(store, path, written, ChunkCache(0), False)
        workers = max(CORES, source.store.concurrency, store.concurrency)
        ThreadExecutor().run(CopyChunk(source, target, False), stored_coords(source), workers, lambda _: None)
        return target

    def _group(self, source: Any, dest: Group | None, name: str) -> None:
        existing = _member(dest, name)
        if isinstance(existing, Array):
            if self.if_exists == "raise":
                raise _exists(existing)
            if self.if_exists != "replace":
                self._skip(source)
                return
        self.write(f"copy {source.name}")
        target_group: Group | None = existing if isinstance(existing, Group) else None
        if not self.dry_run and dest is not None:
            if isinstance(source, Group) and _is_within(dest, name, source):
                raise NodeExistsError(f"{source._where}: a group cannot be copied to itself or into itself")
            target_group = dest.require_group(name, overwrite=isinstance(existing, Array))
            if not self.without_attrs:
                self.attributes(source, target_group)
        for key in list(source):
            self.node(source[key], target_group, key, is_root=False)
        self.copied += 1

    @staticmethod
    def attributes(source: Any, target: Array | Group) -> None:
        """Copy the attributes of the source to the target."""
        values = _attributes(source)
        if values:
            target.attrs.update(values)

    def _skip(self, source: Any) -> None:
        self.write(f"skip {_description(source)}")
        self.skipped += 1

    def finish(self) -> CopyResult:
        """Write the last line of the log, and return the counters."""
        summary = "dry run" if self.dry_run else "all done"
        self.write(
            f"{summary}: {self.copied:,} copied, {self.skipped:,} skipped, {self.nbytes:,} bytes copied"
        )
        return CopyResult(self.copied, self.skipped, self.nbytes)


def _attributes(node: Any) -> dict[str, Any]:
    """Return attributes as JSON values: h5py returns NumPy values."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in node.attrs.items()}


def _description(node: Any) -> str:
    return f"{node.name} {node.shape} {node.dtype}" if hasattr(node, "shape") else str(node.name)


def _member(group: Group | None, name: str) -> Array | Group | None:
    return group[name] if group is not None and name in group else None


def _exists(node: Array | Group) -> NodeExistsError:
    kind = "a group" if isinstance(node, Group) else "an array"
    return NodeExistsError(f"{node._where}: {kind} exists already; use if_exists='replace' or 'skip'")


def _is_same_node(store: Store, path: str, node: Array | Group) -> bool:
    """Return whether ``node`` is the node at the path in the store."""
    return node.path == path and (node.store == store or node.store.url == store.url)


def _is_within(dest: Group, name: str, source: Group) -> bool:
    """Return whether the member ``name`` of ``dest`` is the source, or below it."""
    if dest.store != source.store and dest.store.url != source.store.url:
        return False
    return f"{dest._join(name)}/".startswith(f"{source.path}/" if source.path else "")
