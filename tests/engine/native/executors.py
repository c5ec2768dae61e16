"""Reading and writing with either executor, and recording what the native one does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.array import indexed_array
from zarrfs.engine.native.build import LIBRARY_NAME, BuildError, compile_library
from zarrfs.engine.native.library import NativeLibrary
from zarrfs.engine.read import native_reading, planning
from zarrfs.engine.write import native_writing

__all__ = ["Record", "native", "outcome", "python", "require_library"]


@cache
def _library(*flags: str) -> NativeLibrary | str:
    """Return the library, compiled from the sources as they are, or why it cannot be compiled."""
    path = Path(mkdtemp(prefix="zarrfs-native-")) / LIBRARY_NAME
    try:
        compile_library(path, ["-Werror", *flags])
    except BuildError as error:
        return str(error)
    return NativeLibrary(path)


def require_library(*flags: str) -> NativeLibrary:
    """Return the library, compiled with these flags. Skips the test if there is no C compiler; fails if the sources
    cannot be compiled.
    """
    library = _library(*flags)
    if isinstance(library, str):
        if "no C compiler" in library or "supports" in library:
            pytest.skip(library)
        pytest.fail(library)
    return library


@dataclass
class Record:
    """The numbers of reads and writes that the library executed, and of chunks that it returned to the Python one."""

    reads: int = 0
    writes: int = 0
    returned: int = 0


@contextmanager
def native(*flags: str) -> Iterator[Record]:
    """Inside the context, arrays are read and written with the native library, compiled with ``flags``."""
    library = require_library(*flags)
    record = Record()
    original = native_reading.read_natively
    original_write = native_writing._execute

    def execute(*arguments: Any) -> Iterator[Any]:
        record.reads += 1
        for chunks in original(*arguments):
            record.returned += len(chunks)
            yield chunks

    def execute_write(*arguments: Any) -> Iterator[Any]:
        record.writes += 1
        for positions in original_write(*arguments):
            record.returned += len(positions)
            yield positions

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_reading, "native_library", lambda: library)
        patch.setattr(native_writing, "_execute", execute_write)
        patch.setattr(native_reading, "read_natively", execute)
        # Without these, reads within one chunk are left to the Python executor.
        patch.setattr(planning, "MIN_NATIVE_CHUNKS", 1)
        patch.setattr(indexed_array, "read_basic", lambda storage, selection: None)
        patch.setattr(native_writing, "MIN_NATIVE_CHUNKS", 1)
        _forget_arrays()
        yield record
    _forget_arrays()


def _forget_arrays() -> None:
    native_reading._native_arrays.clear()
    native_writing._encodings.clear()


@contextmanager
def python() -> Iterator[None]:
    """Read and write with the Python executor in the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native_reading, "native_library", lambda: None)
        yield


def outcome(location: Any, selection: Any = ..., **options: Any) -> tuple[str, Any]:
    """Return what a read returns or raises, in a form that can be compared."""
    try:
        node = zarrfs.open_array(location, mode="r", **({"cache_size": 0} | options))
        values = np.asarray(node[selection])
    except zarrfs.ZarrError as error:
        return type(error).__name__, str(error)
    return "values", (values.shape, values.dtype.str, values.tobytes())
