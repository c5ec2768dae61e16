"""Verifying arrays and hierarchies: every chunk is decoded, and optionally compared with another location."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, nullcontext
from itertools import chain
from typing import TYPE_CHECKING, Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.array.array import Array
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.unfinished import is_unfinished, unfinished_note
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.locations import split_options
from zarrfs.errors import OptionError, ServerError, StoreError, ZarrError
from zarrfs.tools.copying.block_grid import ChunkCoords, Coords
from zarrfs.tools.copying.cells import Cells
from zarrfs.tools.copying.cluster.connection import check_task_timeout, connect_cluster
from zarrfs.tools.copying.cluster.executor import ClusterExecutor
from zarrfs.tools.copying.presence import check_presence
from zarrfs.tools.copying.progress import Progress, ProgressCounter, WorkerProgress, nbytes_of_chunks
from zarrfs.tools.copying.stored_keys import ArrayKeys, foreign_keys, have_equal_bytes
from zarrfs.tools.copying.walking import walk
from zarrfs.tools.verification.chunks import VerifyBatch, missing_between
from zarrfs.tools.verification.journal import BatchKey, Journal
from zarrfs.tools.verification.metadata import array_differences, axes_of_members, group_differences
from zarrfs.tools.verification.problems import Problem, VerificationReport

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["verify"]

BATCH_SIZE = 1000
"""The number of chunks after which the report file is extended."""

CLUSTER_BATCH_SIZE = 32
CLUSTER_BATCH_NBYTES = 64 << 20
"""A task of a cluster verifies so many chunks, or fewer of at most this decoded size in total, so that all workers have
tasks. It depends on the array only, because a run is resumed with the same batches.
"""

MEMORY = 256 << 20


def verify(
    location: Location,
    other: Location | None = None,
    *,
    metadata: bool = False,
    report_file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    memory: int = MEMORY,
    progress: Progress | None = None,
    worker_progress: WorkerProgress | None = None,
    storage_options: dict[str, Any] | None = None,
    dask: str | Client | None = None,
    task_timeout: float | None = None,
) -> VerificationReport:
    """Decode every stored chunk of an array, or of all arrays of a hierarchy, and return the problems that were found.

    With ``other``, the shape, data type and values of each array are compared with those of the array at
    the same path there, and the bytes of files that belong to no node with those of the same name. Arrays and files
    that exist only there are reported. Nothing is written to either location. Stores that cannot list are not searched
    for such files.

    Args:
        metadata: also compare attributes, dimension names and units, and fill values with those of ``other``, and the
            groups. In another format they are those that a copy would have.
        report_file: a file to which problems are written in the course of the run, as JSON lines.
        resume: continue an interrupted run with the same ``report_file``. Chunks that it lists are not read again.
        memory: the bytes of decoded values per thread, unless one chunk needs more.
        progress: called with the name of the array, and the decoded bytes that are done and in total.
        worker_progress: called with the statistics of the workers of ``dask`` whenever they have changed.
        storage_options: as for ``open``. Each location gets the options that it supports.
        dask: the address of a Dask scheduler (``tcp://host:8786``) or a ``distributed.Client``, whose workers decode
            and compare. They need zarrfs and access to both locations. This process writes the report.
        task_timeout: the time limit in seconds for one task on a worker of ``dask``; None: no limit. A worker that
            exceeds it is closed, and its tasks run on other workers.

    Raises the errors of ``open``, NodeExistsError if the report file exists and ``resume`` is False, StoreError if it
    cannot be written, or if the cluster was lost, and OptionError for ``metadata`` without ``other``. Problems of the
    data are not raised.
    """
    check_task_timeout(dask, task_timeout)
    if metadata and other is None:
        raise OptionError("metadata=True needs another location, whose metadata are compared")
    own, others = split_options(
        storage_options, location, location if other is None else other, both_external=True
    )
    node = open_node(location, storage_options=None if own is None else dict(own), cache_size=0)
    hint = (
        "continue with resume=True and the same report file"
        if report_file is not None
        else "run it again; with a report file it can be continued"
    )
    executor = nullcontext() if dask is None else connect_cluster(dask, task_timeout, hint, worker_progress)
    with node, executor as cluster:
        compared = None
        if other is not None:
            compared = open_node(
                other, storage_options=None if others is None else dict(others), cache_size=0
            )
        try:
            header = {
                "location": f"{node.store.url}/{node.path}".rstrip("/"),
                "other": None if compared is None else f"{compared.store.url}/{compared.path}".rstrip("/"),
            }
            with closing(Journal(report_file, header, resume)) as journal:
                if cluster is not None:
                    cluster.check_readable(*(opened for opened in (node, compared) if opened is not None))
                run = _Run(journal, memory, progress, cluster, metadata)
                run.verify(node, compared)
                run.report.workers = {} if cluster is None else cluster.statistics
                run.report.problems.sort(key=lambda problem: (problem.path, problem.chunk or ()))
                summary = {**run.report.to_json(), "problems": len(run.report.problems)}
                journal.finish(summary, run.report.problems)
        finally:
            if compared is not None:
                compared.close()
    return run.report


class _Run:
    """One verification."""

    def __init__(
        self,
        journal: Journal,
        memory: int,
        progress: Progress | None,
        cluster: ClusterExecutor | None,
        compares_metadata: bool,
    ) -> None:
        self.journal = journal
        self.memory = memory
        self.progress = progress
        self.cluster = cluster
        self.compares_metadata = compares_metadata
        self.axes: dict[str, tuple[str, ...]] = {}
        self.report = VerificationReport()

    def verify(self, node: Array | Group, other: Array | Group | None) -> None:
        for checked, place in ((node, ""), (other, f"{other.store.url}: " if other is not None else "")):
            note = None if checked is None else unfinished_note(checked)
            if note is not None:
                self.report.problems.append(Problem("/", "unfinished", f"{place}{note}"))
        if isinstance(node, Array):
            self._verify_array("/", node, other)
            if other is not None:
                self._compare_files(_Nodes(node), _Nodes(other))
            return
        nodes = _Nodes(node)
        if isinstance(other, Group):
            self._compare_groups("", node, other)
        for path, member in walk(node):
            nodes.add(path, member)
            if isinstance(member, Exception):
                self.report.problems.append(Problem(path, "unreadable", _message(member)))
                continue
            if is_unfinished(member.attrs):
                message = "the command that writes it was interrupted, has failed, or is running"
                self.report.problems.append(Problem(path, "unfinished", message))
            if isinstance(member, Array):
                self._verify_array(path, member, self._counterpart(path, other))
            elif self.compares_metadata:
                self._compare_groups(path, member, self._counterpart(path, other))
        if isinstance(other, Group):
            others = _Nodes(other)
            for path, member in walk(other):
                others.add(path, member)
                if isinstance(member, Array) and not isinstance(nodes.members.get(path), Array):
                    message = f"the array exists only in {other.store.url}"
                    self.report.problems.append(Problem(path, "different", message))
                elif self.compares_metadata and isinstance(member, Group) and path not in nodes.members:
                    message = f"the group exists only in {other.store.url}"
                    self.report.problems.append(Problem(path, "different", message))
            self._compare_files(nodes, others)
        elif other is not None:
            message = f"a group is compared with the array {other.name} in {other.store.url}"
            self.report.problems.append(Problem("/", "different", message))

    def _compare_groups(self, path: str, group: Group, other: Array | Group | Problem | None) -> None:
        """Compare the metadata of two groups. That of the arrays below them can depend on it."""
        if not self.compares_metadata or isinstance(other, Array):
            return  # an array that exists only at the other location is reported
        if isinstance(other, Problem):
            self.report.problems.append(other)
        elif other is not None:
            self.axes |= {**axes_of_members(other, path), **axes_of_members(group, path)}
            self._report_differences(path, group_differences(group, other), other)

    def _report_differences(self, path: str, differences: list[str], other: Array | Group) -> None:
        if differences:
            message = f"the metadata differ from those in {other.store.url}: {'; '.join(differences)}"
            self.report.problems.append(Problem(path or "/", "different", message))

    def _compare_files(self, nodes: _Nodes, others: _Nodes) -> None:
        """Compare the files that belong to no node. Those below members that cannot be read are omitted."""
        own, other = nodes.top, others.top
        try:
            keys = nodes.files(others.unreadable)
            found = others.files(nodes.unreadable)
        except ServerError:
            raise
        except StoreError as error:
            message = f"the files beside the arrays and groups are not compared: {_message(error)}"
            self.report.problems.append(Problem("/", "unreadable", message))
            return
        self.report.files += len(keys)
        different: list[str] = []

        def compare(key: str) -> None:
            if not have_equal_bytes(own.store, join(own.path, key), other.store, join(other.path, key)):
                different.append(key)

        for_each(compare, keys, max(CORES, own.store.concurrency, other.store.concurrency))
        for key in different:
            exists = other.store.exists(join(other.path, key))
            message = f"the file {'differs from that' if exists else 'does not exist'} in {other.store.url}"
            self.report.problems.append(Problem(key, "different", message))
        if own.store.listable:
            self.report.problems += [
                Problem(key, "different", f"the file exists only in {other.store.url}")
                for key in found
                if not own.store.exists(join(own.path, key))
            ]

    def _counterpart(self, path: str, other: Array | Group | None) -> Array | Group | Problem | None:
        if not isinstance(other, Group):
            return None
        try:
            return other[path]
        except (ZarrError, KeyError) as error:
            return Problem(path, "different", f"its counterpart cannot be opened: {_message(error)}")

    def _verify_array(self, path: str, array: Array, other: Array | Group | Problem | None) -> None:
        report = self.report
        report.arrays += 1
        compared = None
        if isinstance(other, Array) and _type_of(other) == _type_of(array):
            compared = other
            if self.compares_metadata:
                differences = array_differences(array, other, self.axes.get(path))
                self._report_differences(path, differences, other)
        elif isinstance(other, Problem):
            report.problems.append(other)
        elif other is not None:
            found = f"shape {other.shape}, data type {other.dtype}" if isinstance(other, Array) else "a group"
            message = f"expected shape {array.shape}, data type {array.dtype} as in this array; found {found}"
            report.problems.append(Problem(path, "different", message))
        try:
            coords, is_complete = self._chunks(path, array, compared)
        except ZarrError as error:
            report.problems.append(Problem(path, "unreadable", _message(error)))
            return
        listed = array.store.listable and compared is None
        if listed and is_complete and isinstance(coords, Cells):
            report.problems += [
                Problem(
                    path, "missing", "all neighbouring chunks are stored", chunk, array.storage.key(chunk)
                )
                for chunk in missing_between(coords)
            ]
        progress_counter = ProgressCounter(
            path, len(coords), nbytes_of_chunks(array, len(coords)), self.progress
        )
        verify_batch = VerifyBatch(path, array, compared, self.memory, listed)
        self._verify_chunks(path, verify_batch, coords, progress_counter)
        _check_presence(array, compared)

    def _chunks(self, path: str, array: Array, other: Array | None) -> tuple[Sequence[Coords], bool]:
        """Return the chunks to verify in C order, and whether all stored chunks are among them.

        They are those that are stored, in either of the arrays if their grids are equal. All chunks if a store cannot
        list, or if the grids differ. Keys that no chunk has, and directories that cannot be listed, are added to the
        problems.
        """
        every_chunk = ChunkCoords(array.storage.grid_shape), True
        if not array.store.listable:
            return every_chunk
        listed = ArrayKeys(array)
        if listed.unreachable:
            self.report.problems.append(Problem(path, "unreachable", listed.describe_unreachable()))
        if listed.error is not None:
            self.report.problems.append(Problem(path, "unreadable", _message(listed.error)))
        if other is None:
            return listed.chunks, listed.error is None
        if not other.store.listable or other.spec.chunk_grid != array.spec.chunk_grid:
            return every_chunk
        compared = ArrayKeys(other)
        if compared.error is not None:
            message = f"{other.store.url}: {_message(compared.error)}"
            self.report.problems.append(Problem(path, "unreadable", message))
        return Cells(array.storage.grid_shape, chain(listed.chunks, compared.chunks)), False

    def _verify_chunks(
        self,
        path: str,
        verify_batch: VerifyBatch,
        coords: Sequence[Coords],
        progress_counter: ProgressCounter,
    ) -> None:
        size = BATCH_SIZE if self.cluster is None else _cluster_batch_size(verify_batch.array)

        def remaining() -> Iterator[Sequence[Coords]]:
            for start in range(0, len(coords), size):
                batch = coords[start : start + size]
                self.report.chunks += len(batch)
                finished = self.journal.finished.get(_batch_key(path, batch))
                if finished is None:
                    yield batch
                else:
                    self.report.problems += finished
                    self.report.resumed += len(batch)
                    progress_counter.add(len(batch))

        def record(result: tuple[Sequence[Coords], list[Problem]]) -> None:
            batch, problems = result
            if problems:
                # The chunks of an array that is deleted meanwhile are missing; they are not listed as problems.
                _check_presence(verify_batch.array, verify_batch.other)
            problems.sort(key=lambda problem: problem.chunk or ())
            self.report.problems += problems
            self.journal.add(_batch_key(path, batch), problems)
            progress_counter.add(len(batch))

        if self.cluster is not None:
            # The batches are made while the tasks run. The last one can be smaller: the average counts.
            count = -(-len(coords) // size)
            nbytes = progress_counter.item_nbytes * len(coords) / max(1, count)
            self.cluster.run(verify_batch, remaining(), 0, lambda count: None, nbytes, record, count)
            return
        for batch in remaining():
            problems: list[Problem] = []

            def verify_one(chunk: Coords, found: list[Problem] = problems) -> None:
                found.extend(verify_batch.verify(chunk))

            for_each(verify_one, batch, CORES)
            record((batch, problems))


class _Nodes:
    """The nodes of one location: the top node, and the readable and unreadable members by path."""

    def __init__(self, top: Array | Group) -> None:
        self.top = top
        self.members: dict[str, Array | Group] = {}
        self.unreadable: set[str] = set()

    def add(self, path: str, member: Array | Group | Exception) -> None:
        if isinstance(member, Exception):
            self.unreadable.add(path)
        else:
            self.members[path] = member

    def files(self, excluded: Collection[str]) -> list[str]:
        """Return the keys that belong to no node, relative to the top node; none if the store cannot list."""
        if not self.top.store.listable:
            return []
        return foreign_keys(self.top, self.members.items(), {*self.unreadable, *excluded})


def _check_presence(*arrays: Array | None) -> None:
    for array in arrays:
        if array is not None:
            check_presence(array.store, array.path, "verified", "run this again if it exists")


def _cluster_batch_size(array: Array) -> int:
    return max(1, min(CLUSTER_BATCH_SIZE, CLUSTER_BATCH_NBYTES // max(1, nbytes_of_chunks(array, 1))))


def _batch_key(path: str, batch: Sequence[Coords]) -> BatchKey:
    return path, tuple(batch[0]), tuple(batch[-1]), len(batch)


def _type_of(array: Array) -> tuple[tuple[int, ...], Any]:
    return array.shape, array.dtype.newbyteorder("=")


def _message(error: Exception) -> str:
    return str(error) or type(error).__name__
