"""The task of a verification: it verifies the chunks of a batch. It can be sent to other processes."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.nodes.array import Array
from zarrfs.errors import ChunkDecodeError
from zarrfs.tools.copying.block_grid import Coords
from zarrfs.tools.verification.chunks import ChunkVerifier
from zarrfs.tools.verification.problems import Problem

__all__ = ["VerifyBatch"]


class VerifyBatch:
    """Verifies chunks of one array. Thread-safe and picklable. See ``ChunkVerifier`` for the parameters."""

    def __init__(self, path: str, array: Array, other: Array | None, memory: int, listed: bool) -> None:
        self.array, self.other = array, other
        self._arguments = path, array, other, memory, listed
        self._collected = _ErrorCollector()
        self._verifier = ChunkVerifier(path, self._collected.attach(array), other, memory, listed)

    def __reduce__(self) -> tuple[Any, ...]:
        return VerifyBatch, self._arguments

    def __call__(self, batch: Sequence[Coords]) -> tuple[Sequence[Coords], list[Problem]]:
        """Return the batch and the problems of its chunks."""
        return batch, [problem for chunk in batch for problem in self.verify(chunk)]

    def verify(self, chunk: Coords) -> list[Problem]:
        """Return the problems of a chunk."""
        return self._verifier(chunk, self._collected.take)


class _ErrorCollector:
    """Collects the errors of the corrupt chunks that the current thread reads."""

    def __init__(self) -> None:
        self._state = threading.local()

    def attach(self, array: Array) -> Array:
        """Return the array with an access that collects errors, reads on the calling thread, and caches nothing."""
        access = replace(array.storage.access, on_corrupt=self._add, concurrency=1)
        return Array(array.store, array.path, array.spec, ChunkCache(0), True, access)

    def _add(self, error: ChunkDecodeError) -> None:
        self._errors().append(error)

    def _errors(self) -> list[ChunkDecodeError]:
        errors: list[ChunkDecodeError] | None = getattr(self._state, "errors", None)
        if errors is None:
            errors = self._state.errors = []
        return errors

    def take(self) -> list[ChunkDecodeError]:
        """Return the errors of this thread, and clear them."""
        errors = self._errors()
        self._state.errors = []
        return errors
