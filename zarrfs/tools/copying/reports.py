"""The report of a copy: one line per node, and the members that are missing from the copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from zarrfs.errors import IncompleteCopyError
from zarrfs.tools.copying.cluster.results import WorkerStatistics

__all__ = ["ArrayEstimate", "CopyReport", "incomplete_copy_error"]

MAX_NAMED_MEMBERS = 10
"""The maximum number of missing members that an error names."""


@dataclass(frozen=True)
class ArrayEstimate:
    """The estimated cost of copying an array, from a few of its tasks that were run.

    Attributes:
        path: the path of the copy.
        tasks: the number of tasks, which are independent of each other.
        nbytes_read, nbytes_written: the stored bytes of source and copy, from the sizes in the sample.
        nbytes_per_thread: the decoded bytes of one task, and the cache for decoded source chunks.
        seconds: the expected time on ``threads`` threads. It contains neither the start of the command, nor the listing
            of the source, nor a verification.
        threads: the number of threads of this process or of the cluster.
        sampled: the number of tasks that were measured.
        not_written: why ``seconds`` does not contain the time of writing to the destination, or None if it does.
    """

    path: str
    tasks: int
    nbytes_read: int
    nbytes_written: int
    nbytes_per_thread: int
    seconds: float
    threads: int
    sampled: int
    not_written: str | None = None


class CopyReport(list[str]):
    """One line for each node that was copied, or would be in a dry run.

    Attributes:
        skipped: the reason for each member of the source that is not in the copy, by path. Empty unless
            ``skip_broken`` is given.
        files: the keys of the copy that belong to no node. They are copied unchanged.
        notes: what the copy may lack for another reason than an error.
        estimates: in a dry run, the estimated cost of copying each array.
        source: how several files were put together to the source, or an empty string.
        workers: the statistics of each worker of a Dask cluster, by its address.
    """

    def __init__(self) -> None:
        super().__init__()
        self.skipped: dict[str, str] = {}
        self.files: list[str] = []
        self.notes: list[str] = []
        self.estimates: list[ArrayEstimate] = []
        self.source = ""
        self.workers: dict[str, WorkerStatistics] = {}


def incomplete_copy_error(where: str, state: str, missing: Mapping[str, str]) -> IncompleteCopyError:
    """Return the error for a copy from ``where`` that lacks members. ``state`` describes what was written."""
    descriptions = [f"{path} ({reason})" for path, reason in list(missing.items())[:MAX_NAMED_MEMBERS]]
    if len(missing) > MAX_NAMED_MEMBERS:
        descriptions.append(f"and {len(missing) - MAX_NAMED_MEMBERS} more")
    count = f"{len(missing)} member{'' if len(missing) == 1 else 's'}"
    return IncompleteCopyError(
        f"{where}: {state}; {count} cannot be copied: {'; '.join(descriptions)}. "
        "Repair the source, or skip them with skip_broken=True"
    )
