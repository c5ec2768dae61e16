"""Building the multiscale image (pyramid) of an array: the plan, the arrays and metadata, and the execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunking.chunk_grids import RegularGrid
from zarrfs.engine.chunking.chunk_key_encodings import DefaultKeys, V2Keys
from zarrfs.engine.formats import api as formats
from zarrfs.engine.locations import open_store, split_options
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes import creation
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.hierarchy import delete_node, replacing
from zarrfs.engine.nodes.node import StoredNode
from zarrfs.engine.open import Location
from zarrfs.engine.open import open as open_node
from zarrfs.engine.parallel import CORES
from zarrfs.engine.stores.base import Store
from zarrfs.errors import MetadataError, NodeExistsError, OptionError, UnsupportedError
from zarrfs.tools.copying.advice import option
from zarrfs.tools.copying.block_grid import Block, BlockGrid, stored_regions
from zarrfs.tools.copying.conventions import effective_fill_value
from zarrfs.tools.copying.dask_cluster import connect_cluster
from zarrfs.tools.copying.destinations import open_for_inspection
from zarrfs.tools.copying.executors import Executor, Threads
from zarrfs.tools.copying.planning import TargetOptions, spec_for_reencoding
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.pyramids.downsampling import METHODS, Method, check_method
from zarrfs.tools.pyramids.images import SourceImage, source_image
from zarrfs.tools.pyramids.levels import Factors, PyramidLevel, level_paths, plan_levels
from zarrfs.tools.pyramids.metadata import image_axes, multiscales_attributes, zarr_format_of
from zarrfs.tools.pyramids.passes import LevelGrid, Pass, plan_passes
from zarrfs.tools.pyramids.tasks import BuildBlock, CompareLevels, LevelTarget

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Progress", "build_pyramid"]

Progress = Callable[[str, int, int], object]
"""Called with (what is built, blocks done, blocks in total)."""

MEMORY = 256 << 20

UNFINISHED = "zarrfs_unfinished_pyramid"
"""The attribute of the group while levels are written. Its value describes how they are computed."""


def build_pyramid(
    source: Location,
    target: Location | None = None,
    *,
    version: str | None = None,
    method: Method | Literal["auto"] = "auto",
    factors: Factors = None,
    levels: int | None = None,
    max_length: int = 256,
    axes: Sequence[str] | None = None,
    scale: Sequence[float] | None = None,
    unit: str | None = None,
    name: str | None = None,
    chunks: Any = None,
    shards: Any = None,
    compressors: Any = None,
    if_exists: Literal["raise", "replace", "resume"] = "raise",
    verify: bool = False,
    memory: int = MEMORY,
    progress: Progress | None = None,
    dry_run: bool = False,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
) -> CopyReport:
    """Build an OME-NGFF multiscale image from an array.

    The source is an array, an OME-NGFF image, or a group with one array. With a ``target`` a new image is written
    there, with a copy of the array as level 0. Without one, the levels are written next to the array, and the metadata
    to the group that contains it.

    The data are read once; the coarser levels are computed from the finer ones. The metadata of the image are written
    after all levels. An interrupted run is resumed with ``if_exists="resume"``.

    Args:
        version: the OME-NGFF version, 0.4 (in Zarr format 2) or 0.5 (in Zarr format 3). The default is 0.5 for a new
            image, else the one of the Zarr format of the array.
        method: see ``Method``. ``"auto"`` is mode for labels and booleans, mean for other numbers, else nearest. Labels
            are integers below a group ``labels``, or with ``image-label`` metadata.
        factors: the downsampling factors of each dimension, for all levels, or a sequence of them for each level. By
            default the spatial dimensions are halved, those with the smallest voxel size first, so that anisotropic
            images become isotropic.
        levels: the number of levels, including level 0. By default levels are added until no spatial dimension is
            longer than ``max_length``.
        axes, scale, unit: the names of the dimensions, the distances of the elements, and the unit of the spatial
            dimensions. By default those in the metadata of the source.
        name: the name of the image. By default the one in the metadata, or that of the target.
        chunks, shards, compressors: as for ``create_array``; by default those of the source.
        if_exists: what to do if the target or a level exists.
        verify: read the levels after they were written, and raise StoreError if they are not as computed.
        memory: the bytes of decoded values per thread, unless the chunks (shards) of one block need more; also the size
            of the cache for decoded chunks of the source.
        progress: see ``Progress``.
        dry_run: write nothing.
        storage_options: as for ``open``. Each location gets the options that it supports.
        dask: the address of a Dask scheduler or a ``distributed.Client``, whose workers build the levels.

    Returns one line for each level.

    Raises before anything is written: OptionError, MetadataError and UnsupportedError for options and data that do not
    fit; NodeTypeError for a group that is not an image; NodeExistsError. Raises another ZarrError for failures while
    levels are written.
    """
    if method != "auto" and method not in METHODS:
        raise OptionError(f"method: expected auto or one of {', '.join(METHODS)}; found {method!r}")
    if if_exists not in ("raise", "replace", "resume"):
        raise OptionError(f"if_exists: expected raise, replace or resume; found {if_exists!r}")
    with nullcontext(Threads()) if dask is None else connect_cluster(dask) as executor:
        reading, writing = split_options(storage_options, source, source if target is None else target)
        in_place = target is None
        with open_node(
            source,
            mode="r+" if in_place and not dry_run else "r",
            storage_options=None if reading is None else dict(reading),
            cache_size=memory,
        ) as node:
            image = source_image(node)
            plan = _plan(
                image,
                in_place=in_place,
                version=version,
                method=image.default_method if method == "auto" else method,
                axes=image_axes(image.array.shape, image.geometry, axes, scale, unit),
                factors=factors,
                count=levels,
                max_length=max_length,
                name=name,
                default_name=image.geometry.image_name or _name_of(source if target is None else target),
                form=TargetOptions(None, chunks, shards, compressors),
            )
            run = _Run(plan, image, if_exists, verify, memory, progress, executor)
            if target is None:
                path = image.group_path
                if path is None:
                    raise MetadataError(
                        f"{image.array.store.url}: the array {image.array.name} is not in a group to which levels can "
                        "be added; give a target for the image"
                    )
                run.check(node.store, path)
                if not dry_run:
                    run.build(node.store, path)
            else:
                with open_for_inspection(target, writing) as (store, path):
                    run.check(store, path)
                if not dry_run:
                    store, path = open_store(target, mode="a", storage_options=writing)
                    with nullcontext() if isinstance(target, Store | Mapping | StoredNode) else store:
                        run.build(store, path)
    return plan.report()


def _name_of(location: Location) -> str:
    path = location.path or location.store.url if isinstance(location, StoredNode) else str(location)
    name = path.rstrip("/").rpartition("/")[2]
    for suffix in (".zip", ".zarr", ".ome", ".n5"):
        name = name.removesuffix(suffix)
    return name or "image"


# -- plan ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """What is built.

    Attributes:
        paths, levels, specs: the path, geometry and array metadata of each level, level 0 first.
        attributes: the attributes of the group after all levels are written.
        removed: the paths of levels of the source's image that are not part of the new one.
        writes_first: whether level 0 is written.
    """

    version: str
    method: Method
    paths: Sequence[str]
    levels: Sequence[PyramidLevel]
    specs: Sequence[ArraySpec]
    attributes: Mapping[str, Any]
    removed: Sequence[str]
    writes_first: bool

    @property
    def new_paths(self) -> Sequence[str]:
        """The paths of the arrays that are written."""
        return self.paths if self.writes_first else self.paths[1:]

    def signature(self) -> dict[str, Any]:
        """Return what determines the values of the levels, as JSON."""
        return {"method": self.method, "factors": [list(level.factors) for level in self.levels[1:]]}

    def report(self) -> CopyReport:
        report = CopyReport()
        for path, level, spec in zip(self.paths, self.levels, self.specs, strict=True):
            shape = " x ".join(map(str, level.shape))
            size = " x ".join(f"{length:g}" for length in level.scale)
            how = (
                f"{self.method} of {' x '.join(map(str, level.factors))}"
                if path != self.paths[0]
                else "level 0"
            )
            chunks = " x ".join(map(str, spec.chunk_grid.chunk_shape or ()))
            report.append(f"{path}: {shape}, scale {size}, chunks {chunks}, {how}")
        keys = self.specs[0].chunk_key_encoding
        if isinstance(keys, V2Keys) and keys.separator != "/":
            report[0] += "; its chunk keys are separated by '.', OME-NGFF requires '/': a target has them"
        return report


def _plan(
    image: SourceImage,
    *,
    in_place: bool,
    version: str | None,
    method: Method,
    axes: Sequence[Any],
    factors: Factors,
    count: int | None,
    max_length: int,
    name: str | None,
    default_name: str,
    form: TargetOptions,
) -> _Plan:
    source = image.array
    check_method(source.dtype, method)
    version = version or _default_version(source, in_place)
    zarr_format = zarr_format_of(version)
    if in_place and source.zarr_format != zarr_format:
        raise UnsupportedError(
            f"OME-NGFF {version} is stored in Zarr format {zarr_format}, the array has format {source.zarr_format}; "
            "give a target for the image"
        )
    levels = plan_levels(source.shape, axes, method, factors, count, max_length)
    paths = level_paths(image.array_path if in_place else "0", len(levels))
    first = _first_spec(source, replace(form, zarr_format=zarr_format), [axis.name for axis in axes])
    specs = [replace(first, shape=level.shape) for level in levels]
    if in_place:
        specs[0] = source.spec
    previous = image.attributes if in_place else _shared_attributes(image.attributes, version)
    previous = {key: value for key, value in previous.items() if key != UNFINISHED}
    attributes = multiscales_attributes(version, name or default_name, axes, paths, levels, method, previous)
    removed = [path for path in image.levels[1:] if path not in paths] if in_place else []
    return _Plan(version, method, paths, levels, specs, attributes, removed, not in_place)


def _default_version(source: Array, in_place: bool) -> str:
    return "0.4" if in_place and formats.features(source.zarr_format).filters else "0.5"


def _first_spec(source: Array, form: TargetOptions, names: Sequence[str]) -> ArraySpec:
    """Return the spec of level 0 of a new image. The other levels differ in their shape only."""
    if form.chunks is None and not isinstance(source.spec.chunk_grid, RegularGrid):
        form = replace(form, chunks="auto")  # the levels cannot have the irregular chunks of the source
    spec = replace(source.spec, attributes={}, dimension_names=tuple(names), dimension_units=None)
    target = spec_for_reencoding(source, spec, form)
    keys = V2Keys("/") if formats.features(target.zarr_format).filters else DefaultKeys("/")
    return replace(target, chunk_key_encoding=keys, document={})


def _shared_attributes(attributes: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the rendering settings and label properties of an image, in the place where a version stores them."""
    ome = attributes.get("ome")
    found = ome if isinstance(ome, Mapping) else attributes
    shared = {key: found[key] for key in ("omero", "image-label") if isinstance(found.get(key), Mapping)}
    if version == "0.4":
        return {
            key: {"version": version, **value} if key == "image-label" else value
            for key, value in shared.items()
        }
    return {"ome": {key: {k: v for k, v in value.items() if k != "version"} for key, value in shared.items()}}


