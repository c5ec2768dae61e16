"""The limit of a read: the decoder calls on encoded chunks that are in memory, and one copy of the output.

The decoders, the number of threads and the memory of the output are those of zarrfs. Files, plans and the places of the
values in the output are left out, so that no reader that decodes whole chunks with these decoders can be faster. A read
that decodes only some blocks of its chunks can be.
"""

from __future__ import annotations

import ctypes
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from zarrfs.engine.native import build
from zarrfs.engine.native.library import native_library
from zarrfs.engine.native.structures import DECODERS
from zarrfs.engine.parallel import CORES

__all__ = ["LimitReader"]

MISSING = np.iinfo(np.uint64).max
MIN_TASK_NBYTES = 128 << 10
MIN_TASK_FILES = 32
"""As in ``zarrfs/engine/read/planning.py``."""


class _Job(ctypes.Structure):
    _fields_ = [
        ("functions", ctypes.c_void_p),
        ("chunks", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("nbytes", ctypes.c_int64),
        ("out_nbytes", ctypes.c_int64),
        ("next", ctypes.c_int64),
        ("step", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("failures", ctypes.c_int32),
        ("unused", ctypes.c_int32),
    ]


@cache
def _run() -> Callable[[Any], int]:
    """Compile ``limit.c`` with the decoders of the native library. Raises BuildError."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory) / "limit.so"
        source = Path(__file__).with_name("limit.c")
        build.compile_library(target, ["-I", str(build.DIRECTORY), str(source)])
        function: Callable[[Any], int] = ctypes.CDLL(str(target)).zarrfs_limit
    return function


class LimitReader:
    """An array of the benchmark whose encoded chunks are kept in memory."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        document = json.loads((self._directory / "zarr.json").read_text())
        self._shape = tuple(document["shape"])
        self._stored = tuple(document["chunk_grid"]["configuration"]["chunk_shape"])
        codecs = document["codecs"]
        self._is_sharded = codecs[0]["name"] == "sharding_indexed"
        self._chunk = self._stored
        if self._is_sharded:
            self._chunk = tuple(codecs[0]["configuration"]["chunk_shape"])
            codecs = codecs[0]["configuration"]["codecs"]
        names = [codec["name"] for codec in codecs if codec["name"] != "bytes"]
        library = native_library()
        if library is None or not all(library.supports(name) for name in names):
            raise SystemExit("the limit needs the native library and its decoders; see: zarrfs doctor")
        self._functions = library.functions
        self._step = DECODERS[names[0]] if names else 0
        self._nbytes = prod(self._chunk) * 2
        self._values: dict[tuple[int, ...], bytes] = {}

    def load(self, selection: tuple[Any, ...]) -> None:
        """Read the encoded chunks that a selection needs."""
        for _ in self._chunks(selection):
            pass

    def read(self, selection: tuple[Any, ...]) -> np.ndarray[Any, Any]:
        """Decode the chunks of a selection. The values of the result are not those of the array."""
        shape = tuple(
            len(range(*index.indices(length)))
            for index, length in zip(selection, self._shape, strict=True)
            if isinstance(index, slice)
        )
        chunks = list(self._chunks(selection))
        out = np.empty(shape, np.uint16)
        pointers = (ctypes.c_char_p * len(chunks))(*chunks)
        sizes = (ctypes.c_int64 * len(chunks))(*map(len, chunks))
        tasks = max(1, len(chunks) * self._nbytes // MIN_TASK_NBYTES, len(chunks) // MIN_TASK_FILES)
        job = _Job(
            functions=ctypes.addressof(self._functions),
            chunks=ctypes.addressof(pointers),
            sizes=ctypes.addressof(sizes),
            out=out.ctypes.data,
            count=len(chunks),
            nbytes=self._nbytes,
            out_nbytes=min(out.nbytes, len(chunks) * self._nbytes),
            step=self._step,
            threads=min(CORES, tasks, len(chunks)),
        )
        if _run()(ctypes.byref(job)):
            raise SystemExit(f"{self._directory}: the limit could not decode all chunks")
        return out

    def _chunks(self, selection: tuple[Any, ...]) -> Iterator[bytes]:
        numbers = []
        for index, length, chunk in zip(selection, self._shape, self._chunk, strict=True):
            start, stop, _ = index.indices(length) if isinstance(index, slice) else (index, index + 1, 1)
            numbers.append(range(start // chunk, -(-stop // chunk)))
        for coords in product(*numbers):
            if coords not in self._values:
                grid = [stored // chunk for stored, chunk in zip(self._stored, self._chunk, strict=True)]
                self._load_value(tuple(c // n for c, n in zip(coords, grid, strict=True)), grid)
            yield self._values[coords]

    def _load_value(self, coords: tuple[int, ...], grid: list[int]) -> None:
        data = self._directory.joinpath("c", *map(str, coords)).read_bytes()
        if not self._is_sharded:
            self._values[coords] = data
            return
        index = np.frombuffer(data[-16 * prod(grid) - 4 : -4], "<u8").reshape(-1, 2)
        for (offset, nbytes), inner in zip(index.tolist(), np.ndindex(*grid), strict=True):
            if offset != MISSING:
                number = tuple(c * n + i for c, n, i in zip(coords, grid, inner, strict=True))
                self._values[number] = data[offset : offset + nbytes]
