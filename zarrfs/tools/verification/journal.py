"""The report file of a verification: JSON lines, from which an interrupted run is resumed.

The first line names the locations. Each further line lists the problems of one batch of chunks. The last lines list the
problems of arrays and groups and the missing chunks, which are determined in each run, and state that the run is
complete. A line that was not completely written is ignored.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import NodeExistsError, StoreError
from zarrfs.tools.verification.problems import Problem

__all__ = ["BatchKey", "Journal"]

BatchKey = tuple[str, tuple[int, ...], tuple[int, ...], int]
"""An array, its first and last chunk in a batch, and the number of chunks in the batch."""

FORMAT = 1


class Journal:
    """The report file at ``path``, or nothing if that is None. Not thread-safe.

    Raises NodeExistsError if the file exists and ``resume`` is False, and StoreError if it cannot be read or written,
    or is the report of another verification than ``header`` describes.
    """

    def __init__(self, path: str | os.PathLike[str] | None, header: Mapping[str, Any], resume: bool) -> None:
        self.path = None if path is None else os.fspath(path)
        self.finished: dict[BatchKey, list[Problem]] = {}
        self._recorded: set[Problem] = set()
        self._file: Any = None
        if self.path is None:
            return
        header = {"zarrfs_verify": FORMAT, **header}
        try:
            size = self._read(header) if resume else 0
            self._file = open(self.path, "r+b" if size else "xb")  # noqa: SIM115  # closed by close()
            self._file.truncate(size)
            self._file.seek(size)
        except FileExistsError:
            raise NodeExistsError(
                f"{self.path} exists; use resume=True to continue an interrupted verification, or another name"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{self.path}: the report cannot be opened: {error.strerror or error}", error.errno
            ) from error
        if not size:
            self._write(header)

    def _read(self, header: Mapping[str, Any]) -> int:
        """Read the finished batches, and return the size of the lines until the last of them; 0 if there is no file."""
        try:
            with open(open_regular_file(self.path or ""), "rb") as file:
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return 0
        if not lines:
            raise FileExistsError(self.path)
        try:
            documents = [json.loads(line) for line in lines]
            if documents[0] != header:
                raise ValueError(f"it is the report of {documents[0]}, expected {dict(header)}")
            end = 1
            for number, document in enumerate(documents):
                if "batch" in document:
                    array, first, last, count = document["batch"]
                    problems = [_problem(item) for item in document["problems"]]
                    self.finished[array, tuple(first), tuple(last), count] = problems
                    self._recorded.update(problems)
                    end = number + 1
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(f"{self.path}: the verification cannot be resumed: {error}") from error
        return sum(len(line) + 1 for line in lines[:end])

    def add(self, batch: BatchKey, problems: list[Problem]) -> None:
        """Record a finished batch."""
        self._recorded.update(problems)
        self._write({"batch": batch, "problems": [problem.to_json() for problem in problems]})

    def finish(self, summary: Mapping[str, Any], problems: Iterable[Problem]) -> None:
        """Record the result, and those of the problems that belong to no batch."""
        others = [problem.to_json() for problem in problems if problem not in self._recorded]
        if others:
            self._write({"problems": others})
        self._write({"complete": summary})

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _write(self, document: Mapping[str, Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(document).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise StoreError(
                f"{self.path}: the report cannot be written: {error.strerror or error}", error.errno
            ) from error


def _problem(item: Mapping[str, Any]) -> Problem:
    chunk = item.get("chunk")
    return Problem(
        item["path"], item["kind"], item["message"], None if chunk is None else tuple(chunk), item.get("key")
    )
