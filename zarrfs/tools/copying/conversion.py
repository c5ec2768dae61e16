"""Copying arrays and hierarchies: between stores, formats and chunk shapes. Resumable, verifiable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.creation.array_spec import array_spec
from zarrfs.engine.formats import api as formats
from zarrfs.engine.locations import open_store, split_options
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.hierarchy import replacing
from zarrfs.engine.nodes.node import StoredNode
from zarrfs.engine.open import Location
from zarrfs.engine.open import open as open_node
from zarrfs.engine.parallel import CORES
from zarrfs.engine.stores.base import Store
from zarrfs.errors import KeyNameError, MetadataError, NodeExistsError, StoreError, UnsupportedError
from zarrfs.ngff.versions import VersionChange, for_zarr_format
from zarrfs.tools.copying.advice import option
from zarrfs.tools.copying.block_grid import Block, ChunkCoords, Coords
from zarrfs.tools.copying.conventions import carried, reads_as
from zarrfs.tools.copying.copy_tasks import CompareBlock, CopyBlock, CopyChunk
from zarrfs.tools.copying.dask_cluster import on_cluster
from zarrfs.tools.copying.destinations import as_it_is
from zarrfs.tools.copying.executors import Executor, Threads
from zarrfs.tools.copying.planning import Form, blocks, losses, new_spec, same_chunks
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.walking import readable_nodes

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

MAX_REFUSED = 10
"""How many nodes an error names that the destination cannot hold."""


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
    skip_broken: bool = False,
    allow_loss: bool = False,
    keep_ngff: bool = False,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
) -> CopyReport:
    """Copy the node at a location, with all below it, to another location, in another form.

    Chunks are copied byte by byte where only the documents differ. Attributes, dimension names and missing values are
    kept, each where xarray looks for it in that format. Shards are kept with other chunks if these fit into them.
    Threads copy, or a Dask cluster.

    Args:
        zarr_format, chunks, shards, compressors: what is to be different, as ``create_array`` takes them.
        memory: bytes of decoded values in flight on each thread, unless one chunk or shard to be written has more;
            and of decoded chunks of the source that each process keeps for the blocks that need them too.
        if_exists: see ``IfExists``.
        verify: read both afterwards, and raise StoreError where they differ.
        dry_run: change nothing.
        skip_broken: leave out members that cannot be read, or that the format cannot hold; they are in ``missing`` of
            the result.
        allow_loss: where the format does not have a data type, take the one that NumPy has for its values.
        keep_ngff: leave OME-NGFF metadata as they are. Otherwise version 0.4 becomes 0.5 in format 3, and 0.5 becomes
            0.4 in format 2.
        storage_options: as ``open`` takes them; each location gets those that it knows.
        dask: the address of a Dask scheduler (``tcp://host:8786``), or a ``distributed.Client``: its workers copy and
            compare. They need zarrfs, and must reach both locations.

    Returns a line for each node, saying what was done (or would be), and what of it was not kept.

    Raises before anything is written: NodeExistsError; IncompleteCopyError for members that cannot be read;
    UnsupportedError for those that the format cannot hold; MetadataError for options that do not fit an array; what
    keeps a Dask cluster from it. Raises another ZarrError for what goes wrong while chunks are copied.
    """
    form = Form(zarr_format, chunks, shards, compressors, allow_loss)
    with nullcontext(Threads()) if dask is None else on_cluster(dask) as executor:
        reading, writing = split_options(storage_options, source, target)
        node = open_node(
            source, storage_options=None if reading is None else dict(reading), cache_size=memory
        )
        task = _Task(form, if_exists, verify, memory, progress, dry_run, skip_broken, keep_ngff, executor)
        report = CopyReport()
        with as_it_is(target, writing) as (store, path):
            plan = _plan(node, store, path, task, report)
        if dry_run:
            return report
        store, path = open_store(target, mode="a", storage_options=writing)
        try:
            _execute(plan, store, path, task)
        finally:
            if not isinstance(target, Store | Mapping | StoredNode):
                store.close()
    return report


def rechunk(source: Location, target: Location, chunks: Any, **options: Any) -> CopyReport:
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
    skip_broken: bool = False
    keep_ngff: bool = False
    executor: Executor = field(default_factory=Threads)


@dataclass(frozen=True)
class _Step:
    """One node of a copy.

    Attributes:
        path: where the copy is in its store.
        node: the source.
        spec: of the copy; None for a node that is there and stays.
        replaces: whether there is a node that is to be replaced.
        resumes: whether there is a node to go on with.
        alike: whether chunks are copied as they are.
        lossy: whether the copy has another data type.
    """

    path: str
    node: Array | Group
    spec: NodeSpec | None
    replaces: bool = False
    resumes: bool = False
    equivalent_specs: bool = False
    lossy: bool = False


def _plan(node: Array | Group, store: Store, path: str, task: _Task, report: CopyReport) -> list[_Step]:
    """Return the steps of a copy to ``path`` of a store, and put a line for each into the report. Writes nothing.

    Raises what keeps the copy from being made.
    """
    _check_apart(node, store, path)
    pairs = [(path, node)]
    if isinstance(node, Group):
        found = readable_nodes(node, task.skip_broken, report)
        pairs += [("/".join(p for p in (path, below) if p), inner) for below, inner in found]
    if task.if_exists == "raise":
        _check_room(store, [place for place, _ in pairs])
    _check_compressors(task.form)
    replaces_all = task.if_exists == "replace" and _is_of_another_kind(node, store, path)
    steps: list[_Step] = []
    refused: dict[str, str] = {}
    axes: dict[str, tuple[str, ...]] = {}
    gone: list[str] = []
    for place, inner in pairs:
        if any(place.startswith(f"{above}/") for above in gone):
            continue  # it is below what is left out, and named with it
        kind = None if replaces_all else formats.read_kind(store, place)
        try:
            formats.check_path(store, place, task.form.format_of(inner.zarr_format))
            if isinstance(inner, Group):
                step, line = _group_step(inner, place, kind, task, axes)
            else:
                step, line = _array_step(inner, place, kind, task, axes.get(place))
        except (UnsupportedError, KeyNameError) as error:
            refused[place or "/"] = str(error)
            gone.append(place)
            continue
        except MetadataError as error:
            raise MetadataError(f"{inner.name}: {error}; nothing was written") from error
        steps.append(step)
        report.append(f"{place or '/'}: {line}")
    if refused and not (task.skip_broken and path not in refused and (path or "/") not in refused):
        raise _refusal(node, refused)
    for place, reason in refused.items():
        report.missing[place] = reason
        report.append(f"{place}: left out: {reason}")
    return steps


def _refusal(node: Array | Group, refused: Mapping[str, str]) -> UnsupportedError:
    """Make the error for nodes that the destination cannot hold."""
    reasons = "; ".join(f"{place}: {reason}" for place, reason in list(refused.items())[:MAX_REFUSED])
    more = f"; and {len(refused) - MAX_REFUSED} more" if len(refused) > MAX_REFUSED else ""
    advice = f". Leave such members out with {option('skip_broken')}" if isinstance(node, Group) else ""
    return UnsupportedError(
        f"{node.store.url}: this cannot be written, and nothing was: {reasons}{more}{advice}"
    )


def _check_room(store: Store, places: Sequence[str]) -> None:
    """Raise NodeExistsError if there is a node at one of the paths."""
    for place in places:
        if formats.read_kind(store, place) is not None:
            raise NodeExistsError(
                f"{store.url}: there is already something at {place or '/'!r}: give {option('if_exists', 'replace')}, "
                f"{option('if_exists', 'skip')} or {option('if_exists', 'resume')}"
            )


def _check_compressors(form: Form) -> None:
    """Raise MetadataError for compressors that no array can have."""
    if form.compressors is not None and form.compressors != "none":
        array_spec(shape=(1,), dtype="u1", chunks=(1,), compressors=form.compressors, zarr_format=3)


def _group_step(
    group: Group, place: str, kind: str | None, task: _Task, axes: dict[str, tuple[str, ...]]
) -> tuple[_Step, str]:
    wanted = task.form.format_of(group.zarr_format)
    change = _ngff_change(group, wanted, task)
    axes.update({"/".join(p for p in (place, below) if p): names for below, names in change.axes.items()})
    if kind is not None:
        return _Step(place, group, None), "group"
    spec = GroupSpec(wanted, change.attributes)
    formats.check_writable(spec)
    return _Step(place, group, spec), f"group; {change.note}" if change.note else "group"


def _ngff_change(group: Group, wanted: int | str, task: _Task) -> VersionChange:
    if task.keep_ngff or wanted == group.zarr_format or (group.zarr_format == 1 and wanted == 2):
        return VersionChange(dict(group.attrs))
    return for_zarr_format(group.attrs, group.basename, wanted)


def _array_step(
    source: Array, place: str, kind: str | None, task: _Task, axes: tuple[str, ...] | None
) -> tuple[_Step, str]:
    if kind is not None and task.if_exists == "skip":
        return _Step(place, source, None), "skipped, it is there"
    replaces = kind is not None and task.if_exists == "replace"
    resumes = kind is not None and task.if_exists == "resume"
    wanted = task.form.format_of(source.zarr_format)
    spec = carried(source.spec, wanted, lambda: _all_stored(source))
    if wanted == 3 and axes is not None and spec.dimension_names is None and len(axes) == len(spec.shape):
        spec = replace(spec, dimension_names=axes)
    equivalent_specs = same_chunks(spec, task.form) if _absent_stay(source, spec) else None
    if equivalent_specs is not None:
        return _Step(place, source, equivalent_specs, replaces, resumes, True), "chunks copied as they are"
    made = new_spec(source, spec, task.form)
    if not task.form.allow_loss and made.data_type.name != source.spec.data_type.name:
        raise UnsupportedError(
            f"format {wanted} has no data type {source.spec.data_type.name}; {option('allow_loss')} makes it "
            f"{made.data_type.name}"
        )
    lost = losses(source, made, task.form)
    lossy = made.data_type.name != source.spec.data_type.name
    line = "; ".join(["decoded and encoded anew", *lost])
    return _Step(place, source, made, replaces, resumes, False, lossy), line


def _all_stored(array: Array) -> bool:
    layout = array.storage
    return array.store.listable and sum(1 for _ in layout.stored_chunks()) == prod(layout.grid_shape)


def _absent_stay(source: Array, spec: ArraySpec) -> bool:
    """Whether absent chunks read the same in a copy with the fill value of ``spec``, or there are none."""
    return _reads_alike(source.spec, spec) or _all_stored(source)


def _reads_alike(one: ArraySpec, other: ArraySpec) -> bool:
    # As text, in which NaN is the same as NaN, and -0.0 is not 0.0.
    return repr(reads_as(one)) == repr(reads_as(other))


def _is_of_another_kind(node: Array | Group, store: Store, path: str) -> bool:
    """Whether a group is to take the place of an array."""
    return isinstance(node, Group) and formats.read_kind(store, path) == "array"


def _check_apart(node: Array | Group, store: Store, path: str) -> None:
    """A copy into itself would never end."""
    old, new = (
        f"{s.url.rstrip('/')}/{p}".rstrip("/") + "/" for s, p in ((node.store, node.path), (store, path))
    )
    if new.startswith(old):
        raise NodeExistsError(f"{store.url}: {node.path or '/'!r} cannot be copied to itself or into itself")


# -- writing ---------------------------------------------------------------------------------------------------


def _execute(plan: list[_Step], store: Store, path: str, task: _Task) -> None:
    top = plan[0].node
    task.executor.check(top, store)
    if task.if_exists == "replace" and _is_of_another_kind(top, store, path):
        with replacing(store, path) as aside:
            _take(plan, aside, task)
    else:
        _take(plan, store, task)


def _take(plan: list[_Step], store: Store, task: _Task) -> None:
    for step in plan:
        if isinstance(step.node, Group):
            if isinstance(step.spec, GroupSpec) and formats.read_kind(store, step.path) is None:
                creation.create_group_node(
                    store, step.path, step.spec.zarr_format, step.spec.attributes, False
                )
            continue
        # What is replaced stays until the copy is complete.
        with replacing(store, step.path) if step.replaces else nullcontext(store) as goal:
            if isinstance(step.spec, ArraySpec):
                target = _made(step.spec, goal, step)
                (_copy_chunks if step.equivalent_specs else _copy_values)(
                    step.node, target, step.resumes, task
                )
            if task.verify:
                _verify(step, goal, task)


def _made(spec: ArraySpec, store: Store, step: _Step) -> Array:
    """Return the array to copy to: a new one, or the one to go on with."""
    cache, path = ChunkCache(0), step.path
    if step.resumes:
        found = formats.read_node(store, path)
        if not isinstance(found, ArraySpec) or not _is_copy(found, spec):
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is no interrupted copy of this array: it differs"
            )
        return Array(store, path, found, cache, False)
    formats.check_path(store, path, spec.zarr_format)
    creation.create_ancestors(store, path, spec.zarr_format)
    written = formats.write_node(store, path, spec)
    warn_of_change(store, path, spec.zarr_format)
    return Array(store, path, written, cache, False)


def _is_copy(found: ArraySpec, spec: ArraySpec) -> bool:
    return (
        (found.zarr_format, found.shape, found.data_type.name, found.chunk_grid, found.codecs)
        == (spec.zarr_format, spec.shape, spec.data_type.name, spec.chunk_grid, spec.codecs)
    ) and repr(found.fill_value) == repr(spec.fill_value)


# -- values ----------------------------------------------------------------------------------------------------


def _workers(*stores: Store) -> int:
    return max(CORES, *(store.concurrency for store in stores))


def _copy_chunks(source: Array, target: Array, resume: bool, task: _Task) -> None:
    """Copy the stored bytes of every chunk."""
    old = source.storage
    wanted: Sequence[Coords] = (
        sorted(old.stored_chunks()) if source.store.listable else ChunkCoords(old.grid_shape)
    )
    count = _Counter(target.name, len(wanted), task.progress)
    workers = _workers(source.store, target.store)
    task.executor.run(CopyChunk(source, target, resume), wanted, workers, count.more)


def _copy_values(source: Array, target: Array, resume: bool, task: _Task) -> None:
    """Copy values block by block; each chunk is written once, whole."""
    wanted = _blocks(source, target, task)
    count = _Counter(target.name, len(wanted), task.progress)
    task.executor.run(CopyBlock(source, target, resume), wanted, CORES, count.more)


def _blocks(source: Array, target: Array, task: _Task) -> Sequence[Block]:
    """Return the blocks that have to be looked at: where nothing is stored both read as the fill value."""
    return blocks(target, source, task.memory, everything=not _reads_alike(source.spec, target.spec))


def _verify(step: _Step, store: Store, task: _Task) -> None:
    source, path = step.node, step.path
    found = formats.read_node(store, path)
    if not isinstance(source, Array) or not isinstance(found, ArraySpec):
        raise StoreError(f"{store.url}: {path or '/'!r} is not an array, its source is")
    for what, one, other in (
        ("shape", source.shape, found.shape),
        ("data type", source.spec.data_type.name, found.data_type.name),
    ):
        if one != other and not (what == "data type" and step.lossy):
            raise StoreError(
                f"{store.url}: {path or '/'!r} differs from the source: {what} {other}, not {one}"
            )
    target = Array(store, path, found, ChunkCache(0), True)
    wanted = _blocks(source, target, task)
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
