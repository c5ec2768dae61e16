"""Copying arrays and hierarchies: between stores, formats and chunk shapes. Resumable, verifiable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zarrfs.engine import creation
from zarrfs.engine.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import detect
from zarrfs.engine.group import Group
from zarrfs.engine.hierarchy import replacing
from zarrfs.engine.locations import open_store, split_options
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.new_arrays import array_spec
from zarrfs.engine.open import Location
from zarrfs.engine.open import open as open_node
from zarrfs.engine.parallel import CORES
from zarrfs.engine.staleness import warn_of_change
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeExistsError, UnsupportedError
from zarrfs.tools.dask_cluster import on_cluster
from zarrfs.tools.executors import Executor, Threads
from zarrfs.tools.pieces import CarryBlock, CarryChunk, CompareBlock
from zarrfs.tools.planning import Form, blocks, creation_options, same_chunks

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["IfExists", "Progress", "convert", "rechunk"]

IfExists = Literal["raise", "replace", "skip", "resume"]
"""What to do about a node that is at the destination: an error; replace it; leave it; go on with a copy of this very
array that was interrupted (chunks that are there are taken for done).
"""

Progress = Callable[[str, int, int], object]
"""Told (path, pieces done, pieces in all) as an array is copied."""

CACHE_NBYTES = 256 << 20


def convert(
    source: Location,
    target: Location,
    *,
    zarr_format: int | str | None = None,
    chunks: Any = None,
    shards: Any = None,
    compressors: Any = None,
    if_exists: IfExists = "raise",
    verify: bool = False,
    memory: int = CACHE_NBYTES,
    progress: Progress | None = None,
    dry_run: bool = False,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
) -> list[str]:
    """Copy the node at a location, with all below it, to another location, in another form.

    Chunks are copied byte by byte where only the documents differ. Attributes and dimension names are kept. Threads
    copy, or a Dask cluster.

    Args:
        zarr_format, chunks, shards, compressors: what is to be different, as ``create_array`` takes them.
        memory: bytes of decoded values in flight on each thread, unless one chunk or shard to be written has more;
            and of decoded chunks of the source that each process keeps for the blocks that need them too.
        if_exists: see ``IfExists``.
        verify: read both afterwards, and raise StoreError where they differ.
        dry_run: change nothing.
        storage_options: as ``open`` takes them; each location gets those that it knows.
        dask: the address of a Dask scheduler (``tcp://host:8786``), or a ``distributed.Client``: its workers copy and
            compare. They need zarrfs, and must reach both locations.

    Returns a line for each node, saying what was done (or would be).

    Raises NodeExistsError, and what keeps a Dask cluster from it, before anything is written; ZarrError.
    """
    form = Form(zarr_format, chunks, shards, compressors)
    with nullcontext(Threads()) if dask is None else on_cluster(dask) as executor:
        reading, writing = split_options(storage_options, source, target)
        node = open_node(
            source, storage_options=None if reading is None else dict(reading), cache_size=memory
        )
        store, path = open_store(target, mode="a", storage_options=writing)
        task = _Task(form, if_exists, verify, memory, progress, dry_run, executor)
        try:
            return _copy_node(node, store, path, task)
        finally:
            if not isinstance(target, Store | Mapping):
                store.close()


def rechunk(source: Location, target: Location, chunks: Any, **options: Any) -> list[str]:
    """Copy an array or hierarchy with other chunks; options as ``convert``.

    Values are copied in blocks of whole target chunks, as large as ``memory`` allows, towards the chunks of the
    source. A source chunk that spans several blocks is decoded for each of them, unless it is still kept. So planes
    are decoded once to become cubes where as many planes as a cube has fit into ``memory``, else as many times as
    those are larger.
    """
    return convert(source, target, chunks=chunks, **options)


# -- nodes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    """What a copy is to be, and who makes it; as ``convert`` is told."""

    form: Form
    if_exists: IfExists
    verify: bool = False
    memory: int = CACHE_NBYTES
    progress: Progress | None = None
    dry_run: bool = False
    executor: Executor = field(default_factory=Threads)


def _copy_node(node: Array | Group, store: Store, path: str, task: _Task) -> list[str]:
    _check_apart(node, store, path)
    pairs = [(path, node)]
    if isinstance(node, Group):
        pairs += [("/".join(p for p in (path, below) if p), inner) for below, inner in node.walk()]
    if task.if_exists == "raise":
        for place, _ in pairs:
            if detect.read_kind(store, place) is not None:
                raise NodeExistsError(
                    f"{store.url}: there is already something at {place or '/'!r}: give if_exists='replace', 'skip' or "
                    "'resume'"
                )
    if not task.dry_run:
        task.executor.check(node, store)
    if task.if_exists == "replace" and not task.dry_run and _is_of_another_kind(node, store, path):
        with replacing(store, path) as aside:
            return _copy_pairs(pairs, aside, replace(task, if_exists="raise"))
    return _copy_pairs(pairs, store, task)


def _copy_pairs(pairs: list[tuple[str, Array | Group]], store: Store, task: _Task) -> list[str]:
    done = []
    for place, inner in pairs:
        if isinstance(inner, Group):
            done.append(_copy_group(inner, store, place, task))
            continue
        # What is replaced stays until the copy is complete.
        there = (
            task.if_exists == "replace" and not task.dry_run and detect.read_kind(store, place) is not None
        )
        with replacing(store, place) if there else nullcontext(store) as goal:
            done.append(_copy_array(inner, goal, place, task))
            if task.verify and not task.dry_run:
                _verify(inner, goal, place, task)
    return done


def _is_of_another_kind(node: Array | Group, store: Store, path: str) -> bool:
    """Whether a group is to take the place of an array."""
    return isinstance(node, Group) and detect.read_kind(store, path) == "array"


def _check_apart(node: Array | Group, store: Store, path: str) -> None:
    """A copy into itself would never end."""
    old, new = (
        f"{s.url.rstrip('/')}/{p}".rstrip("/") + "/" for s, p in ((node.store, node.path), (store, path))
    )
    if new.startswith(old):
        raise NodeExistsError(f"{store.url}: {node.path or '/'!r} cannot be copied to itself or into itself")


def _copy_group(group: Group, store: Store, path: str, task: _Task) -> str:
    wanted = group.zarr_format if task.form.zarr_format is None else task.form.zarr_format
    wanted = 2 if wanted == 1 else wanted
    if not task.dry_run and detect.read_kind(store, path) is None:
        creation.create_group_node(store, path, wanted, dict(group.attrs), False)
    return f"{path or '/'}: group"


def _copy_array(source: Array, store: Store, path: str, task: _Task) -> str:
    kind = detect.read_kind(store, path)
    if kind is not None and task.if_exists == "skip":
        return f"{path or '/'}: skipped, it is there"
    resume = kind is not None and task.if_exists == "resume"
    spec = same_chunks(source.spec, task.form)
    if spec is not None:
        if not task.dry_run:
            target = _make_alike(spec, store, path, resume)
            _carry_chunks(source, target, resume, task)
        return f"{path or '/'}: chunks copied as they are"
    if not task.dry_run:
        target = _make(source, store, path, task.form, resume)
        _carry_values(source, target, resume, task)
    return f"{path or '/'}: decoded and encoded anew"


def _make_alike(spec: ArraySpec, store: Store, path: str, resume: bool) -> Array:
    cache = ChunkCache(0)
    if resume:
        found = detect.read_node(store, path)
        made = Array(store, path, found, cache, False) if found is not None else None  # type: ignore[arg-type]
        if made is None or made.shape != spec.shape or made.spec.codecs != spec.codecs:
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is no interrupted copy of this array: it differs"
            )
        return made
    detect.check_path(store, path, spec.zarr_format)
    creation.create_ancestors(store, path, spec.zarr_format)
    written = detect.write_node(store, path, spec)
    warn_of_change(store, path, spec.zarr_format)
    return Array(store, path, written, cache, False)


def _make(source: Array, store: Store, path: str, form: Form, resume: bool) -> Array:
    cache = ChunkCache(0)
    last: Exception | None = None
    for options in creation_options(source, form):
        try:
            if not resume:
                return creation.create_array_node(store, path, cache, **options)
            wanted = array_spec(**options)
            detect.check_writable(wanted)
        except (UnsupportedError, MetadataError) as error:
            last = error
            continue
        found = detect.read_node(store, path)
        same = (
            found is not None
            and not hasattr(found, "consolidated")
            and replace(found, document={}, attributes={}) == replace(wanted, document={}, attributes={})
        )
        if same:
            return Array(store, path, found, cache, False)  # type: ignore[arg-type]
        last = MetadataError(f"{store.url}: {path or '/'!r} is no interrupted copy of this array: it differs")
    if last is None:
        raise UnsupportedError(f"{source.name} cannot be written in this form")
    raise last


# -- values ----------------------------------------------------------------------------------------------------


def _workers(*stores: Store) -> int:
    return max(CORES, *(store.concurrency for store in stores))


def _carry_chunks(source: Array, target: Array, resume: bool, task: _Task) -> None:
    """Copy the stored bytes of every chunk."""
    old = source.layout
    wanted = sorted(old.stored_chunks()) if source.store.listable else list(np.ndindex(*old.grid_shape))
    count = _Counter(target.name, len(wanted), task.progress)
    workers = _workers(source.store, target.store)
    task.executor.run(CarryChunk(source, target, resume), wanted, workers, count.more)


def _carry_values(source: Array, target: Array, resume: bool, task: _Task) -> None:
    """Copy values block by block; each chunk is written once, whole."""
    wanted = blocks(target, source, task.memory)
    count = _Counter(target.name, len(wanted), task.progress)
    task.executor.run(CarryBlock(source, target, resume), wanted, CORES, count.more)


def _verify(source: Array, store: Store, path: str, task: _Task) -> None:
    target = Array(store, path, detect.read_node(store, path), ChunkCache(0), True)  # type: ignore[arg-type]
    wanted = blocks(target, source, task.memory)
    count = _Counter(f"{target.name} (verifying)", len(wanted), task.progress)
    task.executor.run(CompareBlock(source, target), wanted, CORES, count.more)


class _Counter:
    """Counts pieces and tells of them."""

    def __init__(self, name: str, total: int, progress: Progress | None) -> None:
        self._name, self._total, self._progress = name, total, progress
        self._done = 0
        self._tell()

    def more(self, count: int) -> None:
        """So many more pieces are done. An integer more or less between threads does not matter for a bar."""
        self._done += count
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._name, self._done, self._total)
