"""The execution of the plan of a copy: nodes are created, chunks or values are copied, and copies are verified."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.creation import new_nodes
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.nodes.staging import replacing
from zarrfs.engine.nodes.unfinished import is_unfinished
from zarrfs.engine.parallel import CORES
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, StoreError
from zarrfs.tools.copying.block_grid import Block, ChunkCoords, Coords
from zarrfs.tools.copying.copy_plan import CopyOptions, CopyStep, group_replaces_array, have_equal_fill_values
from zarrfs.tools.copying.copy_tasks import CompareBlock, CopyBlock, CopyChunk
from zarrfs.tools.copying.estimates import estimate_block_copy, estimate_chunk_copy
from zarrfs.tools.copying.planning import copy_blocks
from zarrfs.tools.copying.presence import check_presence, unless_deleted
from zarrfs.tools.copying.progress import ProgressCounter, nbytes_of_blocks, nbytes_of_chunks
from zarrfs.tools.copying.reports import ArrayEstimate
from zarrfs.tools.copying.sampling import Sampling
from zarrfs.tools.copying.unfinished import mark_complete, mark_existing, marked

__all__ = ["estimate_copy", "execute_copy", "has_same_encoding", "stored_coords", "write_array"]


UNFINISHED_COPY = {"command": "copy"}
"""The attribute of a copy that is not complete."""


def execute_copy(plan: list[CopyStep], store: Store, path: str, options: CopyOptions) -> None:
    """Run the steps of a copy. Its top node is marked as unfinished until all are done."""
    top = plan[0].node
    options.executor.check(top, store)
    if options.if_exists == "replace" and group_replaces_array(top, store, path):
        with replacing(store, path) as staging_store:
            _run_steps(plan, staging_store, options)
    elif plan[0].replaces or (isinstance(top, Array) and plan[0].spec is None):
        _run_steps(plan, store, options)  # the existing array stays complete
    else:
        _run_steps([_marked(plan[0], store), *plan[1:]], store, options)
        if not is_unfinished(top.attrs):
            mark_complete(store, path)
    # Writing a chunk creates the directory of a deleted array again.
    for step in plan:
        if isinstance(step.spec, ArraySpec):
            check_presence(store, step.path, "copied", "delete what is left, and copy again")


def _marked(step: CopyStep, store: Store) -> CopyStep:
    """Return the step of the top node, with which it is created as an unfinished one; an existing node is marked."""
    if formats.read_kind(store, step.path) is not None:
        mark_existing(store, step.path, UNFINISHED_COPY)
    elif step.spec is not None:
        return replace(step, spec=marked(step.spec, UNFINISHED_COPY))
    return step


def estimate_copy(plan: list[CopyStep], options: CopyOptions, samples: Sampling) -> list[ArrayEstimate]:
    """Return the estimated cost of copying each array. A few tasks are run; they write to ``samples.store``."""
    samples.check(plan[0].node)
    return [
        _estimate(step, step.node, step.spec, options, samples)
        for step in plan
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


def _run_steps(plan: list[CopyStep], store: Store, options: CopyOptions) -> None:
    for step in plan:
        if isinstance(step.node, Group):
            if isinstance(step.spec, GroupSpec) and formats.read_kind(store, step.path) is None:
                new_nodes.create_group_node(
                    store, step.path, step.spec.zarr_format, step.spec.attributes, False
                )
            continue
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
    return write_array(store, path, spec, cache)


def write_array(store: Store, path: str, spec: ArraySpec, cache: ChunkCache) -> Array:
    """Write the metadata of a new array, and of the groups above it that do not exist."""
    new_nodes.create_ancestors(store, path, spec.zarr_format)
    written = formats.write_node(store, path, spec)
    warn_of_change(store, path, spec.zarr_format)
    return Array(store, path, written, cache, False)


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
    return sorted(storage.stored_chunks())


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
