"""Copying arrays and hierarchies between stores, formats and chunk shapes. Copies can be resumed and verified."""

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
from zarrfs.tools.copying.conventions import convert_conventions, effective_fill_value
from zarrfs.tools.copying.copy_tasks import CompareBlock, CopyBlock, CopyChunk
from zarrfs.tools.copying.dask_cluster import connect_cluster
from zarrfs.tools.copying.destinations import open_for_inspection
from zarrfs.tools.copying.executors import Executor, Threads
from zarrfs.tools.copying.planning import (
    TargetOptions,
    copy_blocks,
    describe_losses,
    spec_for_chunk_copy,
    spec_for_reencoding,
)
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.walking import readable_nodes

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["IfExists", "Progress", "convert", "rechunk"]

IfExists = Literal["raise", "replace", "skip", "resume"]
"""What to do if a node exists at the destination: raise an error, replace it, keep it, or resume an interrupted copy of
the same array. On resume, chunks that exist are not copied again.
"""

Progress = Callable[[str, int, int], object]
"""Called with (path, tasks done, tasks in total) while an array is copied."""

CACHE_NBYTES = 256 << 20

MAX_NAMED_NODES = 10
"""The maximum number of nodes that an error names."""


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
    """Copy the node at a location, and all nodes below it, to another location.

    Encoded chunks are copied unchanged if only the metadata documents differ. Attributes, dimension names and missing
    values are stored as xarray expects them in the target format. Shards are retained if new chunks divide them.
    Threads of this process copy the chunks, or the workers of a Dask cluster.

    Args:
        zarr_format, chunks, shards, compressors: properties of the copy that differ from the source, as for
            ``create_array``.
        memory: the maximum number of bytes of decoded values per thread, unless a single chunk or shard of the target
            is larger; also the size of the cache for decoded source chunks in each process.
        if_exists: see ``IfExists``.
        verify: read source and target after the copy, and raise StoreError if they differ.
        dry_run: write nothing.
        skip_broken: skip members that cannot be read or that the format cannot represent. They are in ``skipped`` of
            the result.
        allow_loss: replace a data type that the format does not have with the NumPy data type of its values.
        keep_ngff: leave OME-NGFF metadata unchanged. By default version 0.4 is converted to 0.5 in format 3, and 0.5
            to 0.4 in format 2.
        storage_options: as for ``open``. Each location gets the options that it supports.
        dask: the address of a Dask scheduler (``tcp://host:8786``) or a ``distributed.Client``. Its workers copy and
            compare. They need zarrfs and access to both locations.

    Returns one line for each node, which states how it was copied and which properties were lost.

    Raises before anything is written: NodeExistsError; IncompleteCopyError for members that cannot be read;
    UnsupportedError for nodes that the format cannot represent; MetadataError for options that do not fit an array;
    StoreError or LocationError if the Dask cluster cannot be used. Raises another ZarrError for failures while chunks
    are copied.
    """
    form = TargetOptions(zarr_format, chunks, shards, compressors, allow_loss)
    with nullcontext(Threads()) if dask is None else connect_cluster(dask) as executor:
        reading, writing = split_options(storage_options, source, target)
        node = open_node(
            source, storage_options=None if reading is None else dict(reading), cache_size=memory
        )
        options = _CopyOptions(
            form, if_exists, verify, memory, progress, dry_run, skip_broken, keep_ngff, executor
        )
        report = CopyReport()
        with open_for_inspection(target, writing) as (store, path):
            plan = _plan(node, store, path, options, report)
        if dry_run:
            return report
        store, path = open_store(target, mode="a", storage_options=writing)
        try:
            _execute(plan, store, path, options)
        finally:
            if not isinstance(target, Store | Mapping | StoredNode):
                store.close()
    return report


def rechunk(source: Location, target: Location, chunks: Any, **options: Any) -> CopyReport:
    """Copy an array or hierarchy with another chunk shape. Options are those of ``convert``.

    Values are copied in blocks of whole target chunks. Blocks are extended towards the source chunk shape as far as
    ``memory`` allows. A source chunk that spans several blocks is decoded once for each of them, unless it is still
    cached. Example: planes that are rechunked to cubes are decoded once if the planes of one cube fit into
    ``memory``, otherwise about (size of these planes / ``memory``) times.
    """
    return convert(source, target, chunks=chunks, **options)


