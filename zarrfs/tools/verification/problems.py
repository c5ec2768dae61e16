"""The problems that verification finds, and their summary."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from zarrfs.tools.copying.cluster.results import WorkerStatistics

__all__ = ["Problem", "ProblemKind", "VerificationReport"]

ProblemKind = Literal["corrupt", "different", "missing", "unfinished", "unreachable", "unreadable"]
"""
- ``corrupt``: a chunk, or an inner chunk of a shard, cannot be decoded.
- ``different``: the values of a chunk, the metadata of a node, or a file that belongs to no node, differ from those at
  the other location.
- ``missing``: a chunk is missing although all neighbouring chunks are stored. It may be intentional: programs do not
  store chunks that contain only the fill value.
- ``unfinished``: a command that writes the node was interrupted, has failed, or is running.
- ``unreachable``: keys below an array resemble those of chunks, but no chunk of the array has them: their values are
  not read. The chunk key encoding does not fit, or the array was larger.
- ``unreadable``: the metadata of a node, or the stored bytes of a chunk, cannot be read.
"""


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes:
        path: the path of the array or group, relative to the verified location.
        kind: one of ``ProblemKind``, as for ``zarrfs verify``.
        message: what was found.
        chunk: the coordinates of the chunk in its grid (the shard's, if the array is sharded), or None for a node.
        key: the key of the chunk in the store.
    """

    path: str
    kind: ProblemKind
    message: str
    chunk: tuple[int, ...] | None = None
    key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the members that have a value."""
        return {key: value for key, value in asdict(self).items() if value is not None}


@dataclass
class VerificationReport:
    """The result of a verification.

    Attributes:
        arrays, chunks: the number of arrays and of stored chunks (shards) that were verified.
        resumed: the number of these chunks that an earlier run has verified.
        files: the number of files that belong to no node and were compared with those at the other location.
        problems: what was found, ordered by array and chunk.
        workers: the statistics of each worker of a Dask cluster, by its address.
    """

    arrays: int = 0
    chunks: int = 0
    resumed: int = 0
    files: int = 0
    problems: list[Problem] = field(default_factory=list)
    workers: dict[str, WorkerStatistics] = field(default_factory=dict)

    def count(self, kind: ProblemKind) -> int:
        """Return the number of problems of a kind."""
        return sum(problem.kind == kind for problem in self.problems)

    @property
    def is_intact(self) -> bool:
        """Whether there are no problems, apart from missing chunks."""
        return self.count("missing") == len(self.problems)

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "intact": self.is_intact,
            "arrays": self.arrays,
            "chunks": self.chunks,
            "problems": [problem.to_json() for problem in self.problems],
        }