# -- execution -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Run:
    """The execution of a plan."""

    plan: _Plan
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
            formats.check_path(store, _join(path, below), plan.specs[0].zarr_format)
        for spec in plan.specs:
            formats.check_writable(spec)
        existing = formats.read_node(store, path)
        if plan.writes_first:
            if existing is not None and self.if_exists == "raise":
                self._raise_exists(store, path)
            source = self.image.array
            if source.store.url == store.url and _contains(path, source.path):
                raise NodeExistsError(
                    f"{store.url}: the image cannot replace the array that it is built from"
                )
        elif self.if_exists == "raise":
            for below in (*plan.new_paths, *plan.removed):
                if formats.read_kind(store, _join(path, below)) is not None:
                    self._raise_exists(store, _join(path, below))
        if self.if_exists == "resume" and isinstance(existing, GroupSpec):
            self._check_resumable(store, path, existing)

    def _check_resumable(self, store: Store, path: str, group: GroupSpec) -> None:
        """Raise MetadataError if levels exist that were not written by a run with the same options."""
        signature, unfinished = self.plan.signature(), group.attributes.get(UNFINISHED)
        if unfinished == signature or group.attributes == self.plan.attributes:
            return
        levels = [
            below for below in self.plan.new_paths if formats.read_kind(store, _join(path, below)) is not None
        ]
        if unfinished is not None or levels:
            raise MetadataError(
                f"{store.url}: {path or '/'!r} is not the result of an interrupted run with these options: "
                f"found {'other levels' if unfinished is None else unfinished}, expected {signature}; use "
                f"{option('if_exists', 'replace')}"
            )

    def _raise_exists(self, store: Store, path: str) -> None:
        raise NodeExistsError(
            f"{store.url}: a node exists at {path or '/'!r}; use {option('if_exists', 'replace')} or "
            f"{option('if_exists', 'resume')}"
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
                level = _join(path, below)
                replaces = self.if_exists == "replace" and formats.read_kind(store, level) is not None
                targets[below] = stack.enter_context(replacing(store, level)) if replaces else store
            self._build_levels(store, path, targets)
        self._finish(store, path)
        for below in self.plan.removed:
            delete_node(store, _join(path, below))
            warn_of_change(store, _join(path, below), self.plan.specs[0].zarr_format)

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
            levels.append(LevelTarget(self._create(target, _join(path, below), spec, cache), level.factors))
        for number, pass_ in enumerate(self._passes()):
            source = self.image.array if pass_.source is None else levels[pass_.source].array
            built = tuple(levels[pass_.first : pass_.last + 1])
            blocks = _blocks(source, built, pass_.block)
            resume = self.if_exists == "resume"
            self._run(f"pass {number + 1}", BuildBlock(source, built, self.plan.method, resume), blocks)
        if self.verify:
            for number, pass_ in enumerate(self._passes()):
                source = self.image.array if pass_.source is None else levels[pass_.source].array
                built = tuple(levels[pass_.first : pass_.last + 1])
                work = CompareLevels(source, built, self.plan.method)
                self._run(f"pass {number + 1} (verifying)", work, BlockGrid(source.shape, pass_.block))

    def _passes(self) -> list[Pass]:
        plan, source = self.plan, self.image.array
        grids = [
            LevelGrid(level.shape, tuple(spec.chunk_grid.chunk_shape or level.shape), level.factors)
            for level, spec in zip(plan.levels, plan.specs, strict=True)
        ]
        chunks = source.spec.chunk_grid.chunk_shape or source.shape
        return plan_passes(grids, plan.writes_first, chunks, source.dtype.itemsize, self.memory)

    def _create(self, store: Store, path: str, spec: ArraySpec, cache: ChunkCache) -> Array:
        """Create the array of a level, or return the existing one if an interrupted run is resumed."""
        existing = formats.read_node(store, path) if self.if_exists == "resume" else None
        if existing is not None:
            if not isinstance(existing, ArraySpec) or not _is_same(existing, spec):
                raise MetadataError(
                    f"{store.url}: {path or '/'!r} is not a level of an interrupted run with these options: its "
                    f"metadata differ; use {option('if_exists', 'replace')}"
                )
            return Array(store, path, existing, cache, False)
        creation.create_ancestors(store, path, spec.zarr_format)
        written = formats.write_node(store, path, spec)
        warn_of_change(store, path, spec.zarr_format)
        return Array(store, path, written, cache, False)

    def _run(self, name: str, work: Callable[[Block], object], blocks: Sequence[Block]) -> None:
        done = 0

        def add(count: int) -> None:
            nonlocal done
            done += count  # not locked: a lost update only makes a progress bar slightly wrong
            if self.progress is not None:
                self.progress(name, done, len(blocks))

        add(0)
        self.executor.run(work, blocks, CORES, add)

    def _set_attributes(self, store: Store, path: str, changes: Mapping[str, Any]) -> None:
        """Add attributes to the group of the image, which is created if it does not exist."""
        spec = formats.read_node(store, path, use_consolidated=False)
        if spec is None:
            creation.create_group_node(store, path, self.plan.specs[0].zarr_format, changes, False)
        elif isinstance(spec, GroupSpec):
            formats.write_attributes(store, path, replace(spec, attributes={**spec.attributes, **changes}))
        else:
            self._raise_exists(store, path)

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


def _blocks(source: Array, levels: Sequence[LevelTarget], step: Sequence[int]) -> Sequence[Block]:
    """Return the blocks of a pass. Blocks without stored chunks are omitted if all arrays have the same fill value."""
    grid = BlockGrid(source.shape, step)
    fill = repr(effective_fill_value(source.spec))  # the repr of NaN equals that of NaN
    equal = all(repr(effective_fill_value(level.array.spec)) == fill for level in levels)
    return grid.overlapping(stored_regions(source)) if equal and source.store.listable else grid


def _is_same(existing: ArraySpec, spec: ArraySpec) -> bool:
    return (
        (existing.zarr_format, existing.shape, existing.data_type.name, existing.chunk_grid, existing.codecs)
        == (spec.zarr_format, spec.shape, spec.data_type.name, spec.chunk_grid, spec.codecs)
    ) and repr(existing.fill_value) == repr(spec.fill_value)


def _join(path: str, below: str) -> str:
    return f"{path}/{below}" if path else below


def _contains(path: str, other: str) -> bool:
    """Return whether the node at ``other`` is that at ``path``, or below it."""
    return not path or other == path or other.startswith(f"{path}/")
