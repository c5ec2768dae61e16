"""The execution of the plan of a multiscale image: levels are written, verified and described in the metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.create import new_nodes
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import join
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change
from zarrfs.engine.hierarchy.staging import replacing
from zarrfs.engine.hierarchy.subtrees import delete_node
from zarrfs.engine.hierarchy.unfinished import UNFINISHED
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.parallel import CORES
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeExistsError
from zarrfs.tools.copying.block_grid import Block, BlockGrid, stored_regions
from zarrfs.tools.copying.conventions import effective_fill_value
from zarrfs.tools.copying.copy_execution import has_same_encoding, write_array
from zarrfs.tools.copying.executors import Executor
from zarrfs.tools.copying.presence import unless_deleted
from zarrfs.tools.copying.progress import Progress, ProgressCounter, nbytes_of_blocks
from zarrfs.tools.pyramids.images import SourceImage
from zarrfs.tools.pyramids.passes import LevelGrid, Pass, plan_passes
from zarrfs.tools.pyramids.plan import PyramidPlan
from zarrfs.tools.pyramids.tasks import BuildBlock, CompareLevels, LevelTarget

__all__ = ["PyramidRun", "pass_blocks"]


@dataclass(frozen=True)
class PyramidRun:
    """The execution of a plan."""

    plan: PyramidPlan
    image: SourceImage
    if_exists: Literal["raise", "replace", "resume"]
    verify: bool
    memory: int
    progress: Progress | None
    executor: Executor

    def check(self, store: Store, path: str) -> None:
        """Raise NodeExistsError, MetadataError or KeyNameError if the image cannot be written to the group at ``path``.
        Writes nothing.
        """
        plan = self.plan
        for below in plan.new_paths:
            formats.check_path(store, join(path, below), plan.specs[0].zarr_format)
        for spec in plan.specs:
            formats.check_writable(spec)
        existing = formats.read_node(store, path)
        if plan.writes_first:
            if existing is not None and self.if_exists == "raise":
                self._raise_node_exists(store, path)
            source = self.image.array
            if source.store.url == store.url and _contains(path, source.path):
                raise NodeExistsError(
                    f"{store.url}: the image cannot replace the array that it is built from"
                )
        elif self.if_exists == "raise":
            for below in (*plan.new_paths, *plan.removed):
                if formats.read_kind(store, join(path, below)) is not None:
                    self._raise_node_exists(store, join(path, below))
        if self.if_exists == "resume" and isinstance(existing, GroupSpec):
            self._check_resumable(store, path, existing)

    def _check_resumable(self, store: Store, path: str, group: GroupSpec) -> None:
        """Raise MetadataError if levels exist that were not written by a run with the same options."""
        signature, unfinished = self.plan.signature(), group.attributes.get(UNFINISHED)
        if unfinished == signature or group.attributes == self.plan.attributes:
            return
        levels = [
            below for below in self.plan.new_paths if formats.read_kind(store, join(path, below)) is not None
        ]
        if unfinished is not None or levels:
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is not the result of an interrupted run with these options: "
                f"found {'other levels' if unfinished is None else unfinished}, expected {signature}; use "
                "if_exists='replace'"
            )

    def _raise_node_exists(self, store: Store, path: str) -> None:
        raise NodeExistsError(
            f"{store.url}: a node exists at {path or '/'!r}; use if_exists='replace' or if_exists='resume'"
        )

    def build(self, store: Store, path: str) -> None:
        """Write the levels and the metadata of the image. A replaced image is deleted when the new one is complete."""
        self.executor.check(self.image.array, store)
        if self.plan.writes_first:
            exists = formats.read_kind(store, path) is not None
            with (
                replacing(store, path)
                if exists and self.if_exists == "replace"
                else nullcontext(store) as target
            ):
                self._build_levels(target, path)
                self._finish(target, path)
            return
        with ExitStack() as stack:
            targets = {}
            for below in self.plan.new_paths:
                level = join(path, below)
                replaces = self.if_exists == "replace" and formats.read_kind(store, level) is not None
                targets[below] = stack.enter_context(replacing(store, level)) if replaces else store
            self._build_levels(store, path, targets)
            if any(target is not store for target in targets.values()):
                # Until the end some levels are new and others are old. Without the signature this is not resumed.
                self._set_attributes(store, path, {UNFINISHED: {"command": "pyramid"}})
        self._finish(store, path)
        for below in self.plan.removed:
            delete_node(store, join(path, below))
            warn_of_change(store, join(path, below), self.plan.specs[0].zarr_format)

    def _build_levels(self, store: Store, path: str, targets: Mapping[str, Store] | None = None) -> None:
        # Levels that are being replaced are complete until the new ones are, so they cannot be resumed.
        replaces = targets is not None and any(target is not store for target in targets.values())
        self._set_attributes(store, path, {} if replaces else {UNFINISHED: self.plan.signature()})
        cache = ChunkCache(self.memory)
        levels = []
        for below, level, spec in zip(self.plan.paths, self.plan.levels, self.plan.specs, strict=True):
            if below == self.plan.paths[0] and not self.plan.writes_first:
                levels.append(LevelTarget(self.image.array, level.factors))
                continue
            target = store if targets is None else targets[below]
            levels.append(LevelTarget(self._create(target, join(path, below), spec, cache), level.factors))
        passes = [
            (
                self.image.array if pass_.source is None else levels[pass_.source].array,
                tuple(levels[pass_.first : pass_.last + 1]),
                pass_.block,
            )
            for pass_ in self.passes()
        ]
        resume = self.if_exists == "resume"
        with unless_deleted("read", self.image.array):
            for number, (source, built, block) in enumerate(passes):
                work = BuildBlock(source, built, self.plan.method, self.memory, resume)
                self._run(f"pass {number + 1}", work, source, pass_blocks(source, built, block))
            if self.verify:
                for number, (source, built, block) in enumerate(passes):
                    comparison = CompareLevels(source, built, self.plan.method, self.memory)
                    blocks = BlockGrid(source.shape, block)
                    self._run(f"pass {number + 1} (verifying)", comparison, source, blocks)

    def passes(self) -> list[Pass]:
        """Return the passes over the data in which the levels are built."""
        plan, source = self.plan, self.image.array
        grids = [
            LevelGrid(level.shape, tuple(spec.chunk_grid.chunk_shape or level.shape), level.factors)
            for level, spec in zip(plan.levels, plan.specs, strict=True)
        ]
        chunks = source.spec.chunk_grid.chunk_shape or source.shape
        threads = self.executor.threads(CORES)
        return plan_passes(grids, plan.writes_first, chunks, source.dtype.itemsize, self.memory, threads)

    def _create(self, store: Store, path: str, spec: ArraySpec, cache: ChunkCache) -> Array:
        """Create the array of a level, or return the existing one if an interrupted run is resumed."""
        existing = formats.read_node(store, path) if self.if_exists == "resume" else None
        if existing is not None:
            if not isinstance(existing, ArraySpec) or not has_same_encoding(existing, spec):
                raise MetadataError(
                    f"{store.url}: {path or '/'!r} is not a level of an interrupted run with these options: its "
                    "metadata differ; use if_exists='replace'"
                )
            return Array(store, path, existing, cache, False)
        return write_array(store, path, spec, cache)

    def _run(
        self, name: str, work: Callable[[Block], object], source: Array, blocks: Sequence[Block]
    ) -> None:
        progress_counter = ProgressCounter(name, len(blocks), nbytes_of_blocks(source, blocks), self.progress)
        self.executor.run(work, blocks, CORES, progress_counter.add, progress_counter.item_nbytes)

    def _set_attributes(self, store: Store, path: str, changes: Mapping[str, Any]) -> None:
        """Add attributes to the group of the image, which is created if it does not exist."""
        spec = formats.read_node(store, path, use_consolidated=False)
        if spec is None:
            new_nodes.create_group_node(store, path, self.plan.specs[0].zarr_format, changes, False)
        elif isinstance(spec, GroupSpec):
            formats.write_attributes(store, path, replace(spec, attributes={**spec.attributes, **changes}))
        else:
            self._raise_node_exists(store, path)

    def _finish(self, store: Store, path: str) -> None:
        """Write the metadata of the complete image."""
        array = self.image.array
        names = self.plan.specs[1].dimension_names if len(self.plan.specs) > 1 else None
        if not self.plan.writes_first and names is not None and array.spec.dimension_names != names:
            # OME-NGFF 0.5 requires the names of the axes in each level.
            formats.write_node(store, array.path, replace(array.spec, dimension_names=names))
        spec = formats.read_node(store, path, use_consolidated=False)
        if isinstance(spec, GroupSpec):
            formats.write_attributes(store, path, replace(spec, attributes=dict(self.plan.attributes)))
        warn_of_change(store, path, self.plan.specs[0].zarr_format)


def pass_blocks(source: Array, levels: Sequence[LevelTarget], step: Sequence[int]) -> Sequence[Block]:
    """Return the blocks of a pass. Blocks without stored chunks are omitted if all arrays have the same fill value."""
    grid = BlockGrid(source.shape, step)
    fill = repr(effective_fill_value(source.spec))  # the repr of NaN equals that of NaN
    equal = all(repr(effective_fill_value(level.array.spec)) == fill for level in levels)
    return grid.overlapping(stored_regions(source)) if equal and source.store.listable else grid


def _contains(path: str, other: str) -> bool:
    """Return whether the node at ``other`` is that at ``path``, or below it."""
    return not path or other == path or other.startswith(f"{path}/")
