"""Building the multiscale image (pyramid) of an array."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store, split_options
from zarrfs.engine.stores.zip.single_file import is_single_file
from zarrfs.errors import MetadataError, OptionError
from zarrfs.tools.copying.cluster.connection import check_task_timeout, executor_of
from zarrfs.tools.copying.destinations import open_for_inspection
from zarrfs.tools.copying.planning import TargetOptions
from zarrfs.tools.copying.progress import Progress, WorkerProgress
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.sampling import estimated
from zarrfs.tools.pyramids.downsampling import METHODS, Method
from zarrfs.tools.pyramids.estimates import estimate_pyramid
from zarrfs.tools.pyramids.execution import PyramidRun
from zarrfs.tools.pyramids.images import source_image
from zarrfs.tools.pyramids.levels import Factors
from zarrfs.tools.pyramids.metadata import image_axes
from zarrfs.tools.pyramids.plan import plan_pyramid

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Progress", "build_pyramid"]

MEMORY = 256 << 20


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
    worker_progress: WorkerProgress | None = None,
    dry_run: bool = False,
    estimate: bool = True,
    sample_writes: bool = False,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
    task_timeout: float | None = None,
) -> CopyReport:
    """Build an OME-NGFF multiscale image from an array.

    The source is an array, an OME-NGFF image, or a group with one array. With a ``target`` a new image is written
    there, with a copy of the array as level 0. Without one, the levels are written next to the array, and the metadata
    to the group that contains it.

    The data are read once; the coarser levels are computed from the finer ones. The metadata of the image are written
    after all levels. An interrupted run is resumed with ``if_exists="resume"``.

    Args:
        version: the OME-NGFF version, 0.4 (in Zarr format 2), 0.5 or 0.6 (in Zarr format 3). The default is 0.5 for a
            new image, else the version of the image or the one of the Zarr format of the array.
        method: how each window of elements is reduced: ``"mean"``, ``"median"``, ``"max"``, ``"min"``, ``"mode"`` (the
            most frequent value), or ``"nearest"`` (the first element). ``"auto"`` is mode for labels and booleans, mean
            for other numbers, else nearest. Labels are integers below a group ``labels``, or with ``image-label``
            metadata.
        factors: the downsampling factors of each dimension, for all levels, or a sequence of them for each level. By
            default the spatial dimensions are halved, those with the smallest voxel size first, so that anisotropic
            images become isotropic.
        levels: the number of levels, including level 0. By default levels are added until no spatial dimension is
            longer than ``max_length``.
        axes, scale, unit: the names of the dimensions, the distances of the elements, and the unit of the spatial
            dimensions. By default those in the metadata of the source.
        name: the name of the image. By default the one in the metadata, or that of the target.
        chunks, shards, compressors: as for ``create_array``; by default those of the source.
        if_exists: what to do if the target or a level exists: ``"raise"``, ``"replace"``, or ``"resume"``, which
            continues an interrupted run.
        verify: read the levels after they were written, and raise StoreError if they are not as computed.
        memory: the bytes of decoded values per thread, unless the chunks (shards) of one block need more; also the size
            of the cache for decoded chunks of the source.
        progress: called with the name of the array, and the decoded bytes that are done and in total.
        worker_progress: called with the statistics of the workers of ``dask`` whenever they have changed.
        dry_run: change nothing.
        estimate: in a dry run, run a few tasks to estimate the time and the bytes that each pass would take.
        sample_writes: as for ``convert``.
        storage_options: as for ``open``. Each location gets the options that it supports.
        dask: the address of a Dask scheduler or a ``distributed.Client``, whose workers build the levels.
        task_timeout: the time limit in seconds for one task on a worker of ``dask``; None: no limit. A worker that
            exceeds it is closed, and its tasks run on other workers.

    Returns one line for each level.

    Raises before anything is written: OptionError, MetadataError and UnsupportedError for options and data that do not
    fit; NodeTypeError for a group that is not an image; NodeExistsError. Raises another ZarrError for failures while
    levels are written.
    """
    if method != "auto" and method not in METHODS:
        raise OptionError(f"method: expected auto or one of {', '.join(METHODS)}; found {method!r}")
    if if_exists not in ("raise", "replace", "resume"):
        raise OptionError(f"if_exists: expected raise, replace or resume; found {if_exists!r}")
    check_task_timeout(dask, task_timeout)
    with executor_of(dask, task_timeout, worker_progress) as executor:
        reading, writing = split_options(storage_options, source, source if target is None else target)
        in_place = target is None
        with open_node(
            source,
            mode="r+" if in_place and not dry_run else "r",
            storage_options=None if reading is None else dict(reading),
            cache_size=memory,
        ) as node:
            image = source_image(node)
            plan = plan_pyramid(
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
                target_options=TargetOptions(None, chunks, _shards(shards, target, version), compressors),
            )
            run = PyramidRun(plan, image, if_exists, verify, memory, progress, executor)
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
            estimates = []
            if dry_run and estimate:
                place, options = (source, reading) if target is None else (target, writing)
                estimates = estimated(partial(estimate_pyramid, run), place, options, executor, sample_writes)
    report = plan.report()
    report.estimates = estimates
    report.workers = {} if dry_run else getattr(executor, "statistics", {})
    return report


def _shards(shards: Any, target: Location | None, version: str | None) -> Any:
    """Return the shards of new arrays: RFC-9 of OME-NGFF recommends them for single-file OME-Zarr."""
    is_single = isinstance(target, str | os.PathLike) and is_single_file(os.fspath(target))
    return "auto" if shards is None and is_single and version != "0.4" else shards


def _name_of(location: Location) -> str:
    path = location.path or location.store.url if isinstance(location, StoredNode) else str(location)
    name = path.rstrip("/").rpartition("/")[2]
    for suffix in (".zip", ".ozx", ".zarr", ".ome", ".n5"):
        name = name.removesuffix(suffix)
    return name or "image"