# -- nodes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CopyOptions:
    """The options of ``convert``, and the executor."""

    form: TargetOptions
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
        path: the path of the copy in its store.
            node: the source.
            spec: the spec of the copy; None if the existing node is kept.
            replaces: whether an existing node is replaced.
            resumes: whether an interrupted copy is resumed.
            copies_chunks: whether encoded chunks are copied unchanged.
            lossy: whether the copy has another data type.
    """

    path: str
    node: Array | Group
    spec: NodeSpec | None
    replaces: bool = False
    resumes: bool = False
    copies_chunks: bool = False
    lossy: bool = False


def _plan(
    node: Array | Group, store: Store, path: str, options: _CopyOptions, report: CopyReport
) -> list[_Step]:
    """Return the steps of a copy to ``path`` of a store, and add a line for each to the report. Writes nothing.

    Raises the errors of ``convert`` that are raised before anything is written.
    """
    _check_not_nested(node, store, path)
    pairs = [(path, node)]
    if isinstance(node, Group):
        members = readable_nodes(node, options.skip_broken, report)
        pairs += [("/".join(p for p in (path, below) if p), member) for below, member in members]
    if options.if_exists == "raise":
        _check_no_nodes(store, [path_in_target for path_in_target, _ in pairs])
    _check_compressors(options.form)
    replaces_all = options.if_exists == "replace" and _group_replaces_array(node, store, path)
    steps: list[_Step] = []
    rejected: dict[str, str] = {}
    axes: dict[str, tuple[str, ...]] = {}
    skipped_paths: list[str] = []
    for path_in_target, member in pairs:
        if any(path_in_target.startswith(f"{skipped}/") for skipped in skipped_paths):
            continue  # it is below a node that is skipped and reported
        kind = None if replaces_all else formats.read_kind(store, path_in_target)
        try:
            formats.check_path(store, path_in_target, options.form.format_of(member.zarr_format))
            if isinstance(member, Group):
                step, line = _group_step(member, path_in_target, kind, options, axes)
            else:
                step, line = _array_step(member, path_in_target, kind, options, axes.get(path_in_target))
        except (UnsupportedError, KeyNameError) as error:
            rejected[path_in_target or "/"] = str(error)
            skipped_paths.append(path_in_target)
            continue
        except MetadataError as error:
            raise MetadataError(f"{member.name}: {error}; nothing was written") from error
        steps.append(step)
        report.append(f"{path_in_target or '/'}: {line}")
    if rejected and not (options.skip_broken and path not in rejected and (path or "/") not in rejected):
        raise _rejection_error(node, rejected)
    for path_in_target, reason in rejected.items():
        report.skipped[path_in_target] = reason
        report.append(f"{path_in_target}: skipped: {reason}")
    return steps


def _rejection_error(node: Array | Group, rejected: Mapping[str, str]) -> UnsupportedError:
    """Return the error for nodes that the destination cannot represent."""
    reasons = "; ".join(
        f"{rejected_path}: {reason}" for rejected_path, reason in list(rejected.items())[:MAX_NAMED_NODES]
    )
    more = f"; and {len(rejected) - MAX_NAMED_NODES} more" if len(rejected) > MAX_NAMED_NODES else ""
    advice = f". Skip such members with {option('skip_broken')}" if isinstance(node, Group) else ""
    return UnsupportedError(
        f"{node.store.url}: these nodes cannot be written, and nothing was written: {reasons}{more}{advice}"
    )


def _check_no_nodes(store: Store, paths_in_target: Sequence[str]) -> None:
    """Raise NodeExistsError if a node exists at one of the paths."""
    for path_in_target in paths_in_target:
        if formats.read_kind(store, path_in_target) is not None:
            raise NodeExistsError(
                f"{store.url}: a node exists at {path_in_target or '/'!r}; use {option('if_exists', 'replace')}, "
                f"{option('if_exists', 'skip')} or {option('if_exists', 'resume')}"
            )


def _check_compressors(form: TargetOptions) -> None:
    """Raise MetadataError for compressors that are invalid for every array."""
    if form.compressors is not None and form.compressors != "none":
        array_spec(shape=(1,), dtype="u1", chunks=(1,), compressors=form.compressors, zarr_format=3)


def _group_step(
    group: Group,
    path_in_target: str,
    kind: str | None,
    options: _CopyOptions,
    axes: dict[str, tuple[str, ...]],
) -> tuple[_Step, str]:
    target_format = options.form.format_of(group.zarr_format)
    change = _ngff_change(group, target_format, options)
    axes.update(
        {"/".join(p for p in (path_in_target, below) if p): names for below, names in change.axes.items()}
    )
    if kind is not None:
        return _Step(path_in_target, group, None), "group"
    spec = GroupSpec(target_format, change.attributes)
    formats.check_writable(spec)
    return _Step(path_in_target, group, spec), f"group; {change.note}" if change.note else "group"


def _ngff_change(group: Group, target_format: int | str, options: _CopyOptions) -> VersionChange:
    if options.keep_ngff or target_format == formats.writable_format(group.zarr_format):
        return VersionChange(dict(group.attrs))
    return for_zarr_format(group.attrs, group.basename, target_format)


def _array_step(
    source: Array, path_in_target: str, kind: str | None, options: _CopyOptions, axes: tuple[str, ...] | None
) -> tuple[_Step, str]:
    if kind is not None and options.if_exists == "skip":
        return _Step(path_in_target, source, None), "skipped: it exists"
    replaces = kind is not None and options.if_exists == "replace"
    resumes = kind is not None and options.if_exists == "resume"
    target_format = options.form.format_of(source.zarr_format)
    spec = convert_conventions(source.spec, target_format, lambda: _all_stored(source))
    if (
        formats.features(target_format).dimension_names
        and axes is not None
        and spec.dimension_names is None
        and len(axes) == len(spec.shape)
    ):
        spec = replace(spec, dimension_names=axes)
    same_chunks_spec = (
        spec_for_chunk_copy(spec, options.form) if _missing_chunks_read_equal(source, spec) else None
    )
    if same_chunks_spec is not None:
        return _Step(
            path_in_target, source, same_chunks_spec, replaces, resumes, True
        ), "chunks copied unchanged"
    target_spec = spec_for_reencoding(source, spec, options.form)
    if not options.form.allow_loss and target_spec.data_type.name != source.spec.data_type.name:
        raise UnsupportedError(
            f"format {target_format} does not support data type {source.spec.data_type.name}; "
            f"{option('allow_loss')} converts it to {target_spec.data_type.name}"
        )
    losses = describe_losses(source, target_spec, options.form)
    lossy = target_spec.data_type.name != source.spec.data_type.name
    line = "; ".join(["re-encoded", *losses])
    return _Step(path_in_target, source, target_spec, replaces, resumes, False, lossy), line


def _all_stored(array: Array) -> bool:
    storage = array.storage
    return array.store.listable and sum(1 for _ in storage.stored_chunks()) == prod(storage.grid_shape)


def _missing_chunks_read_equal(source: Array, spec: ArraySpec) -> bool:
    """Return whether missing chunks read the same in a copy with the fill value of ``spec``, or none are missing."""
    return _have_equal_fill_values(source.spec, spec) or _all_stored(source)


def _have_equal_fill_values(one: ArraySpec, other: ArraySpec) -> bool:
    # The repr of NaN equals that of NaN, and the reprs of 0.0 and -0.0 differ.
    return repr(effective_fill_value(one)) == repr(effective_fill_value(other))


def _group_replaces_array(node: Array | Group, store: Store, path: str) -> bool:
    """Return whether a group would replace an array."""
    return isinstance(node, Group) and formats.read_kind(store, path) == "array"


def _check_not_nested(node: Array | Group, store: Store, path: str) -> None:
    """Raise NodeExistsError if the target is the source or below it: such a copy would not terminate."""
    source_url, target_url = (
        f"{s.url.rstrip('/')}/{p}".rstrip("/") + "/" for s, p in ((node.store, node.path), (store, path))
    )
    if target_url.startswith(source_url):
        raise NodeExistsError(f"{store.url}: {node.path or '/'!r} cannot be copied to itself or into itself")


# -- writing ---------------------------------------------------------------------------------------------------


def _execute(plan: list[_Step], store: Store, path: str, options: _CopyOptions) -> None:
    top = plan[0].node
    options.executor.check(top, store)
    if options.if_exists == "replace" and _group_replaces_array(top, store, path):
        with replacing(store, path) as staging_store:
            _run_steps(plan, staging_store, options)
    else:
        _run_steps(plan, store, options)


def _run_steps(plan: list[_Step], store: Store, options: _CopyOptions) -> None:
    for step in plan:
        if isinstance(step.node, Group):
            if isinstance(step.spec, GroupSpec) and formats.read_kind(store, step.path) is None:
                creation.create_group_node(
                    store, step.path, step.spec.zarr_format, step.spec.attributes, False
                )
            continue
        # The existing array is deleted after the copy is complete.
        with replacing(store, step.path) if step.replaces else nullcontext(store) as target_store:
            if isinstance(step.spec, ArraySpec):
                target = _target_array(step.spec, target_store, step)
                (_copy_chunks if step.copies_chunks else _copy_values)(
                    step.node, target, step.resumes, options
                )
            if options.verify:
                _verify(step, target_store, options)


def _target_array(spec: ArraySpec, store: Store, step: _Step) -> Array:
    """Return the target array: a new one, or the existing one if the copy is resumed."""
    cache, path = ChunkCache(0), step.path
    if step.resumes:
        existing = formats.read_node(store, path)
        if not isinstance(existing, ArraySpec) or not _is_copy(existing, spec):
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is not an interrupted copy of this array: its metadata differ"
            )
        return Array(store, path, existing, cache, False)
    formats.check_path(store, path, spec.zarr_format)
    creation.create_ancestors(store, path, spec.zarr_format)
    written = formats.write_node(store, path, spec)
    warn_of_change(store, path, spec.zarr_format)
    return Array(store, path, written, cache, False)


def _is_copy(existing: ArraySpec, spec: ArraySpec) -> bool:
    return (
        (existing.zarr_format, existing.shape, existing.data_type.name, existing.chunk_grid, existing.codecs)
        == (spec.zarr_format, spec.shape, spec.data_type.name, spec.chunk_grid, spec.codecs)
    ) and repr(existing.fill_value) == repr(spec.fill_value)


# -- values ----------------------------------------------------------------------------------------------------


def _workers(*stores: Store) -> int:
    return max(CORES, *(store.concurrency for store in stores))


def _copy_chunks(source: Array, target: Array, resume: bool, options: _CopyOptions) -> None:
    """Copy the encoded bytes of every chunk."""
    storage = source.storage
    coords: Sequence[Coords] = (
        sorted(storage.stored_chunks()) if source.store.listable else ChunkCoords(storage.grid_shape)
    )
    progress_counter = _ProgressCounter(target.name, len(coords), options.progress)
    workers = _workers(source.store, target.store)
    options.executor.run(CopyChunk(source, target, resume), coords, workers, progress_counter.add)


def _copy_values(source: Array, target: Array, resume: bool, options: _CopyOptions) -> None:
    """Copy values block by block. Each target chunk is written once."""
    blocks = _blocks(source, target, options)
    progress_counter = _ProgressCounter(target.name, len(blocks), options.progress)
    options.executor.run(CopyBlock(source, target, resume), blocks, CORES, progress_counter.add)


def _blocks(source: Array, target: Array, options: _CopyOptions) -> Sequence[Block]:
    """Return the blocks to read. Blocks without stored chunks are omitted if both arrays have the same fill value."""
    include_missing = not _have_equal_fill_values(source.spec, target.spec)
    return copy_blocks(target, source, options.memory, include_missing=include_missing)


def _verify(step: _Step, store: Store, options: _CopyOptions) -> None:
    source, path = step.node, step.path
    existing = formats.read_node(store, path)
    if not isinstance(source, Array) or not isinstance(existing, ArraySpec):
        raise StoreError(f"{store.url}: {path or '/'!r} is not an array, but its source is")
    for property_name, expected, actual in (
        ("shape", source.shape, existing.shape),
        ("data type", source.spec.data_type.name, existing.data_type.name),
    ):
        if expected != actual and not (property_name == "data type" and step.lossy):
            raise StoreError(
                f"{store.url}: {path or '/'!r} differs from the source: "
                f"found {property_name} {actual}, expected {expected}"
            )
    target = Array(store, path, existing, ChunkCache(0), True)
    blocks = _blocks(source, target, options)
    progress_counter = _ProgressCounter(f"{target.name} (verifying)", len(blocks), options.progress)
    options.executor.run(CompareBlock(source, target), blocks, CORES, progress_counter.add)


class _ProgressCounter:
    """Counts completed tasks and reports progress."""

    def __init__(self, name: str, total: int, progress: Progress | None) -> None:
        self._name, self._total, self._progress = name, total, progress
        self._done = 0
        self._report()

    def add(self, count: int) -> None:
        """Report ``count`` more tasks as done. Not locked: a lost update only makes a progress bar slightly wrong."""
        self._done += count
        self._report()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._name, self._done, self._total)
