"""The execution of the plan of a copy: nodes are created, chunks or values are copied, and copies are verified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.create import new_nodes
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change, warn_of_changed_members
from zarrfs.engine.hierarchy.staging import replacing
from zarrfs.engine.hierarchy.unfinished import is_unfinished
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, StoreError, ZarrError
from zarrfs.tools.consolidation import consolidate_group
from zarrfs.tools.copying.block_grid import Block, ChunkCoords, Coords
from zarrfs.tools.copying.cells import Cells
from zarrfs.tools.copying.copy_plan import (
    CopyOptions,
    CopyPlan,
    CopyStep,
    group_replaces_array,
    have_equal_fill_values,
)
from zarrfs.tools.copying.copy_tasks import CompareBlock, CopyBlock, CopyChunk
from zarrfs.tools.copying.estimates import estimate_block_copy, estimate_chunk_copy
from zarrfs.tools.copying.planning import copy_blocks
from zarrfs.tools.copying.presence import check_presence, unless_deleted
from zarrfs.tools.copying.progress import ProgressCounter, nbytes_of_blocks, nbytes_of_chunks
from zarrfs.tools.copying.reports import ArrayEstimate
from zarrfs.tools.copying.sampling import Sampling
from zarrfs.tools.copying.stored_keys import have_equal_bytes
from zarrfs.tools.copying.unfinished import mark_complete, mark_existing, marked

__all__ = ["estimate_copy", "execute_copy", "has_same_encoding", "stored_coords", "write_array"]


UNFINISHED_COPY = {"command": "copy"}
"""The attribute of a copy that is not complete."""


def execute_copy(plan: CopyPlan, store: Store, path: str, options: CopyOptions) -> None:
    """Run the steps of a copy. Its top node is marked as unfinished until all are done."""
    if not plan.steps:
        return
    first = plan.steps[0]
    top = first.node
    options.executor.check(top, store)
    if options.if_exists == "replace" and group_replaces_array(top, store, path):
        with replacing(store, path) as staging_store:
            _run_plan(plan, staging_store, options, [])
            _consolidate(plan, staging_store)
    elif first.replaces or (isinstance(top, Array) and first.spec is None):
        _run_plan(plan, store, options, [])  # the existing array stays complete
    else:
        with _marked(first, store) as (marked_first, changed):
            _run_plan(replace(plan, steps=[marked_first, *plan.steps[1:]]), store, options, changed)
        if not is_unfinished(top.attrs):
            mark_complete(store, path)
        # Consolidated metadata of format 2 contain the attributes of their group, and so the mark.
        _consolidate(plan, store)
    _warn_of_changes(plan, store, path)
    # Writing a chunk creates the directory of a deleted array again.
    for step in plan.steps:
        if isinstance(step.spec, ArraySpec):
            check_presence(store, step.path, "copied", "delete what is left, and copy again")


@contextmanager
def _marked(step: CopyStep, store: Store) -> Iterator[tuple[CopyStep, list[str]]]:
    """Mark the top node as unfinished: yield the step that creates it as such, or mark the existing node.

    The caller adds the paths of what it changes to the list that is yielded. If it fails before any change, an existing
    node that was complete still is, and its mark is removed.
    """
    existing = formats.read_node(store, step.path, use_consolidated=False)
    if existing is None:
        yield step if step.spec is None else replace(step, spec=marked(step.spec, UNFINISHED_COPY)), []
        return
    mark_existing(store, step.path, UNFINISHED_COPY)
    changed: list[str] = []
    try:
        yield step, changed
    except BaseException:
        if not changed and not is_unfinished(existing.attributes):
            with suppress(ZarrError):  # the first error is raised
                mark_complete(store, step.path)
        raise


def _warn_of_changes(plan: CopyPlan, store: Store, path: str) -> None:
    """Log a warning for each consolidated group of the destination whose metadata are now out of date: those above the
    copy, and those in it that existed.
    """
    written = [step.spec for step in plan.steps if step.spec is not None]
    if not written:
        return
    zarr_format = written[0].zarr_format
    existing = [step.path for step in plan.steps if isinstance(step.node, Group) and step.spec is None]
    for group in {*formats.consolidating_paths(path, zarr_format), *existing} - {*plan.consolidated}:
        warn_of_changed_members(store, group, zarr_format)


def estimate_copy(plan: CopyPlan, options: CopyOptions, samples: Sampling) -> list[ArrayEstimate]:
    """Return the estimated cost of copying each array. A few tasks are run; they write to ``samples.store``."""
    samples.check(plan.steps[0].node)
    return [
        _estimate(step, step.node, step.spec, options, samples)
        for step in plan.steps
        if isinstance(step.node, Array) and isinstance(step.spec, ArraySpec)
    ]


def _estimate(
    step: CopyStep, source: Array, spec: ArraySpec, options: CopyOptions, samples: Sampling
) -> ArrayEstimate:
    target = _target_array(spec, samples.store, replace(step, resumes=False))
    if step.copies_chunks:
        workers = _workers(source.store, target.store)
        return estimate_chunk_copy(source, target, stored_coords(source), samples, workers)
    blocks = _blocks(source, target, options)
    return estimate_block_copy(source, target, blocks, samples, CORES, cache_nbytes=options.memory)


def _run_plan(plan: CopyPlan, store: Store, options: CopyOptions, changed: list[str]) -> None:
    """Run all steps, and add the paths of the nodes and files to ``changed`` that differ from then on."""
    top = plan.steps[0]
    if top.spec is not None:
        # The groups above all other nodes of the plan are in the plan.
        new_nodes.create_ancestors(store, top.path, top.spec.zarr_format)
    _run_steps(plan.steps, store, options, changed)
    changed += plan.files
    _copy_files(plan, store, options)


def _consolidate(plan: CopyPlan, store: Store) -> None:
    """Write the consolidated metadata of the copies of consolidated groups."""
    for path in plan.consolidated:
        spec = formats.read_node(store, path, use_consolidated=False)
        if isinstance(spec, GroupSpec):
            consolidate_group(Group(store, path, spec, ChunkCache(0), False))


def _run_steps(steps: Sequence[CopyStep], store: Store, options: CopyOptions, changed: list[str]) -> None:
    for step in steps:
        if isinstance(step.node, Group):
            if isinstance(step.spec, GroupSpec) and formats.read_kind(store, step.path) is None:
                changed.append(step.path)
                formats.write_node(store, step.path, step.spec)
            continue
        if step.spec is not None and not step.replaces:
            changed.append(step.path)
        # The existing array is deleted after the copy is complete.
        with (
            replacing(store, step.path) if step.replaces else nullcontext(store) as target_store,
            unless_deleted("copied", step.node),
        ):
            if isinstance(step.spec, ArraySpec):
                target = _target_array(step.spec, target_store, step)
                (_copy_chunks if step.copies_chunks else _copy_values)(
                    step.node, target, step.resumes, options
                )
            if options.verify:
                _verify(step, target_store, options)
        if step.replaces:
            changed.append(step.path)


def _copy_files(plan: CopyPlan, store: Store, options: CopyOptions) -> None:
    """Copy the keys that belong to no node. The values are in memory as a whole, one for each thread."""
    if not plan.files:
        return
    source, path = plan.steps[0].node, plan.steps[0].path
    progress_counter = ProgressCounter("other files", len(plan.files), len(plan.files), options.progress)

    def copy_file(key: str) -> None:
        source_key, target_key = join(source.path, key), join(path, key)
        # A key is stored completely or not at all, so those of an interrupted copy need not be compared.
        if options.if_exists not in ("skip", "resume") or not store.exists(target_key):
            value = source.store.get(source_key)
            if value is None:
                raise StoreError(
                    f"{source.store.url}: {source_key!r} was deleted by another program while it was copied, or "
                    "it is a link whose target is missing"
                )
            store.set(target_key, value)
        if options.verify and not have_equal_bytes(source.store, source_key, store, target_key):
            raise StoreError(f"{store.url}: {target_key!r} differs from the source")
        progress_counter.add(1)

    for_each(copy_file, plan.files, _workers(source.store, store))


def _target_array(spec: ArraySpec, store: Store, step: CopyStep) -> Array:
    """Return the target array: a new one, or the existing one if the copy is resumed."""
    cache, path = ChunkCache(0), step.path
    if step.resumes:
        existing = formats.read_node(store, path)
        if not isinstance(existing, ArraySpec) or not has_same_encoding(existing, spec):
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is not an interrupted copy of this array: its metadata differ"
            )
        return Array(store, path, existing, cache, False)
    formats.check_path(store, path, spec.zarr_format)
    return _write_array(store, path, spec, cache)


def write_array(store: Store, path: str, spec: ArraySpec, cache: ChunkCache) -> Array:
    """Write the metadata of a new array, and of the groups above it that do not exist."""
    new_nodes.create_ancestors(store, path, spec.zarr_format)
    array = _write_array(store, path, spec, cache)
    warn_of_change(store, path, spec.zarr_format)
    return array


def _write_array(store: Store, path: str, spec: ArraySpec, cache: ChunkCache) -> Array:
    return Array(store, path, formats.write_node(store, path, spec), cache, False)


def has_same_encoding(existing: ArraySpec, spec: ArraySpec) -> bool:
    """Return whether an existing array is one that ``spec`` describes, apart from attributes and dimension names.

    A codec of one format can have another class when it is read back from another format.
    """
    return _equal_encoding(existing, spec) or _equal_encoding(existing, _as_stored(spec))


def _as_stored(spec: ArraySpec) -> ArraySpec:
    """Return a spec as it is read from the document that is written for it."""
    store = MemoryStore()
    formats.write_node(store, "", spec)
    stored = formats.read_node(store, "")
    return stored if isinstance(stored, ArraySpec) else spec


def _equal_encoding(existing: ArraySpec, spec: ArraySpec) -> bool:
    return (
        (existing.zarr_format, existing.shape, existing.data_type.name, existing.chunk_grid, existing.codecs)
        == (spec.zarr_format, spec.shape, spec.data_type.name, spec.chunk_grid, spec.codecs)
    ) and repr(existing.fill_value) == repr(spec.fill_value)


def _workers(*stores: Store) -> int:
    return max(CORES, *(store.concurrency for store in stores))


def _copy_chunks(source: Array, target: Array, resume: bool, options: CopyOptions) -> None:
    """Copy the encoded bytes of every chunk."""
    coords = stored_coords(source)
    progress_counter = ProgressCounter(
        target.name, len(coords), nbytes_of_chunks(source, len(coords)), options.progress
    )
    workers = _workers(source.store, target.store)
    options.executor.run(
        CopyChunk(source, target, resume), coords, workers, progress_counter.add, progress_counter.item_nbytes
    )


def stored_coords(source: Array) -> Sequence[Coords]:
    """Return the coordinates of the stored chunks, or of all chunks if the store cannot list."""
    storage = source.storage
    if not source.store.listable:
        return ChunkCoords(storage.grid_shape)
    return Cells(storage.grid_shape, storage.stored_chunks())


def _copy_values(source: Array, target: Array, resume: bool, options: CopyOptions) -> None:
    """Copy values block by block. Each target chunk is written once."""
    blocks = _blocks(source, target, options)
    progress_counter = ProgressCounter(
        target.name, len(blocks), nbytes_of_blocks(target, blocks), options.progress
    )
    options.executor.run(
        CopyBlock(source, target, resume), blocks, CORES, progress_counter.add, progress_counter.item_nbytes
    )


def _blocks(source: Array, target: Array, options: CopyOptions) -> Sequence[Block]:
    """Return the blocks to read. Blocks without stored chunks are omitted if both arrays have the same fill value."""
    include_missing = not have_equal_fill_values(source.spec, target.spec)
    return copy_blocks(target, source, options.memory, include_missing=include_missing)


def _verify(step: CopyStep, store: Store, options: CopyOptions) -> None:
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
    progress_counter = ProgressCounter(
        f"{target.name} (verifying)", len(blocks), nbytes_of_blocks(target, blocks), options.progress
    )
    options.executor.run(
        CompareBlock(source, target), blocks, CORES, progress_counter.add, progress_counter.item_nbytes
    )
