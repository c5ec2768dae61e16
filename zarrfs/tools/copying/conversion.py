"""Copying arrays and hierarchies between stores, formats and chunk shapes. Copies can be resumed and verified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.hierarchy.node import StoredNode
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import open_store, split_options
from zarrfs.errors import OptionError
from zarrfs.ngff.versions import zarr_format_of
from zarrfs.tools.copying.cluster.connection import check_task_timeout, executor_of
from zarrfs.tools.copying.copy_execution import estimate_copy, execute_copy
from zarrfs.tools.copying.copy_plan import CACHE_NBYTES, CopyOptions, IfExists, plan_copy
from zarrfs.tools.copying.destinations import open_for_inspection
from zarrfs.tools.copying.planning import TargetOptions
from zarrfs.tools.copying.progress import Progress, WorkerProgress
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.sampling import estimated

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["IfExists", "Progress", "convert", "rechunk"]


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
    worker_progress: WorkerProgress | None = None,
    dry_run: bool = False,
    sample_writes: bool = False,
    skip_broken: bool = False,
    allow_loss: bool = False,
    keep_ngff: bool = False,
    ome_version: str | None = None,
    paths: Sequence[str] | None = None,
    nodes_only: bool = False,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
    task_timeout: float | None = None,
) -> CopyReport:
    """Copy the node at a location, and all nodes below it, to another location.

    Encoded chunks are copied unchanged if only the metadata documents differ. Attributes, dimension names and missing
    values are stored as xarray expects them in the target format. Shards are retained if new chunks divide them.
    Threads of this process copy the chunks, or the workers of a Dask cluster. Groups have consolidated metadata if they
    have them in the source.

    Args:
        zarr_format, chunks, shards, compressors: properties of the copy that differ from the source, as for
            ``create_array``. ``chunks`` can also be a mapping of dimension names to sizes; the other dimensions, and
            arrays without these dimensions, keep their chunks.
        memory: the maximum number of bytes of decoded values per thread, unless a single chunk or shard of the target
            is larger; also the size of the cache for decoded source chunks in each process.
        if_exists: what to do if a node exists at the target: ``"raise"`` an error, ``"replace"`` it, ``"skip"`` it, or
            ``"resume"`` an interrupted copy: chunks that exist are not copied again.
        progress: called with the name of the array, and the decoded bytes that are done and in total.
        worker_progress: called with the statistics of the workers of ``dask`` whenever they have changed.
        verify: read source and target after the copy, and raise StoreError if they differ.
        dry_run: write nothing. ``estimates`` of the result has the number of tasks, the bytes, and the expected time,
            which is measured with a few tasks whose results stay in memory.
        sample_writes: the measured tasks of a dry run write below a temporary prefix of the target, or to a temporary
            directory next to it, which is deleted afterwards. The expected time then contains writing.
        skip_broken: skip members that cannot be read or that the format cannot represent. They are in ``skipped`` of
            the result.
        allow_loss: replace a data type that the format does not have with the NumPy data type of its values, and leave
            out what ``ome_version`` cannot state.
        keep_ngff: leave OME-NGFF metadata unchanged. By default version 0.4 is converted to 0.5 in format 3, and 0.5
            to 0.4 in format 2.
        ome_version: convert OME-NGFF metadata to this version: 0.4 (in format 2), 0.5 or 0.6 (in format 3). Metadata
            that it cannot state are an error without ``allow_loss``.
        paths: copy only the members of the group at these paths, with the groups above them and all nodes below them.
            They are found also if the store of the source cannot list.
        nodes_only: copy arrays and groups only. By default files that belong to no node, such as tables of other
            programs, are copied unchanged if the source can be listed.
        storage_options: as for ``open``. Each location gets the options that it supports.
        dask: the address of a Dask scheduler (``tcp://host:8786``) or a ``distributed.Client``. Its workers copy and
            compare. They need zarrfs and access to both locations.
        task_timeout: the time limit in seconds for one task on a worker of ``dask``; None: no limit. A worker that
            exceeds it is closed, and its tasks run on other workers.

    Returns one line for each node, which states how it was copied and which properties were lost.

    Raises before anything is written: NodeExistsError; IncompleteCopyError for members that cannot be read;
    UnsupportedError for nodes that the format cannot represent; MetadataError for options that do not fit an array;
    StoreError or LocationError if the Dask cluster cannot be used. Raises another ZarrError for failures while chunks
    are copied.
    """
    if ome_version is not None:
        ome_format = zarr_format_of(ome_version)
        if keep_ngff:
            raise OptionError("keep_ngff and ome_version cannot be combined")
        if zarr_format not in (None, ome_format):
            raise OptionError(
                f"OME-NGFF {ome_version} is stored in Zarr format {ome_format}, and the copy has format {zarr_format}"
            )
        zarr_format = ome_format
    target_options = TargetOptions(zarr_format, chunks, shards, compressors, allow_loss)
    check_task_timeout(dask, task_timeout)
    with executor_of(dask, task_timeout, worker_progress) as executor:
        reading, writing = split_options(storage_options, source, target)
        node = open_node(
            source, storage_options=None if reading is None else dict(reading), cache_size=memory
        )
        options = CopyOptions(
            target_options,
            if_exists,
            verify,
            memory,
            progress,
            dry_run,
            skip_broken,
            keep_ngff,
            ome_version,
            paths,
            nodes_only,
            executor,
        )
        report = CopyReport()
        with open_for_inspection(target, writing) as (store, path):
            plan = plan_copy(node, store, path, options, report)
        if dry_run:
            report.estimates = estimated(
                partial(estimate_copy, plan, options), target, writing, executor, sample_writes
            )
            return report
        store, path = open_store(target, mode="a", storage_options=writing)
        with nullcontext() if isinstance(target, Store | Mapping | StoredNode) else store:
            execute_copy(plan, store, path, options)
        report.workers = getattr(executor, "statistics", {})
    return report


def rechunk(source: Location, target: Location, chunks: Any, **options: Any) -> CopyReport:
    """Copy an array or hierarchy with another chunk shape, or with other sizes of chunks along named dimensions:
    ``{"time": 30, "lat": 2}``. Options are those of ``convert``.

    Values are copied in blocks of whole target chunks. Blocks are extended towards the source chunk shape as far as
    ``memory`` allows. A source chunk that spans several blocks is decoded once for each of them, unless it is still
    cached. Example: planes that are rechunked to cubes are decoded once if the planes of one cube fit into
    ``memory``, otherwise about (size of these planes / ``memory``) times.
    """
    return convert(source, target, chunks=chunks, **options)
